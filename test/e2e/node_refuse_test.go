package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

// What a daemon cannot work with it refuses at its start, with a sentence that
// names the place, and it leaves nothing behind.
func TestNodeRefusals(t *testing.T) {
	w := build(t, options{Options: lab.Options{Robots: 2, Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	for _, m := range []*deploy.Member{r.Member, g.Member} {
		must(t, os.MkdirAll(filepath.Dir(m.Socket()), 0o755))
	}

	t.Run("two robots with one address", func(t *testing.T) {
		refuses(t, g.lab.Node, g.Member, 2, []string{`"robot"`, `"robot2"`, "10.77.0.2", g.Config() + ":"},
			`"10.77.0.101"`, `"10.77.0.2"`)
	})
	t.Run("unknown key", func(t *testing.T) {
		refuses(t, r.lab.Node, r.Member, 2, []string{r.Config() + ":7:", "carier"},
			"[[carrier]]\ninterface = \"cell-a\"", "carier = 1\n[[carrier]]\ninterface = \"cell-a\"")
	})
	t.Run("status without a daemon", func(t *testing.T) {
		for _, flag := range []string{"--json", "--check"} {
			try(t, r.lab.Node, program(t), "status", flag, "--socket", r.Socket()).
				wants(t, "status "+flag, 1, "not running", r.Socket(), "systemctl start")
		}
	})
	t.Run("without CAP_NET_ADMIN", func(t *testing.T) {
		leavesNothing(t, r.lab.Node, r.Member, func() {
			try(t, r.lab.Node, "setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-all", program(t), "robot", "--config", r.Config()).
				wants(t, "robot as a root without CAP_NET_ADMIN", 1, "CAP_NET_ADMIN")
		})
	})
	t.Run("as nobody", func(t *testing.T) { asNobody(t, w) })
	t.Run("without the tun module", func(t *testing.T) {
		leavesNothing(t, r.lab.Node, r.Member, func() {
			try(t, r.lab.Node, "unshare", "--mount", "sh", "-c", "mount -t tmpfs none /dev/net && exec \"$@\"", "-", program(t), "robot", "--config", r.Config()).
				wants(t, "robot without /dev/net/tun", 1, "/dev/net/tun", "tun module")
		})
	})
	t.Run("plr0 is no TUN device", func(t *testing.T) {
		output(t, r.lab.Node, "ip", "link", "add", "plr0", "type", "veth", "peer", "name", "other")
		leavesNothing(t, r.lab.Node, r.Member, func() {
			try(t, r.lab.Node, program(t), "robot", "--config", r.Config()).
				wants(t, "robot with a veth named plr0", 1, "plr0", "not a TUN device")
		})
		output(t, r.lab.Node, "ip", "link", "del", "plr0")
	})
	t.Run("port taken", func(t *testing.T) {
		must(t, g.lab.Do(func() error {
			taken, err := net.ListenPacket("udp4", fmt.Sprintf(":%d", wgPort))
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = taken.Close() })
			return nil
		}))
		// Not even plr0, which DDS would join.
		leavesNothing(t, g.lab.Node, g.Member, func() {
			try(t, g.lab.Node, program(t), "gateway", "--config", g.Config()).
				wants(t, "gateway whose port is taken", 1, fmt.Sprint(wgPort))
		})
	})
	// All that was refused for its time is fine again.
	must(t, w.fleet.Start(lasting(t)))
	for _, r := range w.robots {
		must(t, r.WaitUp(t.Context()))
	}
}

// refuses edits the configuration, wants the daemon to refuse it, and puts it
// back.
func refuses(t *testing.T, n *lab.Node, m *deploy.Member, code int, words []string, old, fresh string) {
	t.Helper()
	before := read(t, m.Config())
	edit(t, m, old, fresh)
	leavesNothing(t, n, m, func() {
		try(t, n, program(t), m.Role, "--config", m.Config()).wants(t, "refusal", code, words...)
	})
	must(t, os.WriteFile(m.Config(), []byte(before), 0o644))
}

// leavesNothing holds the kernel's network configuration and the control socket
// before and after f against each other.
func leavesNothing(t *testing.T, n *lab.Node, m *deploy.Member, f func()) {
	t.Helper()
	before := kernelNet(t, n)
	f()
	unchanged(t, "left behind", before, kernelNet(t, n))
	if _, err := os.Stat(m.Socket()); err == nil {
		t.Errorf("left behind: %s", m.Socket())
	}
}

// asNobody starts a robot as a user without rights, with files that this user
// may read and a directory that it may write.
func asNobody(t *testing.T, w *world) {
	r := w.robots[0]
	dir, err := os.MkdirTemp("", "fogplr-nobody-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text := read(t, r.Config())
	text = strings.ReplaceAll(text, r.Dir, dir)
	must(t, os.WriteFile(filepath.Join(dir, "robot.toml"), []byte(text), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "node.key"), []byte(read(t, filepath.Join(r.Dir, "node.key"))), 0o600))
	for _, sub := range []string{"run", "state"} {
		must(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	binary := filepath.Join(dir, "fogplr") // nobody may not look into the checkout
	must(t, os.WriteFile(binary, []byte(read(t, program(t))), 0o755))
	output(t, r.lab.Node, "chown", "-R", "nobody", dir)
	before := kernelNet(t, r.lab.Node)
	// On most machines everybody may open the TUN device, some keep it for root.
	for mode, lacks := range map[string]string{"666": "CAP_NET_ADMIN", "600": "may this user open it"} {
		try(t, r.lab.Node, "unshare", "--mount", "sh", "-c", "mount -t tmpfs none /dev/net && mknod -m "+mode+" /dev/net/tun c 10 200 && exec \"$@\"", "-",
			"setpriv", "--reuid", "nobody", "--clear-groups", "--inh-caps=-all", binary, "robot", "--config", filepath.Join(dir, "robot.toml")).
			wants(t, "robot as nobody", 1, lacks)
	}
	unchanged(t, "left behind", before, kernelNet(t, r.lab.Node))
	if _, err := os.Stat(filepath.Join(dir, "run", "robot.sock")); err == nil {
		t.Error("left behind: the control socket")
	}
}
