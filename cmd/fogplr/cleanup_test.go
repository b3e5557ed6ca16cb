package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// A device that somebody has open stays, although no daemon answers at the
// control socket of the configuration.
func TestCleanupSparesAnOpenDevice(t *testing.T) {
	config := filepath.Join(t.TempDir(), "gateway.toml")
	text := "name = 'west'\naddress = '10.77.0.11/16'\nprivate_key_file = 'node.key'\ncontrol_socket = 'g.sock'\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := inNamespace(func() error { return cleanupOpenDevice(config) }); err != nil {
		t.Error(err)
	}
}

// inNamespace runs f in a network namespace of its own.
func inNamespace(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread and its namespace end with this goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

func cleanupOpenDevice(config string) error {
	host, err := tunnel.OpenHostTUN("plr0", 1280)
	if err != nil {
		return err
	}
	defer host.Close()
	if err := tunnel.KeepHostTUN(host); err != nil {
		return err
	}
	if err := setUp("plr0"); err != nil {
		return err
	}
	cleanup := func(args ...string) (int, string) {
		code, out, errs := command(append([]string{"cleanup", "--all", "--config", config}, args...)...)
		return code, out + errs
	}
	if code, text := cleanup(); code != 1 || !strings.Contains(text, "a program has plr0 open") || !strings.Contains(text, "--force") {
		return fmt.Errorf("exit status %d: %s", code, text)
	}
	if _, err := net.InterfaceByName("plr0"); err != nil {
		return fmt.Errorf("after the refusal: %w", err)
	}
	if code, text := cleanup("--force"); code != 0 || !strings.Contains(text, "ip link del plr0") {
		return fmt.Errorf("forced: exit status %d: %s", code, text)
	}
	if _, err := net.InterfaceByName("plr0"); err == nil {
		return fmt.Errorf("forced: plr0 is still there")
	}
	return nil
}

// deadSocket makes a socket on which nobody listens.
func deadSocket(t *testing.T, path string) string {
	t.Helper()
	if err := leaveSocket(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func leaveSocket(path string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	return l.Close()
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// The sockets of killed daemons are removed and named, those of others stay.
func TestCleanupRemovesSockets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.toml")
	socket := deadSocket(t, filepath.Join(dir, "g.sock"))
	text := "name = 'west'\naddress = '10.77.0.11/16'\ninterface = 'plr77'\ncontrol_socket = 'g.sock'\n"
	err := os.WriteFile(file, []byte(text), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	err = inNamespace(func() error {
		code, out, errs := command("cleanup", "--config", file)
		if code != 0 || !strings.HasPrefix(out, "Cleaned up, as these commands would:\n  rm "+socket+"\n") || errs != "" || there(socket) {
			t.Errorf("%d, %q, %q, socket there: %v", code, out, errs, there(socket))
		}
		if err := leaveSocket(socket); err != nil {
			return err
		}
		if code, out, _ := command("cleanup", "--config", file, "--json"); code != 0 || !strings.Contains(out, `"rm `+socket+`"`) {
			t.Errorf("JSON: %d, %q", code, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	dead, live, other := deadSocket(t, filepath.Join(dir, "fogplr-wwan0.sock")), filepath.Join(dir, "fogplr-wlan0.sock"), deadSocket(t, filepath.Join(dir, "wg0.sock"))
	l, err := net.Listen("unix", live)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := removeTunnelSockets(dir)
	if err != nil || len(r.Changes) != 1 || r.Changes[0] != "rm "+dead {
		t.Errorf("%q, %v", r.Changes, err)
	}
	if there(dead) || !there(live) || !there(other) {
		t.Errorf("there: dead %v, live %v, another program's %v", there(dead), there(live), there(other))
	}
}

// A dead socket beside a daemon that runs goes, and the refusal stays.
func TestCleanupBesideADaemon(t *testing.T) {
	live := daemonAt(t, control.Handlers{})
	dead := deadSocket(t, filepath.Join(t.TempDir(), "dead.sock"))
	places := []place{{"plr77", live}, {"plr77", dead}}
	r, err := removeSockets(places)
	if err != nil || len(r.Changes) != 1 || there(dead) || !there(live) {
		t.Errorf("%q, %v; live one there: %v", r.Changes, err, there(live))
	}
	var errs strings.Builder
	left, busy, err := cleanupCmd{}.unused(places, routing.InUse, &errs)
	if err != nil || len(left) != 1 || left[0].socket != dead || busy == nil || !strings.Contains(busy.Error(), live) {
		t.Errorf("left %v, busy %v, %v", left, busy, err)
	}
	left, busy, err = cleanupCmd{Force: true}.unused(places, routing.InUse, &errs)
	if err != nil || len(left) != 2 || busy != nil || !strings.Contains(errs.String(), live+" is running, so its control socket stays") {
		t.Errorf("forced: left %v, busy %v, %v, %q", left, busy, err, errs.String())
	}
}

// What was removed is printed although the rest cannot be looked at.
func TestCleanupTellsWhatItDidBeforeAnError(t *testing.T) {
	dead := deadSocket(t, filepath.Join(t.TempDir(), "dead.sock"))
	var out, stderr strings.Builder
	a := &app{stdout: &output{w: &out}, stderr: &stderr}
	blind := func(string) (bool, string, error) { return false, "", errors.New("no netlink") }
	err := cleanupCmd{}.clean(a, []place{{"plr77", dead}}, blind)
	if err == nil || err.Error() != "cannot clean up: no netlink" {
		t.Errorf("error %v", err)
	}
	if want := "Cleaned up, as these commands would:\n  rm " + dead + "\n"; out.String() != want || there(dead) || stderr.Len() > 0 {
		t.Errorf("printed %q and %q, want %q; socket there: %v", out.String(), stderr.String(), want, there(dead))
	}
}

// What only root may do is one sentence beside all other errors.
func TestCleanupFailures(t *testing.T) {
	other, denied := errors.New("a rule stays"), fmt.Errorf("the socket x: %w", fs.ErrPermission)
	all := parts(errors.Join(other, errors.Join(denied, fmt.Errorf("the device: %w", fs.ErrPermission))))
	for _, c := range []struct {
		errs []error
		root bool
		want string
	}{
		{nil, false, "[]"},
		{all, true, "[cannot clean up: a rule stays cannot clean up: the socket x: permission denied cannot clean up: the device: permission denied]"},
		{all, false, "[cannot clean up: a rule stays cannot clean up as this user: use `sudo fogplr cleanup`, with the same flags (the socket x: permission denied)]"},
		{parts(nil), false, "[]"},
		{parts(other), false, "[cannot clean up: a rule stays]"},
	} {
		if got := fmt.Sprint(failures(c.errs, c.root)); got != c.want {
			t.Errorf("root %v: %s, want %s", c.root, got, c.want)
		}
	}
}

// A unit that cleans up after every stop says nothing after one that went well.
func TestCleanupQuiet(t *testing.T) {
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "gateway.toml"), filepath.Join(dir, "g.sock")
	text := "name = 'west'\naddress = '10.77.0.11/16'\ninterface = 'plr77'\ncontrol_socket = 'g.sock'\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	err := inNamespace(func() error {
		for flag, want := range map[string]string{"--quiet": "", "--force": "There was nothing to clean up.\n"} {
			if code, out, errs := command("cleanup", flag, "--config", file); code != 0 || out != want || errs != "" {
				t.Errorf("nothing to do, %s: %d, %q, %q", flag, code, out, errs)
			}
		}
		if err := leaveSocket(socket); err != nil {
			return err
		}
		if code, out, _ := command("cleanup", "--quiet", "--config", file); code != 0 || !strings.Contains(out, "rm "+socket) {
			t.Errorf("something to do: %d, %q", code, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCleanedText(t *testing.T) {
	for _, c := range []struct {
		changes []string
		spared  bool
		want    string
	}{
		{nil, false, "There was nothing to clean up.\n"},
		{nil, true, "There was nothing else to clean up.\n"},
		{[]string{"rm /run/x.sock", "ip rule\x1b"}, true, "Cleaned up, as these commands would:\n  rm /run/x.sock\n  ip rule?\n"},
	} {
		var b strings.Builder
		if cleanedText(&b, c.changes, c.spared); b.String() != c.want {
			t.Errorf("%q: %q, want %q", c.changes, b.String(), c.want)
		}
	}
}

func setUp(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
