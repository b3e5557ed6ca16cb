package tunnel

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.zx2c4.com/wireguard/conn"
)

// endpoint is a remote UDP address and, on a gateway, the own address and port
// that it sent to: from there it is answered, since a NAT or a firewall on the
// way lets nothing else through. Those never change once made, so that one
// object serves all packets from and to them. Only the own address can be
// forgotten; the kernel then chooses one.
type endpoint struct {
	addr netip.AddrPort
	udp  *net.UDPAddr
	key  []byte // for WireGuard's cookies

	local  netip.AddrPort // zero address: the kernel's choice; port 0: the main one
	source []byte         // control message for local's address, nil without one
	// forgotten is when source went out of use, in nanoseconds since 1970; 0
	// while it is in use.
	forgotten atomic.Int64
}

func newEndpoint(a netip.AddrPort) *endpoint {
	a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	key, _ := a.MarshalBinary() // cannot fail
	return &endpoint{addr: a, udp: net.UDPAddrFromAddrPort(a), key: key}
}

func parseEndpoint(s string) (conn.Endpoint, error) {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", s, err)
	}
	return newEndpoint(a), nil
}

// from returns the control message that gives what is sent its source, nil for
// the kernel's choice.
func (e *endpoint) from() []byte {
	if e.source == nil || e.forgotten.Load() != 0 {
		return nil
	}
	return e.source
}

// origin is where what is sent leaves from, for newSourced: with an unspecified
// address if the kernel chooses, and zero if the port is not known.
func (e *endpoint) origin() netip.AddrPort {
	switch {
	case e.local.Port() == 0:
		return netip.AddrPort{}
	case e.from() != nil && !e.local.Addr().IsLinkLocalUnicast(): // which needs an interface; there the kernel knows
		return e.local
	case e.addr.Addr().Is4():
		return netip.AddrPortFrom(netip.IPv4Unspecified(), e.local.Port())
	default:
		return netip.AddrPortFrom(netip.IPv6Unspecified(), e.local.Port())
	}
}

// forget leaves the source to the kernel from that time on.
func (e *endpoint) forget(at time.Time) { e.forgotten.Store(at.UnixNano()) }

// ClearSrc implements conn.Endpoint: a handshake was not answered for long. What
// the peer sends next brings the source back at once.
func (e *endpoint) ClearSrc() {
	if e.source != nil {
		e.forget(time.Unix(0, 1))
	}
}

// SrcIP implements conn.Endpoint.
func (e *endpoint) SrcIP() netip.Addr {
	if e.from() == nil {
		return netip.Addr{}
	}
	return e.local.Addr()
}

// SrcToString implements conn.Endpoint.
func (e *endpoint) SrcToString() string {
	if a := e.SrcIP(); a.IsValid() {
		return a.String()
	}
	return ""
}

func (e *endpoint) DstToString() string { return e.addr.String() }
func (e *endpoint) DstToBytes() []byte  { return e.key }
func (e *endpoint) DstIP() netip.Addr   { return e.addr.Addr() }

// arrival says where a datagram came from and where it came to. Zones are
// interface indexes, 0 where the address needs none.
type arrival struct {
	remote     netip.AddrPort // without zone
	remoteZone uint32
	local      netip.Addr // zero unless the socket asked for it
	localZone  uint32
}

// whence remembers of every remote address the endpoint that it last came by, over
// all sockets of a gateway.
type whence struct {
	mu     sync.Mutex
	latest map[netip.AddrPort]*endpoint
}

// note takes the endpoint that something just came by.
func (w *whence) note(e *endpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.latest[e.addr] == e {
		return
	}
	if w.latest == nil || len(w.latest) >= endpointCache {
		w.latest = make(map[netip.AddrPort]*endpoint)
	}
	w.latest[e.addr] = e
}

// to returns the endpoint for a remote address: with the source, if it is known.
func (w *whence) to(a netip.AddrPort) *endpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.latest[a]; e != nil {
		return e
	}
	return newEndpoint(a)
}

// endpoints remembers one object for each arrival at one socket, for one
// goroutine.
type endpoints struct {
	port    uint16  // the socket's own
	all     *whence // told of each change; nil on a carrier
	known   map[arrival]*endpoint
	last    *endpoint // most batches come from one sender
	lastKey arrival
}

func (c *endpoints) get(a arrival) *endpoint {
	if c.last != nil && c.lastKey == a && c.last.forgotten.Load() == 0 {
		return c.last
	}
	e := c.known[a]
	if e == nil || e.outlived() {
		if c.known == nil || len(c.known) >= endpointCache {
			c.known = make(map[arrival]*endpoint)
		}
		e = c.make(a)
		c.known[a] = e
	}
	c.last, c.lastKey = e, a
	if c.all != nil {
		c.all.note(e)
	}
	return e
}

// outlived reports whether the source was forgotten, but not just now: that
// something arrived there says that it is back.
func (e *endpoint) outlived() bool {
	at := e.forgotten.Load()
	ago := time.Now().UnixNano() - at
	return at != 0 && (ago >= int64(sourceRetry) || ago < 0) // or the clock was set back
}

func (c *endpoints) make(a arrival) *endpoint {
	remote := a.remote
	if a.remoteZone != 0 {
		remote = netip.AddrPortFrom(remote.Addr().WithZone(zoneName(a.remoteZone)), remote.Port())
	}
	return newSourced(remote, netip.AddrPortFrom(a.local, c.port), a.localZone)
}

// newSourced makes an endpoint for what is sent from local: by the interface of
// that index unless it is 0, and from the kernel's choice of an address if that
// is missing or unspecified.
func newSourced(remote, local netip.AddrPort, index uint32) *endpoint {
	e := newEndpoint(remote)
	e.local = local
	if local.Addr().IsValid() && !local.Addr().IsUnspecified() {
		e.source = sourceControl(local.Addr(), index)
	}
	return e
}

// zoneName is the interface's name, or its number if it has gone.
func zoneName(index uint32) string {
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		return i.Name
	}
	return strconv.FormatUint(uint64(index), 10)
}
