package systemd_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// confinement looks at the running processes: who they are and what they may.
func (w *world) confinement(t *testing.T) {
	for _, m := range w.machines() {
		pid := m.property("MainPID")
		uid := m.must("id", "-u", "fogplr")
		caps := capabilities(m)
		want := map[string]string{
			"Uid": uid, "CapInh": caps, "CapPrm": caps, "CapEff": caps, "CapBnd": caps,
			"CapAmb": caps, "NoNewPrivs": "1", "Seccomp": "2",
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

// capabilities is the mask that a machine's daemon should have.
func capabilities(m *machine) string {
	mask := 1 << unix.CAP_NET_ADMIN
	if m.unit == "fogplr-gateway.service" {
		mask |= 1 << unix.CAP_NET_BIND_SERVICE
	}
	return fmt.Sprintf("%016x", mask)
}

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
