package lab

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// openTAP creates a TAP device in the calling thread's namespace and returns
// its non-blocking descriptor. The device lives as long as the descriptor.
func openTAP(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("interface name %q: %w", name, err)
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_TUN_EXCL)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("create TAP device %s: %w", name, err)
	}
	return fd, nil
}

// setCarrier plugs the TAP device's cable in or pulls it.
func setCarrier(fd int, on bool) error {
	value := 0
	if on {
		value = 1
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETCARRIER, value); err != nil {
		return fmt.Errorf("set carrier of TAP device: %w", err)
	}
	return nil
}
