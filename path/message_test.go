package path

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"net/netip"
	"testing"
	"time"
)

func TestProbeGolden(t *testing.T) {
	for _, c := range []struct {
		p    Probe
		wire string
		back Probe
	}{
		{Probe{}, "000000000000000000000000", Probe{}},
		{Probe{ID: 0x01020304, Interval: 200 * time.Millisecond, LossIn: 0.5}, "0102030400c87fff00000000",
			Probe{ID: 0x01020304, Interval: 200 * time.Millisecond, LossIn: 0.5}},
		{Probe{ID: math.MaxUint32, Interval: 5 * time.Second, LossIn: -1, ReplySize: 1308, Largest: 496}, "ffffffff1388ffff051c01f0",
			Probe{ID: math.MaxUint32, Interval: 5 * time.Second, LossIn: -1, ReplySize: 1308, Largest: 496}},
		{Probe{ID: 7, Interval: time.Hour, LossIn: 1, Largest: math.MaxUint16}, "00000007fffffffe0000ffff",
			Probe{ID: 7, Interval: 65535 * time.Millisecond, LossIn: 1, Largest: math.MaxUint16}},
		{Probe{ID: 7, Interval: -time.Second, LossIn: 1.5}, "000000070000fffe00000000", Probe{ID: 7, LossIn: 1}},
		{Probe{ID: 7, Interval: 1999 * time.Microsecond, LossIn: math.NaN()}, "000000070001ffff00000000",
			Probe{ID: 7, Interval: time.Millisecond, LossIn: -1}},
	} {
		b := make([]byte, ProbeLen)
		c.p.Put(b)
		if got := hex.EncodeToString(b); got != c.wire {
			t.Errorf("%+v: %s, want %s", c.p, got, c.wire)
		}
		got, err := DecodeProbe(append(b, 1, 2, 3))
		if err != nil || got != c.back {
			t.Errorf("%s: %+v, %v, want %+v", c.wire, got, err, c.back)
		}
		// What an earlier version sends ends before the sizes.
		c.back.ReplySize, c.back.Largest = 0, 0
		for n := oldProbeLen; n < ProbeLen; n++ {
			if got, err = DecodeProbe(b[:n]); err != nil || got != c.back {
				t.Errorf("%d octets of %s: %+v, %v, want %+v", n, c.wire, got, err, c.back)
			}
		}
	}
}

func TestReplyGolden(t *testing.T) {
	for _, c := range []struct {
		r    Reply
		wire string
	}{
		{Reply{}, "0000000000000000000000000000000000000000"},
		{Reply{ID: 0x01020304, LossOut: 0.5, Received: 9, Expected: 0x012345, Bytes: 4660, Mapping: 0xabcd, Seen: 1308},
			"010203047fff000009012345" + "00001234abcd051c"},
		{Reply{math.MaxUint32, -1, low24, low24, math.MaxUint32, math.MaxUint16, math.MaxUint16},
			"ffffffffffffffffffffffffffffffffffffffff"},
		{Reply{ID: 7, LossOut: 1}, "00000007fffe0000000000000000000000000000"},
	} {
		b := make([]byte, ReplyLen)
		c.r.Put(b)
		if got := hex.EncodeToString(b); got != c.wire {
			t.Errorf("%+v: %s, want %s", c.r, got, c.wire)
		}
		got, err := DecodeReply(append(b, 1, 2, 3))
		if err != nil || got != c.r {
			t.Errorf("%s: %+v, %v, want %+v", c.wire, got, err, c.r)
		}
		old := Reply{ID: c.r.ID, LossOut: c.r.LossOut}
		for n := oldReplyLen; n < ReplyLen; n++ {
			if got, err = DecodeReply(b[:n]); err != nil || got != old {
				t.Errorf("%d octets of %s: %+v, %v, want %+v", n, c.wire, got, err, old)
			}
		}
	}
}

// The totals wrap on the wire.
func TestReplyTotals(t *testing.T) {
	b := make([]byte, ReplyLen)
	Reply{LossOut: -1, Received: 5<<24 | 7, Expected: 6<<24 | 9}.Put(b)
	if r, err := DecodeReply(b); err != nil || r.Received != 7 || r.Expected != 9 || r.LossOut != -1 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, c := range []struct {
		now, before uint32
		want        int32
	}{{9, 7, 2}, {3, low24, 4}, {7, 9, -2}, {low24, 3, -4}, {1<<24 | 9, 7, 2}, {1 << 23, 0, -1 << 23}, {1<<23 - 1, 0, 1<<23 - 1}} {
		if got := since24(c.now, c.before); got != c.want {
			t.Errorf("%d after %d: %d, want %d", c.now, c.before, got, c.want)
		}
	}
}

func TestShortMessages(t *testing.T) {
	for n := range oldProbeLen {
		if _, err := DecodeProbe(make([]byte, n)); !errors.Is(err, ErrShort) {
			t.Errorf("probe of %d octets: %v", n, err)
		}
	}
	for n := range oldReplyLen {
		if _, err := DecodeReply(make([]byte, n)); !errors.Is(err, ErrShort) {
			t.Errorf("reply of %d octets: %v", n, err)
		}
	}
}

// A reply is as long as was asked for, but never longer than its probe.
func TestReplyFrame(t *testing.T) {
	for _, c := range []struct {
		asked              uint16
		got, largest, want int
	}{
		{0, 40, 1308, 48},
		{1308, 1308, 1308, 1308},
		{1308, 1308, 1228, 1228},
		{1308, 40, 1308, 48}, // a short probe earns no long reply
		{40, 40, 1308, 48},
		{496, 1308, 1308, 496},
	} {
		if got := (Probe{ReplySize: c.asked}).ReplyFrame(c.got, 48, c.largest); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestMappingOf(t *testing.T) {
	seen := map[uint16]netip.AddrPort{}
	for _, s := range []string{
		"198.51.100.7:40000", "198.51.100.7:40001", "198.51.100.8:40000", "198.51.100.7:16540",
		"[2001:db8::1]:40000", "[2001:db8::2]:40000",
	} {
		a := netip.MustParseAddrPort(s)
		m := MappingOf(a)
		if other, twice := seen[m]; m == 0 || twice {
			t.Errorf("%v and %v: %d", a, other, m)
		}
		seen[m] = a
	}
	if MappingOf(netip.AddrPort{}) != 0 {
		t.Error("something for no address")
	}
	mapped := netip.AddrPortFrom(netip.MustParseAddr("::ffff:198.51.100.7"), 40000)
	if MappingOf(mapped) != MappingOf(netip.MustParseAddrPort("198.51.100.7:40000")) {
		t.Error("one address written two ways is two")
	}
}

// What is decoded is written back as the same octets, and what a message ends
// before is zero.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 0, 200, 0x7f, 0xff})
	f.Add([]byte{1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff, 9})
	f.Add([]byte{1, 2, 3, 4, 0, 200, 0x7f, 0xff, 5, 28, 1, 240, 0, 0})
	f.Add([]byte{1, 2, 3, 4, 0x7f, 0xff, 0, 0, 0, 9, 0, 0, 0, 18, 0, 0, 18, 52, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		want := func(whole, old int) []byte {
			w := make([]byte, whole)
			if n := copy(w, b); n < whole {
				clear(w[old:])
			}
			return w
		}
		if p, err := DecodeProbe(b); err == nil {
			out := make([]byte, ProbeLen)
			p.Put(out)
			if want := want(ProbeLen, oldProbeLen); !bytes.Equal(out, want) {
				t.Errorf("probe %x became %x", want, out)
			}
			if p.LossIn > 1 || p.LossIn < 0 && p.LossIn != -1 {
				t.Errorf("share %v", p.LossIn)
			}
			if n := p.ReplyFrame(len(b), 48, 1308); n < 48 || n > max(48, len(b)) {
				t.Errorf("a probe of %d octets wants a reply of %d", len(b), n)
			}
		}
		if r, err := DecodeReply(b); err == nil {
			out := make([]byte, ReplyLen)
			r.Put(out)
			if want := want(ReplyLen, oldReplyLen); !bytes.Equal(out, want) {
				t.Errorf("reply %x became %x", want, out)
			}
		}
	})
}
