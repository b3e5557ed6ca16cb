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

// capped is the cap of a metered carrier in bytes, cappedText in the configuration.
const (
	capped     = 12_000_000
	cappedText = `"12MB"`
)

// A carrier with a cap never moves more than that, whatever happens to the daemon
// meanwhile: it stops before, says so with what was used, and the other carrier's
// traffic notices nothing. A larger cap frees it at once.
func TestMeteredCarrierKeepsItsCap(t *testing.T) {
	t.Parallel()
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20, near20}}})
	x := &metered{t: t, r: w.robots[0], g: w.gateways[0], carrier: w.robots[0].lab.Carriers[0]}
	edit(t, x.r.Member, `interface = "cell-a"`, "interface = \"cell-a\"\nmonthly_cap = "+cappedText)
	w.startAll(t)
	must(t, x.r.WaitUp(t.Context()))
	x.killed()
	x.stops()
	x.staysStopped("a stop", x.r.Stop)
	x.staysStopped("kill -9", x.r.Kill)
	x.freed()
}

// metered is a robot whose first carrier has a cap.
type metered struct {
	t       testing.TB
	r       *robot
	g       *gateway
	carrier *lab.Carrier
}

func (x *metered) flow(rate float64, size int) traffic {
	x.t.Helper()
	return startLoad(x.t, x.r.end(), x.g.end(), load{rate: rate, count: longestFlow, size: size, linger: 500 * time.Millisecond})
}

func (x *metered) status() tunnel.CarrierStatus {
	x.t.Helper()
	return status(x.t, x.r.Member).Carriers[0]
}

// moved is what the carrier has moved both ways, in bytes of IP packets.
func (x *metered) moved() uint64 {
	x.t.Helper()
	const ethernet = 14
	up, down, err := x.carrier.Counters()
	must(x.t, err)
	return up.ReceivedBytes + down.ReceivedBytes - ethernet*(up.Received+down.Received)
}

// killed kills the daemon while the carrier is in use: what was moved is not
// forgotten, nor what the gateway may have sent until it noticed.
func (x *metered) killed() {
	t := x.t
	t.Helper()
	f := x.flow(300, 400)
	eventually(t, "some use", func() error {
		if u := x.status().Usage; u == nil || u.Used < capped/20 {
			return fmt.Errorf("%+v", u)
		}
		return nil
	})
	must(t, x.r.Kill())
	f.halt(t)
	moved := x.moved()
	run(t, x.r.Member)
	must(t, x.r.WaitUp(t.Context()))
	if u := x.status().Usage; u == nil || u.Cap != capped || u.Used < moved || u.Used > moved+capped/5 {
		t.Errorf("%d bytes were moved before the daemon was killed, and now it says %+v", moved, u)
	}
}

// spent returns an error unless the carrier rests and says why.
func (x *metered) spent() error {
	x.t.Helper()
	c := x.status()
	if c.Usable || !strings.Contains(c.Problem, "monthly cap") || c.Usage == nil || c.Usage.Cap != capped {
		return fmt.Errorf("%+v, %+v", c, c.Usage)
	}
	return nil
}

// within fails the test unless most of the cap was moved, and no more.
func (x *metered) within(when string) {
	x.t.Helper()
	moved := x.moved()
	x.t.Logf("%s: %d bytes of %d were moved; status says %+v", when, moved, capped, x.status().Usage)
	if moved > capped || moved < capped*6/10 { // small for its speed, so the reserve is large
		x.t.Errorf("%s: the carrier moved %d bytes, its cap is %d", when, moved, capped)
	}
}

// stops uses the cap up.
func (x *metered) stops() {
	t := x.t
	t.Helper()
	f := x.flow(1000, 1150)
	eventually(t, "the carrier's rest", x.spent)
	time.Sleep(time.Second)
	f.halt(t).complete(t, "a carrier that stops at its cap")
	x.within("at rest")
	text, err := x.r.CLI(t.Context(), "status", "--config", x.r.Config())
	must(t, errors.Join(err, mentions(text, "unusable", "12.0 MB", "Its monthly cap of 12 MB is used up")))
	if p := pathOf(t, status(t, x.g.Member), x.r.Name, slotName(0)); p.Up || p.Stage != "resting" {
		t.Errorf("the gateway says %+v", p)
	}
}

// staysStopped ends the daemon and starts it again.
func (x *metered) staysStopped(how string, end func() error) {
	t := x.t
	t.Helper()
	must(t, end())
	run(t, x.r.Member)
	eventually(t, "the carrier's rest after "+how, x.spent)
	waitPath(t, x.r, x.g.Name, x.r.lab.Carriers[1].Interface, true)
	f := x.flow(200, 200)
	time.Sleep(500 * time.Millisecond)
	f.halt(t).complete(t, "a carrier that rests")
	x.within("after " + how)
}

// freed gives the carrier a larger cap.
func (x *metered) freed() {
	t := x.t
	t.Helper()
	edit(t, x.r.Member, cappedText, `"1GB"`)
	began := time.Now()
	must(t, reload(t, x.r))
	waitPath(t, x.r, x.g.Name, x.carrier.Interface, true)
	within(t, "in use after a larger cap", time.Since(began), time.Second+busy)
	if c := x.status(); !c.Usable || c.Problem != "" || c.Usage == nil || c.Usage.Used < capped/2 {
		t.Errorf("%+v, %+v", c, c.Usage)
	}
}
