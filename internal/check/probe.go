package check

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// probe tries on sockets of its own what fogplr does with its sockets. Opening
// /dev/net/tun makes no interface.
func probe() Kernel {
	k := Kernel{TUN: openTUN()}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		k.Release = unix.ByteSliceToString(name.Release[:])
	}
	k.Mark = onSocket(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 1) })
	k.Bind = onSocket(func(fd int) error { return unix.BindToDevice(fd, "lo") })
	k.Segment = onSocket(func(fd int) error {
		_, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		return err
	})
	k.Gather = onSocket(func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) })
	return k
}

func openTUN() error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func onSocket(try func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(try(fd), unix.Close(fd))
}

// clock reads the kernel's view of its clock (adjtimex(2)).
func clock() (now time.Time, free bool, err error) {
	var t unix.Timex // no modes: nothing is set
	if _, err := unix.Adjtimex(&t); err != nil {
		return time.Time{}, false, err
	}
	return time.Now(), t.Status&unix.STA_UNSYNC != 0, nil
}

// capabilities reads which effective capabilities this process has, nil when that
// cannot be told.
func (h Host) capabilities() func(int) bool {
	text, err := h.read(maxSmallFile, "proc/self/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			if set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64); err == nil {
				return func(c int) bool { return set>>c&1 == 1 }
			}
		}
	}
	return nil
}
