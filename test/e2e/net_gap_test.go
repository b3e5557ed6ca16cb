package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// gaps is a world of two robots alike. The first carrier of one of them meets
// with accidents while packets flow; the twin shows what latency other programs
// of this machine cause at the same moment.
type gaps struct {
	w       *world
	r, twin *robot
	g       *gateway
	twinG   *gateway
	// victim is the carrier that suffers.
	victim *lab.Carrier
	// calm are latencies when nothing happens, alone those over the other
	// carrier alone.
	calm, alone series
}

func newGaps(t testing.TB) *gaps {
	t.Helper()
	delay := lab.Params{Delay: 10 * time.Millisecond}
	w := start(t, options{Options: lab.Options{
		Robots:   2,
		Carriers: []lab.CarrierOptions{{Up: delay, Down: delay}, {Up: delay, Down: delay}},
	}})
	return &gaps{w: w, r: w.robots[0], twin: w.robots[1], g: w.gateways[0], twinG: w.gateways[1], victim: w.robots[0].lab.Carriers[0]}
}

// flow goes between the victim's robot and its gateway for that long.
func (x *gaps) flow(ctx context.Context, d time.Duration) duplex {
	return sendBoth(ctx, x.r.end(), x.g.end(), steady(d))
}

// twinFlow goes between the twin and its gateway.
func (x *gaps) twinFlow(ctx context.Context, d time.Duration) duplex {
	return sendBoth(ctx, x.twin.end(), x.twinG.end(), steady(d))
}

// accident is something that happens to a carrier, and how it is mended.
type accident struct {
	name      string
	hit, mend func(*gaps) error
}

var (
	linkDown = accident{"link down",
		func(x *gaps) error { return x.r.lab.Down(x.victim.Interface) },
		func(x *gaps) error { return linkUp(x.r, x.victim) }}
	blackHole = accident{"black hole",
		func(x *gaps) error { return x.victim.Link.BlackHole(true) },
		func(x *gaps) error { return x.victim.Link.BlackHole(false) }}
	blackHoleUp = accident{"black hole on the way up",
		func(x *gaps) error { return x.victim.Link.BlackHoleAB(true) },
		func(x *gaps) error { return x.victim.Link.BlackHoleAB(false) }}
	blackHoleDown = accident{"black hole on the way down",
		func(x *gaps) error { return x.victim.Link.BlackHoleBA(true) },
		func(x *gaps) error { return x.victim.Link.BlackHoleBA(false) }}
	fullQueue = accident{"full queue",
		func(x *gaps) error {
			slow := lab.Params{Delay: 10 * time.Millisecond, Rate: 64_000, Queue: 2 * time.Second}
			return x.victim.Link.Set(slow, slow)
		},
		func(x *gaps) error {
			good := lab.Params{Delay: 10 * time.Millisecond}
			return x.victim.Link.Set(good, good)
		}}
)

// linkUp takes an interface up again and restores the default route that went
// with it, as a network manager does.
func linkUp(r *robot, c *lab.Carrier) error {
	if err := r.lab.Up(c.Interface); err != nil {
		return err
	}
	return r.lab.AddRoute("default", c.Router.String(), c.Interface, metric(r, c))
}

func metric(r *robot, c *lab.Carrier) int {
	for i, other := range r.lab.Carriers {
		if other == c {
			return 100 + i
		}
	}
	return 0
}

// suffer has the accident happen so many times while packets flow both ways. No
// packet may be lost or late.
func (x *gaps) suffer(t *testing.T, a accident, times int) {
	const long = 1500 * time.Millisecond
	var after, twin series
	for range times {
		x.calm.add(x.flow(t.Context(), long/2).wait(t))
		flow, twinFlow := x.flow(t.Context(), long), x.twinFlow(t.Context(), long)
		time.Sleep(100 * time.Millisecond)
		must(t, a.hit(x))
		r := flow.wait(t)
		twin.add(twinFlow.wait(t))
		must(t, a.mend(x))
		mended := time.Now()
		r.complete(t, a.name)
		after.add(r)
		waitPath(t, x.r, x.g.Name, x.victim.Interface, true)
		provenSince(t, x.r, x.g, x.victim.Interface, mended)
	}
	x.spared(t)
	after.notSlower(t, a.name, twin, x.calm, x.alone)
}

// spared fails the test when the other carrier's link lost packets of its own
// accord, for then the overlay may lose some too.
func (x *gaps) spared(t testing.TB) {
	t.Helper()
	up, down, err := x.r.lab.Carriers[1].Link.Counters()
	must(t, err)
	for _, c := range []lab.Counters{up, down} {
		if c.Lost+c.Overflowed+c.Refused > 0 {
			t.Errorf("the emulated link that should lose nothing did: %+v", c)
		}
	}
}

// A carrier that dies, silently or not, or fills up, delays and loses nothing on
// the other one.
func TestNoGapWhenACarrierFails(t *testing.T) {
	x := newGaps(t)
	t.Run("outage and return", x.outage)
	for _, c := range []struct {
		accident
		times int
	}{{linkDown, 3}, {blackHole, 2}, {blackHoleUp, 2}, {blackHoleDown, 2}, {fullQueue, 2}} {
		t.Run(c.name, func(t *testing.T) { x.suffer(t, c.accident, c.times) })
	}
}

// outage is long enough for the path to be given up, and ends in the middle of
// the flow.
func (x *gaps) outage(t *testing.T) {
	flow := x.flow(t.Context(), 10*time.Second)
	must(t, x.victim.Link.BlackHole(true))
	t.Logf("path given up after %v", waitPath(t, x.r, x.g.Name, x.victim.Interface, false))
	for range 4 {
		x.alone.add(x.flow(t.Context(), 500*time.Millisecond).wait(t))
	}
	must(t, x.victim.Link.BlackHole(false))
	t.Logf("path back after %v", waitPath(t, x.r, x.g.Name, x.victim.Interface, true))
	flow.wait(t).complete(t, "an outage and its end")
	x.spared(t)
}
