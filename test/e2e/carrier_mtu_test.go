package e2e

import (
	"strconv"
	"testing"
	"time"

	"github.com/fogplr/fogplr/replicate"
	"github.com/fogplr/fogplr/test/lab"
)

// A network takes packets of 1500 bytes, then of 1400, then of 1280 only, and no
// ICMP message says so. What passes is found each time, both ways, to the last of
// the sizes that WireGuard makes; status says what a capture shows; plr0 stays as
// it is. Nothing is lost meanwhile where there is another carrier.
func TestPathMTUChangesUnderTraffic(t *testing.T) {
	t.Parallel()
	const mtu = 1392 // with all headers, packets of 1480 bytes by IPv4 and 1500 by IPv6
	w := build(t, options{Options: lab.Options{IPv6: true, Carriers: []lab.CarrierOptions{upTo(1500), upTo(1500)}}})
	r, west, east := w.robots[0], w.gateways[0], w.gateways[1]
	setMTU(t, w, mtu)
	reachBy(t, r, east, east.lab.Address6)
	stop := bothEnds(t, w, r, 0)
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	var flows []traffic
	type stay struct {
		mtu      int
		from, to time.Time // found, and not yet changed again
	}
	var stays []stay
	for _, carrier := range []int{1500, 1400, 1280} {
		link := upTo(carrier)
		must(t, r.lab.Carriers[0].Link.Set(link.Up, link.Down))
		took := waitSize(t, r, west, 0, expected(carrier, mtu, false))
		took += waitSize(t, r, east, 0, expected(carrier, mtu, true))
		t.Logf("%d bytes: found after %v", carrier, took.Round(time.Millisecond))
		now := stay{mtu: carrier, from: time.Now()}
		for _, g := range w.gateways { // what just passes as a whole
			flows = append(flows, largeLoad(t, r, g, 50, r.path(t, g, 0).Largest-replicate.TagLen-28))
		}
		var largest []duplex
		for _, g := range w.gateways { // and what may have to go in parts
			largest = append(largest, sendBoth(t.Context(), r.end(), g.end(), load{rate: 200, count: 50, size: mtu - 28, linger: 300 * time.Millisecond}))
		}
		for _, f := range largest {
			f.wait(t).complete(t, "the largest packets")
		}
		now.to = time.Now()
		stays = append(stays, now)
		for _, g := range w.gateways {
			steadyMTU(t, g.lab.Node, g.Member, mtu)
		}
		steadyMTU(t, r.lab.Node, r.Member, mtu)
	}
	for _, f := range flows {
		f.cancel()
	}
	for _, f := range flows {
		f.wait(t).complete(t, "while the size of packets changes")
	}
	atRobot, atGateways := stop()
	for _, s := range stays {
		for _, g := range w.gateways {
			ipv6, at := g == east, g.lab.Address
			if ipv6 {
				at = g.lab.Address6
			}
			want := expected(s.mtu, mtu, ipv6).LargestPacket
			for way, sides := range map[string][2][]crossing{
				"up":   {between(atRobot, s.from, s.to, true), between(atGateways, s.from, s.to, true)},
				"down": {between(atGateways, s.from, s.to, false), between(atRobot, s.from, s.to, false)},
			} {
				sent, came := greatest(with(sides[0], at)), greatest(with(sides[1], at))
				if sent != want || came != want || want > s.mtu || want+15 < s.mtu && s.mtu < 1500 {
					t.Errorf("MTU %d, %s by %s: packets of up to %d bytes were sent and of %d came; status says %d", s.mtu, g.Name, way, sent, came, want)
				}
			}
		}
	}
	for _, g := range w.gateways {
		if n := deaths(t, r, g, 0); n > 0 {
			t.Errorf("the path to %s was given up %d times for the size of packets", g.Name, n)
		}
	}
}

// A carrier takes packets of 1124 bytes, another one of 1280, and no ICMP message
// says so. Each by itself, and beside one of 1500, brings all that is large. The
// search takes twelve probes at most.
func TestSmallPathMTU(t *testing.T) {
	t.Parallel()
	w := build(t, options{Options: lab.Options{IPv6: true, Carriers: []lab.CarrierOptions{upTo(1124), upTo(1280), upTo(1500)}}})
	r, west, east := w.robots[0], w.gateways[0], w.gateways[1]
	reachBy(t, r, east, east.lab.Address6)
	var stops []func() ([]crossing, []crossing)
	for slot := range r.lab.Carriers {
		stops = append(stops, bothEnds(t, w, r, slot))
	}
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	began := time.Now()
	for slot, mtu := range []int{1124, 1280, 1500} {
		waitSize(t, r, west, slot, expected(mtu, usualMTU, false))
		waitSize(t, r, east, slot, expected(mtu, usualMTU, true))
	}
	t.Logf("all six searches ended %v after all paths were up", time.Since(began).Round(time.Millisecond))
	for slot, stop := range stops {
		atRobot, _ := stop()
		judgeSearch(t, w, r, slot, atRobot)
	}

	alone(t, w, r, 0)
	largeTraffic(t, r, west, "1124 bytes by IPv4, alone")
	largeTraffic(t, r, east, "1124 bytes by IPv6, alone")
	inParts(t, r, west, 0)
	inParts(t, r, east, 0)
	alone(t, w, r, 1)
	largeTraffic(t, r, west, "1280 bytes by IPv4, alone")
	largeTraffic(t, r, east, "1280 bytes by IPv6, alone")
	inParts(t, r, west, 1)
	inParts(t, r, east, 1)
	largeSamples(t, r, east)
	before := r.path(t, east, 0).TxParts
	plug(t, w, r, func(int) bool { return true })
	largeTraffic(t, r, west, "beside 1500 bytes, by IPv4")
	largeTraffic(t, r, east, "beside 1500 bytes, by IPv6")
	if sent := r.path(t, east, 0).TxParts - before; sent < 100 {
		t.Errorf("beside the others, the carrier of 1124 bytes sent only %d parts", sent)
	}
	if p := r.path(t, west, 2); p.TxParts > 10 || p.Parts != 1 { // before its search
		t.Errorf("the carrier of 1500 bytes sent %d parts", p.TxParts)
	}
}

// largeSamples calls a DDS service with requests and replies of 60 kB.
func largeSamples(t testing.TB, r *robot, g *gateway) {
	t.Helper()
	urgent(t, r.Pid())
	urgent(t, g.Pid())
	serve(t, g, vendors[0])
	const count = 8
	s := startCalls(t, r, vendors[0], "--rate", "8", "--settle-ms", "200", "--count", strconv.Itoa(count),
		"--size", "60000", "--reply-size", "60000").finish(t)
	t.Logf("DDS samples of 60 kB: p50 %.0f ms, most %.0f ms", s.P50MS, s.MaxMS)
	if s.Replies != count {
		t.Errorf("DDS samples of 60 kB: %+v", s)
	}
}

// judgeSearch looks at the probes for a size on a carrier without other traffic:
// how many there are, how they are paced, and how long the search took.
func judgeSearch(t testing.TB, w *world, r *robot, slot int, atRobot []crossing) {
	t.Helper()
	name := r.lab.Carriers[slot].Interface
	for _, g := range w.gateways {
		at := g.lab.Address
		if g.Name == "east" {
			at = g.lab.Address6
		}
		var probes, replies []crossing
		var up time.Time // the first small reply
		for _, c := range with(atRobot, at) {
			switch {
			case c.size < least && !c.up && len(probes) == 0:
				up = c.at
			case c.size < least:
			case c.up:
				probes = append(probes, c)
			default:
				replies = append(replies, c)
			}
		}
		if len(probes) == 0 || len(probes) > 12 || len(replies) == 0 {
			t.Errorf("%s to %s: %d probes for a size, and %d replies", name, g.Name, len(probes), len(replies))
			continue
		}
		for i := range probes[1:] {
			if gap := probes[i+1].at.Sub(probes[i].at); gap < 40*time.Millisecond {
				t.Errorf("%s to %s: two probes for a size within %v", name, g.Name, gap)
			}
		}
		t.Logf("%s to %s: %d probes, the last one %v after the path was up", name, g.Name, len(probes), probes[len(probes)-1].at.Sub(up).Round(time.Millisecond))
		if slot == 2 {
			within(t, name+" to "+g.Name+": from up to the size found", replies[0].at.Sub(up), busy)
			if len(probes) != 1 {
				t.Errorf("%s to %s: %d probes where the first one passes", name, g.Name, len(probes))
			}
		}
	}
}
