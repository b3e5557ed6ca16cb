package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/internal/check"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

// examined is what fogplr check found on a node.
type examined struct {
	check.Report
	code int
	text string
}

// examine runs fogplr check for a member. The command around it may be empty.
func examine(t testing.TB, n *lab.Node, m *deploy.Member, around ...string) examined {
	t.Helper()
	args := append(slices.Clone(around), program(t), "check", "--json", "--config", m.Config())
	return examinedBy(t, n, args)
}

// examinedBy is examine with the whole command line.
func examinedBy(t testing.TB, n *lab.Node, args []string) examined {
	t.Helper()
	r := try(t, n, args[0], args[1:]...)
	e := examined{code: r.code, text: r.all}
	if err := json.Unmarshal([]byte(r.out), &e.Report); err != nil {
		t.Fatalf("%v: %s", err, r.all)
	}
	want := 0
	if e.Level == check.Fails {
		want = 1
	}
	r.wants(t, "fogplr check", want)
	return e
}

// finds returns the finding of that name, which must be there at that level and
// mention the words.
func (e examined) finds(t testing.TB, level check.Level, id string, words ...string) check.Finding {
	t.Helper()
	for _, f := range e.Findings {
		if f.ID == id && f.Level == level && mentions(f.Text+"\n"+f.Repair, words...) == nil {
			return f
		}
	}
	t.Errorf("no %v %s that mentions %q in\n%s", level, id, words, e.text)
	return check.Finding{}
}

// lacks fails the test if one of the names was found.
func (e examined) lacks(t testing.TB, ids ...string) {
	t.Helper()
	for _, f := range e.Findings {
		if slices.Contains(ids, f.ID) {
			t.Errorf("found %v %s: %s", f.Level, f.ID, f.Text)
		}
	}
}

// repair does what a finding says, as its reader would.
func repair(t testing.TB, n *lab.Node, f check.Finding) {
	t.Helper()
	if f.Repair != "" {
		output(t, n, "sh", "-c", f.Repair)
	}
}

// What is in a robot's way before its start is found, one by one, and the
// commands that are told repair it. A node with which all is well has notes
// alone, and looking changes nothing.
func TestNodeCheckBefore(t *testing.T) {
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r := w.robots[0]
	n := r.lab.Node
	configuration := kernelNet(t, n)
	sound := examine(t, n, r.Member)
	sound.finds(t, check.Note, "overlay.missing", "plr0")
	sound.finds(t, check.Note, "daemon.stopped", "does not run", "fogplr robot --config "+r.Config())
	for _, f := range sound.Findings {
		if f.Level > check.Note {
			t.Errorf("on a sound robot: %v %s: %s", f.Level, f.ID, f.Text)
		}
	}
	unchanged(t, "looking", configuration, kernelNet(t, n))

	t.Run("strict reverse path", func(t *testing.T) {
		must(t, r.lab.Sysctl("net.ipv4.conf.all.rp_filter", "1"))
		examine(t, n, r.Member).finds(t, check.Note, "carrier.rp_filter", "fogplr sets it to loose", "nothing to repair")
		must(t, r.lab.Sysctl("net.ipv4.conf.all.rp_filter", "0"))
		examine(t, n, r.Member).lacks(t, "carrier.rp_filter")
	})
	t.Run("gateways that do not answer", func(t *testing.T) {
		probe := []string{program(t), "check", "--json", "--probe", "--config", r.Config()}
		examinedBy(t, n, probe).finds(t, check.Fails, "gateway.answer", "west does not answer")
		run(t, w.gateways[0].Member)
		e := examinedBy(t, n, probe)
		e.lacks(t, "gateway.answer", "carrier.answer")
		if len(e.Answers) != len(r.lab.Carriers) {
			t.Errorf("%d answers by %d carriers", len(e.Answers), len(r.lab.Carriers))
		}
		for _, a := range e.Answers {
			if !a.Heard || a.Gateway != "west" || a.RTTms <= 0 || a.RTTms > 3000 {
				t.Errorf("answer %+v", a)
			}
		}
	})
	t.Run("key", func(t *testing.T) {
		key := filepath.Join(r.Dir, "node.key")
		must(t, os.Chmod(key, 0o644))
		repair(t, n, examine(t, n, r.Member).finds(t, check.Warning, "config.key_mode", key))
		examine(t, n, r.Member).lacks(t, "config.key_mode")
		must(t, os.Rename(key, key+".away"))
		examine(t, n, r.Member).finds(t, check.Fails, "config.key", key)
		must(t, os.Rename(key+".away", key))
	})
	t.Run("another VPN", func(t *testing.T) {
		output(t, n, "sh", "-c", "ip tuntap add vpn0 mode tun && ip addr add 10.9.0.2/24 dev vpn0 && ip link set vpn0 up && ip route add 128.0.0.0/1 dev vpn0 && ip route add 0.0.0.0/1 dev vpn0")
		e := examine(t, n, r.Member)
		e.finds(t, check.Note, "vpn.default_route", "vpn0")
		e.lacks(t, "carrier.unusable", "gateway.route")
		output(t, n, "ip", "link", "del", "vpn0")
	})
	t.Run("carriers", func(t *testing.T) {
		output(t, n, "ip", "link", "set", "cell-a", "mtu", "1300")
		repair(t, n, examine(t, n, r.Member).finds(t, check.Note, "carrier.mtu", "cell-a", "1300", "1368", "2 parts"))
		output(t, n, "ip", "addr", "add", "10.77.5.1/24", "dev", "cell-b")
		e := examine(t, n, r.Member)
		e.finds(t, check.Warning, "overlay.conflict", "cell-b", "10.77.5.1/24")
		e.lacks(t, "carrier.mtu")
		output(t, n, "ip", "addr", "del", "10.77.5.1/24", "dev", "cell-b")
		output(t, n, "ip", "link", "set", "cell-b", "down")
		examine(t, n, r.Member).finds(t, check.Warning, "carrier.unusable", "cell-b is down")
		output(t, n, "ip", "link", "set", "cell-a", "down")
		examine(t, n, r.Member).finds(t, check.Fails, "carrier.unusable", "cell-a is down")
	})
	t.Run("configuration", func(t *testing.T) {
		edit(t, r.Member, "[[carrier]]", "[[carier]]")
		examine(t, n, r.Member).finds(t, check.Fails, "config.file", "carier", r.Config()+":")
		edit(t, r.Member, "[[carier]]", "[[carrier]]")
	})
	t.Run("no TUN device", func(t *testing.T) {
		examine(t, n, r.Member, "unshare", "--mount", "sh", "-c", `mount -t tmpfs none /dev/net && exec "$@"`, "-").
			finds(t, check.Fails, "kernel.tun", "modprobe tun")
	})
	t.Run("no CAP_NET_ADMIN", func(t *testing.T) {
		examine(t, n, r.Member, "setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-all").
			finds(t, check.Fails, "user.net_admin", "CAP_NET_ADMIN")
	})
}

// A gateway whose port another program has, or a packet filter closes.
func TestNodeCheckGateway(t *testing.T) {
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	g := w.gateways[0]
	n := g.lab.Node
	examine(t, n, g.Member).lacks(t, "gateway.port", "firewall.port", "firewall.dds")
	var taken net.PacketConn
	must(t, n.Do(func() (err error) {
		taken, err = net.ListenPacket("udp4", fmt.Sprintf(":%d", wgPort))
		return err
	}))
	examine(t, n, g.Member).finds(t, check.Fails, "gateway.port", fmt.Sprint(wgPort), fmt.Sprintf("(process %d)", os.Getpid()))
	must(t, taken.Close())

	output(t, n, "nft", "add table inet guard; add chain inet guard input { type filter hook input priority 0; policy drop; }; add rule inet guard input ct state established accept")
	e := examine(t, n, g.Member)
	e.lacks(t, "gateway.port")
	repair(t, n, e.finds(t, check.Warning, "firewall.port", fmt.Sprint(wgPort)))
	e = examine(t, n, g.Member)
	e.lacks(t, "firewall.port")
	repair(t, n, e.finds(t, check.Warning, "firewall.dds", "plr0"))
	examine(t, n, g.Member).lacks(t, "firewall.port", "firewall.dds")

	output(t, n, "sh", "-c", "ip link add docker0 type bridge 2>/dev/null && ip addr add 172.17.0.1/16 dev docker0 && ip link add c0 type veth peer name c1 && ip link set c0 master docker0 && ip link set c0 up && ip link set c1 up && ip link set docker0 up")
	must(t, g.lab.Sysctl("net.ipv4.ip_forward", "0"))
	repair(t, n, examine(t, n, g.Member).finds(t, check.Warning, "gateway.ip_forward", "docker0"))
	examine(t, n, g.Member).lacks(t, "gateway.ip_forward")
	output(t, n, "nft", "add chain inet guard forward { type filter hook forward priority 0; policy drop; }")
	repair(t, n, examine(t, n, g.Member).finds(t, check.Note, "gateway.forward_policy", "inet guard forward", "docker0"))
	examine(t, n, g.Member).lacks(t, "gateway.ip_forward", "gateway.forward_policy")
}

// While the node runs its own warnings are told, and which paths are down. DDS
// programs that were started before plr0 was there are named.
func TestNodeCheckRunning(t *testing.T) {
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	n := r.lab.Node
	early := n.Command(lasting(t), "sh", "-c", "sleep 600; true", "ros2-daemon")
	must(t, early.Start())
	var speaks net.PacketConn
	must(t, n.Do(func() (err error) {
		speaks, err = net.ListenPacket("udp4", ":7400")
		return err
	}))
	defer speaks.Close()
	examine(t, n, r.Member).finds(t, check.Warning, "dds.ros_daemon", "while there is no plr0 yet", fmt.Sprint(early.Pid()))

	time.Sleep(time.Second) // the kernel's two clocks may differ by some tenths
	must(t, w.fleet.Start(lasting(t)))
	must(t, r.WaitUp(t.Context()))
	e := examine(t, n, r.Member)
	if !e.Running || e.Level == check.Fails {
		t.Errorf("a sound robot that runs: %s", e.text)
	}
	e.finds(t, check.Warning, "dds.ros_daemon", "before plr0 was there", "ros2 daemon stop")
	e.finds(t, check.Warning, "dds.before", fmt.Sprintf("(process %d)", os.Getpid()))
	e.finds(t, check.Note, "dds.program", fmt.Sprintf("(process %d)", os.Getpid()))
	e.lacks(t, "overlay.missing", "daemon.path", "daemon.silent", "daemon.stopped", "carrier.rp_filter", "carrier.resting", "carrier.unusable")
	must(t, early.Kill())
	late := n.Command(lasting(t), "sh", "-c", "sleep 600; true", "ros2-daemon")
	must(t, late.Start())
	examine(t, n, r.Member).lacks(t, "dds.ros_daemon")
	must(t, late.Kill())
	examine(t, g.lab.Node, g.Member).lacks(t, "gateway.port", "overlay.missing", "daemon.path")

	output(t, n, "ip", "addr", "add", "10.77.5.1/24", "dev", "cell-b")
	var warned []string
	eventually(t, "the daemon warns", func() error {
		if warned = status(t, r.Member).Warnings; len(warned) == 0 {
			return errors.New("no warning")
		}
		return nil
	})
	for _, text := range warned {
		if e := examine(t, n, r.Member); !slices.ContainsFunc(e.Findings, func(f check.Finding) bool { return f.Text == text && f.Level == check.Warning }) {
			t.Errorf("the daemon's warning %q is not in\n%s", text, e.text)
		}
	}
	output(t, n, "ip", "addr", "del", "10.77.5.1/24", "dev", "cell-b")

	asNobodyChecks(t, w)
	// Traffic: an idle robot looks seldom.
	ping := n.Command(lasting(t), "ping", "-i", "0.2", g.ip.String())
	must(t, ping.Start())
	must(t, g.Stop())
	eventually(t, "the paths are found to be down", func() error {
		for _, f := range examine(t, n, r.Member).Findings {
			if f.ID == "daemon.path" && f.Level == check.Fails && strings.Contains(f.Text, "west") {
				return nil
			}
		}
		return errors.New("not yet")
	})
	must(t, ping.Kill())
}

// asNobodyChecks runs the check as a user without rights: plain sentences about
// what it may see, and no failure of its own.
func asNobodyChecks(t *testing.T, w *world) {
	t.Helper()
	r := w.robots[0]
	dir, err := os.MkdirTemp("", "fogplr-nobody-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	binary, file := filepath.Join(dir, "fogplr"), filepath.Join(dir, "robot.toml")
	must(t, os.WriteFile(binary, []byte(read(t, program(t))), 0o755))
	must(t, os.WriteFile(file, []byte(read(t, r.Config())), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "node.key"), []byte(read(t, filepath.Join(r.Dir, "node.key"))), 0o600))
	nobody := []string{"--reuid", "nobody", "--clear-groups", "--inh-caps=-all", binary, "check", "--config", file}
	text := try(t, r.lab.Node, "setpriv", nobody...)
	text.wants(t, "check as nobody", 0, "user.rights", "sudo fogplr check --config "+file)
	if strings.Contains(text.all, "config.key") {
		t.Errorf("a key that nobody may read is no mistake:\n%s", text.all)
	}
}
