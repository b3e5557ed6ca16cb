package e2e

import (
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// A DDS program that starts while the robot's daemon is stopped, on the plr0 that
// an earlier run left, works once the daemon is back, without being started
// again; so does one that starts after it. Then one client is killed: the others
// do not notice.
//
// Fast DDS takes part in the second order only. It looks for interfaces once, and
// only for those with IFF_RUNNING, which a TUN device has while a program holds
// it.
func TestDDSStartOrder(t *testing.T) { undisturbed(t, startOrder) }

func startOrder(t testing.TB) {
	w := startUrgent(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, west := w.robots[0], w.gateways[0]
	must(t, r.Stop())
	cyclone, fast := vendors[0], vendors[1]
	serve(t, west, cyclone)
	serve(t, west, fast)
	early := startCalls(t, r, cyclone, "--count", "0", "--match-timeout-s", "60")
	time.Sleep(time.Second)
	if n := len(early.soFar()); n > 0 {
		t.Fatalf("%d calls without a daemon", n)
	}
	began := time.Now()
	beginUrgent(t, r.Member)
	late := []*calls{startCalls(t, r, cyclone, "--count", "0"), startCalls(t, r, fast, "--count", "0")}
	for i, c := range late {
		t.Logf("%s, started after the daemon: calls flow %v later", vendors[i].name, c.await(t, "", began).Round(time.Millisecond))
	}
	// Cyclone DDS announces itself every 8 s.
	t.Logf("%s, started before the daemon: calls flow %v later", cyclone.name, early.await(t, "", began).Round(time.Millisecond))

	time.Sleep(time.Second)
	killed := time.Now()
	must(t, early.Kill())
	time.Sleep(3 * time.Second)
	for i, c := range late {
		wait := longestWait(c.soFar(), killed.Add(-500*time.Millisecond), time.Now())
		t.Logf("%s: at most %v between two replies after a client was killed", vendors[i].name, wait.Round(time.Millisecond))
		if wait > time.Second {
			t.Errorf("%s: %v without a reply after another client was killed", vendors[i].name, wait)
		}
		_ = c.Stop(patience) // status 1 says that something was lost, which is judged here
		if s := c.finish(t); s.Lost > 0 || s.Requests-s.Replies > 2 {
			t.Errorf("%s: %+v", vendors[i].name, s)
		}
	}
}
