package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
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

// discovers has a robot find its carriers by itself. settings are the lines of
// [discovery].
func discovers(t testing.TB, r *robot, settings string) {
	t.Helper()
	text := read(t, r.Config())
	from, to := strings.Index(text, "[[carrier]]"), strings.Index(text, "[[gateway]]")
	must(t, os.WriteFile(r.Config(), []byte(text[:from]+"[discovery]\n"+settings+"\n"+text[to:]), 0o644))
}

// interfaces are the names of a robot's carriers, in the order of their slots.
func interfaces(s *tunnel.Status) (names []string) {
	for _, c := range s.Carriers {
		names = append(names, c.Interface)
	}
	return names
}

// mac is the address of a node's interface.
func mac(t testing.TB, n *lab.Node, iface string) string {
	t.Helper()
	k, err := n.Netlink().LinkByName(iface)
	must(t, err)
	return k.Attrs().HardwareAddr.String()
}

// neverDied fails the test if a robot ever gave up a path.
func neverDied(t testing.TB, r *robot, g *gateway, slot int) {
	t.Helper()
	if n := deaths(t, r, g, slot); n > 0 {
		t.Errorf("the path to %s by carrier %d was given up %d times", g.Name, slot, n)
	}
}

// sent counts what a node sent by an interface: datagrams, questions to gateways
// and to DNS servers among them, and what else programs cause: TCP, and ARP requests.
type sent struct{ udp, stun, dns, others int }

// sentBy counts the packets of a capture that a node sent from a moment on, by the
// MAC address of its interface, or by its addresses where there is no Ethernet.
// Neighbour discovery and multicast membership are the kernel's own.
func sentBy(t testing.TB, file, mac string, addresses []netip.Addr, after time.Time) (s sent) {
	t.Helper()
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		if p.Metadata().Timestamp.Before(after) {
			return nil
		}
		own := false
		if e, ok := p.LinkLayer().(*layers.Ethernet); ok {
			own = e.SrcMAC.String() == mac
		} else if n := p.NetworkLayer(); n != nil {
			a, _ := netip.AddrFromSlice(n.NetworkFlow().Src().Raw())
			own = slices.Contains(addresses, a)
		}
		if !own {
			return nil
		}
		arp, _ := p.Layer(layers.LayerTypeARP).(*layers.ARP)
		switch udp, _ := p.TransportLayer().(*layers.UDP); {
		case udp != nil:
			s.udp++
			if udp.DstPort == portDNS {
				s.dns++
			}
			if len(udp.Payload) >= 8 && string(udp.Payload[4:8]) == stunCookie {
				s.stun++
			}
		case p.Layer(layers.LayerTypeTCP) != nil, arp != nil && arp.Operation == layers.ARPRequest:
			s.others++
		}
		return nil
	}))
	return s
}

// stunCookie tells STUN (RFC 8489, section 5).
const stunCookie = "\x21\x12\xa4\x42"

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
