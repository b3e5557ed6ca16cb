package systemd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	robotAddress = "10.77.0.2"
	westAddress  = "10.77.0.11"
	eastAddress  = "10.77.0.12"
)

// lowPort is where robots reach the gateways: one for which a daemon that is not
// root needs a capability.
const lowPort = 443

type world struct {
	robot, west, east *machine
	before            string   // the robot's routes before the first start
	secrets           []string // private keys
	index             int      // of plr0
}

func (w *world) machines() []*machine { return []*machine{w.robot, w.west, w.east} }

func newWorld(t *testing.T, root string) *world {
	program := os.Getenv(programEnv)
	forward(t)
	for _, name := range []string{"robot", "west", "east"} {
		namespace(t, name)
	}
	attach(t, "west", west)
	attach(t, "east", east)
	w := &world{
		robot: newMachine(t, "robot", "fogplr-robot.service", root),
		west:  newMachine(t, "west", "fogplr-gateway.service", root),
		east:  newMachine(t, "east", "fogplr-gateway.service", root),
	}
	w.configure(program)

	// The gateways get theirs as a package would do it, the robot later, live.
	for _, m := range []*machine{w.west, w.east} {
		cmd := exec.Command(filepath.Join(sources, "install.sh"), m.root)
		cmd.Env = append(os.Environ(), "BINARY="+program)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("install.sh: %v\n%s", err, out)
		}
		host(t, "systemctl", "--quiet", "--root="+m.root, "enable", m.unit)
	}
	host(t, "cp", "-r", sources, filepath.Join(w.robot.root, "root/systemd"))
	host(t, "install", "-D", program, filepath.Join(w.robot.root, "root/bin/fogplr"))
	for _, m := range w.machines() {
		m.boot()
	}
	return w
}

// configure makes keys and configurations with the program's own commands.
func (w *world) configure(program string) {
	t := w.robot.t
	public := func(private string, args ...string) string {
		cmd := exec.Command(program, append([]string{"pubkey"}, args...)...)
		cmd.Stdin = strings.NewReader(private + "\n")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("fogplr pubkey: %v", err)
		}
		return strings.TrimSpace(string(out))
	}
	for range w.machines() {
		w.secrets = append(w.secrets, host(t, program, "keygen"))
	}
	var gateways strings.Builder
	for i, g := range []struct {
		m        *machine
		address  string
		endpoint string
	}{{w.west, westAddress, west.address}, {w.east, eastAddress, east.address}} {
		secret := w.secrets[i+1]
		endpoint, _, _ := strings.Cut(g.endpoint, "/")
		fmt.Fprintf(&gateways, "[[gateway]]\nname = %q\naddress = %q\npublic_key = %q\nendpoint = \"%s:%d\"\n",
			g.m.name, g.address, public(secret), endpoint, lowPort)
		g.m.write("etc/fogplr/gateway.toml", fmt.Sprintf(
			"name = %q\naddress = \"%s/16\"\nprivate_key_file = \"node.key\"\nlisten_port = [51820, %d]\n[[robot]]\nname = \"robot\"\naddress = %q\n%s\n",
			g.m.name, g.address, lowPort, robotAddress, public(w.secrets[0], "--robot")), 0o644)
		g.m.write("etc/fogplr/node.key", secret+"\n", 0o600)
	}
	w.robot.write("etc/fogplr/robot.toml", fmt.Sprintf(
		"name = \"robot\"\naddress = \"%s/16\"\nprivate_key_file = \"node.key\"\n[[carrier]]\ninterface = \"up0\"\n[[carrier]]\ninterface = \"up1\"\n%s",
		robotAddress, gateways.String()), 0o644)
	w.robot.write("etc/fogplr/node.key", w.secrets[0]+"\n", 0o600)
}

// ping lets the robot ping an overlay address; all n must be answered once.
func (w *world) ping(to string, n int) error {
	out, err := exec.Command("ip", "netns", "exec", "robot", "ping", "-n", "-q", "-I", "plr0",
		"-c", fmt.Sprint(n), "-i", "0.1", "-W", "1", to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ping %s: %w\n%s", to, err, out)
	}
	if strings.Contains(string(out), "duplicates") {
		return fmt.Errorf("ping %s sees duplicates:\n%s", to, out)
	}
	return nil
}

// Values of net.ipv4.conf.*.rp_filter (RFC 3704).
const strict, loose = "1", "2"

func filterOf(iface string) string { return "/proc/sys/net/ipv4/conf/" + iface + "/rp_filter" }

// setReversePath sets how the robot's kernel checks senders.
func (w *world) setReversePath(value string, ifaces ...string) {
	w.robot.t.Helper()
	for _, i := range ifaces {
		w.robot.must("sh", "-c", `echo "$1" >"$2"`, "sh", value, filterOf(i))
	}
}

// wantReversePath waits until an interface has a value.
func (w *world) wantReversePath(iface, value string) {
	w.robot.t.Helper()
	eventually(w.robot.t, activeWithin, func() error {
		if got := w.robot.must("cat", filterOf(iface)); got != value {
			return fmt.Errorf("rp_filter of %s is %s, want %s", iface, got, value)
		}
		return nil
	})
}
