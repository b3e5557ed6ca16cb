package lab

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// openDevice creates a TAP device, or a raw one a TUN device, in the calling
// thread's namespace and returns its non-blocking descriptor. The device lives as
// long as the descriptor.
func openDevice(name string, raw bool) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("interface name %q: %w", name, err)
	}
	var kind uint16 = unix.IFF_TAP
	if raw {
		kind = unix.IFF_TUN
	}
	request.SetUint16(kind | unix.IFF_NO_PI | unix.IFF_TUN_EXCL)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("create device %s: %w", name, err)
	}
	return fd, nil
}

// setCarrier plugs a device's cable in or pulls it.
func setCarrier(fd int, on bool) error {
	value := 0
	if on {
		value = 1
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETCARRIER, value); err != nil {
		return fmt.Errorf("set carrier of device: %w", err)
	}
	return nil
}
