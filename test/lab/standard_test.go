package lab

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/vishvananda/netlink"
)

func mustStandard(t *testing.T, o Options) *World {
	t.Helper()
	w, err := Test(t, "std").Standard(o)
	must(t, err)
	return w
}

// ping sends three echo requests from the node by the given interface.
func ping(t *testing.T, n *Node, iface string, to netip.Addr) {
	t.Helper()
	out, err := n.Command(t.Context(), "ping", "-n", "-c", "3", "-i", "0.05", "-W", "2", "-I", iface, to.String()).Output()
	if err != nil || !strings.Contains(out, " 0% packet loss") {
		t.Errorf("ping from %s by %s to %v: %v\n%s", n.Name(), iface, to, err, out)
	}
}

func TestStandard(t *testing.T) {
	w := mustStandard(t, Options{Robots: 2, IPv6: true, Gateways: []string{"west", "east", "north", "south"}})
	if r := w.Robots[0]; r.Name() != "robot" || r.Carriers[1].Interface != "cell-b" || r.Carriers[1].Address.String() != "10.2.0.2/24" ||
		w.Gateways[0].Address.String() != "198.51.100.10" || w.Gateways[1].Address.String() != "203.0.113.20" {
		t.Errorf("not the names and addresses that the documentation promises: %+v", r)
	}
	for _, r := range w.Robots {
		for _, c := range r.Carriers {
			for _, g := range w.Gateways {
				ping(t, r.Node, c.Interface, g.Address)
				ping(t, r.Node, c.Interface, g.Address6)
			}
		}
	}
}

// Three modems of one make: the same address on three interfaces, three
// different ones in the internet.
func TestModems(t *testing.T) {
	w := mustStandard(t, Options{Modems: true, Carriers: make([]CarrierOptions, 3)})
	r := w.Robots[0]
	for _, c := range r.Carriers {
		if c.Address.String() != "192.168.8.100/24" {
			t.Errorf("%s has the address %v", c.Interface, c.Address)
		}
		ping(t, r.Node, c.Interface, w.Gateways[1].Address)
	}
	file := w.Dir() + "/west.pcap"
	capture, err := w.Gateways[0].Capture("eth0", file)
	must(t, err)
	for _, c := range r.Carriers {
		ping(t, r.Node, c.Interface, w.Gateways[0].Address)
	}
	must(t, capture.Stop())
	sources := map[string]bool{}
	must(t, ReadPcap(file, func(p gopacket.Packet) error {
		if n := p.NetworkLayer(); n != nil {
			sources[n.NetworkFlow().Src().String()] = true
		}
		return nil
	}))
	for _, want := range []string{"100.64.0.2", "100.65.0.2", "100.66.0.2"} {
		if !sources[want] {
			t.Errorf("nothing came from %s, only from %v", want, sources)
		}
	}
}

// One carrier's troubles are its own.
func TestCarriersAreIndependent(t *testing.T) {
	w := mustStandard(t, Options{Carriers: []CarrierOptions{{Up: Params{Delay: 30 * time.Millisecond}}, {}}})
	r := w.Robots[0]
	must(t, r.Carriers[1].Link.BlackHole(true))
	f := Flow{From: r.Node, To: w.Gateways[0].Node, Target: netip.AddrPortFrom(w.Gateways[0].Address, 4000), Rate: 200, Count: 100}
	f.Source = r.Carriers[0].Address.Addr()
	report, err := f.Run(t.Context())
	must(t, err)
	if report.Received != 100 || report.Latency[0] < 30*time.Millisecond {
		t.Errorf("by cell-a: %v", report)
	}
	must(t, r.Netlink().RouteDel(defaultRoute(t, r.Node, r.Carriers[0].Router)))
	if report, err = f.Run(t.Context()); err != nil || report.Received != 0 {
		t.Errorf("by the black hole of cell-b: %v, %v", report, err)
	}
}

func defaultRoute(t *testing.T, n *Node, via netip.Addr) *netlink.Route {
	t.Helper()
	routes, err := n.Netlink().RouteList(nil, netlink.FAMILY_V4)
	must(t, err)
	for _, r := range routes {
		if r.Gw.String() == via.String() {
			return &r
		}
	}
	t.Fatalf("%s has no route by %v", n.Name(), via)
	return nil
}
