package e2e

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/test/lab"
)

// Packets that must not be fragmented and are larger than plr0 takes are refused as
// on any link: to programs on the node by EMSGSIZE, to machines behind it by
// "fragmentation needed" and "packet too big", each with plr0's MTU.
func TestPacketsTooBigForTheOverlay(t *testing.T) {
	t.Parallel()
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{upTo(1500)}}})
	r, g := w.robots[0], w.gateways[0]
	for _, c := range []struct {
		node     *lab.Node
		to, to6  netip.Addr
		at       string
		from     [2]string
		router   [2]string
		sentFrom string
	}{
		{r.lab.Node, g.ip, g.ip6, "robot", [2]string{"192.168.50.2/24", "fd50::2/64"}, [2]string{"192.168.50.1", "fd50::1"}, "sensor"},
		{g.lab.Node, r.ip, r.ip6, "gateway", [2]string{"192.168.60.2/24", "fd60::2/64"}, [2]string{"192.168.60.1", "fd60::1"}, "server"},
	} {
		behind, err := w.Node(c.sentFrom)
		must(t, err)
		must(t, w.Veth(behind, "eth0", c.node, "lan0"))
		for i, bits := range []string{"/24", "/64"} {
			must(t, errors.Join(
				behind.AddAddress("eth0", c.from[i]),
				c.node.AddAddress("lan0", c.router[i]+bits),
				behind.AddRoute("default", c.router[i], "eth0", 0)))
		}
		must(t, errors.Join(c.node.Sysctl("net.ipv4.ip_forward", "1"), c.node.Sysctl("net.ipv6.conf.all.forwarding", "1")))
		for _, to := range []netip.Addr{c.to, c.to6} {
			if mtu, err := tooBig(c.node, to, 1400); mtu != usualMTU || !errors.Is(err, unix.EMSGSIZE) {
				t.Errorf("%s itself, to %v: MTU %d and %v", c.at, to, mtu, err)
			}
			if mtu, err := tooBig(behind, to, 1400); mtu != usualMTU || !errors.Is(err, unix.EMSGSIZE) {
				t.Errorf("behind %s, to %v: MTU %d and %v", c.at, to, mtu, err)
			}
			if mtu, err := tooBig(c.node, to, usualMTU); err != nil {
				t.Errorf("%s itself, a packet of %d bytes to %v: %v, MTU %d", c.at, usualMTU, to, err, mtu)
			}
		}
	}
}

// tooBig sends packets of size bytes that must not be fragmented until one is
// refused, for two seconds at most, and returns the MTU towards that address that
// the kernel has learnt then.
func tooBig(from *lab.Node, to netip.Addr, size int) (mtu int, refused error) {
	level, discover, get, headers := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_MTU, 28
	if to.Is6() {
		level, discover, get, headers = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_MTU, 48
	}
	refused = from.Do(func() error {
		c, err := net.DialUDP("udp", nil, udpAddr(to, newPort()))
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.SyscallConn()
		if err != nil {
			return err
		}
		if e := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), level, discover, unix.IP_PMTUDISC_DO) // the same for IPv6
		}); errors.Join(e, err) != nil {
			return errors.Join(e, err)
		}
		var failed error
		for range 40 {
			_, failed = c.Write(make([]byte, size-headers))
			if errors.Is(failed, unix.EMSGSIZE) || failed == nil && size <= usualMTU {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if errors.Is(failed, syscall.ECONNREFUSED) { // nobody listens, so it came
			failed = nil
		}
		e := raw.Control(func(fd uintptr) { mtu, err = unix.GetsockoptInt(int(fd), level, get) })
		return errors.Join(failed, e, err)
	})
	return mtu, refused
}
