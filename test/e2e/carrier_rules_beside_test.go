package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

// A robot of one overlay is the gateway of another, behind a VPN that takes
// everything, so that both need rules. Starts, stops, crashes and clean-ups of the
// gateway take nothing from the robot, whose traffic goes on; nor the other way
// round.
func TestRobotBesideAGateway(t *testing.T) {
	t.Parallel()
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	n := r.lab.Node
	everything(t, n, "add")
	fleet, err := deploy.New(program(t), filepath.Join(w.Dir(), "beside"), nil, []deploy.Gateway{{
		Node: n, Name: "relay", Addresses: []string{"10.78.0.1/16", "fd78::1/64"}, Endpoint: "10.1.0.2:51821",
	}})
	must(t, err)
	t.Cleanup(func() { _ = fleet.Stop() })
	relay := fleet.Member("relay")
	edit(t, relay, "private_key_file", "interface = \"plr1\"\nprivate_key_file")
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	robots := ours(t, n)
	flow := startTraffic(t, r.end(), g.end())

	run(t, relay)
	var both, relays []entry
	eventually(t, "two rules and two blackhole routes of the gateway's", func() error {
		both = ours(t, n)
		relays = slices.DeleteFunc(slices.Clone(both), func(e entry) bool { return slices.Contains(robots, e) })
		if len(relays) != 4 || len(both) != len(robots)+4 {
			return fmt.Errorf("there are %v", relays)
		}
		return nil
	})
	blackholes := slices.DeleteFunc(slices.Clone(relays), func(e entry) bool { return !strings.HasPrefix(e.text, "blackhole") })
	left := slices.Concat(robots, blackholes)
	must(t, relay.Stop())
	wantOurs(t, "the gateway is stopped", n, left)
	for _, clean := range []bool{false, true} {
		run(t, relay)
		eventually(t, "the gateway's rules", func() error { return differ(both, ours(t, n)) })
		must(t, relay.Kill())
		wantOurs(t, "the gateway is killed", n, both)
		if clean {
			try(t, n, program(t), "cleanup", "--config", relay.Config()).wants(t, "cleanup", 0, "10.78.0.0/16")
			wantOurs(t, "after its clean-up", n, left)
		}
	}
	run(t, relay)
	eventually(t, "the gateway's rules", func() error { return differ(both, ours(t, n)) })
	flow.halt(t).complete(t, "while the gateway comes and goes")
	if n := status(t, r.Member).Restored; n > 0 {
		t.Errorf("the robot had to restore %d rules or routes", n)
	}

	must(t, r.Kill())
	try(t, n, program(t), "cleanup", "--config", r.Config()).wants(t, "cleanup", 0, "lookup 15700")
	own := slices.DeleteFunc(slices.Clone(robots), func(e entry) bool { return !strings.HasPrefix(e.text, "blackhole") })
	wantOurs(t, "after the robot's clean-up", n, slices.Concat(relays, own))
	run(t, r.Member)
	must(t, r.WaitUp(t.Context()))
	if n := status(t, relay).Restored; n > 0 {
		t.Errorf("the gateway had to restore %d rules or routes", n)
	}
	must(t, fleet.Stop())
	must(t, w.fleet.Stop())
	wantOurs(t, "both are stopped", n, slices.Concat(blackholes, own))
}

// wantOurs wants a node to have these rules and routes of fogplr's.
func wantOurs(t testing.TB, when string, n *lab.Node, want []entry) {
	t.Helper()
	if err := differ(want, ours(t, n)); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}
