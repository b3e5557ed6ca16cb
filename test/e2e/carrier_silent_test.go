package e2e

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/test/lab"
)

// A robot without any traffic notices a carrier that became a black hole: probes
// go on, and give the path up within three of their intervals. The first request
// after that is answered in time by the other carrier; so is the first request of
// a robot that has noticed nothing yet.
func TestIdleRobotNoticesADeadCarrier(t *testing.T) {
	t.Parallel()
	idleRobot(t, time.Second)
}

// idleRobot leaves a robot without traffic for that long before each black hole.
func idleRobot(t *testing.T, quiet time.Duration) {
	const deadline = 100 * time.Millisecond
	w := start(t, options{Options: lab.Options{Carriers: []lab.CarrierOptions{near20, near20}}})
	r := w.robots[0]
	a := r.lab.Carriers[0]
	answer(t, w)
	first := func(when string) {
		t.Helper()
		m := listenToMetronome()
		c := request(t, w, r, "--count", "1", "--deadline-ms", "100", "--lost-after-ms", "1000", "--linger-ms", "100")
		s := c.finish(t)
		pauses := m.stop()
		t.Logf("first request %s: %.1f ms", when, s.MaxMS)
		if s.Lost > 0 || s.Missed > 0 && len(pauses) == 0 {
			t.Errorf("the first request %s was not answered within %v: %+v", when, deadline, s)
		}
	}
	for _, noticed := range []bool{false, true} {
		for _, g := range w.gateways {
			waitPath(t, r, g.Name, a.Interface, true)
		}
		time.Sleep(path.DefaultConfig().Linger + quiet)
		must(t, a.Link.BlackHole(true))
		if noticed {
			took := waitPath(t, r, "west", a.Interface, false)
			took = max(took, took+waitPath(t, r, "east", a.Interface, false))
			within(t, "a dead path noticed without traffic", took, 3*idleInterval)
		}
		first(map[bool]string{false: "before the death is noticed", true: "after it"}[noticed])
		must(t, a.Link.BlackHole(false))
	}
}

// Whether a path lives is known by proof alone. The provider of the best carrier
// loses its own uplink: interface, address, routes and neighbours stay as they
// were, and nobody says a word. The path is down when its trust is used up, and up
// again not at the first sign of life, but at the second proof.
func TestPathLivesByProofAlone(t *testing.T) {
	t.Parallel()
	far := lab.CarrierOptions{Up: lab.Params{Delay: 30 * time.Millisecond}, Down: lab.Params{Delay: 30 * time.Millisecond}}
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20, far}}})
	r, g := w.robots[0], w.gateways[0]
	net := newUpstreams(t, w)
	before := kernelNet(t, r.lab.Node)
	flow := startTraffic(t, r.end(), g.end())
	net.cut(bothFamilies, upstream(0, 0))
	within(t, "path down after the last proof", waitPath(t, r, g.Name, r.lab.Carriers[0].Interface, false), trust+busy)
	for _, c := range status(t, r.Member).Carriers {
		if !c.Usable || c.Problem != "" {
			t.Errorf("nothing happened to the interface %s, but status says: %+v", c.Interface, c)
		}
	}
	if p := r.path(t, g, 0); p.Carries || p.Stage == "" || p.Hint == "" {
		t.Errorf("a path that nothing comes back by: %+v", p)
	}
	unchanged(t, "the uplink's own uplink is lost", before, kernelNet(t, r.lab.Node))
	flow.halt(t).complete(t, "the uplink's own uplink is lost")
	if n := deaths(t, r, g, 1); n > 0 || deaths(t, r, g, 0) != 1 {
		t.Errorf("the healthy path was given up %d times, the other %d times", n, deaths(t, r, g, 0))
	}

	// Nothing but proofs comes by the path now, since nobody sends.
	quiet := r.path(t, g, 0).RxFrames
	net.mend(bothFamilies, upstream(0, 0))
	seen := map[uint64]bool{}
	took := eventually(t, "the path's return", func() error {
		p := r.path(t, g, 0)
		seen[p.RxFrames-quiet] = true
		switch {
		case p.Up && p.RxFrames < quiet+2:
			t.Errorf("up again after %d proofs", p.RxFrames-quiet)
		case !p.Up:
			return errors.New("not up")
		}
		return nil
	})
	if !seen[1] {
		t.Errorf("never seen with one proof alone, so this shows nothing: %v", seen)
	}
	within(t, "path up after its provider's return", took, time.Second+busy)
}

// A path that brings frames but takes none away is given up, too: what comes in
// stretches the trust, but not for ever.
func TestPathWithoutAWayOutIsGivenUp(t *testing.T) {
	t.Parallel()
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20, near20}}})
	r, g := w.robots[0], w.gateways[0]
	flow := startTraffic(t, r.end(), g.end())
	must(t, r.lab.Carriers[0].Link.BlackHoleAB(true))
	within(t, "path without a way out down", waitPath(t, r, g.Name, r.lab.Carriers[0].Interface, false), path.DefaultConfig().MaxTrust+busy)
	flow.halt(t).complete(t, "a carrier without a way out")
}

// The robot's own routing table spreads over both carriers with one route of two
// next hops, as a router's does, and keeps doing so when the provider of one of
// them loses its uplink. Copies do not go by that table's choice: each path keeps
// its carrier, and the other's traffic goes on.
func TestMultipathRouteWithADeadProvider(t *testing.T) {
	t.Parallel()
	w := start(t, options{
		Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20, near20}},
		Prepare: func(w *world) {
			r := w.robots[0].lab
			hops := []string{"route", "add", "default"}
			for _, c := range r.Carriers {
				must(t, r.Command(t.Context(), "ip", "route", "del", "default", "dev", c.Interface).Run())
				hops = append(hops, "nexthop", "via", c.Router.String(), "dev", c.Interface, "weight", "1")
			}
			must(t, r.Command(t.Context(), "ip", hops...).Run())
		},
	})
	r, g := w.robots[0], w.gateways[0]
	net := newUpstreams(t, w)
	eachBySelf := func() {
		t.Helper()
		for slot, c := range r.lab.Carriers {
			seenFrom(t, r, g, slot, c.Address.Addr().String()+":")
		}
	}
	eachBySelf()
	flow := startTraffic(t, r.end(), g.end())
	net.cut(bothFamilies, upstream(0, 0))
	within(t, "path of the dead provider down", waitPath(t, r, g.Name, r.lab.Carriers[0].Interface, false), trust+busy)
	routes := output(t, r.lab.Node, "ip", "route", "show", "default")
	must(t, mentions(routes, r.lab.Carriers[0].Interface, r.lab.Carriers[1].Interface))
	flow.halt(t).complete(t, "one of two next hops is dead")
	if n := deaths(t, r, g, 1); n > 0 || deaths(t, r, g, 0) != 1 {
		t.Errorf("the healthy path was given up %d times, the other %d times", n, deaths(t, r, g, 0))
	}
	net.mend(bothFamilies, upstream(0, 0))
	waitPath(t, r, g.Name, r.lab.Carriers[0].Interface, true)
	eachBySelf()
}

// IPv4 of a carrier dies while its address stays, as when a translator of the
// operator (464XLAT) hangs: the path that uses it is given up, and tried by IPv6
// where the gateway has that, too. A path that uses IPv6 on the same carrier
// notices nothing.
func TestOneFamilyOfACarrierDies(t *testing.T) {
	t.Parallel()
	w := build(t, options{Options: lab.Options{IPv6: true, Carriers: []lab.CarrierOptions{near20, near20}}})
	r, west, east := w.robots[0], w.gateways[0], w.gateways[1]
	reachBy(t, r, west, west.lab.Address, west.lab.Address6)
	reachBy(t, r, east, east.lab.Address6)
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	net := newUpstreams(t, w)
	a := r.lab.Carriers[0]
	addresses := kernelAddresses(t, r.lab.Node, a.Interface)
	seenFrom(t, r, west, 0, a.Address.Addr().String()+":")
	toWest, toEast := startTraffic(t, r.end(), west.end()), startTraffic(t, r.end(), east.end())
	net.cut(onlyIPv4, upstream(0, 0))
	began := time.Now()
	seenFrom(t, r, west, 0, "["+a.Address6.Addr().String()+"]:")
	waitPath(t, r, west.Name, a.Interface, true)
	within(t, "up by IPv6 after IPv4 died", time.Since(began), trust+time.Second+busy)
	toWest.halt(t).complete(t, "the gateway with both families")
	toEast.halt(t).complete(t, "the gateway with IPv6")
	if n := deaths(t, r, east, 0); n > 0 || deaths(t, r, west, 0) != 1 {
		t.Errorf("the path by IPv6 was given up %d times, the other %d times", n, deaths(t, r, west, 0))
	}
	if now := kernelAddresses(t, r.lab.Node, a.Interface); !slices.Equal(now, addresses) {
		t.Errorf("the addresses were %v and are %v, so this shows something else", addresses, now)
	}
}
