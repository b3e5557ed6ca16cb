package tunnel

import (
	"net/netip"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/device"
)

// Somebody on the way who delivers a copy of a gateway's packet from an address
// of his own makes WireGuard send there. Once he has gone, nothing but a new
// search leads back.
func TestSearchGoesToTheConfiguredEndpoint(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	w.stop["gateway0"]()
	gateway := w.robotCfg[0].Gateways[0]
	wg := w.robots[0].carriers[0].wg
	nowhere := newEndpoint(netip.MustParseAddrPort("127.0.0.1:9"))
	wg.dev.LookupPeer(device.NoisePublicKey(gateway.Key)).SetEndpointFromPacket(nowhere)
	wg.handshake(gateway.Key, gateway.Endpoints[0], true)
	if got := wg.sessions()[gateway.Key].endpoint; got != gateway.Endpoints[0].String() {
		t.Errorf("the handshake goes to %s, want %v", got, gateway.Endpoints[0])
	}
}

// A path whose gateway falls silent has died; one whose carrier is taken away has
// not.
func TestPathsTellDeathFromLostRoutes(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	r := w.robots[0]
	r.SetUplink(1, Uplink{Interface: "lo", Index: 1})
	w.stop["gateway0"]()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		paths := r.Paths()
		if !paths[0].Up && !paths[1].Up {
			if !paths[0].Died || paths[1].Died {
				t.Errorf("%+v", paths)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", paths)
		}
	}
}

// Carriers that stay need to reach what others reach, but not a gateway that is
// away.
func TestReaches(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.settle()
	r := w.robots[0]
	r.SetUplink(1, Uplink{Interface: "lo", Index: 1})
	reaches := func(what string, want bool, slots ...int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); r.Reaches(slots) != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: carriers %v reach all: %v", what, slots, !want)
			}
		}
	}
	reaches("one lost its route", false, 1)
	reaches("the other is well", true, 0)
	w.stop["gateway1"]()
	for end := time.Now().Add(20 * time.Second); r.Paths()[1].Up; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the path to a stopped gateway stays up")
		}
	}
	reaches("a gateway is away", true, 0)
	reaches("a gateway is away", false, 1)
}

func TestNodesNeedAnAddress(t *testing.T) {
	if _, err := NewRobot(RobotConfig{}, newFakeHost()); err == nil {
		t.Error("a robot without an overlay address was made")
	}
	if _, err := NewGateway(GatewayConfig{}, newFakeHost()); err == nil {
		t.Error("a gateway without an overlay address was made")
	}
}
