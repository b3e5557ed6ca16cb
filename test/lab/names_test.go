package lab

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// A name server says what it was told, of either family, and remembers who asked.
// A translator takes IPv6 to hosts with IPv4 alone.
func TestNameserverAndNAT64(t *testing.T) {
	w := mustStandard(t, Options{Gateways: []string{"west"}, IPv6: true})
	r, west := w.Robots[0], w.Gateways[0]
	s, err := w.Inet.Nameserver(r.Carriers[0].Router)
	must(t, err)
	s.Set("both.example", west.Address, west.Address6)
	s.Set("four.example", west.Address)
	resolver := net.Resolver{PreferGo: true, Dial: func(_ context.Context, _, _ string) (c net.Conn, err error) {
		err = r.Do(func() error {
			c, err = net.Dial("udp", netip.AddrPortFrom(r.Carriers[0].Router, 53).String())
			return err
		})
		return c, err
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	looks := func(network, name string, want ...netip.Addr) {
		t.Helper()
		found, err := resolver.LookupNetIP(ctx, network, name)
		for i := range found {
			found[i] = found[i].Unmap()
		}
		if !slices.Equal(found, want) || (err == nil) != (len(want) > 0) {
			t.Errorf("%s of %s: %v, %v; want %v", network, name, found, err, want)
		}
	}
	looks("ip4", "both.example.", west.Address)
	looks("ip6", "both.example.", west.Address6)
	looks("ip6", "four.example.")
	looks("ip4", "none.example.")
	portal := netip.MustParseAddr("10.1.0.1")
	s.Lie(portal)
	looks("ip4", "both.example.", portal)
	s.Lie()
	looks("ip4", "both.example.", west.Address)
	asked := s.Asked()
	if q := asked[0]; q.From != r.Carriers[0].Address.Addr() || q.Name != "both.example" || q.Type != "A" || asked[1].Type != "AAAA" {
		t.Errorf("%+v", asked)
	}

	must(t, w.Inet.NAT64("nat64-a", netip.MustParsePrefix("2001:db8:64::/96"), netip.MustParsePrefix("100.64.9.0/24")))
	ping(t, r.Node, r.Carriers[1].Interface, netip.MustParseAddr("2001:db8:64::198.51.100.10"))
}
