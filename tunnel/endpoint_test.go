package tunnel

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// readControl returns the segment size and the source in what is sent with a
// message.
func readControl(oob []byte) (segment int, source netip.Addr) {
	source = parseControl(oob).local
	for len(oob) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			panic(err)
		}
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_SEGMENT {
			segment = int(data[0]) | int(data[1])<<8
		}
		oob = rest
	}
	return segment, source
}

func from(remote string) arrival {
	return arrival{remote: netip.MustParseAddrPort(remote)}
}

func TestEndpointsAreShared(t *testing.T) {
	var c endpoints
	a := c.get(from("192.0.2.1:5"))
	other := c.get(from("192.0.2.1:6"))
	if b := c.get(from("192.0.2.1:5")); a != b || a == other {
		t.Error("one address, two endpoints, or two in one")
	}
	for i := range 3 * endpointCache {
		c.get(arrival{remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 7)})
	}
	if len(c.known) > endpointCache {
		t.Errorf("%d endpoints are remembered, more than %d", len(c.known), endpointCache)
	}
}

func TestEndpointsKnowWhereTheyWereSentTo(t *testing.T) {
	for remote, locals := range map[string][2]string{
		"192.0.2.1:5":     {"198.51.100.1", "198.51.100.2"},
		"[2001:db8::1]:5": {"2001:db8::2", "2001:db8::3"},
		"[fe80::1]:5":     {"fe80::2", "fe80::3"},
	} {
		c := endpoints{port: 51820}
		var made [2]*endpoint
		for i, l := range locals {
			a := from(remote)
			a.local = netip.MustParseAddr(l)
			made[i] = c.get(a)
			if got := made[i]; got.SrcIP() != a.local || got.local.Port() != 51820 || got.addr != a.remote {
				t.Errorf("%s to %s: source %v, port %d, remote %v", remote, l, got.SrcIP(), got.local.Port(), got.addr)
			}
			if got := parseControl(made[i].source).local; got != a.local {
				t.Errorf("%s to %s: the control message says %v", remote, l, got)
			}
		}
		if made[0] == made[1] {
			t.Errorf("%s: one endpoint for two own addresses", remote)
		}
	}
}

func TestEndpointZones(t *testing.T) {
	c := endpoints{port: 51820}
	a := arrival{
		remote: netip.MustParseAddrPort("[fe80::1]:5"), remoteZone: 1,
		local: netip.MustParseAddr("fe80::2"), localZone: 1,
	}
	e := c.get(a)
	if got := e.DstToString(); got != "[fe80::1%lo]:5" {
		t.Errorf("remote %s", got)
	}
	if got := parseControl(e.source).index; got != 1 {
		t.Errorf("the source's interface is %d, want 1", got)
	}
	a.remoteZone = 1 << 30
	if got := c.get(a).DstToString(); got != "[fe80::1%1073741824]:5" {
		t.Errorf("remote %s on an interface that has gone", got)
	}
}

func TestSourceIsForgottenAndComesBack(t *testing.T) {
	c := endpoints{port: 51820}
	a := from("192.0.2.1:5")
	a.local = netip.MustParseAddr("198.51.100.1")
	cleared := c.get(a)
	cleared.ClearSrc()
	if cleared.from() != nil || cleared.SrcIP().IsValid() || cleared.SrcToString() != "" || cleared.local.Port() != 51820 {
		t.Error("a cleared source is in use, or its port is not")
	}
	e := c.get(a) // the peer speaks again
	if e.from() == nil {
		t.Error("a cleared source did not come back with the peer")
	}
	e.forget(time.Now())
	if c.get(a).from() != nil {
		t.Error("a source that just proved to be gone is in use")
	}
	e.forget(time.Now().Add(-sourceRetry))
	if c.get(a).from() == nil {
		t.Error("a source that is back is not in use")
	}
	none := newEndpoint(a.remote)
	if none.ClearSrc(); none.forgotten.Load() != 0 {
		t.Error("an endpoint without source forgot one")
	}
}

func TestParseControl(t *testing.T) {
	v6 := sourceControl(netip.MustParseAddr("fe80::2"), 7)
	if a := parseControl(v6); a.local != netip.MustParseAddr("fe80::2") || a.index != 7 {
		t.Errorf("%+v", a)
	}
	both := append(sourceControl(netip.MustParseAddr("198.51.100.1"), 0), v6[:unix.SizeofCmsghdr]...)
	if a := parseControl(both); a.local != netip.MustParseAddr("198.51.100.1") {
		t.Errorf("what follows is cut short: %+v", a)
	}
}

func FuzzParseControl(f *testing.F) {
	f.Add(sourceControl(netip.MustParseAddr("198.51.100.1"), 0))
	f.Add(sourceControl(netip.MustParseAddr("fe80::2"), 7))
	f.Fuzz(func(t *testing.T, oob []byte) {
		if a := parseControl(oob); a.segment < 0 || a.segment > 1<<16 {
			t.Errorf("%+v", a)
		}
	})
}

func TestWhence(t *testing.T) {
	var w whence
	remote := netip.MustParseAddrPort("192.0.2.1:5")
	if e := w.to(remote); e.addr != remote || e.from() != nil || e.origin().IsValid() {
		t.Errorf("%v from %v, though nothing came from there", e.addr, e.origin())
	}
	for _, local := range []string{"198.51.100.1:443", "198.51.100.2:4500", "0.0.0.0:443"} {
		want := netip.MustParseAddrPort(local)
		w.note(newSourced(remote, want, 0))
		e := w.to(remote)
		if e.origin() != want || (e.from() == nil) != want.Addr().IsUnspecified() {
			t.Errorf("from %v, want %v", e.origin(), want)
		}
		if e.forget(time.Now()); e.origin() != netip.AddrPortFrom(netip.IPv4Unspecified(), want.Port()) {
			t.Errorf("once %v is forgotten it is from %v", want, e.origin())
		}
	}
	near := newSourced(netip.MustParseAddrPort("[fe80::1%lo]:5"), netip.MustParseAddrPort("[fe80::2]:443"), 1)
	if got := near.origin(); got != netip.MustParseAddrPort("[::]:443") {
		t.Errorf("a link-local address without its interface: %v", got)
	}
	for i := range 3 * endpointCache {
		w.note(newEndpoint(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 7)))
	}
	if len(w.latest) > endpointCache {
		t.Errorf("%d remembered, more than %d", len(w.latest), endpointCache)
	}
}
