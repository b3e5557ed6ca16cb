package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// plug makes the carrier's link and gives both ends their addresses and routes.
func (w *World) plug(c *Carrier, p LinkParams) error {
	link, err := w.Link(c.robot.Node, c.Interface, c.far, c.port, p)
	if err != nil {
		return err
	}
	c.Link = link
	if !c.raw {
		err = c.far.AddAddress(c.port, fmt.Sprintf("%v/%d", c.Router, c.Address.Bits()))
	} else {
		err = errors.Join(
			c.far.AddAddress(c.port, c.Router.String()+"/32"),
			c.far.AddRoute(c.Address.Masked().String(), "", c.port, 0),
		)
	}
	if c.mtu > 0 {
		err = errors.Join(err, c.SetMTU(c.mtu))
	}
	return errors.Join(err, c.lease())
}

// lease gives the robot's end its address and route, as a DHCP client does.
func (c *Carrier) lease() error {
	address := c.Address
	if c.raw { // no neighbours
		address = netip.PrefixFrom(address.Addr(), 32)
	}
	return errors.Join(c.robot.AddAddress(c.Interface, address.String()), c.route())
}

// route is the robot's default route through the carrier.
func (c *Carrier) route() error {
	if c.raw {
		return c.robot.AddRoute("0.0.0.0/0", "", c.Interface, c.seat.metric())
	}
	return c.robot.AddRoute("default", c.Router.String(), c.Interface, c.seat.metric())
}

// Down takes the carrier's interface down, Up takes it up again with its route.
// These are for carriers without modems.
func (c *Carrier) Down() error { return c.robot.Down(c.Interface) }

// Up is the end of Down.
func (c *Carrier) Up() error { return errors.Join(c.robot.Up(c.Interface), c.route()) }

// Readdress gives the carrier another address of its subnet, as a new DHCP lease
// does.
func (c *Carrier) Readdress() error {
	if err := c.mayMove(); err != nil {
		return err
	}
	c.moves++
	subnet := c.Address.Masked().Addr().As4()
	subnet[3] = byte(2 + c.moves%200)
	return errors.Join(c.Unlease(), c.Lease(netip.PrefixFrom(netip.AddrFrom4(subnet), c.Address.Bits())))
}

// Unlease takes the carrier's IPv4 addresses away, and the kernel the routes that
// need them, as at the end of a DHCP lease.
func (c *Carrier) Unlease() error {
	k, err := c.robot.handle.LinkByName(c.Interface)
	if err != nil {
		return fmt.Errorf("carrier %s: %w", c.Interface, err)
	}
	return c.strip(k, netlink.FAMILY_V4)
}

// Lease gives the carrier an IPv4 address of its subnet, and its default route,
// when it has none.
func (c *Carrier) Lease(address netip.Prefix) error {
	if err := c.mayMove(); err != nil {
		return err
	}
	c.Address = address
	return c.lease()
}

func (c *Carrier) mayMove() error {
	if c.nat != nil && c.nat.kind == FullCone {
		return fmt.Errorf("carrier %s: the full cone of this laboratory knows one address inside", c.Interface)
	}
	return nil
}

// strip removes the robot's addresses of one family, but for link-local ones.
func (c *Carrier) strip(k netlink.Link, family int) error {
	old, err := c.robot.handle.AddrList(k, family)
	for i := range old {
		if !old[i].IP.IsLinkLocalUnicast() {
			err = errors.Join(err, c.robot.handle.AddrDel(k, &old[i]))
		}
	}
	return err
}

// Readdress6 moves the carrier to another IPv6 prefix, as an operator does when a
// modem connects anew. It needs IPv6, and no NAT.
func (c *Carrier) Readdress6() error {
	k, err := c.robot.handle.LinkByName(c.Interface)
	if err != nil || !c.Address6.IsValid() || c.nat != nil {
		return errors.Join(fmt.Errorf("carrier %s has no IPv6 prefix to change", c.Interface), err)
	}
	port, err := c.far.handle.LinkByName(c.port)
	if err != nil {
		return fmt.Errorf("carrier %s: %w", c.Interface, err)
	}
	c.moves++
	old := &netlink.Addr{IPNet: &net.IPNet{IP: c.Router6.AsSlice(), Mask: net.CIDRMask(c.Address6.Bits(), 128)}}
	subnet := fmt.Sprintf("2001:db8:%x:%x::", c.seat.slot+1, 0x1000*c.moves+c.seat.robot)
	c.Address6, c.Router6 = netip.MustParsePrefix(subnet+"2/64"), netip.MustParseAddr(subnet+"1")
	return errors.Join(
		c.strip(k, netlink.FAMILY_V6),
		c.far.handle.AddrDel(port, old),
		c.far.AddAddress(c.port, subnet+"1/64"),
		c.robot.AddAddress(c.Interface, c.Address6.String()),
		c.robot.replaceDefault6(k, c.Router6, c.seat.metric()),
	)
}

// replaceDefault6 makes router the next hop of an interface's IPv6 default route.
func (n *Node) replaceDefault6(k netlink.Link, router netip.Addr, metric int) error {
	_, all, _ := net.ParseCIDR("::/0")
	return n.handle.RouteReplace(&netlink.Route{Dst: all, Gw: router.AsSlice(), LinkIndex: k.Attrs().Index, Priority: metric})
}

// Renumber gives the carrier's translator another public address, as when the
// router behind it changes its provider. The robot's interface notices nothing.
func (c *Carrier) Renumber() error {
	if c.nat == nil {
		return fmt.Errorf("carrier %s has no NAT to renumber", c.Interface)
	}
	c.moves++
	wan := netip.MustParseAddr(c.nat.address).As4()
	router := wan
	wan[3], router[3] = byte(2+c.moves%200), 1
	c.nat.address = netip.AddrFrom4(wan).String()
	k, err := c.nat.node.handle.LinkByName(wanPort)
	if err != nil {
		return err
	}
	old, err := c.nat.node.handle.AddrList(k, netlink.FAMILY_V4)
	for i := range old {
		err = errors.Join(err, c.nat.node.handle.AddrDel(k, &old[i]))
	}
	return errors.Join(err,
		c.nat.node.AddAddress(wanPort, c.nat.address+"/24"),
		c.nat.node.AddRoute("default", netip.AddrFrom4(router).String(), wanPort, 0),
		c.nat.node.handle.ConntrackTableFlush(netlink.ConntrackTable))
}

// Rename gives the carrier's interface another name. It stays up, where the kernel
// can do that (Linux 6.2 and later), else it is taken down for a moment.
func (c *Carrier) Rename(name string) error {
	rename := func(k netlink.Link) error { return c.robot.handle.LinkSetName(k, name) }
	err := c.robot.onLink(c.Interface, rename)
	if errors.Is(err, unix.EBUSY) {
		if err = errors.Join(c.Down(), c.robot.onLink(c.Interface, rename)); err == nil {
			c.Interface = name
			return c.Up()
		}
	}
	if err == nil {
		c.Interface = name
	}
	return err
}

// Replug removes the carrier's interface and makes it again under another name
// (or the same), as when a modem resets itself.
func (w *World) Replug(c *Carrier, name string) error {
	if err := w.Detach(c); err != nil {
		return err
	}
	return w.Attach(c, name)
}

// Detach removes the carrier's interface, as when a modem is pulled out.
func (w *World) Detach(c *Carrier) error {
	up, down, err := c.Counters()
	if err == nil {
		err = w.Remove(c.Link)
	}
	if err == nil {
		c.past[0], c.past[1] = up, down
	}
	return err
}

// Attach is the end of Detach, by a new interface with a name of its own or the
// same as before. The link is what it was.
func (w *World) Attach(c *Carrier, name string) error {
	c.Interface = name
	return w.plug(c, c.Link.Params())
}

// Counters returns what became of the carrier's packets so far, over all links
// that it had.
func (c *Carrier) Counters() (up, down Counters, err error) {
	up, down, err = c.Link.Counters()
	return up.Plus(c.past[0]), down.Plus(c.past[1]), err
}

// SetMTU sets the MTU (bytes) of the interfaces at both ends of the carrier's
// link, so that the kernel says what is too big.
func (c *Carrier) SetMTU(mtu int) error {
	c.mtu = mtu
	return errors.Join(c.robot.SetMTU(c.Interface, mtu), c.far.SetMTU(c.port, mtu))
}
