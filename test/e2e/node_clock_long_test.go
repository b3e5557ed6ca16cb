//go:build long

package e2e

import (
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// Keys live for three minutes and are renewed every two, whoever has to start that.
// Nothing is lost when the clock of a robot that the gateway called leaps 50 years,
// nor when the clock of one that the gateway did not call goes back.
func TestLongRenewalWithAWrongClock(t *testing.T) {
	t.Parallel()
	near := lab.Params{Delay: 10 * time.Millisecond}
	for _, c := range []struct {
		name          string
		before, after time.Duration
		called        bool // after the clock changed
	}{
		{"called, then 50 years forward", -day, 50 * years, false},
		{"a day back", 0, -day, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, options{Program: offClock(t), Options: lab.Options{
				Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{{Up: near, Down: near}, {Up: near, Down: near}},
			}})
			r, g := w.robots[0], w.gateways[0]
			restartAt(t, r, r.Member, c.before)
			flow := sendBoth(t.Context(), r.end(), g.end(), steady(210*time.Second))
			time.Sleep(10 * time.Second)
			before := status(t, r.Member).ClockBehind
			setClock(t, r.Member, c.after)
			flow.wait(t).complete(t, c.name)
			if called := status(t, r.Member).ClockBehind - before; (called > 0) != c.called {
				t.Errorf("the gateway had to start %d handshakes", called)
			}
		})
	}
}
