package e2e

import (
	"net/netip"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// Each carrier asks its own DNS servers for the names of gateways, and goes where
// they say. A gateway moves, and DNS says so: every carrier finds it again by
// itself. Nothing happens to the other gateway.
func TestGatewayMovesBehindItsName(t *testing.T) {
	t.Parallel()
	const name = "west.fleet.example"
	var servers [2]*lab.Nameserver
	at := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, last}) }
	w := start(t, options{
		Options: lab.Options{Carriers: []lab.CarrierOptions{near20, near20}},
		Prepare: func(w *world) {
			r, west, east := w.robots[0], w.gateways[0], w.gateways[1]
			ip(t, west.lab.Node, "addr", "add", at(30).String()+"/24", "dev", "eth0")
			for slot, c := range r.lab.Carriers {
				servers[slot] = nameserver(t, w, c.Router)
				servers[slot].Set(name, at([2]byte{10, 30}[slot]))
				servers[slot].Set("east.fleet.example", east.lab.Address)
				asks(t, r, slot, c.Router)
			}
			reachByName(t, r, west, name)
			reachByName(t, r, east, "east.fleet.example")
		},
	})
	r, west, east := w.robots[0], w.gateways[0], w.gateways[1]
	goesTo(t, r, west, 0, at(10))
	goesTo(t, r, west, 1, at(30))
	toWest, toEast := startTraffic(t, r.end(), west.end()), startTraffic(t, r.end(), east.end())

	moved := time.Now()
	must(t, west.lab.Sysctl("net.ipv4.conf.eth0.promote_secondaries", "1"))
	for slot, last := range []byte{40, 50} {
		ip(t, west.lab.Node, "addr", "add", at(last).String()+"/24", "dev", "eth0")
		servers[slot].Set(name, at(last))
	}
	ip(t, west.lab.Node, "addr", "del", at(10).String()+"/24", "dev", "eth0")
	ip(t, west.lab.Node, "addr", "del", at(30).String()+"/24", "dev", "eth0")
	goesTo(t, r, west, 0, at(40))
	goesTo(t, r, west, 1, at(50))
	within(t, "back after the gateway moved", time.Since(moved), 10*time.Second)

	toWest.halt(t)
	toEast.halt(t).complete(t, "the gateway that stays")
	sendBoth(t.Context(), r.end(), west.end(), steady(time.Second/2)).wait(t).complete(t, "the gateway that moved")
	for slot, c := range r.lab.Carriers {
		askedBy(t, servers[slot], c.Address.Addr())
		neverDied(t, r, east, slot)
	}
}

// ip runs ip(8) on a node.
func ip(t testing.TB, n *lab.Node, args ...string) {
	t.Helper()
	must(t, n.Command(t.Context(), "ip", args...).Run())
}
