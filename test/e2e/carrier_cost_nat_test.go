package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// forgetful is a translator that forgets mappings which are idle for a while.
type forgetful struct {
	after time.Duration
	// tried is the probe interval that is too long for it, learnt the one that a
	// robot should come to.
	tried, learnt time.Duration
	extra         string // of the carrier's configuration
}

// forgetsSoon is more impatient than any real one.
var forgetsSoon = forgetful{after: 6 * time.Second, tried: 10 * time.Second, learnt: 5 * time.Second}

// learnMapping watches an idle robot whose only carrier is behind such a
// translator. While it tries how long it may be silent, its requests are answered
// though the mapping has gone. Then it stays below that, and its gateways reach it
// at any time.
func learnMapping(t testing.TB, w *world, r *robot, nat forgetful) {
	t.Helper()
	// probed says that all paths are probed at that interval, and were not for a while.
	probed := func(interval, silent time.Duration) func(*tunnel.Status) error {
		return func(s *tunnel.Status) error {
			for _, p := range s.Peers {
				if l := p.Paths[0]; l.IdleProbe != interval.Seconds() || l.LastProof < silent.Seconds() {
					return fmt.Errorf("%s: %+v", p.Name, l)
				}
			}
			return nil
		}
	}
	began := time.Now()
	waitStatus(t, r.Member, "forgotten mappings", 20*nat.tried, probed(nat.tried, nat.after+300*time.Millisecond))
	if s := firstRequest(t, w, r); s.Lost > 0 {
		t.Errorf("the first request by a mapping that was forgotten: %+v", s)
	}
	waitStatus(t, r.Member, "a shorter interval", 20*nat.tried, probed(nat.learnt, 0))
	t.Logf("behind a translator that forgets after %v, probes come each %v after %v", nat.after, nat.learnt, time.Since(began).Round(time.Second))
	waitStatus(t, r.Member, "a silence", 20*nat.learnt, probed(nat.learnt, nat.learnt*7/10))
	first := send(t.Context(), w.gateways[0].end(), r.end(), load{rate: 50, count: 10, size: 100, linger: time.Second})
	exactlyOnce(t, "the gateway's first packets", first.wait(t))
	for _, g := range w.gateways {
		if n := deaths(t, r, g, len(r.lab.Carriers)-1); n > 0 {
			t.Errorf("the path to %s was given up %d times", g.Name, n)
		}
	}
}

// natted is a link with a round trip of 20 ms behind a translator.
func (f forgetful) natted() lab.CarrierOptions {
	c := near20
	c.NAT = lab.NAT{Kind: lab.Symmetric, Idle: f.after}
	return c
}
