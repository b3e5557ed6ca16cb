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

// A carrier with a cap never moves more than that, whatever happens to the daemon
// meanwhile: it stops before, says so with what was used, and the other carrier's
// traffic notices nothing. Another cap frees it at once.
func TestMeteredCarrierKeepsItsCap(t *testing.T) {
	t.Parallel()
	const cap = 12_000_000 // bytes
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20, near20}}})
	r, g := w.robots[0], w.gateways[0]
	metered := r.lab.Carriers[0]
	edit(t, r.Member, `interface = "cell-a"`, "interface = \"cell-a\"\nmonthly_cap = \"12MB\"")
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	flow := func(rate float64, size int) traffic {
		return startLoad(t, r.end(), g.end(), load{rate: rate, count: longestFlow, size: size, linger: 500 * time.Millisecond})
	}

	// Killed while it is in use: what was moved is not forgotten, nor what the gateway
	// may have sent until it noticed.
	f := flow(300, 400)
	used := func() *tunnel.UsageStatus { return status(t, r.Member).Carriers[0].Usage }
	eventually(t, "some use", func() error {
		if u := used(); u == nil || u.Used < cap/20 {
			return fmt.Errorf("%+v", u)
		}
		return nil
	})
	must(t, r.Kill())
	f.halt(t)
	moved := movedBy(t, metered)
	run(t, r.Member)
	must(t, r.WaitUp(t.Context()))
	if u := used(); u.Cap != cap || u.Used < moved || u.Used > moved+cap/5 {
		t.Errorf("%d bytes were moved before the daemon was killed, and now it says %+v", moved, u)
	}

	f = flow(1000, 1150)
	spent := func() error {
		c := status(t, r.Member).Carriers[0]
		if c.Usable || !strings.Contains(c.Problem, "monthly cap") || c.Usage == nil {
			return fmt.Errorf("%+v, %+v", c, c.Usage)
		}
		return nil
	}
	eventually(t, "the carrier's rest", spent)
	time.Sleep(time.Second)
	f.halt(t).complete(t, "a carrier that stops at its cap")
	within := func(when string) {
		t.Helper()
		if moved := movedBy(t, metered); moved > cap || moved < cap*6/10 {
			t.Errorf("%s: the carrier moved %d bytes, its cap is %d", when, moved, cap)
		} else {
			t.Logf("%s: %d bytes of %d; status says %+v", when, moved, cap, used())
		}
	}
	within("at rest")

	for _, end := range []func() error{r.Stop, r.Kill} {
		must(t, end())
		run(t, r.Member)
		eventually(t, "the carrier's rest after another start", spent)
		waitPath(t, r, g.Name, r.lab.Carriers[1].Interface, true)
		f = flow(200, 200)
		time.Sleep(time.Second)
		f.halt(t).complete(t, "a carrier that rests")
		within("after another start")
	}

	edit(t, r.Member, `"12MB"`, `"1GB"`)
	began := time.Now()
	must(t, reload(t, r))
	took := waitPath(t, r, g.Name, metered.Interface, true)
	t.Logf("up %v after a larger cap, %v", took, time.Since(began))
	if c := status(t, r.Member).Carriers[0]; !c.Usable || c.Problem != "" {
		t.Errorf("%+v", c)
	}
}

// movedBy is what a carrier has moved both ways, in bytes of IP packets.
func movedBy(t testing.TB, c *lab.Carrier) uint64 {
	t.Helper()
	const ethernet = 14
	up, down, err := c.Counters()
	must(t, err)
	return up.ReceivedBytes + down.ReceivedBytes - ethernet*(up.Received+down.Received)
}

func reload(t testing.TB, r *robot) error {
	t.Helper()
	out, err := r.CLI(t.Context(), "reload", "--config", r.Config())
	if err != nil {
		return errors.Join(err, errors.New(out))
	}
	return nil
}
