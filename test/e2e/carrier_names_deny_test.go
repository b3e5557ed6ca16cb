package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// Interfaces that are denied by name, by address or by kind never send a datagram of
// fogplr's, though each of them leads to the gateways: no handshake, no question to
// a gateway that does not answer, and none to a DNS server. One that is denied while
// it is in use falls silent.
func TestDeniedInterfacesStaySilent(t *testing.T) {
	t.Parallel()
	resolver := netip.MustParseAddr("192.0.2.253")
	const virtual = "eth9" // a veth device, the others are TAP
	w := build(t, options{Options: lab.Options{Carriers: []lab.CarrierOptions{near20, near20, near20, near20}}, Prepare: func(w *world) {
		must(t, w.Inet.AddAddress("lo", resolver.String()+"/32"))
		nameserver(t, w, resolver).Set("east.fleet.example", w.gateways[1].lab.Address)
		r := w.robots[0].lab
		must(t, w.Veth(r.Node, virtual, w.Inet, "virtual"))
		must(t, r.AddAddress(virtual, "10.9.0.2/24"))
		must(t, w.Inet.AddAddress("virtual", "10.9.0.1/24"))
		must(t, r.AddRoute("default", "10.9.0.1", virtual, 50))
	}})
	r, west, east := w.robots[0], w.gateways[0], w.gateways[1]
	const deny = `deny = ["name:cell-b", "cidr:10.3.0.0/16", "kind:veth"]`
	discovers(t, r, `allow = ["kind:tap"]`+"\n"+deny)
	names := []string{"cell-a", "cell-b", "cell-c", "cell-d", virtual}
	files, stops := map[string]string{}, []func(){}
	for _, name := range names {
		pings(t, r.lab.Node, "-I", name, west.lab.Address.String())
		f, stop := capture(t, r.lab.Node, name, w.file(name))
		files[name] = f
		stops = append(stops, stop)
	}
	run(t, west.Member) // and east stays away
	run(t, r.Member)
	carries := func(what string, want ...string) {
		t.Helper()
		eventually(t, what, func() error {
			s, err := r.Status(t.Context())
			if err != nil {
				return err
			}
			if got := interfaces(s); !slices.Equal(got, want) {
				return fmt.Errorf("carriers %v, want %v", got, want)
			}
			for _, p := range s.Peers[0].Paths {
				if !p.Up {
					return fmt.Errorf("%+v", p)
				}
			}
			return nil
		})
	}
	carries("without what is denied", "cell-a", "cell-d")
	sendBoth(t.Context(), r.end(), west.end(), steady(time.Second)).wait(t).complete(t, "without what is denied")

	// The same by [[carrier]] of a kind, which may have DNS servers.
	edit(t, r.Member, "[discovery]\nallow = [\"kind:tap\"]\n", fmt.Sprintf("[[carrier]]\nkind = \"tap\"\ndns = [%q]\n[discovery]\n", resolver))
	reachByName(t, r, east, "east.fleet.example")
	must(t, reload(t, r))
	carries("by a kind", "cell-a", "cell-d")
	flow := startTraffic(t, r.end(), west.end())
	edit(t, r.Member, strconv.Quote("name:cell-b"), strconv.Quote("name:cell-[bd]"))
	must(t, reload(t, r))
	carries("one more denied", "cell-a")
	denied := time.Now().Add(100 * time.Millisecond) // for what was on its way
	time.Sleep(700 * time.Millisecond)
	flow.halt(t).complete(t, "one more denied")
	for _, stop := range stops {
		stop()
	}
	for _, name := range names {
		all := sentBy(t, files[name], mac(t, r.lab.Node, name), nil, time.Time{})
		late := sentBy(t, files[name], mac(t, r.lab.Node, name), nil, denied)
		t.Logf("%s sent %+v, at last %+v", name, all, late)
		used := all.udp > 0 && all.stun > 0 && all.dns > 0
		switch {
		case name == "cell-a" && (!used || late.udp == 0), name == "cell-d" && !used:
			t.Errorf("%s did not send everything, so this shows nothing: %+v", name, all)
		case name == "cell-d" && late != sent{}:
			t.Errorf("%s is denied by now and sent %+v", name, late)
		case !strings.Contains("cell-a cell-d", name) && all != sent{}:
			t.Errorf("%s is denied and sent %+v", name, all)
		}
	}
}

// Discovery beside other VPNs, whose devices have the default route, whether they
// were there before or come up while packets flow: they are no carriers, and no
// datagram of fogplr's goes into them. A carrier that appears later is used at once.
func TestDiscoveryBesideOtherVPNs(t *testing.T) {
	t.Parallel()
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20, near20}}})
	r, g := w.robots[0], w.gateways[0]
	discovers(t, r, `allow = ["kind:tap"]`)
	files, stops := map[string]string{}, []func(){}
	vpn := func(name string, number int) {
		t.Helper()
		own := otherVPN(t, w, r, name, number)
		pings(t, r.lab.Node, "-I", own.String(), g.lab.Address.String()) // goes into it, and comes back
		f, stop := capture(t, r.lab.Node, name, w.file(name))
		files[name], stops = f, append(stops, stop)
	}
	vpn("tun0", 0)
	b := r.lab.Carriers[1]
	must(t, w.Detach(b))
	run(t, g.Member)
	run(t, r.Member)
	waitPath(t, r, g.Name, "cell-a", true)
	flow := startTraffic(t, r.end(), g.end())
	vpn("wt0", 1)

	fastest := patience // a busy machine is slow now and then, fogplr would be always
	for i := range 3 {
		name := fmt.Sprint("usb", i)
		must(t, w.Attach(b, name))
		usable := time.Now()
		fastest = min(fastest, eventually(t, "a carrier that appears", func() error {
			s := status(t, r.Member)
			if p, ok := findPath(s, g.Name, name); !ok || !p.Up {
				return fmt.Errorf("%v %+v", interfaces(s), p)
			}
			return nil
		}))
		t.Logf("%s is up %v after it was usable", name, time.Since(usable).Round(time.Millisecond))
		must(t, w.Detach(b))
	}
	within(t, "up after a carrier appeared", fastest, time.Second)
	if got := interfaces(status(t, r.Member)); slices.Contains(got, "tun0") || slices.Contains(got, "wt0") {
		t.Errorf("carriers %v", got)
	}
	flow.halt(t).complete(t, "beside other VPNs")
	neverDied(t, r, g, 0)
	for i, stop := range stops {
		stop()
		name := []string{"tun0", "wt0"}[i]
		if v4, v6 := datagrams(t, files[name]); v4+v6 > 0 {
			t.Errorf("%d datagrams went into %s", v4+v6, name)
		}
	}
}

// otherVPN gives a robot the device of another VPN, with the default route of the
// main table, and with a table that a rule prefers to all others. Whatever goes into
// it would get to the gateways.
func otherVPN(t testing.TB, w *world, r *robot, name string, number int) (own netip.Addr) {
	t.Helper()
	_, err := w.Link(r.lab.Node, name, w.Inet, "vpn-"+name, lab.LinkParams{Raw: true})
	must(t, err)
	own = netip.MustParseAddr(fmt.Sprintf("10.200.%d.2", number))
	must(t, r.lab.AddAddress(name, own.String()+"/32"))
	must(t, w.Inet.AddRoute(own.String()+"/32", "", "vpn-"+name, 0))
	must(t, r.lab.AddRoute("0.0.0.0/0", "", name, number+1))
	ip(t, r.lab.Node, "route", "add", "default", "dev", name, "table", fmt.Sprint(5200+number))
	ip(t, r.lab.Node, "rule", "add", "pref", fmt.Sprint(50-number), "lookup", fmt.Sprint(5200+number))
	return own
}
