package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// noIPv4 takes IPv4 away from a carrier.
func noIPv4(t testing.TB, c *lab.Carrier) {
	t.Helper()
	must(t, c.Unlease())
}

// Two carriers without IPv4, and a gateway that has nothing else, by its address
// and by its name. Each network has a translator of its own, one with the
// well-known prefix and one with a prefix of the network's, which only the DNS
// server there tells.
func TestNAT64(t *testing.T) {
	t.Parallel()
	const name = "east.fleet.example"
	// The well-known prefix is not for documentation's addresses (RFC 6052, 3.1);
	// these were of the 6to4 relays, which there are no more (RFC 7526).
	public := [2]netip.Addr{netip.MustParseAddr("192.88.99.10"), netip.MustParseAddr("192.88.99.20")}
	prefixes := [2]netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2001:db8:6464::/48")}
	through := [2][2]string{
		{"64:ff9b::c058:630a", "64:ff9b::c058:6314"},
		{"2001:db8:6464:c058:63:a00::", "2001:db8:6464:c058:63:1400::"},
	}
	var servers [2]*lab.Nameserver
	w := start(t, options{
		Options: lab.Options{IPv6: true, Carriers: []lab.CarrierOptions{near20, near20}},
		Prepare: func(w *world) {
			r := w.robots[0]
			for i, g := range w.gateways {
				ip(t, g.lab.Node, "addr", "add", public[i].String()+"/32", "dev", "eth0")
				ip(t, w.Inet, "route", "add", public[i].String()+"/32", "via", g.lab.Address.String())
			}
			reachBy(t, r, w.gateways[0], public[0])
			reachByName(t, r, w.gateways[1], name)
			for slot, c := range r.lab.Carriers {
				noIPv4(t, c)
				must(t, w.Inet.NAT64(fmt.Sprint("nat64-", slot), prefixes[slot], netip.MustParsePrefix(fmt.Sprintf("100.64.%d.0/24", 64+slot))))
				servers[slot] = nameserver(t, w, c.Router6)
				servers[slot].Set("ipv4only.arpa", wellKnownBehind(prefixes[slot])...)
				servers[slot].Set(name, public[1])
				asks(t, r, slot, c.Router6)
			}
		},
	})
	r := w.robots[0]
	for slot, c := range r.lab.Carriers {
		for i, g := range w.gateways {
			if p := r.path(t, g, slot); p.Endpoint != fmt.Sprintf("[%s]:%d", through[slot][i], wgPort) {
				t.Errorf("%s: the path to %s goes to %s, want %s", c.Interface, g.Name, p.Endpoint, through[slot][i])
			}
			seenFrom(t, r, g, slot, fmt.Sprintf("100.64.%d.", 64+slot))
		}
		askedBy(t, servers[slot], c.Address6.Addr())
	}
	for _, g := range w.gateways {
		sendBoth(t.Context(), r.end(), g.end(), steady(time.Second/2)).wait(t).complete(t, "through translators to "+g.Name)
		pings(t, r.lab.Node, "-s", "4000", g.ip.String())
	}
	if s := status(t, r.Member); len(s.Warnings) > 0 {
		t.Errorf("all is well, but: %v", s.Warnings)
	}
}

// wellKnownBehind are the AAAA records of ipv4only.arpa where that prefix is
// translated (RFC 7050, section 8.2).
func wellKnownBehind(p netip.Prefix) (all []netip.Addr) {
	for _, last := range []byte{170, 171} {
		a := p.Addr().As16()
		switch v4 := [4]byte{192, 0, 0, last}; p.Bits() {
		case 96:
			copy(a[12:], v4[:])
		case 48:
			copy(a[6:8], v4[:2])
			copy(a[9:11], v4[2:])
		}
		all = append(all, netip.AddrFrom16(a))
	}
	return all
}

// A gateway has both families, by its addresses or by its name. Both are tried:
// IPv6 is used if it works, IPv4 where IPv6 is slow, or a black hole. While the
// robot runs one family dies after the other.
func TestGatewayWithBothFamilies(t *testing.T) {
	t.Parallel()
	const name = "east.fleet.example"
	// IPv6 to gateways goes by a link of its own.
	addresses6 := [2]netip.Addr{netip.MustParseAddr("2001:db8:b000::10"), netip.MustParseAddr("2001:db8:b001::20")}
	var links [2]*lab.Link
	w := build(t, options{
		Options: lab.Options{IPv6: true, Carriers: []lab.CarrierOptions{near20}},
		Prepare: func(w *world) {
			r := w.robots[0]
			s := nameserver(t, w, r.lab.Carriers[0].Router)
			s.Set(name, w.gateways[1].lab.Address, addresses6[1])
			asks(t, r, 0, r.lab.Carriers[0].Router)
			for i, g := range w.gateways {
				for _, n := range []*lab.Node{w.Inet, g.lab.Node} { // so that the link forwards at once
					must(t, n.Sysctl("net.ipv6.conf.default.dad_transmits", "0"))
				}
				port := "six-" + g.Name
				k, err := w.Link(w.Inet, port, g.lab.Node, "eth6", lab.LinkParams{})
				must(t, err)
				links[i] = k
				must(t, g.lab.AddAddress("eth6", addresses6[i].String()+"/64"))
				must(t, w.Inet.AddAddress(port, addresses6[i].Prev().String()+"/64"))
				ip(t, g.lab.Node, "-6", "route", "replace", "default", "via", addresses6[i].Prev().String(), "dev", "eth6")
			}
			reachBy(t, r, w.gateways[0], addresses6[0], w.gateways[0].lab.Address)
			reachByName(t, r, w.gateways[1], name)
		},
	})
	r := w.robots[0]
	net := newUpstreams(t, w)
	ipv6 := func(p lab.Params) {
		t.Helper()
		for _, k := range links {
			must(t, k.Set(p, p))
		}
	}
	wants := func(i int, v6 bool) netip.Addr {
		if v6 {
			return addresses6[i]
		}
		return w.gateways[i].lab.Address
	}
	for i, g := range w.gateways {
		run(t, g.Member)
		eventually(t, "a way to "+addresses6[i].String(), func() error { // young IPv6 links take a second
			return r.lab.Command(t.Context(), "ping", "-c1", "-W0.2", addresses6[i].String()).Run()
		})
	}
	for _, c := range []struct {
		what string
		ipv6 lab.Params
		v6   bool
	}{
		{what: "start with both", v6: true},
		{what: "start with slow IPv6", ipv6: lab.Params{Delay: 400 * time.Millisecond}},
		{what: "start with IPv6 black-holed", ipv6: lab.Params{BlackHole: true}},
	} {
		ipv6(c.ipv6)
		startsBy(t, r, c.what, func() error {
			for i, g := range w.gateways {
				want := netip.AddrPortFrom(wants(i, c.v6), wgPort).String()
				if p := r.path(t, g, 0); p.Endpoint != want {
					return fmt.Errorf("%+v, want %s", p, want)
				}
			}
			return nil
		})
	}
	moves := func(what string, v6 bool, since time.Time) {
		t.Helper()
		for i, g := range w.gateways {
			goesTo(t, r, g, 0, wants(i, v6))
		}
		within(t, what, time.Since(since), trust+time.Second+busy)
	}
	flows := []traffic{startTraffic(t, r.end(), w.gateways[0].end()), startTraffic(t, r.end(), w.gateways[1].end())}
	ipv6(lab.Params{})
	net.cut(onlyIPv4, upstream(0, 0))
	moves("IPv4 dies", true, time.Now())
	ipv6(lab.Params{BlackHole: true})
	net.mend(onlyIPv4, upstream(0, 0))
	moves("IPv6 dies", false, time.Now())
	for _, f := range flows {
		f.cancel()
	}
	for i, f := range flows {
		if gap := f.halt(t).longestGap(); gap > 2*trust+busy {
			t.Errorf("no traffic with %s for %v", w.gateways[i].Name, gap)
		}
	}
}

// startsBy starts a robot anew until its paths are up as they should be, which on a
// busy machine may take more than once: addresses get a quarter of a second there.
func startsBy(t testing.TB, r *robot, what string, check func() error) {
	t.Helper()
	var err error
	for range 3 {
		must(t, r.Stop())
		began := time.Now()
		run(t, r.Member)
		must(t, r.WaitUp(t.Context()))
		within(t, what, time.Since(began), time.Second+busy)
		if err = check(); err == nil {
			return
		}
	}
	t.Errorf("%s: %v", what, err)
}

// Two carriers without IPv4 are in one IPv6 prefix, each with a router of its own,
// which alone knows that carrier's address. The robot's firewall lets nothing in
// that it would not answer by the same way (as firewalld's IPv6_rpfilter=strict).
func TestIPv6CarriersInOnePrefix(t *testing.T) {
	t.Parallel()
	var addresses [2]netip.Addr
	w := start(t, options{
		Options:   lab.Options{IPv6: true, Carriers: []lab.CarrierOptions{near20, near20}},
		Endpoint6: true,
		Prepare: func(w *world) {
			r := w.robots[0]
			for slot, c := range r.lab.Carriers {
				noIPv4(t, c)
				addresses[slot] = netip.MustParseAddr(fmt.Sprint("2001:db8:5::", 2+slot))
				router := fmt.Sprintf("fe80::%x", 0xa+slot)
				port := upstream(0, slot)
				ip(t, r.lab.Node, "-6", "addr", "flush", "dev", c.Interface, "scope", "global")
				ip(t, r.lab.Node, "addr", "add", addresses[slot].String()+"/64", "dev", c.Interface, "nodad")
				ip(t, w.Inet, "addr", "add", router+"/64", "dev", port, "nodad")
				ip(t, w.Inet, "-6", "route", "add", addresses[slot].String()+"/128", "dev", port)
				ip(t, r.lab.Node, "-6", "route", "replace", "default", "via", router, "dev", c.Interface, "metric", fmt.Sprint(100+slot))
			}
			must(t, r.lab.NFT(`table inet firewall {
	chain first {
		type filter hook prerouting priority -290
		icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept
		meta nfproto ipv6 fib saddr . mark . iif oif missing drop
	}
}`))
		},
	})
	r := w.robots[0]
	var files []string
	var stops []func()
	for slot := range r.lab.Carriers {
		f, stop := capture(t, w.Inet, upstream(0, slot), w.file(upstream(0, slot)))
		files, stops = append(files, f), append(stops, stop)
	}
	for slot, c := range r.lab.Carriers {
		for _, g := range w.gateways {
			seenFrom(t, r, g, slot, "["+addresses[slot].String()+"]:")
		}
		if all := strings.Join(kernelAddresses(t, r.lab.Node, c.Interface), " "); strings.Contains(all, ".") {
			t.Errorf("%s has IPv4, so this shows nothing: %s", c.Interface, all)
		}
	}
	for _, g := range w.gateways {
		sendBoth(t.Context(), r.end(), g.end(), steady(time.Second/2)).wait(t).complete(t, "to "+g.Name)
	}
	for slot, stop := range stops {
		stop()
		from := sources(t, files[slot], wgPort, time.Time{})
		if len(from) != 1 || from[addresses[slot]] < 2*100 {
			t.Errorf("to the router of carrier %d went %v, want a copy of each packet from %v", slot, from, addresses[slot])
		}
	}
}
