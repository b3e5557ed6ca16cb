//go:build long

package e2e

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// For ten minutes carriers go silent and gateways die and come back, one of each
// at a time, while both vendors call at 30 Hz: no call is lost, and no daemon
// grows.
func TestLongDDSCampaign(t *testing.T) {
	const length = 10 * time.Minute
	link := lab.CarrierOptions{Up: lab.RoundTrip(40*time.Millisecond, 5*time.Millisecond, 0.01), Down: lab.RoundTrip(40*time.Millisecond, 5*time.Millisecond, 0.01)}
	w := startUrgent(t, options{Options: lab.Options{Carriers: []lab.CarrierOptions{link, link, link}, Seed: 1}})
	r := w.robots[0]
	clients := callBoth(t, w, r)
	files, threads := use(t, r.Member)
	rnd := rand.New(rand.NewPCG(1, 2))
	pause := func(most time.Duration) { time.Sleep(time.Duration(rnd.Int64N(int64(most)))) }
	m := listenToMetronome()
	began := time.Now()
	for time.Since(began) < length {
		c := r.lab.Carriers[rnd.IntN(len(r.lab.Carriers))]
		g := w.gateways[rnd.IntN(len(w.gateways))]
		must(t, c.Link.BlackHole(true))
		pause(4 * time.Second)
		must(t, g.Kill())
		pause(4 * time.Second)
		beginUrgent(t, g.Member)
		pause(4 * time.Second)
		must(t, c.Link.BlackHole(false))
		must(t, r.WaitUp(t.Context()))
	}
	ended := time.Now()
	files2, threads2 := use(t, r.Member)
	t.Logf("robot: %d to %d files, %d to %d threads, %d MB", files, files2, threads, threads2, memoryOf(t, r.Member)>>20)
	if files2 > files+3 || threads2 > threads+10 {
		t.Errorf("the robot grew: %d to %d files, %d to %d threads", files, files2, threads, threads2)
	}
	time.Sleep(6 * time.Second) // until a lost request counts as lost
	pauses := m.stop()
	t.Logf("the machine stood still %d times; %s", len(pauses), dropped(t, r.Member))
	for i, c := range clients {
		wait := longestWait(c.soFar(), began, ended)
		_ = c.Stop(patience) // status 1 says that something was lost, which is judged here
		s := c.finish(t)
		t.Logf("%s: %+v; at most %v between two replies", vendors[i].name, s, wait.Round(time.Millisecond))
		for _, e := range c.soFar() {
			if sent := time.Unix(0, int64(e.T*1e9)); e.Lost && !near(pauses, sent) {
				t.Errorf("%s: request %d, sent %v after the beginning, is lost", vendors[i].name, e.Seq, sent.Sub(began))
			}
		}
		if s.Lost > s.Requests/50 {
			t.Errorf("%s: %+v: this machine is too busy to tell", vendors[i].name, s)
		}
	}
}

// A thousand link changes cost nothing that stays.
func TestLongNodeLeak(t *testing.T) { flap(t, 1000) }

// near reports whether the machine stood still within a second of t: before, it
// made a queue, and after, samples on their way wait.
func near(pauses []pause, t time.Time) bool {
	return slices.ContainsFunc(pauses, func(p pause) bool {
		return t.After(p.from.Add(-time.Second)) && t.Before(p.from.Add(p.length+time.Second))
	})
}
