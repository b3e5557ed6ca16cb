package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread and its namespace end with this goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = cleanupOpenDevice(config)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
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
		var out, errors strings.Builder
		code := run(append([]string{"cleanup", "--all", "--config", config}, args...), strings.NewReader(""), &out, &errors)
		return code, out.String() + errors.String()
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
