package e2e

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

// Twenty times everything is lost for a while: on all carriers of a robot nothing
// is forwarded any more, though no interface goes down. Calls are answered again
// within moments of the end of each outage, and nobody restarts anything.
func TestTrafficResumesAfterOutages(t *testing.T) {
	t.Parallel()
	outages(t, 10, 2, 5*time.Second)
}

// victim is a robot that loses everything for a while.
type victim struct {
	*robot
	calls *calls
	ports []string // of its carriers, at the router
	lasts time.Duration
	over  time.Time
}

// outages has several robots each lose everything so many times, for up to longest.
func outages(t *testing.T, robots, times int, longest time.Duration) {
	w := start(t, options{Options: lab.Options{
		Robots: robots, Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20, near20},
	}})
	net := newUpstreams(t, w)
	answer(t, w)
	var victims []*victim
	for i, r := range w.robots {
		v := &victim{robot: r, calls: request(t, w, r, "--rate", "25", "--count", "0", "--lost-after-ms", "1000")}
		for slot := range r.lab.Carriers {
			v.ports = append(v.ports, upstream(i, slot))
		}
		v.calls.await(t, "west", time.Now())
		victims = append(victims, v)
	}
	luck := rand.New(rand.NewPCG(seed(t), 0))
	var waits []time.Duration
	for range times {
		for _, v := range victims {
			v.lasts = time.Duration(luck.Int64N(int64(longest)))
		}
		outage(net, victims)
		for _, v := range victims {
			wait := v.calls.await(t, "west", v.over)
			t.Logf("%s: answered %v after an outage of %v", v.Name, wait.Round(time.Millisecond), v.lasts.Round(time.Millisecond))
			waits = append(waits, wait)
		}
	}
	within(t, "calls answered again after the worst outage", quantile(waits, 1), searches+busy)
	for _, v := range victims {
		must(t, v.WaitUp(t.Context()))
		v.calls.end(t)
	}
}

// outage cuts all victims off and returns when the last of them is back.
func outage(net upstreams, victims []*victim) {
	slices.SortFunc(victims, func(a, b *victim) int { return cmp.Compare(a.lasts, b.lasts) })
	began := time.Now()
	for _, v := range victims {
		net.cut(bothFamilies, v.ports...)
	}
	for _, v := range victims {
		time.Sleep(v.lasts - time.Since(began))
		net.mend(bothFamilies, v.ports...)
		v.over = time.Now()
	}
}

// searches is the distance between two handshakes of a robot that has traffic and
// no living path for it.
var searches = path.DefaultConfig().Retry

// A robot in a network that another program has shut, but for its own traffic,
// when its daemon is killed: what stays behind keeps the overlay shut, and never
// the carriers. The next start recovers by itself.
func TestKilledBehindAKillSwitch(t *testing.T) {
	t.Parallel()
	w := start(t, options{
		Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20, near20}},
		Prepare: func(w *world) { killSwitch(t, w.robots[0].lab.Node) },
	})
	r, g := w.robots[0], w.gateways[0]
	sendBoth(t.Context(), r.end(), g.end(), steady(500*time.Millisecond)).wait(t).complete(t, "behind a kill switch")
	for _, member := range []*deploy.Member{r.Member, r.Member, g.Member} {
		must(t, member.Kill())
		if out, err := r.lab.Command(t.Context(), "ping", "-c", "1", "-W", "1", g.ip.String()).Output(); err == nil {
			t.Errorf("the overlay answers while %s is dead:\n%s", member.Name, out)
		}
		run(t, member)
		began := time.Now()
		for _, c := range r.lab.Carriers {
			provenSince(t, r, g, c.Interface, began)
		}
		within(t, "paths proven after a restart of the "+member.Role, time.Since(began), time.Second+busy)
		must(t, r.WaitUp(t.Context()))
		sendBoth(t.Context(), r.end(), g.end(), steady(500*time.Millisecond)).wait(t).complete(t, "after kill -9 of the "+member.Role)
	}
	// With plr0 gone as well, nothing but the blackhole route is left.
	must(t, r.Kill())
	must(t, r.lab.Command(t.Context(), "ip", "link", "del", "plr0").Run())
	run(t, r.Member)
	must(t, r.WaitUp(t.Context()))
	sendBoth(t.Context(), r.end(), g.end(), steady(500*time.Millisecond)).wait(t).complete(t, "with a new plr0")
}
