package path

import "testing"

// The sizes of the carrier's packets are those that docs/ARCHITECTURE.md tells.
func TestCarrierBytes(t *testing.T) {
	for _, c := range []struct {
		frame, largest int
		v4, v6         int
	}{
		{1308, 1308, 1368, 1388}, // full: not padded
		{1300, 1308, 1368, 1388}, // padded up to the MTU only
		{1296, 1308, 1356, 1376},
		{40, 1308, 108, 128},
		{1308, 1448, 1372, 1392},
		{1, 1308, 76, 96},
		{0, 1308, 60, 80},
	} {
		if v4, v6 := CarrierBytes(c.frame, c.largest, false), CarrierBytes(c.frame, c.largest, true); v4 != c.v4 || v6 != c.v6 {
			t.Errorf("%+v: %d and %d", c, v4, v6)
		}
	}
}

func TestFrameFor(t *testing.T) {
	for _, c := range []struct{ mtu, v4, v6 int }{
		{1500, 1308, 1308}, {1388, 1308, 1308}, {1387, 1308, 1296}, {1368, 1308, 1280}, {1367, 1296, 1280},
		{1280, 1216, 1200}, {1124, 1056, 1040}, {576, 512, 496}, {60, 0, 0}, {0, 0, 0}, {76, 16, 0},
	} {
		if v4, v6 := FrameFor(c.mtu, 1308, false), FrameFor(c.mtu, 1308, true); v4 != c.v4 || v6 != c.v6 {
			t.Errorf("MTU %d: %d and %d, want %d and %d", c.mtu, v4, v6, c.v4, c.v6)
		}
	}
	// Against counting, for odd largest frames too.
	for _, largest := range []int{496, 1300, 1308, 1312, 1448} {
		for _, ipv6 := range []bool{false, true} {
			for mtu := range 1600 {
				want := 0
				for frame := 1; frame <= largest; frame++ {
					if CarrierBytes(frame, largest, ipv6) <= mtu {
						want = frame
					}
				}
				if got := FrameFor(mtu, largest, ipv6); got != want {
					t.Fatalf("MTU %d, IPv6 %v, largest %d: %d, want %d", mtu, ipv6, largest, got, want)
				}
			}
		}
	}
}
