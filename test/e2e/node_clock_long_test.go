//go:build long

package e2e

import (
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// Keys are renewed every two minutes, whoever has to start that. Nothing is lost
// when the clock of a robot that the gateway called leaps 50 years, nor when the
// clock of one that the gateway did not call goes back.
func TestLongRenewalWithAWrongClock(t *testing.T) {
	near := lab.Params{Delay: 10 * time.Millisecond}
	for _, c := range []struct {
		name          string
		before, after time.Duration
	}{
		{"called, then 50 years forward", -day, 50 * years},
		{"a day back", 0, -day},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, options{Program: offClock(t), Options: lab.Options{
				Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{{Up: near, Down: near}, {Up: near, Down: near}},
			}})
			r, g := w.robots[0], w.gateways[0]
			restartAt(t, r, r.Member, c.before)
			flow := sendBoth(t.Context(), r.end(), g.end(), steady(210*time.Second))
			time.Sleep(10 * time.Second)
			setClock(t, r.Member, c.after)
			if err := renewed(t, g, r, 190*time.Second); err != nil {
				t.Error(err)
			}
			flow.wait(t).complete(t, c.name)
			t.Logf("clock_behind %d", status(t, r.Member).ClockBehind)
		})
	}
}
