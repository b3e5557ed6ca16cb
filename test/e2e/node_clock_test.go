package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

const (
	day   = 24 * time.Hour
	years = 365 * day
	// backIn is how long a robot may take whatever its clock says.
	backIn = 10 * time.Second
)

// offClock builds a fogplr whose wall clock is off by what setClock says: the
// machine's own cannot be set for one test. All of the program sees it, since
// time.Now itself is another one (go build -overlay).
func offClock(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	library := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	const reads, shifted = "\tsec, nsec, mono := runtimeNow()\n", "\tsec += WallShift.Load()\n"
	before, now, ok := strings.Cut(read(t, filepath.Join(library, "time.go")), "func Now() Time {\n")
	if !ok || !strings.HasPrefix(now, reads) {
		t.Fatal("time.Now of this Go reads the clock in another way; adapt this test to it")
	}
	fresh := filepath.Join(dir, "time.go")
	must(t, os.WriteFile(fresh, []byte(before+"func Now() Time {\n"+reads+shifted+now[len(reads):]), 0o644))
	command, err := filepath.Abs("../../cmd/fogplr")
	must(t, err)
	here, err := filepath.Abs("testdata/wallclock")
	must(t, err)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(library, "time.go"):      fresh,
		filepath.Join(library, "wallshift.go"): filepath.Join(here, "time.txt"),
		filepath.Join(command, "wallshift.go"): filepath.Join(here, "main.txt"),
	}})
	must(t, err)
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "fogplr")
	must(t, os.WriteFile(file, overlay, 0o644))
	build := exec.Command("go", "build", "-overlay", file, "-o", program, command)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build a fogplr with a clock of its own: %v\n%s", err, out)
	}
	return program
}

// setClock sets a member's wall clock off, at once if it runs.
func setClock(t testing.TB, m *deploy.Member, off time.Duration) {
	t.Helper()
	file := filepath.Join(m.Dir, "clock")
	must(t, os.WriteFile(file+".new", []byte(strconv.FormatInt(int64(off/time.Second), 10)), 0o644))
	must(t, os.Rename(file+".new", file))
}

// in1970 is how far off the clock is of a machine without a battery for it.
func in1970() time.Duration { return time.Duration(-time.Now().Unix()+60) * time.Second }

// restartAt starts a member anew with its clock off, and returns how long all of
// the robot's paths took to be up.
func restartAt(t testing.TB, r *robot, m *deploy.Member, off time.Duration) time.Duration {
	t.Helper()
	must(t, m.Stop())
	setClock(t, m, off)
	began := time.Now()
	run(t, m)
	waitStatus(t, r.Member, "all paths up", patience, func(s *tunnel.Status) error {
		for _, p := range s.Peers {
			for _, l := range p.Paths {
				if proof := time.Duration(l.LastProof * float64(time.Second)); !l.Up || proof > time.Since(began) {
					return fmt.Errorf("%s by %s: up=%v %s", p.Name, l.Carrier, l.Up, l.Stage)
				}
			}
		}
		return nil
	})
	return time.Since(began)
}

// A robot whose clock went back while it was off, by a day or to 1970, is refused
// by WireGuard, and is back in time all the same; so is one whose clock leaps 50
// years while it runs, as when NTP sets it through the tunnel, and back.
func TestRobotWithAWrongClock(t *testing.T) {
	t.Parallel()
	near := lab.Params{Delay: 10 * time.Millisecond}
	w := start(t, options{Program: offClock(t), Options: lab.Options{
		Gateways: []string{"east", "west"}, Carriers: []lab.CarrierOptions{{Up: near, Down: near}, {Up: near, Down: near}},
	}})
	r, g := w.robots[0], w.gateways[0]
	paths := uint64(len(w.gateways) * len(r.lab.Carriers))
	if s := status(t, r.Member); s.ClockBehind != 0 || len(s.Warnings) != 0 {
		t.Errorf("a right clock: clock_behind %d, warnings %q", s.ClockBehind, s.Warnings)
	}
	for _, c := range []struct {
		name string
		off  func() time.Duration
		said string
	}{
		{"a day behind", func() time.Duration { return -day }, "was ahead of that before"},
		{"in 1970", in1970, "1970-01-01"},
	} {
		took := restartAt(t, r, r.Member, c.off())
		t.Logf("%s: all paths up after %v", c.name, took)
		if took > backIn {
			t.Errorf("%s: all paths up after %v only", c.name, took)
		}
		var told *tunnel.Status
		waitStatus(t, r.Member, "clock_behind", patience, func(s *tunnel.Status) error {
			if told = s; s.ClockBehind < paths {
				return fmt.Errorf("it is %d, with %d paths", s.ClockBehind, paths)
			}
			return nil
		})
		if err := mentions(strings.Join(told.Warnings, "\n"), c.said, "timedatectl"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if behind := status(t, g.Member).ClockBehind; behind == 0 {
			t.Errorf("%s: the gateway knows nothing of it", c.name)
		}
		sendBoth(t.Context(), r.end(), g.end(), steady(time.Second)).wait(t).complete(t, c.name)
	}
	t.Run("leaps while it runs", func(t *testing.T) { leap(t, w, r, g) })
	t.Run("a gateway a day behind", func(t *testing.T) {
		if took := restartAt(t, r, g.Member, -day); took > backIn {
			t.Errorf("all paths up after %v only", took)
		}
	})
}

// leap sets the robot's clock forward by 50 years and back while packets flow.
func leap(t *testing.T, w *world, r *robot, g *gateway) {
	flow := sendBoth(t.Context(), r.end(), g.end(), steady(4*time.Second))
	time.Sleep(time.Second)
	setClock(t, r.Member, 50*years)
	time.Sleep(time.Second)
	for _, said := range status(t, r.Member).Warnings {
		if strings.Contains(said, "clock") {
			t.Errorf("a clock that was set is still complained of: %s", said)
		}
	}
	setClock(t, r.Member, 0)
	flow.wait(t).complete(t, "leaps")

	// Its handshakes are taken at once 50 years ahead, and never again afterwards.
	setClock(t, r.Member, 50*years)
	if took := restartAt(t, r, r.Member, 50*years); took > backIn || status(t, r.Member).ClockBehind != 0 {
		t.Errorf("50 years ahead: up after %v, clock_behind %d", took, status(t, r.Member).ClockBehind)
	}
	took := restartAt(t, r, r.Member, 0)
	t.Logf("back from 50 years ahead: up after %v", took)
	if took > backIn {
		t.Errorf("back from 50 years ahead: up after %v only", took)
	}
}
