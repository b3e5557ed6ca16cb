package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// trouble is what a carrier suffers from, and what status must say of its path.
type trouble struct {
	up, down lab.Params
	dead     bool
	stage    string // begins so
	hint     string // says that
}

// troubles are those of a robot's carriers, in their order. The first one is well,
// the last one has a limit.
var troubles = []trouble{
	{},
	{up: lab.Params{Loss: 0.3}, stage: "loses", hint: "from this robot to the gateway"},
	{down: lab.Params{Loss: 0.3}, stage: "loses", hint: "from the gateway to this robot"},
	{up: lab.Params{Loss: 0.5}, down: lab.Params{Loss: 0.5}, stage: "lossy, loses", hint: "only beside others"},
	{dead: true, stage: "no reply", hint: "Nothing comes back"},
	{up: limited, down: limited, stage: "throttled to about", hint: "delivers only up to a certain rate"},
}

// limited delivers 200 kbit/s, and drops what would have to wait for longer.
var limited = lab.Params{Rate: 200_000, Queue: 50 * time.Millisecond}

// named returns an error unless status names what a carrier suffers from.
func (x *trouble) named(p tunnel.PathStatus) error {
	switch {
	case p.Up == x.dead, p.Carries == x.dead, x.stage == "" && p.Stage != "",
		!strings.HasPrefix(p.Stage, x.stage), !strings.Contains(p.Hint, x.hint):
		return fmt.Errorf("%q expected, and status says %+v", x.stage, p)
	}
	return nil
}

// Carriers that lose a third one way, or half of all, that are up but dead, or that
// throttle UDP: each is named for what it suffers from, and does no harm beside a
// good one. Small urgent requests, a copy of each of which goes by every carrier that
// is not dead, all keep their deadline.
func TestTroublesAreNamedAndHarmless(t *testing.T) {
	t.Parallel()
	undisturbed(t, troubled)
}

func troubled(t testing.TB) {
	var carriers []lab.CarrierOptions
	for range troubles {
		carriers = append(carriers, near20)
	}
	w := startUrgent(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: carriers, Seed: seed(t)}})
	r, g := w.robots[0], w.gateways[0]
	acquaint(t, w)
	answer(t, w)
	c := request(t, w, r, "--rate", "50", "--count", "0", "--deadline-ms", "200", "--lost-after-ms", "1000")
	c.await(t, "west", time.Now())
	for i, x := range troubles {
		x.up.Delay, x.down.Delay = near20.Up.Delay, near20.Down.Delay
		link := r.lab.Carriers[i].Link
		must(t, errors.Join(link.Set(x.up, x.down), link.BlackHole(x.dead)))
	}
	began := time.Now()
	last := len(troubles) - 1
	for i := range last {
		eventually(t, "a trouble's name", func() error { return troubles[i].named(r.path(t, g, i)) })
		t.Logf("after %v: %q", time.Since(began).Round(time.Millisecond), r.path(t, g, i).Stage)
	}
	// A limit shows in that more is lost the more is sent, but nothing below it.
	time.Sleep(9*time.Second - time.Since(began))
	for n := 0; ; n++ {
		rate := float64(80 * (1 + n%2)) // 0.5 and 1 Mbit/s with all headers
		send(t.Context(), r.end(), g.end(), load{rate: rate, count: int(4 * rate), size: 400, linger: time.Millisecond}).wait(t)
		p := r.path(t, g, last)
		err := troubles[last].named(p)
		if err == nil {
			t.Logf("after %v: %q", time.Since(began).Round(time.Second), p.Stage)
			var kbits float64
			if _, err := fmt.Sscanf(p.Stage, "throttled to about %f kbit/s", &kbits); err != nil || kbits < 170 || kbits > 230 {
				t.Errorf("a limit of 200 kbit/s is called %q (%v)", p.Stage, err)
			}
			break
		}
		if time.Since(began) > 3*patience {
			t.Fatal(err)
		}
	}
	s := c.end(t)
	t.Logf("%+v", s)
	if s.Lost > 0 || s.Missed > 0 {
		up, down, err := r.lab.Carriers[0].Link.Counters()
		t.Errorf("%d of %d requests lost, %d late or lost; the good link: %+v, %+v, %v; %s; %s; its path was given up %d times",
			s.Lost, s.Requests, s.Missed, up, down, err, dropped(t, r.Member), dropped(t, g.Member), deaths(t, r, g, 0))
	}
}
