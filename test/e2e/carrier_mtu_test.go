package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// A network takes packets of 1500 bytes, then of 1400, then of 1280 only, and no
// ICMP message says so. What passes is found each time, both ways, to the last of
// the sizes that WireGuard makes; status says what a capture shows; plr0 stays as
// it is. Nothing is lost meanwhile where there is another carrier.
func TestPathMTUChangesUnderTraffic(t *testing.T) {
	t.Parallel()
	const mtu = 1392 // with all headers, packets of 1480 bytes by IPv4 and 1500 by IPv6
	w := build(t, options{Options: lab.Options{IPv6: true, Carriers: []lab.CarrierOptions{upTo(1500), upTo(1500)}}})
	r, east := w.robots[0], w.gateways[1]
	setMTU(t, w, mtu)
	reachBy(t, r, east, east.lab.Address6)
	stop := bothEnds(t, w, r, 0)
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	var mixed []traffic // what passes all the time, and is not much smaller
	for _, g := range w.gateways {
		mixed = append(mixed, largeLoad(t, r, g, 50, 1050))
	}
	var stays []stay
	searches := 0
	var full []traffic // packets that just pass as a whole
	for _, carrier := range []int{1500, 1400, 1280} {
		link := upTo(carrier)
		began := time.Now()
		must(t, r.lab.Carriers[0].Link.Set(link.Up, link.Down))
		for i, f := range full {
			waitLess(t, r, w.gateways[i], 0)
			f.halt(t).complete(t, "while the size of packets changes")
		}
		full = nil
		searches += waitSizes(t, w, r, 0, func(g *gateway) tunnel.PathStatus { return expected(carrier, mtu, g == east) })
		t.Logf("%d bytes: found after %v", carrier, time.Since(began).Round(time.Millisecond))
		now := stay{mtu: carrier, from: time.Now()}
		var largest []duplex // some may have to go in parts
		for _, g := range w.gateways {
			full = append(full, largeLoad(t, r, g, 100, r.path(t, g, 0).Largest-replicate.TagLen-28))
			largest = append(largest, sendBoth(t.Context(), r.end(), g.end(), load{rate: 200, count: 40, size: mtu - 28, linger: 500 * time.Millisecond}))
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
	for _, f := range append(full, mixed...) {
		f.cancel()
	}
	for _, f := range append(full, mixed...) {
		f.wait(t).complete(t, "packets that pass")
	}
	headersAreTold(t, r, "1392 + 28 tag + 32 WireGuard + 8 UDP + 20 IPv4 = 1480 bytes, or with 40 IPv6 = 1500 bytes",
		stays[0].mtu, expected(1500, mtu, false), expected(1500, mtu, true))
	atRobot, atGateways := stop()
	for _, s := range stays {
		s.judge(t, w.gateways[0], expected(s.mtu, mtu, false), atRobot, atGateways)
		s.judge(t, east, expected(s.mtu, mtu, true), atRobot, atGateways)
	}
	for _, g := range w.gateways {
		if n := deaths(t, r, g, 0); n > 0 && searches == len(stays) {
			t.Errorf("the path to %s was given up %d times for the size of packets", g.Name, n)
		}
	}
}

// headersAreTold fails the test unless status adds up what surrounds the largest
// packet on a carrier, as said, and comes to what the paths get.
func headersAreTold(t testing.TB, r *robot, said string, carrier int, ipv4, ipv6 tunnel.PathStatus) {
	t.Helper()
	text, err := r.CLI(t.Context(), "status", "--socket", r.Socket())
	must(t, err)
	if err := mentions(strings.Join(strings.Fields(text), " "), "plr0", "a full packet on a carrier: "+said); err != nil {
		t.Error(err)
	}
	if s := status(t, r.Member).OnCarrier; s.LargestIPv4 != ipv4.LargestPacket || s.LargestIPv6 != ipv6.LargestPacket || s.LargestIPv6 > carrier {
		t.Errorf("%+v, but packets of %d and %d bytes were sent", s, ipv4.LargestPacket, ipv6.LargestPacket)
	}
}

// waitLess waits until a robot has noticed that a path takes less than it did.
func waitLess(t testing.TB, r *robot, g *gateway, slot int) {
	t.Helper()
	before := r.path(t, g, slot)
	waitStatus(t, r.Member, "less is noticed", patience, func(s *tunnel.Status) error {
		if p := pathOf(t, s, g.Name, before.Carrier); p.Largest >= before.Largest && p.Search == path.SearchComplete.String() {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
}

// stay is a time in which a carrier took packets of mtu bytes, and that was known.
type stay struct {
	mtu      int
	from, to time.Time
}

// judge fails the test unless the largest packets with a gateway, sent and come,
// were those that status told of, and as large as WireGuard can make them.
func (s stay) judge(t testing.TB, g *gateway, told tunnel.PathStatus, atRobot, atGateways []crossing) {
	t.Helper()
	want := told.LargestPacket
	if want > s.mtu || want+15 < s.mtu && told.Parts > 1 {
		t.Errorf("MTU %d, %s: %d bytes would not be the largest", s.mtu, g.Name, want)
	}
	for way, sides := range map[string][2][]crossing{
		"up":   {between(atRobot, s.from, s.to, true), between(atGateways, s.from, s.to, true)},
		"down": {between(atGateways, s.from, s.to, false), between(atRobot, s.from, s.to, false)},
	} {
		sent, came := greatest(with(sides[0], g)), greatest(with(sides[1], g))
		if sent != want || came != want {
			t.Errorf("MTU %d, %s by %s: packets of up to %d bytes were sent and of %d came; status says %d", s.mtu, g.Name, way, sent, came, want)
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
	for _, m := range w.members() {
		urgent(t, m.Pid())
	}
	must(t, r.WaitUp(t.Context()))
	began := time.Now()
	var searches []int
	for slot, mtu := range []int{1124, 1280, 1500} {
		searches = append(searches, waitSizes(t, w, r, slot, func(g *gateway) tunnel.PathStatus { return expected(mtu, usualMTU, g == east) }))
	}
	t.Logf("all six searches ended %v after all paths were up", time.Since(began).Round(time.Millisecond))
	for slot, stop := range stops {
		atRobot, _ := stop()
		judgeSearch(t, w, r, slot, searches[slot], atRobot)
	}

	alone(t, w, r, 0)
	largeTraffic(t, r, w.gateways, "1124 bytes alone, by IPv4 and IPv6")
	waitSizes(t, w, r, 0, func(g *gateway) tunnel.PathStatus { return expected(1124, usualMTU, g == east) })
	inParts(t, r, west, 0)
	inParts(t, r, east, 0)
	alone(t, w, r, 1)
	largeTraffic(t, r, w.gateways, "1280 bytes alone, by IPv4 and IPv6")
	waitSizes(t, w, r, 1, func(g *gateway) tunnel.PathStatus { return expected(1280, usualMTU, g == east) })
	inParts(t, r, west, 1)
	inParts(t, r, east, 1)
	largeSamples(t, r, east)
	before := r.path(t, east, 0).TxParts
	plug(t, w, r, func(int) bool { return true })
	largeTraffic(t, r, w.gateways, "beside 1500 bytes")
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
// how many there are in so many searches, how they are paced, and how long it took.
func judgeSearch(t testing.TB, w *world, r *robot, slot, searches int, atRobot []crossing) {
	t.Helper()
	name := r.lab.Carriers[slot].Interface
	for _, g := range w.gateways {
		var probes, replies []crossing
		var up time.Time // the first small reply
		for _, c := range with(atRobot, g) {
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
		if len(probes) == 0 || len(probes) > 12*searches || len(replies) == 0 {
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
