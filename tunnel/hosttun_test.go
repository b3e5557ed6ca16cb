package tunnel

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"
)

// inNamespace runs f on a thread in a network namespace of its own, and both end
// with it. f must not end the test.
func inNamespace(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Somebody raises the MTU by hand, and the kernel hands over segments longer
// than a packet of the overlay, in one piece for the TUN library to split.
func TestOutSurvivesARaisedMTU(t *testing.T) {
	inNamespace(t, func() {
		if err := outWithRaisedMTU(); err != nil {
			t.Error(err)
		}
	})
}

func outWithRaisedMTU() error {
	host, err := OpenHostTUN("plrtest0", 1280)
	if err != nil {
		return err
	}
	defer host.Close()
	for _, line := range []string{"address add 10.77.0.2/16 dev plrtest0", "link set plrtest0 mtu 9000 up"} {
		if text, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, text)
		}
	}
	out := &outward{host: host, pool: new(batchPool), log: slog.New(slog.DiscardHandler), start: time.Now(), woken: func() {}}
	out.roster.Store(&roster{})
	done := make(chan error, 1)
	go func() { done <- out.run() }()

	c, err := net.Dial("udp4", "10.77.0.11:7400")
	if err != nil {
		return err
	}
	defer c.Close()
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		return err
	}
	e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, 8000) })
	if err := errors.Join(err, e); err != nil {
		return err
	}
	if _, err := c.Write(make([]byte, 40000)); err != nil {
		return err
	}
	for deadline := time.Now().Add(within); out.packets.Load() < 5; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d packets were read, want 5", out.packets.Load())
		}
	}
	return errors.Join(closeHost(host), <-done)
}

// closeHost closes a device. The library's netlink listener may be gone first,
// which is no fault.
func closeHost(host tun.Device) error {
	if err := host.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// A device that a start made ends with it, unless the start succeeded.
func TestKeepHostTUN(t *testing.T) {
	inNamespace(t, func() {
		for i, keep := range []bool{false, true, false} { // the third finds that of the second
			host, err := OpenHostTUN("plrtest0", 1280)
			if err != nil {
				t.Error(err)
				return
			}
			if keep {
				err = KeepHostTUN(host)
			}
			if err := errors.Join(err, closeHost(host)); err != nil {
				t.Error(err)
			}
			_, err = net.InterfaceByName("plrtest0")
			if there := err == nil; there != (i > 0) {
				t.Errorf("start %d, kept %v: there afterwards: %v", i, keep, there)
			}
		}
	})
}

func TestHostTUNNeedsItsOwnName(t *testing.T) {
	_, err := OpenHostTUN("lo", 1280)
	if err == nil || !strings.Contains(err.Error(), "lo exists already") || strings.Contains(err.Error(), "invalid argument") {
		t.Errorf("%v", err)
	}
}
