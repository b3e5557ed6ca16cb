package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

// workingIn is how long traffic may take to flow again after a standstill.
const workingIn = 3 * time.Second

// A node that stands still for seconds (SIGSTOP) works again within three when it
// goes on, and delivers nothing of what waited meanwhile, in either direction.
func TestStandstill(t *testing.T) {
	near := lab.Params{Delay: 10 * time.Millisecond}
	w := start(t, options{Options: lab.Options{
		Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{{Up: near, Down: near}, {Up: near, Down: near}},
	}})
	for _, m := range []*deploy.Member{w.robots[0].Member, w.gateways[0].Member} {
		t.Run(m.Role, func(t *testing.T) { standStill(t, w.robots[0], w.gateways[0], m, 5*time.Second) })
	}
}

// standStill stops one of the nodes for d while packets flow.
func standStill(t *testing.T, r *robot, g *gateway, m *deploy.Member, d time.Duration) {
	const deadline = 200 * time.Millisecond // of the configuration
	before := status(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rate := load{rate: 200, count: 200 * int(d/time.Second+30), size: 200, linger: time.Second}
	flow := sendBoth(ctx, r.end(), g.end(), rate)
	time.Sleep(time.Second)
	must(t, unix.Kill(m.Pid(), unix.SIGSTOP))
	eventually(t, "a stop", func() error {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, m.Pid(), &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == nil && info.Signo == 0 {
			err = errors.New("it still runs")
		}
		return err
	})
	stopped := time.Now()
	time.Sleep(d)
	stood := time.Since(stopped)
	must(t, unix.Kill(m.Pid(), unix.SIGCONT))
	time.Sleep(workingIn + time.Second)
	after := status(t, m)
	cancel()
	for i, way := range []string{"robot to gateway", "gateway to robot"} {
		report := flow[i].wait(t)
		t.Logf("%s, %s: %v", m.Role, way, report)
		if worst := report.Percentile(1); worst > deadline+50*time.Millisecond {
			t.Errorf("%s, %s: a packet came %v after it was sent", m.Role, way, worst)
		}
		if gap := report.LongestGap - stood; gap > workingIn {
			t.Errorf("%s, %s: no traffic for %v after %v", m.Role, way, gap, stood)
		}
		if report.Duplicates > 0 {
			t.Errorf("%s, %s: %d packets came twice", m.Role, way, report.Duplicates)
		}
	}
	if after.Out.Stale == before.Out.Stale || after.In.Stale == before.In.Stale {
		t.Errorf("%s counts %d and %d stale packets", m.Role, after.Out.Stale-before.Out.Stale, after.In.Stale-before.In.Stale)
	}
	for _, c := range r.lab.Carriers {
		waitPath(t, r, g.Name, c.Interface, true)
	}
	sendBoth(t.Context(), r.end(), g.end(), steady(time.Second)).wait(t).complete(t, fmt.Sprintf("after a standstill of the %s", m.Role))
}
