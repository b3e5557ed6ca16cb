package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// A second daemon on the same socket, or with another socket on the same TUN
// device, says so and ends; the first one does not even notice.
func TestNodeSecondDaemon(t *testing.T) {
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	// Another program's rule makes the robot need rules and routes of its own.
	output(t, r.lab.Node, "ip", "route", "add", "default", "via", r.lab.Carriers[0].Router.String(), "dev", "cell-a", "table", "77")
	output(t, r.lab.Node, "ip", "rule", "add", "pref", "1000", "lookup", "77")
	must(t, w.fleet.Start(lasting(t)))
	must(t, r.WaitUp(t.Context()))
	before := kernelNet(t, r.lab.Node)
	must(t, mentions(strings.Join(before, "\n"), "lookup 15701")) // a rule of ours to disturb

	flow := lab.Flow{From: r.lab.Node, To: g.lab.Node, Target: netip.AddrPortFrom(g.ip, 7000), Rate: 200, Count: 500}
	done := make(chan *lab.FlowReport)
	go func() {
		report, err := flow.Run(lasting(t))
		if err != nil {
			t.Error(err)
		}
		done <- report
	}()
	time.Sleep(500 * time.Millisecond)
	logged := len(read(t, r.Log()))
	for _, m := range []*deploy.Member{r.Member, g.Member} {
		n := r.lab.Node
		if m == g.Member {
			n = g.lab.Node
		}
		try(t, n, program(t), m.Role, "--config", m.Config()).
			wants(t, "second "+m.Role+" on the same socket", 1, "runs already", m.Socket(), "stop it first")
		other := filepath.Join(m.Dir, "other.toml")
		text := strings.ReplaceAll(read(t, m.Config()), m.Socket(), filepath.Join(m.Dir, "run2", "other.sock"))
		must(t, os.WriteFile(other, []byte(text), 0o644))
		try(t, n, program(t), m.Role, "--config", other).
			wants(t, "second "+m.Role+" on the same TUN device", 1, "plr0 is in use")
	}
	report := <-done
	if report == nil || len(report.Lost) > 0 || report.Duplicates > 0 {
		t.Errorf("the first daemons were disturbed: %v", report)
	}
	unchanged(t, "the network configuration", before, kernelNet(t, r.lab.Node))
	if said := read(t, r.Log())[logged:]; said != "" {
		t.Errorf("the first robot noticed: %s", said)
	}
	if s := status(t, r.Member); !s.Ready || !deploy.AllUp(s) {
		t.Error("paths went down")
	}
}

// notices is a service manager's end of NOTIFY_SOCKET.
type notices struct {
	socket *net.UnixConn
	path   string
}

func listenNotices(t testing.TB, dir string) *notices {
	t.Helper()
	path := filepath.Join(dir, "notify.sock")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &notices{c, path}
}

// wait returns once a notice is want, and tells which others came before.
func (n *notices) wait(t testing.TB, want string) (others []string) {
	t.Helper()
	buf := make([]byte, 4096)
	must(t, n.socket.SetReadDeadline(time.Now().Add(patience)))
	for {
		k, err := n.socket.Read(buf)
		if err != nil {
			t.Fatalf("no %s, only %q: %v", want, others, err)
		}
		for line := range strings.Lines(string(buf[:k])) {
			if strings.TrimSpace(line) == want {
				return others
			}
			others = append(others, strings.TrimSpace(line))
		}
	}
}

// The service manager hears READY once the control socket answers, although no
// carrier exists; then it hears the watchdog, reloads and the end.
func TestNodeNotifies(t *testing.T) {
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	edit(t, r.Member, `interface = "cell-`, `interface = "absent-`)
	for _, m := range []struct {
		*deploy.Member
		node *lab.Node
	}{{r.Member, r.lab.Node}, {g.Member, g.lab.Node}} {
		t.Run(m.Role, func(t *testing.T) {
			n := listenNotices(t, m.Dir)
			c := m.node.Command(lasting(t), program(t), m.Role, "--config", m.Config())
			c.Env = []string{"NOTIFY_SOCKET=" + n.path, "WATCHDOG_USEC=600000"}
			must(t, c.Start())
			if early := n.wait(t, "READY=1"); len(early) > 0 {
				t.Errorf("before READY came %q", early)
			}
			s, err := control.Status(t.Context(), m.Socket())
			must(t, err)
			if s.Ready != (m.Role == "gateway") {
				t.Errorf("status says ready=%v", s.Ready)
			}
			waitStatus(t, m.Member, "what is wrong with the carriers", patience, func(s *tunnel.Status) error {
				for _, c := range s.Carriers {
					if c.Usable || !strings.Contains(c.Problem, c.Interface) {
						return fmt.Errorf("carrier %s: usable=%v, problem %q", c.Interface, c.Usable, c.Problem)
					}
				}
				return nil
			})
			for range 3 {
				n.wait(t, "WATCHDOG=1")
			}
			must(t, c.Signal(unix.SIGHUP))
			n.wait(t, "RELOADING=1")
			n.wait(t, "READY=1")
			must(t, c.Signal(unix.SIGTERM))
			n.wait(t, "STOPPING=1")
			if err := c.Wait(); err != nil {
				t.Errorf("the end: %v", err)
			}
			if control.Running(m.Socket()) {
				t.Error("the control socket still answers")
			}
		})
	}
}

// A carrier that exists only later is used once it is there.
func TestNodeCarrierLater(t *testing.T) {
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r := w.robots[0]
	edit(t, r.Member, `interface = "cell-b"`, `interface = "late0"`)
	must(t, w.fleet.Start(lasting(t)))
	waitPath(t, r, "west", "cell-a", true)
	if p := pathOf(t, status(t, r.Member), "west", "late0"); p.Up || p.Stage != "no route" {
		t.Errorf("a path without interface: up=%v, %q", p.Up, p.Stage)
	}
	for _, args := range [][]string{
		{"link", "set", "cell-b", "down"},
		{"link", "set", "cell-b", "name", "late0"},
		{"link", "set", "late0", "up"},
		{"route", "add", "default", "via", r.lab.Carriers[1].Router.String(), "dev", "late0", "metric", "101"},
	} {
		output(t, r.lab.Node, "ip", args...)
	}
	t.Logf("up %v later", waitPath(t, r, "west", "late0", true).Round(10*time.Millisecond))
}

// A reload of a broken file is refused with its place and changes nothing; the
// control socket is for owner and group.
func TestNodeReload(t *testing.T) {
	t.Parallel()
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	must(t, w.fleet.Start(lasting(t)))
	r, g := w.robots[0], w.gateways[0]
	must(t, r.WaitUp(t.Context()))
	for _, m := range []*deploy.Member{r.Member, g.Member} {
		info, err := os.Stat(m.Socket())
		must(t, err)
		if info.Mode() != os.ModeSocket|0o660 {
			t.Errorf("%s has mode %v", m.Socket(), info.Mode())
		}
		sound := read(t, m.Config())
		edit(t, m, "log_level", "nonsense = 5\nlog_level")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := control.Reload(ctx, m.Socket()); err == nil || !strings.Contains(err.Error(), m.Config()+":") || !strings.Contains(err.Error(), "nonsense") {
			t.Errorf("reload of a broken file: %v", err)
		}
		try(t, r.lab.Node, program(t), "reload", "--socket", m.Socket()).
			wants(t, "fogplr reload of a broken file", 1, m.Config()+":", "nonsense")
		logged := len(read(t, m.Log()))
		must(t, unix.Kill(m.Pid(), unix.SIGHUP))
		eventually(t, "the log tells of the broken file", func() error {
			return mentions(read(t, m.Log())[logged:], "nonsense", m.Config())
		})
		must(t, os.WriteFile(m.Config(), []byte(sound), 0o644))
		edit(t, m, `log_level = "debug"`, `log_level = "info"`)
		if err := control.Reload(ctx, m.Socket()); err != nil {
			t.Errorf("reload of another log_level: %v", err)
		}
		// A change that needs a restart is told, not swallowed.
		edit(t, m, "log_level", "mtu = 1300\nlog_level")
		if err := control.Reload(ctx, m.Socket()); err == nil || !strings.Contains(err.Error(), "takes a restart") {
			t.Errorf("reload of another mtu: %v", err)
		}
		if s := status(t, m); s.MTU != 1280 || !s.Ready {
			t.Errorf("mtu is %d, ready=%v", s.MTU, s.Ready)
		}
	}
	if !deploy.AllUp(status(t, r.Member)) {
		t.Error("the robot did not go on")
	}
	output(t, r.lab.Node, "ping", "-c", "1", "-W", "2", g.ip.String())
}
