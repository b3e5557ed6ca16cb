package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// portDNS is where name servers are asked.
const portDNS = 53

// nameserver starts a DNS server at an address of the router between robots and
// gateways.
func nameserver(t testing.TB, w *world, at netip.Addr) *lab.Nameserver {
	t.Helper()
	s, err := w.Inet.Nameserver(at)
	must(t, err)
	return s
}

// asks has a robot that is not started yet ask a DNS server through one of its
// carriers.
func asks(t testing.TB, r *robot, slot int, server netip.Addr) {
	t.Helper()
	block := fmt.Sprintf("[[carrier]]\ninterface = %q\n", r.lab.Carriers[slot].Interface)
	edit(t, r.Member, block, block+fmt.Sprintf("dns = [%q]\n", server))
}

// reachByName has a robot that is not started yet reach a gateway by a DNS name.
func reachByName(t testing.TB, r *robot, g *gateway, name string) {
	t.Helper()
	edit(t, r.Member, strconv.Quote(netip.AddrPortFrom(g.lab.Address, wgPort).String()), fmt.Sprintf("%q", name+":"+strconv.Itoa(wgPort)))
}

// goesTo waits until a path is up and goes to an address of its gateway.
func goesTo(t testing.TB, r *robot, g *gateway, slot int, at netip.Addr) time.Duration {
	t.Helper()
	want := netip.AddrPortFrom(at, wgPort).String()
	return eventually(t, fmt.Sprintf("path to %s by carrier %d at %s", g.Name, slot, want), func() error {
		if p := r.path(t, g, slot); !p.Up || p.Endpoint != want {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
}

// askedBy fails the test unless all questions of a server came from one address,
// and there were some.
func askedBy(t testing.TB, s *lab.Nameserver, from netip.Addr) {
	t.Helper()
	all := s.Asked()
	if len(all) == 0 || slices.ContainsFunc(all, func(q lab.Question) bool { return q.From != from }) {
		t.Errorf("want questions, and from %v alone: %+v", from, all)
	}
}

// carrierOf returns what status says of the carrier in a slot.
func carrierOf(t testing.TB, s *tunnel.Status, slot int) tunnel.CarrierStatus {
	t.Helper()
	i := slices.IndexFunc(s.Carriers, func(c tunnel.CarrierStatus) bool { return c.Slot == slot })
	if i < 0 {
		t.Fatalf("no carrier in slot %d: %+v", slot, s.Carriers)
	}
	return s.Carriers[i]
}

// neverDied fails the test if a robot ever gave up a path.
func neverDied(t testing.TB, r *robot, g *gateway, slot int) {
	t.Helper()
	if n := deaths(t, r, g, slot); n > 0 {
		t.Errorf("the path to %s by carrier %d was given up %d times", g.Name, slot, n)
	}
}

// seen is what a capture has of a node's own packets.
type seen struct {
	udp, others int // datagrams, and other packets that programs cause: TCP, ARP
	first       string
}

// sentBy counts what left by the captured interface from a moment on: what has
// its MAC address for a source, or one of its IP addresses where there is no
// Ethernet. Neighbour discovery and multicast membership are the kernel's own.
func sentBy(t testing.TB, file string, mac string, addresses []netip.Addr, after time.Time) (s seen) {
	t.Helper()
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		if p.Metadata().Timestamp.Before(after) {
			return nil
		}
		if e, ok := p.LinkLayer().(*layers.Ethernet); ok {
			if e.SrcMAC.String() != mac {
				return nil
			}
		} else if p.NetworkLayer() != nil {
			if a, ok := netip.AddrFromSlice(p.NetworkLayer().NetworkFlow().Src().Raw()); !ok || !slices.Contains(addresses, a) {
				return nil
			}
		}
		switch {
		case p.Layer(layers.LayerTypeUDP) != nil:
			s.udp++
		case p.Layer(layers.LayerTypeTCP) != nil, p.Layer(layers.LayerTypeARP) != nil:
			s.others++
		default:
			return nil
		}
		if s.first == "" {
			s.first = p.String()
		}
		return nil
	}))
	return s
}

// warns returns an error unless a sentence of a status has all of the words.
func warns(s *tunnel.Status, words ...string) error {
	for _, sentence := range s.Warnings {
		if mentions(sentence, words...) == nil {
			return nil
		}
	}
	return errors.New("no sentence with " + strings.Join(words, ", ") + " in " + strings.Join(s.Warnings, " "))
}

// paths returns a robot's paths by the carrier in a slot.
func (r *robot) paths(t testing.TB, slot int) (all []tunnel.PathStatus) {
	t.Helper()
	for _, p := range status(t, r.Member).Peers {
		for _, l := range p.Paths {
			if l.Slot == slot {
				all = append(all, l)
			}
		}
	}
	return all
}
