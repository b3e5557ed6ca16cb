package systemd_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

const (
	robotAddress = "10.77.0.2"
	westAddress  = "10.77.0.11"
	eastAddress  = "10.77.0.12"
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
		runInside(t, debianRoot(t), insideLimit)
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

type world struct {
	robot, west, east *machine
	before            string   // the robot's routes before the first start
	secrets           []string // private keys
	index             int      // of plr0
}

func (w *world) machines() []*machine { return []*machine{w.robot, w.west, w.east} }

func newWorld(t *testing.T, root string) *world {
	program := buildProgram(t)
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

// buildProgram builds the program, unless FOGPLR_TEST_BINARY names one.
func buildProgram(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("FOGPLR_TEST_BINARY"); p != "" {
		return p
	}
	program := filepath.Join(scratch, "fogplr")
	cmd := exec.Command("go", "build", "-o", program, "../../cmd/fogplr")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building fogplr: %v\n%s", err, out)
	}
	return program
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
		fmt.Fprintf(&gateways, "[[gateway]]\nname = %q\naddress = %q\npublic_key = %q\nendpoint = \"%s:51820\"\n",
			g.m.name, g.address, public(secret), endpoint)
		g.m.write("etc/fogplr/gateway.toml", fmt.Sprintf(
			"name = %q\naddress = \"%s/16\"\nprivate_key_file = \"node.key\"\n[[robot]]\nname = \"robot\"\naddress = %q\n%s\n",
			g.m.name, g.address, robotAddress, public(w.secrets[0], "--robot")), 0o644)
		g.m.write("etc/fogplr/node.key", secret+"\n", 0o600)
	}
	w.robot.write("etc/fogplr/robot.toml", fmt.Sprintf(
		"name = \"robot\"\naddress = \"%s/16\"\nprivate_key_file = \"node.key\"\n[[carrier]]\ninterface = \"up0\"\n[[carrier]]\ninterface = \"up1\"\n%s",
		robotAddress, gateways.String()), 0o644)
	w.robot.write("etc/fogplr/node.key", w.secrets[0]+"\n", 0o600)
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

// confinement looks at the running processes: who they are and what they may.
func (w *world) confinement(t *testing.T) {
	for _, m := range w.machines() {
		pid := m.property("MainPID")
		uid := m.must("id", "-u", "fogplr")
		want := map[string]string{
			"Uid": uid, "CapInh": netAdmin, "CapPrm": netAdmin, "CapEff": netAdmin, "CapBnd": netAdmin,
			"CapAmb": netAdmin, "NoNewPrivs": "1", "Seccomp": "2",
		}
		for line := range strings.SplitSeq(m.must("cat", "/proc/"+pid+"/status"), "\n") {
			name, value, _ := strings.Cut(line, ":")
			if _, ok := want[name]; !ok {
				continue
			}
			for _, v := range strings.Fields(value) {
				if v != want[name] {
					t.Errorf("%s: the daemon's %s is %s, want %s", m.name, name, v, want[name])
				}
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("%s: /proc/PID/status does not tell %v", m.name, want)
		}
		w.devices(m)
	}
}

// netAdmin is a mask with bit 12, CAP_NET_ADMIN, alone.
const netAdmin = "0000000000001000"

// devices opens two device nodes from within the service's control group.
func (w *world) devices(m *machine) {
	m.run("mknod", "-m", "0666", "/root/kmsg", "c", "1", "11")
	open := func(node string) error {
		_, err := m.run("sh", "-c", `echo $$ >"/sys/fs/cgroup$1/cgroup.procs" && : <>"$2"`, "sh", m.property("ControlGroup"), node)
		return err
	}
	if err := open("/dev/net/tun"); err != nil {
		m.t.Errorf("the service may not open /dev/net/tun: %v", err)
	}
	if open("/root/kmsg") == nil {
		m.t.Error("the service may open a device that is none of its business")
	}
}

// key checks that the key's file is root's alone, and that the daemon's user
// has it as a credential, which others have not.
func (w *world) key(t *testing.T) {
	for _, m := range w.machines() {
		credential := "/run/credentials/" + m.unit + "/node.key"
		if _, err := m.as("fogplr", "cat", "/etc/fogplr/node.key"); err == nil {
			t.Errorf("%s: the daemon's user can read the key file", m.name)
		}
		if _, err := m.as("fogplr", "cat", credential); err != nil {
			t.Errorf("%s: the daemon's user cannot read its credential: %v", m.name, err)
		}
		if _, err := m.as("games", "cat", credential); err == nil {
			t.Errorf("%s: every user can read the credential", m.name)
		}
	}
}

// wgShow checks that root's `wg` finds the daemon's devices, and that the
// daemon's user cannot remove another WireGuard's socket beside them.
func (w *world) wgShow(t *testing.T) {
	for _, c := range []struct {
		m     *machine
		names []string
	}{
		{w.robot, []string{"fogplr-up0", "fogplr-up1"}},
		{w.west, []string{"fogplr-gw"}},
		{w.east, []string{"fogplr-gw"}},
	} {
		out := c.m.must("wg", "show")
		for _, name := range c.names {
			if !strings.Contains(out, "interface: "+name+"\n") {
				t.Errorf("%s: `wg show` does not list %s:\n%s", c.m.name, name, out)
			}
		}
		c.m.must("touch", "/run/wireguard/other.sock")
		if _, err := c.m.as("fogplr", "rm", "-f", "/run/wireguard/other.sock"); err == nil {
			t.Errorf("%s: the daemon's user can remove root's socket", c.m.name)
		}
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

func (w *world) restart(t *testing.T) {
	m := w.robot
	pid := m.property("MainPID")
	m.must("touch", "/run/fogplr/learnt")
	w.setReversePath(strict)
	w.silence(t, func() { m.must("systemctl", "restart", m.unit) })
	if m.property("MainPID") == pid {
		t.Error("the daemon is the same as before")
	}
	m.must("test", "-e", "/run/fogplr/learnt")
	w.wantReversePath(loose)
}

// Values of net.ipv4.conf.*.rp_filter (RFC 3704).
const strict, loose = "1", "2"

var carrierFilters = []string{"/proc/sys/net/ipv4/conf/up0/rp_filter", "/proc/sys/net/ipv4/conf/up1/rp_filter"}

// setReversePath sets how the robot's kernel checks senders on its carriers.
// The daemon itself has /proc/sys read-only.
func (w *world) setReversePath(value string) {
	w.robot.t.Helper()
	for _, f := range append(carrierFilters, "/proc/sys/net/ipv4/conf/all/rp_filter") {
		w.robot.must("sh", "-c", `echo "$1" >"$2"`, "sh", value, f)
	}
}

func (w *world) wantReversePath(value string) {
	w.robot.t.Helper()
	for _, f := range carrierFilters {
		if got := w.robot.must("cat", f); got != value {
			w.robot.t.Errorf("%s is %s, want %s", f, got, value)
		}
	}
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
	w.wantReversePath(strict)
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
