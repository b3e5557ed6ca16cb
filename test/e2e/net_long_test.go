//go:build long

package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// The accidents of TestNoGapWhenACarrierFails, many times each.
func TestLongNoGapWhenACarrierFails(t *testing.T) {
	x := newGaps(t)
	t.Run("outage and return", x.outage)
	for _, c := range []struct {
		accident
		times int
	}{{linkDown, 50}, {blackHole, 30}, {blackHoleUp, 10}, {blackHoleDown, 10}, {fullQueue, 10}} {
		t.Run(c.name, func(t *testing.T) { x.suffer(t, c.accident, c.times) })
	}
}

// Ten minutes in which one carrier or the other, never both, is out most of the
// time: no packet is lost.
func TestLongTenMinutesOfOutages(t *testing.T) {
	t.Parallel()
	const duration, seed = 10 * time.Minute, 5
	delay := lab.Params{Delay: 10 * time.Millisecond}
	w := start(t, options{Options: lab.Options{
		Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{{Up: delay, Down: delay}, {Up: delay, Down: delay}},
	}})
	r, g := w.robots[0], w.gateways[0]
	flow := sendBoth(t.Context(), r.end(), g.end(), steady(duration))
	luck := rand.New(rand.NewPCG(seed, 0))
	for end := time.Now().Add(duration - 20*time.Second); time.Now().Before(end); {
		victim := r.lab.Carriers[luck.IntN(2)]
		set := []func(bool) error{victim.Link.BlackHole, victim.Link.BlackHoleAB, victim.Link.BlackHoleBA}[luck.IntN(3)]
		must(t, set(true))
		time.Sleep(time.Duration(luck.IntN(8000)) * time.Millisecond)
		must(t, set(false))
		mended := time.Now()
		for _, c := range r.lab.Carriers {
			provenSince(t, r, g, c.Interface, mended)
			waitPath(t, r, g.Name, c.Interface, true) // after a death it takes two proofs
		}
		// What left before a path was up again is on its way by the other alone.
		time.Sleep(10 * delay.Delay)
	}
	flow.wait(t).complete(t, "ten minutes of outages")
}

// Over changes of WireGuard's keys, which come every two minutes, and over idle
// minutes each path keeps its source, and nothing is lost.
func TestLongEachPathKeepsItsSource(t *testing.T) {
	t.Parallel()
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	file, stop := capture(t, r.lab.Node, r.lab.Carriers[0].Interface, w.file("keys"))
	keepsSource(t, w, 5*time.Minute)
	stop()
	c, err := lab.CountWireGuard(file)
	must(t, err)
	if c.Initiations < 2 {
		t.Errorf("%d handshakes in five minutes; WireGuard changes keys every two", c.Initiations)
	}
	before := status(t, g.Member)
	time.Sleep(2 * time.Minute)
	after := status(t, g.Member)
	for slot := range r.lab.Carriers {
		a, b := pathOf(t, before, r.Name, slotName(slot)), pathOf(t, after, r.Name, slotName(slot))
		if a.Endpoint != b.Endpoint || !b.Up {
			t.Errorf("%s: %s, after idle minutes %s (up=%v)", slotName(slot), a.Endpoint, b.Endpoint, b.Up)
		}
	}
	sendBoth(t.Context(), r.end(), g.end(), steady(10*time.Second)).wait(t).complete(t, "after idling")
}

// As TestEachPacketOnceOverPathsFarApart, for half a minute each way.
func TestLongEachPacketOnceOverPathsFarApart(t *testing.T) {
	skewed(t, load{rate: 4000, count: 120_000, size: 64, linger: 3 * time.Second}, 300*time.Millisecond)
}

// Fifty restarts in a row.
func TestLongSilentRestarts(t *testing.T) {
	w := start(t, options{})
	manyRestarts(t, w.robots[0], w.gateways[0], 50)
}

// Restarts of a gateway at any moment: how long traffic stands still.
func TestLongTimeOfSilentRestarts(t *testing.T) {
	near := lab.Params{Delay: 5 * time.Millisecond}
	w := start(t, options{Options: lab.Options{Carriers: []lab.CarrierOptions{{Up: near, Down: near}, {Up: near, Down: near}}}})
	r, g := w.robots[0], w.gateways[0]
	var gaps []time.Duration
	for range 20 {
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
		gaps = append(gaps, restart(t, r, g, g.Member))
	}
	t.Logf("no traffic for: median %v, 90 %% %v, worst %v", quantile(gaps, 0.5), quantile(gaps, 0.9), quantile(gaps, 1))
	if most := quantile(gaps, 0.9); most > longestPause {
		t.Errorf("no traffic for %v after a restart of the gateway", most)
	}
}

// Rates up to 200 Mbit/s: what the overlay loses of its own accord.
func TestLongSpeed(t *testing.T) {
	w := plain(t)
	for _, mbps := range []int{10, 50, 100, 200} {
		for _, way := range [][]string{nil, {"-R"}} {
			lost := speed(t, w.robots[0], w.gateways[0], mbps, 10, way...)
			if mbps <= 50 && lost > 0.01 {
				t.Errorf("at %d Mbit/s %v, %.2f %% of the packets were lost", mbps, way, lost*100)
			}
		}
	}
}
