//go:build long

package e2e

import (
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

// A minute, after which the others have given up, and four, after which the keys
// are dead as well.
func TestLongStandstill(t *testing.T) {
	near := lab.Params{Delay: 10 * time.Millisecond}
	w := start(t, options{Options: lab.Options{
		Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{{Up: near, Down: near}, {Up: near, Down: near}},
	}})
	for _, d := range []time.Duration{time.Minute, 4 * time.Minute} {
		for _, m := range []*deploy.Member{w.robots[0].Member, w.gateways[0].Member} {
			t.Run(d.String()+" of the "+m.Role, func(t *testing.T) { standStill(t, w.robots[0], w.gateways[0], m, d) })
		}
	}
}
