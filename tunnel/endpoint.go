package tunnel

import (
	"fmt"
	"net"
	"net/netip"

	"golang.zx2c4.com/wireguard/conn"
)

// endpoint is a remote UDP address. It never changes once made, so that one
// object serves all packets from and to that address.
type endpoint struct {
	addr netip.AddrPort
	udp  *net.UDPAddr
	key  []byte // for WireGuard's cookies
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

func (e *endpoint) ClearSrc()           {}
func (e *endpoint) SrcToString() string { return "" }
func (e *endpoint) SrcIP() netip.Addr   { return netip.Addr{} }
func (e *endpoint) DstToString() string { return e.addr.String() }
func (e *endpoint) DstToBytes() []byte  { return e.key }
func (e *endpoint) DstIP() netip.Addr   { return e.addr.Addr() }

// endpoints remembers one object for each remote address, for one goroutine.
type endpoints struct {
	known map[netip.AddrPort]*endpoint
	last  *endpoint // most batches come from one sender
}

func (c *endpoints) get(a netip.AddrPort) *endpoint {
	a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	if c.last != nil && c.last.addr == a {
		return c.last
	}
	e := c.known[a]
	if e == nil {
		if c.known == nil || len(c.known) >= endpointCache {
			c.known = make(map[netip.AddrPort]*endpoint)
		}
		e = newEndpoint(a)
		c.known[a] = e
	}
	c.last = e
	return e
}
