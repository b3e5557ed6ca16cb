package routing

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKernelUnprivileged runs TestUnprivilegedChild as another user with
// CAP_NET_ADMIN alone, as the systemd unit does, and with nothing.
func TestKernelUnprivileged(t *testing.T) {
	l := newLab(t)
	l.run("sysctl -qw net.ipv4.conf.all.rp_filter=1")
	l.modems(2, "dev %s metric 10%d")
	l.persistentTUN("plr0")
	program := filepath.Join(t.TempDir(), "routing.test")
	text, err := os.ReadFile("/proc/self/exe")
	l.must(err)
	l.must(os.WriteFile(program, text, 0o755))
	l.must(os.Chmod(filepath.Dir(filepath.Dir(program)), 0o755))
	for _, caps := range [][]uintptr{{unix.CAP_NET_ADMIN}, nil} {
		dir, err := os.MkdirTemp("", "fogplr-routing")
		l.must(err)
		defer os.RemoveAll(dir)
		l.must(os.Chown(dir, 65534, 65534))
		cmd := exec.Command(program, "-test.run=^TestUnprivilegedChild$", "-test.v")
		cmd.Dir = dir
		cmd.Env = []string{childVariable + "=" + dir}
		if caps != nil {
			cmd.Env = append(cmd.Env, "CAPABLE=yes")
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: caps}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: TestUnprivilegedChild") {
			t.Errorf("capabilities %v: %v\n%s", caps, err, out)
		}
	}
}

const childVariable = "FOGPLR_ROUTING_CHILD"

// TestUnprivilegedChild does something only when TestKernelUnprivileged runs it.
func TestUnprivilegedChild(t *testing.T) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		return
	}
	m, err := New(dir, "plr0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kicks, err := m.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c := apply(t, m, []Want{carrier("usb0", 0, gw1), carrier("usb1", 1, gw1)})
	usable4(t, c)
	tun := overlayTUN()
	if os.Getenv("CAPABLE") != "yes" {
		tun.MTU = 1300 // or there would be nothing to do
	}
	err = m.SetupTUN(tun)
	if os.Getenv("CAPABLE") == "yes" {
		if err != nil || c[1].Warning != "" {
			t.Errorf("%v %q", err, c[1].Warning)
		}
		kicked(t, kicks)
	} else if err == nil || !strings.Contains(err.Error(), "CAP_NET_ADMIN") || !strings.Contains(c[1].Warning, "CAP_NET_ADMIN") {
		t.Errorf("%v %q", err, c[1].Warning)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
