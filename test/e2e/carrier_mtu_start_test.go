package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// Large packets that are sent as soon as there is a path arrive, though nothing is
// known yet of what the paths take, and though it may be less than it was.
func TestNoLargePacketIsLostAtAStart(t *testing.T) {
	t.Parallel()
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{upTo(1500), upTo(1500)}}})
	r, g := w.robots[0], w.gateways[0]
	run(t, g.Member)
	for _, mtu := range []int{1500, 1500, 1280, 1124} {
		for _, c := range r.lab.Carriers {
			link := upTo(mtu)
			must(t, c.Link.Set(link.Up, link.Down))
		}
		run(t, r.Member)
		waitStatus(t, r.Member, "a path", patience, func(s *tunnel.Status) error {
			if !s.Ready {
				return errors.New("no path is up")
			}
			return nil
		})
		f := sendBoth(t.Context(), r.end(), g.end(), load{rate: 500, count: 100, size: usualMTU - 28, linger: 500 * time.Millisecond})
		f.wait(t).complete(t, fmt.Sprintf("right after a start, %d bytes", mtu))
		must(t, r.Stop())
	}
}
