package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

// longestPause is how long traffic may stand still after a restart. A quarter of
// a second is usual, and a robot that had to notice by itself takes 0.7 s to 3 s.
const longestPause = time.Second

// A node that is killed and started again, without a word to the other end, is
// back in the conversation in less than a second; programs on plr0 go on, and no
// packet ever comes twice.
func TestSilentRestarts(t *testing.T) {
	near := lab.Params{Delay: 5 * time.Millisecond}
	w := start(t, options{Options: lab.Options{Carriers: []lab.CarrierOptions{{Up: near, Down: near}, {Up: near, Down: near}}}})
	r, g := w.robots[0], w.gateways[0]
	for _, m := range []*deploy.Member{g.Member, r.Member} {
		t.Run(m.Role, func(t *testing.T) {
			gap := restart(t, r, g, m)
			for try := 0; try < 2 && gap > longestPause; try++ { // the machine may be busy
				gap = restart(t, r, g, m)
			}
			if gap > longestPause {
				t.Errorf("no traffic for %v after a restart of the %s", gap, m.Role)
			}
		})
	}
	t.Run("ten in a row", func(t *testing.T) { manyRestarts(t, r, g, 10) })
}

// restart kills one of the nodes and starts it again while packets flow, and
// returns how long they did not.
func restart(t *testing.T, r *robot, g *gateway, m *deploy.Member) (gap time.Duration) {
	index := ifindex(t, r.lab.Node, "plr0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	flow := sendBoth(ctx, r.end(), g.end(), load{rate: 200, count: 200 * 60, size: 200, linger: 500 * time.Millisecond})
	time.Sleep(500 * time.Millisecond)
	must(t, m.Kill())
	began := time.Now()
	run(t, m)
	t.Logf("%s answers %v after its death", m.Role, time.Since(began))
	for slot, c := range r.lab.Carriers {
		provenSince(t, r, g, c.Interface, began)
		seenFrom(t, r, g, slot, "")
	}
	t.Logf("all paths up %v after it", time.Since(began))
	time.Sleep(500 * time.Millisecond)
	cancel()
	for i, way := range []string{"robot to gateway", "gateway to robot"} {
		report := flow[i].wait(t)
		t.Logf("%s, %s: no traffic for %v; %v", m.Role, way, report.LongestGap, report)
		gap = max(gap, report.LongestGap)
		if report.Duplicates > 0 {
			t.Errorf("%s: %d packets came twice after a restart of the %s", way, report.Duplicates, m.Role)
		}
	}
	if now := ifindex(t, r.lab.Node, "plr0"); now != index {
		t.Errorf("plr0 had index %d and has %d now", index, now)
	}
	return gap
}

// provenSince waits until a path has been proven after that time.
func provenSince(t testing.TB, r *robot, g *gateway, carrier string, since time.Time) {
	t.Helper()
	eventually(t, "proof of "+carrier, func() error {
		p := pathOf(t, status(t, r.Member), g.Name, carrier)
		if proof := time.Duration(p.LastProof * float64(time.Second)); proof < 0 || proof > time.Since(since) {
			return fmt.Errorf("none since %v: %+v", since, p)
		}
		return nil
	})
}

// manyRestarts restarts the robot, and every fourth time the gateway, while
// packets flow.
func manyRestarts(t *testing.T, r *robot, g *gateway, times int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	flow := sendBoth(ctx, r.end(), g.end(), load{rate: 200, count: 200 * 60 * times, size: 200, linger: 500 * time.Millisecond})
	for i := range times {
		m, end := r.Member, r.Kill
		if i%4 == 0 {
			m, end = g.Member, g.Kill
		}
		if i%2 == 1 {
			end = m.Stop
		}
		must(t, end())
		began := time.Now()
		run(t, m)
		provenSince(t, r, g, r.lab.Carriers[i%len(r.lab.Carriers)].Interface, began)
		time.Sleep(100 * time.Millisecond)
	}
	cancel()
	for i, way := range []string{"robot to gateway", "gateway to robot"} {
		report := flow[i].wait(t)
		t.Logf("%d restarts, %s: %v", times, way, report)
		// 3 s is what a robot takes to give a path up.
		if report.Duplicates > 0 || report.Received == 0 || report.LongestGap > 2*longestPause {
			t.Errorf("%d restarts, %s: no traffic for %v; %v", times, way, report.LongestGap, report)
		}
	}
	sendBoth(t.Context(), r.end(), g.end(), steady(time.Second)).wait(t).complete(t, "after restarts in a row")
}
