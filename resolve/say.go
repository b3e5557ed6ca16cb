package resolve

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Status is what the book has to tell about one carrier.
type Status struct {
	Slot int
	// Servers are the DNS servers asked last, and who told them.
	Servers Servers
	// NAT64 are the prefixes in use.
	NAT64 []netip.Prefix
	// Captive says that the network intercepts its users.
	Captive bool
	// Meant are, by gateway, the addresses that its endpoints stand for here, as in
	// Candidates, without one that only has answered before.
	Meant map[string][]netip.AddrPort
	// Failing is for how long questions have got no answer, 0 if they get one.
	Failing time.Duration
	// Asked counts questions since the carrier came.
	Asked uint64
	// Sentences say what is wrong, what it means and what to do; none if all is
	// well. They change only with what they say.
	Sentences []string
}

// Status returns what is known of each carrier, by slot.
func (b *Book) Status(now time.Time) []Status {
	var all []Status
	for _, slot := range b.slots() {
		c := b.carriers[slot]
		s := Status{Slot: slot, Servers: c.servers, NAT64: b.nat64(c), Asked: c.asked, Meant: map[string][]netip.AddrPort{}}
		for _, g := range b.gateways {
			s.Meant[g.Name] = b.meant(c, g)
		}
		s.Servers.List = slices.Clone(s.Servers.List)
		if e := c.entries[key{ipv4only, IPv4}]; e != nil && b.dead(c) {
			s.Captive = Captive(e.found)
		}
		since, trouble := b.trouble(c)
		if trouble != nil {
			s.Failing = now.Sub(since)
		}
		s.Sentences = b.sentences(c, s.Captive, trouble)
		all = append(all, s)
	}
	return all
}

func (b *Book) sentences(c *carrier, captive bool, trouble error) (all []string) {
	if !c.IPv4 && !c.IPv6 {
		return nil // that is a matter of routes
	}
	if captive {
		lie := c.entries[key{ipv4only, IPv4}].found
		all = append(all, fmt.Sprintf("The network of %s intercepts: its DNS answers %v for %s, and no gateway answers. It is probably a captive portal. Log in to it, or leave this network.",
			c.Interface, lie[0], ipv4only))
	}
	switch {
	case errors.Is(trouble, ErrNoServers):
		all = append(all, fmt.Sprintf("No DNS server of %s is known, so no name can be looked up through it. Give the carrier dns = [\"ADDRESS\"], or gateways an address as endpoint.", c.Interface))
	case trouble != nil:
		all = append(all, fmt.Sprintf("DNS through %s fails: %s.%s", c.Interface, oneLine(trouble), b.kept(c)))
	}
	for _, g := range b.gateways {
		if s := b.missing(c, g); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// trouble returns why questions that are of use now got no answer, and since when.
func (b *Book) trouble(c *carrier) (since time.Time, err error) {
	for _, w := range b.wanted(c) {
		e := c.entries[w.key]
		if e != nil && e.trouble != nil && (err == nil || e.since.Before(since)) {
			err, since = e.trouble, e.since
		}
	}
	return since, err
}

// kept says whose addresses of before stay in use while DNS fails.
func (b *Book) kept(c *carrier) string {
	var names []string
	for _, g := range b.gateways {
		if named(g) && len(b.candidates(c, g)) > 0 {
			names = append(names, g.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" What it said before stays in use for %s.", strings.Join(names, ", "))
}

// missing says why a gateway has no address to be tried at, empty if it has one or
// if it is too early to tell.
func (b *Book) missing(c *carrier, g Gateway) string {
	if len(b.candidates(c, g)) > 0 {
		return ""
	}
	var unknown []string
	for _, e := range g.Endpoints {
		if e.Name == "" {
			continue
		}
		found := false
		for _, f := range []Family{IPv4, IPv6} {
			k := c.entries[key{e.Name, f}]
			if k != nil && (!k.known || k.trouble != nil) {
				return "" // not answered yet, or told with DNS
			}
			found = found || k != nil && len(k.found) > 0
		}
		if !found {
			unknown = append(unknown, e.Name)
		}
	}
	if known := c.known(g); len(known) > 0 {
		return b.otherFamily(c, g, known[0].Addr())
	}
	if len(unknown) == 0 {
		return ""
	}
	return fmt.Sprintf("The DNS of %s knows no address for %s, so gateway %s cannot be found through it. Correct the endpoint, or give the carrier other servers with dns = [\"ADDRESS\"].",
		c.Interface, strings.Join(unknown, ", "), g.Name)
}

// otherFamily says why a carrier cannot use the address that a gateway has.
func (b *Book) otherFamily(c *carrier, g Gateway, a netip.Addr) string {
	if a.Is6() {
		return fmt.Sprintf("%s has no IPv6, so gateway %s (%v) cannot be reached through it. Give the gateway an IPv4 address as well.", c.Interface, g.Name, a)
	}
	e := c.entries[key{ipv4only, IPv6}]
	if e == nil || !e.known {
		return ""
	}
	return fmt.Sprintf("%s has no IPv4, and its network no translator (NAT64), so gateway %s (%v) cannot be reached through it. Give the gateway an IPv6 address as well.", c.Interface, g.Name, a)
}

func named(g Gateway) bool {
	return slices.ContainsFunc(g.Endpoints, func(e Endpoint) bool { return e.Name != "" })
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
