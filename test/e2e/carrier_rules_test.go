package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// soon is how long after somebody removed rules or routes they are there again.
const soon = time.Second

// Whichever single one of fogplr's rules and routes somebody deletes, it is put back
// within a second and counted, while not a packet is lost: behind another program's
// kill switch, where no carrier works without them. All of them at once are one gap,
// as then nothing can leave. Last, a real systemd-networkd starts and reconfigures
// another link, which removes all rules of others, and some routes.
func TestRulesAndRoutesAreRestored(t *testing.T) {
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}, IPv6: true, Carriers: make([]lab.CarrierOptions, 2)}})
	r, g := w.robots[0], w.gateways[0]
	n := r.lab.Node
	reachBy(t, r, g, g.lab.Address, g.lab.Address6)
	everything(t, n, "add")
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	all := ours(t, n)
	t.Logf("%d rules and routes", len(all))

	t.Run("single ones", func(t *testing.T) { deleteEach(t, r, g, all) })
	t.Run("all at once", func(t *testing.T) {
		before := status(t, r.Member).Restored
		flow := startTraffic(t, r.end(), g.end())
		for _, e := range slices.Backward(all) {
			e.change(t, n, "del")
		}
		within(t, "all restored", restored(t, r, all, before+uint64(len(all))), soon+busy)
		time.Sleep(100 * time.Millisecond)
		within(t, "no traffic", flow.halt(t).longestGap(), soon+busy)
	})
	everything(t, n, "del")
	eventually(t, "the carriers' rules go with their reason", func() error {
		for _, e := range ours(t, n) {
			if strings.Contains(e.text, "fwmark") {
				return errors.New(e.String())
			}
		}
		return nil
	})
	t.Run("systemd-networkd", func(t *testing.T) { reconfigured(t, r, g) })
	for slot := range r.lab.Carriers {
		neverDied(t, r, g, slot)
	}
}

// deleteEach deletes what is there for the carriers, one by one under traffic. What
// is there for the overlay itself is left for last: without it, packets for the
// overlay do not reach plr0.
func deleteEach(t *testing.T, r *robot, g *gateway, all []entry) {
	n := r.lab.Node
	before := status(t, r.Member).Restored
	var longest time.Duration
	each := func(carriers bool) {
		for i, e := range all {
			if strings.Contains(e.text, "cell-") != carriers {
				continue
			}
			e.change(t, n, "del")
			before++
			took := restored(t, r, all, before)
			longest = max(longest, took)
			if took > soon+busy {
				t.Errorf("number %d is back after %v: %s", i, took, e)
			}
		}
	}
	flow := startTraffic(t, r.end(), g.end())
	each(true)
	flow.halt(t).complete(t, "while single rules and routes of carriers are deleted")
	flow = startTraffic(t, r.end(), g.end())
	each(false)
	within(t, "no traffic without a rule for the overlay", flow.halt(t).longestGap(), soon+busy)
	t.Logf("longest %v", longest)
	if got := status(t, r.Member).Restored; got != before {
		t.Errorf("status counts %d, want %d", got, before)
	}
}

// reconfigured has one carrier's default route in a table of another program's, so
// that it needs a rule of fogplr's, and networkd remove that.
func reconfigured(t *testing.T, r *robot, g *gateway) {
	n, b := r.lab.Node, r.lab.Carriers[1]
	ip(t, n, "route", "del", "default", "dev", b.Interface)
	ip(t, n, "route", "add", "default", "via", b.Router.String(), "dev", b.Interface, "table", "300")
	ip(t, n, "rule", "add", "iif", "other1", "lookup", "300") // of no concern
	var all []entry
	eventually(t, "a rule for "+b.Interface+" alone", func() error {
		all = ours(t, n)
		text := fmt.Sprint(all)
		if strings.Contains(text, "oif "+r.lab.Carriers[0].Interface) {
			return errors.New(text)
		}
		return mentions(text, "fwmark 0x666f67 oif "+b.Interface, "blackhole")
	})
	d := newNetworkd(t, n)
	before := status(t, r.Member).Restored
	flow := startTraffic(t, r.end(), g.end())
	c := d.start(networkdProgram)
	d.configured(c, 1)
	restored(t, r, all, before)
	for i := range 2 {
		before = status(t, r.Member).Restored
		d.output(t, n, "networkctl", "reconfigure", "other0")
		d.configured(c, 2+i)
		// A rule and two blackhole routes at least.
		within(t, "restored", restored(t, r, all, before+3), soon+busy)
	}
	if out := output(t, n, "ip", "rule"); strings.Contains(out, "iif other1") {
		t.Errorf("networkd removed no rules of others, so this shows nothing:\n%s", out)
	}
	flow.halt(t).complete(t, "while networkd reconfigures another link")
}
