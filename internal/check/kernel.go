package check

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/config"
)

// judgeKernel looks at what the kernel, the container and the user allow.
func judgeKernel(f *Facts) []Finding {
	var out []Finding
	for _, judge := range []func(*Facts) *Finding{
		user, netAdmin, tunDevice, network, markedSockets, boundSockets, netRaw, offloads, rules4, rules6, noIPv6,
	} {
		if found := judge(f); found != nil {
			out = append(out, *found)
		}
	}
	return out
}

func user(f *Facts) *Finding {
	if f.root() {
		return nil
	}
	return &Finding{ID: "user.rights", Level: Note, Repair: f.sudo(),
		Text: "Only root sees everything: for this user the firewall, other users' programs and the private key stay hidden, so this check looks at less."}
}

// sudo is this check, done by root.
func (f *Facts) sudo() string {
	if f.Config.File == "" {
		return "sudo fogplr check"
	}
	return "sudo " + f.command("check")
}

// forbidden says that a privilege is lacking.
func forbidden(err error) bool { return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) }

func netAdmin(f *Facts) *Finding {
	if !f.root() || f.Capable == nil || f.Capable(unix.CAP_NET_ADMIN) {
		return nil
	}
	return &Finding{ID: "user.net_admin", Level: Fails,
		Text: "Not even root has CAP_NET_ADMIN here, as in a container, and fogplr needs it for plr0, routes and marked sockets. " +
			"Start the container with --cap-add NET_ADMIN --device /dev/net/tun."}
}

func tunDevice(f *Facts) *Finding {
	err := f.Kernel.TUN
	found := &Finding{ID: "kernel.tun", Level: Fails}
	switch {
	case err == nil || f.running():
		return nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO):
		found.Text = "There is no /dev/net/tun, so fogplr cannot make its network interface: the module tun is not loaded, or the kernel was built without CONFIG_TUN, or a container has not been given the device."
		found.Repair = "modprobe tun"
	case forbidden(err) && !f.root(): // the unit gives it to the daemon
		return nil
	default:
		found.Text = fmt.Sprintf("/dev/net/tun cannot be opened (%v), so fogplr cannot make its network interface. A container needs --device /dev/net/tun.", err)
	}
	return found
}

func network(f *Facts) *Finding {
	if f.NetworkError == nil {
		return nil
	}
	return &Finding{ID: "kernel.netlink", Level: Fails,
		Text: fmt.Sprintf("The kernel's network configuration cannot be read (%v), so fogplr can neither use nor set it. A sandbox must allow AF_NETLINK sockets.", f.NetworkError)}
}

func markedSockets(f *Facts) *Finding {
	if f.Kernel.Mark == nil || forbidden(f.Kernel.Mark) {
		return nil // a matter of CAP_NET_ADMIN
	}
	return &Finding{ID: "kernel.so_mark", Level: Warning,
		Text: fmt.Sprintf("Sockets cannot be marked here (SO_MARK: %v), so fogplr's rules cannot tell its own datagrams from others, and other programs' rules, such as a VPN's, may divert them.", f.Kernel.Mark)}
}

func boundSockets(f *Facts) *Finding {
	if f.Kernel.Bind == nil || forbidden(f.Kernel.Bind) || !f.robot() {
		return nil
	}
	return &Finding{ID: "kernel.so_bindtodevice", Level: Fails,
		Text: fmt.Sprintf("Sockets cannot be bound to an interface here (SO_BINDTODEVICE: %v), so fogplr cannot choose by which carrier a datagram leaves.", f.Kernel.Bind)}
}

// netRaw is about kernels before 5.7, where SO_BINDTODEVICE takes CAP_NET_RAW.
func netRaw(f *Facts) *Finding {
	var major, minor int
	if n, _ := fmt.Sscanf(f.Kernel.Release, "%d.%d", &major, &minor); n != 2 || major > 5 || major == 5 && minor >= 7 || !f.robot() {
		return nil
	}
	switch {
	case f.Daemon.Status != nil:
		return nil
	case f.root() && f.Capable != nil && !f.Capable(unix.CAP_NET_RAW):
		return &Finding{ID: "user.net_raw", Level: Fails,
			Text: "Linux " + f.Kernel.Release + " lets only CAP_NET_RAW bind a socket to an interface, and root has not got it here. Start the container with --cap-add NET_RAW."}
	}
	unit := config.Unit(f.Config.File)
	switch {
	case unit == "" && f.root(): // who starts it by hand
		return nil
	case unit == "":
		return &Finding{ID: "user.net_raw", Level: Warning,
			Text: "Linux " + f.Kernel.Release + ", like all before 5.7, lets only CAP_NET_RAW bind a socket to an interface. Whoever starts fogplr must give it that besides CAP_NET_ADMIN; root has it."}
	}
	return &Finding{ID: "user.net_raw", Level: Warning, Repair: "systemctl edit " + unit,
		Text: "Linux " + f.Kernel.Release + ", like all before 5.7, lets only CAP_NET_RAW bind a socket to an interface, and the unit gives the daemon CAP_NET_ADMIN alone. " +
			"Add under [Service]: AmbientCapabilities=CAP_NET_RAW and CapabilityBoundingSet=CAP_NET_RAW."}
}

func offloads(f *Facts) *Finding {
	what := "UDP_SEGMENT, from Linux 4.18 on"
	switch {
	case f.Kernel.Segment != nil && f.Kernel.Gather != nil:
		what = "UDP_SEGMENT and UDP_GRO, from Linux 5.0 on"
	case f.Kernel.Gather != nil:
		what = "UDP_GRO, from Linux 5.0 on"
	case f.Kernel.Segment == nil:
		return nil
	}
	return &Finding{ID: "kernel.udp_offload", Level: Note,
		Text: "This kernel takes or gives UDP datagrams one by one only (it has no " + what + "). fogplr works, with more CPU time for each megabyte."}
}

func rules4(f *Facts) *Finding {
	if f.Network == nil || !f.Network.NoRules4 || !f.robot() {
		return nil
	}
	return &Finding{ID: "kernel.rules4", Level: Warning,
		Text: "This kernel has no policy routing for IPv4 (CONFIG_IP_MULTIPLE_TABLES is not set). fogplr binds its sockets to the carriers alone, which works for each carrier that has a default route in the main table, with any metric."}
}

func rules6(f *Facts) *Finding {
	if f.Network == nil || !f.Network.NoRules6 || f.Kernel.NoIPv6 || !f.robot() {
		return nil
	}
	return &Finding{ID: "kernel.rules6", Level: Warning,
		Text: "This kernel has no policy routing for IPv6 (CONFIG_IPV6_MULTIPLE_TABLES is not set). fogplr uses IPv6 on those carriers alone that have a default route in the main table, and IPv4 as always."}
}

// noIPv6 is about an overlay with IPv6 addresses on a machine without.
func noIPv6(f *Facts) *Finding {
	if f.Config.Node == nil || f.Daemon.Status != nil {
		return nil
	}
	level, rest := Fails, ""
	if !f.only6() {
		level, rest = Warning, " Only IPv4 works on the overlay until then."
	}
	for _, a := range f.Config.Node.Addresses {
		switch {
		case a.Addr().Is4():
		case f.Kernel.NoIPv6:
			return &Finding{ID: "kernel.ipv6", Level: level,
				Text: fmt.Sprintf("The overlay address %v cannot be set, since this kernel has no IPv6 (CONFIG_IPV6, or ipv6.disable=1 on its command line). Give this node IPv4 overlay addresses alone.", a)}
		case f.Kernel.IPv6Off != "":
			return &Finding{ID: "kernel.ipv6", Level: level, Repair: "sysctl -w " + f.Kernel.IPv6Off + "=0",
				Text: fmt.Sprintf("The overlay address %v cannot be set, since IPv6 is turned off for %s.", a, f.Config.Node.Interface) + rest}
		}
	}
	return nil
}
