package tunnel

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"
)

const takesNetAdmin = "it takes the capability CAP_NET_ADMIN, which root and the systemd units have"

// OpenHostTUN opens the TUN device name, or makes it. It needs CAP_NET_ADMIN.
// The caller owns the device and closes it. One that is new ends with that,
// unless KeepHostTUN was called.
func OpenHostTUN(name string, mtu int) (tun.Device, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun (is the tun module loaded, and may this user open it?): %w", err)
	}
	if err := attachTUN(fd, name); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "/dev/net/tun")
	dev, err := tun.CreateTUNFromFile(file, mtu)
	if err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EPERM) {
			return nil, fmt.Errorf("set up %s: %s: %w", name, takesNetAdmin, err)
		}
		return nil, fmt.Errorf("set up %s: %w", name, err)
	}
	go func() {
		for range dev.Events() { // the library blocks unless somebody listens
		}
	}()
	return dev, nil
}

// KeepHostTUN makes a device of OpenHostTUN persistent: it outlives this process
// with its index, addresses and multicast memberships, so that DDS programs go
// on over a restart. It is for a start that has succeeded: what a failed one
// left, DDS would join.
func KeepHostTUN(dev tun.Device) error {
	raw, err := dev.File().SyscallConn()
	if err != nil {
		return fmt.Errorf("make the TUN device persistent: %w", err)
	}
	e := raw.Control(func(fd uintptr) { err = unix.IoctlSetInt(int(fd), unix.TUNSETPERSIST, 1) })
	if err = errors.Join(e, err); err != nil {
		return fmt.Errorf("make the TUN device persistent: %w", err)
	}
	return nil
}

func attachTUN(fd int, name string) error {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return fmt.Errorf("interface name %q: %w", name, err)
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	switch err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s is in use by another program; is fogplr running already? %w", name, err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("make %s: %s: %w", name, takesNetAdmin, err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%s exists already and is not a TUN device that fogplr can use: give `interface` in the configuration a name of its own, such as plr0", name)
	case err != nil:
		return fmt.Errorf("make %s: %w", name, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("make %s non-blocking: %w", name, err)
	}
	return nil
}
