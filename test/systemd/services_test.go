package systemd_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Bounds that hold on a slow and busy machine. None is a promise.
const (
	activeWithin  = 5 * time.Second  // from `systemctl start` to active, with no uplink there
	trafficWithin = 20 * time.Second // from uplinks that appear to the first answer
	resumeWithin  = 6 * time.Second  // the longest silence around a restart
	insideLimit   = 170 * time.Second
)

// TestServices boots a robot and two gateways, installs them in both ways and
// goes through the life of the services.
func TestServices(t *testing.T) {
	root := os.Getenv(insideEnv)
	if root == "" {
		if os.Geteuid() != 0 {
			t.Fatal("this test boots machines, for which it must run as root")
		}
		need(t, "systemd-nspawn", "systemd-container")
		need(t, "nsenter", "util-linux")
		need(t, "ip", "iproute2")
		need(t, "ping", "iputils-ping")
		runInside(t, debianRoot(t), buildProgram(t), insideLimit)
		return
	}
	w := newWorld(t, root)
	for _, step := range []struct {
		name string
		f    func(*world, *testing.T)
	}{
		{"gateways start at boot", (*world).gatewaysRun},
		{"ready before carriers", (*world).readyBeforeCarriers},
		{"traffic", (*world).traffic},
		{"confinement", (*world).confinement},
		{"key", (*world).key},
		{"wg show", (*world).wgShow},
		{"freeze a gateway", (*world).freeze},
		{"reverse path", (*world).reversePath},
		{"restart", (*world).restart},
		{"reload", (*world).reload},
		{"kill", (*world).kill},
		{"watchdog", (*world).watchdog},
		{"stop", (*world).stop},
		{"journal", (*world).journal},
		{"uninstall", (*world).uninstall},
	} {
		ok := t.Run(step.name, func(t *testing.T) {
			for _, m := range w.machines() {
				outer := m.t
				m.t = t
				defer func() { m.t = outer }()
			}
			step.f(w, t)
		})
		if !ok {
			t.Fatalf("the steps after %q depend on it", step.name)
		}
	}
}

func (w *world) gatewaysRun(t *testing.T) {
	for _, m := range []*machine{w.west, w.east} {
		eventually(t, activeWithin, m.active)
		if n := m.number("NRestarts"); n != 0 {
			t.Errorf("%s was restarted %d times", m.name, n)
		}
	}
}

func (w *world) readyBeforeCarriers(t *testing.T) {
	m := w.robot
	attach(t, "robot", up0)
	attach(t, "robot", up1)
	w.before = routes(m)
	detach(t, up0)
	detach(t, up1)

	m.must("/root/systemd/install.sh")
	m.must("/root/systemd/install.sh") // twice is like once
	m.must("systemctl", "--quiet", "enable", m.unit)
	start := time.Now()
	m.must("systemctl", "start", m.unit) // comes back with READY=1
	took := time.Since(start)
	if took > activeWithin {
		t.Errorf("without carriers the service needs %v to be ready", took)
	}
	t.Logf("ready after %v", took)
	if err := m.active(); err != nil {
		t.Fatal(err)
	}
	m.must("test", "-S", "/run/fogplr/robot.sock")
	if out := m.must("ip", "-brief", "address", "show", "plr0"); !strings.Contains(out, robotAddress+"/16") {
		t.Errorf("plr0 is not up with its address: %s", out)
	}
	w.index = interfaceIndex(m, "plr0")
	// It stays: nothing kills a daemon that waits for its uplinks.
	time.Sleep(2 * time.Second)
	if err := errors.Join(m.active(), w.notRestarted()); err != nil {
		t.Error(err)
	}
}

func (w *world) notRestarted() error {
	if n := w.robot.number("NRestarts"); n != 0 {
		return fmt.Errorf("the robot's service was restarted %d times", n)
	}
	return nil
}

func (w *world) traffic(t *testing.T) {
	attach(t, "robot", up0)
	attach(t, "robot", up1)
	for _, to := range []string{westAddress, eastAddress} {
		took := eventually(t, trafficWithin, func() error { return w.ping(to, 1) })
		t.Logf("first answer of %s after %v", to, took)
		if err := w.ping(to, 5); err != nil {
			t.Error(err)
		}
	}
	eventually(t, trafficWithin, func() error {
		if out, err := w.robot.run("fogplr", "status", "--check"); err != nil {
			return fmt.Errorf("fogplr status --check: %w\n%s", err, out)
		}
		return nil
	})
	heardWest, heardEast := hear(w.west), hear(w.east)
	sent := 0
	for _, heard := range []<-chan string{heardWest, heardEast} {
		eventually(t, trafficWithin, func() error {
			sent++
			call(w.robot, fmt.Sprint(sent))
			select {
			case <-heard:
				return nil
			case <-time.After(time.Second):
				return errors.New("no multicast datagram arrived")
			}
		})
	}
}

// freeze stops a gateway's daemon, as a deadlock would, for the step watchdog.
func (w *world) freeze(t *testing.T) {
	if got := w.robot.property("WatchdogUSec"); got != "10s" {
		t.Errorf("the watchdog of the robot is set to %s", got)
	}
	w.east.must("systemctl", "kill", "--kill-whom=main", "--signal=STOP", w.east.unit)
}

func (w *world) watchdog(t *testing.T) {
	eventually(t, 40*time.Second, func() error {
		if n := w.east.number("NRestarts"); n != 1 {
			return fmt.Errorf("the frozen daemon was restarted %d times", n)
		}
		return errors.Join(w.east.active(), w.ping(eastAddress, 1))
	})
	if !strings.Contains(w.east.must("journalctl", "--no-pager", "--unit="+w.east.unit), "Watchdog timeout") {
		t.Error("it was not the watchdog that found the frozen daemon")
	}
	if n := w.west.number("NRestarts"); n != 0 {
		t.Errorf("the watchdog restarted a healthy daemon %d times", n)
	}
}

// reversePath has the robot's kernel check senders strictly, which would leave
// nothing of up1, the carrier that is not its first choice. The daemon sees to that,
// though it is not root and /proc/sys is read-only for it; and again after the
// carrier was unplugged and plugged in.
func (w *world) reversePath(t *testing.T) {
	m := w.robot
	if out, err := m.run("nsenter", "--target", m.property("MainPID"), "--mount", "sh", "-c", "echo 2 >"+filterOf("up1")); err == nil || !strings.Contains(out, "Read-only") {
		t.Errorf("/proc/sys should be read-only for the daemon: %v %s", err, out)
	}
	w.setReversePath(strict, "default", "all", up0.name, up1.name)
	w.wantReversePath(up1.name, loose)
	w.wantReversePath(up0.name, strict)
	detach(t, up1)
	attach(t, "robot", up1)
	w.wantReversePath(up1.name, loose)
	eventually(t, trafficWithin, func() error {
		out, err := m.run("fogplr", "status", "--check")
		if err != nil || strings.Contains(out, "sysctl") {
			return fmt.Errorf("fogplr status --check: %v\n%s", err, out)
		}
		return nil
	})
}

func (w *world) restart(t *testing.T) {
	m := w.robot
	pid := m.property("MainPID")
	m.must("touch", "/run/fogplr/learnt")
	w.silence(t, func() { m.must("systemctl", "restart", m.unit) })
	if m.property("MainPID") == pid {
		t.Error("the daemon is the same as before")
	}
	m.must("test", "-e", "/run/fogplr/learnt")
	w.wantReversePath(up1.name, loose)
}

func (w *world) kill(t *testing.T) {
	pid, restarts := w.robot.property("MainPID"), w.robot.number("NRestarts")
	w.silence(t, func() {
		w.robot.must("systemctl", "kill", "--kill-whom=main", "--signal=KILL", w.robot.unit)
		eventually(t, activeWithin, func() error {
			if w.robot.property("MainPID") == pid {
				return errors.New("systemd did not start the daemon anew")
			}
			return w.robot.active()
		})
	})
	if n := w.robot.number("NRestarts"); n != restarts+1 {
		t.Errorf("systemd restarted the daemon %d times, want 1", n-restarts)
	}
}

// silence measures how long traffic pauses around f, which must leave plr0.
func (w *world) silence(t *testing.T, f func()) {
	t.Helper()
	echo(w.west)
	flow := startFlow(w.robot, westAddress)
	more := func(n int) func() error {
		until := flow.count() + n
		return func() error {
			if flow.count() < until {
				return errors.New("no answers")
			}
			return nil
		}
	}
	eventually(t, 5*time.Second, more(50))
	f()
	eventually(t, 2*resumeWithin, more(100))
	gap := flow.end(t)
	t.Logf("longest silence %v", gap)
	if gap > resumeWithin {
		t.Errorf("traffic paused for %v", gap)
	}
	if index := interfaceIndex(w.robot, "plr0"); index != w.index {
		t.Errorf("plr0 was made anew: its index is %d and was %d", index, w.index)
	}
}

func (w *world) reload(t *testing.T) {
	for _, m := range []*machine{w.robot, w.west} {
		pid := m.property("MainPID")
		m.must("systemctl", "reload", m.unit)
		time.Sleep(time.Second)
		if err := m.active(); err != nil {
			t.Error(err)
		}
		if m.property("MainPID") != pid {
			t.Errorf("%s: a reload ends the daemon", m.name)
		}
	}
	if err := w.ping(westAddress, 3); err != nil {
		t.Error(err)
	}
}

func (w *world) stop(t *testing.T) {
	m := w.robot
	m.must("systemctl", "stop", m.unit)
	if state := m.property("Result"); state != "success" {
		t.Errorf("the service stopped with result %q", state)
	}
	if after := routes(m); after != w.before {
		t.Errorf("rules and routes before:\n%s\nafter:\n%s", w.before, after)
	}
	if index := interfaceIndex(m, "plr0"); index != w.index {
		t.Errorf("plr0 did not stay as it was: index %d, was %d", index, w.index)
	}
	w.wantReversePath(up1.name, strict)
	post := m.property("ExecStopPost")
	if !strings.Contains(post, "fogplr cleanup") || !strings.Contains(post, "code=exited ; status=0") {
		t.Errorf("the clean-up after the stop did not run well: %s", post)
	}
}

// journal looks for keys in what the machines logged.
func (w *world) journal(t *testing.T) {
	key := regexp.MustCompile(`[A-Za-z0-9+/]{42,}=|\b[0-9a-fA-F]{64}\b`)
	for _, m := range w.machines() {
		out := m.must("journalctl", "--no-pager", "--all", "--output=cat", "--unit="+m.unit)
		if !strings.Contains(out, "Started") {
			t.Errorf("the journal of %s does not hold the service's start:\n%s", m.name, out)
		}
		if found := key.FindString(out); found != "" {
			t.Errorf("the journal of %s holds what looks like a key, %.6s...", m.name, found)
		}
		for _, secret := range w.secrets {
			if strings.Contains(out, secret) {
				t.Errorf("the journal of %s holds a private key", m.name)
			}
		}
	}
}

func (w *world) uninstall(t *testing.T) {
	m := w.robot
	m.must("systemctl", "start", m.unit)
	m.must("/root/systemd/install.sh", "--uninstall")
	if state := m.property("LoadState"); state != "not-found" {
		t.Errorf("after the uninstallation the unit is %s", state)
	}
	if out, err := m.run("ip", "link", "show", "plr0"); err == nil {
		t.Errorf("plr0 is still there: %s", out)
	}
	if after := routes(m); after != w.before {
		t.Errorf("rules and routes before:\n%s\nafter:\n%s", w.before, after)
	}
	m.must("test", "-f", "/etc/fogplr/node.key")
}
