package lab

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
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
	if c.nat != nil && c.nat.kind == FullCone {
		return fmt.Errorf("carrier %s: the full cone of this laboratory knows one address inside", c.Interface)
	}
	k, err := c.robot.handle.LinkByName(c.Interface)
	if err != nil {
		return fmt.Errorf("carrier %s: %w", c.Interface, err)
	}
	old, err := c.robot.handle.AddrList(k, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for i := range old {
		err = errors.Join(err, c.robot.handle.AddrDel(k, &old[i]))
	}
	c.moves++
	subnet := c.Address.Masked().Addr().As4()
	subnet[3] = byte(2 + c.moves%200)
	c.Address = netip.PrefixFrom(netip.AddrFrom4(subnet), c.Address.Bits())
	return errors.Join(err, c.lease())
}

// Replug removes the carrier's interface and makes it again under another name
// (or the same), as when a modem resets itself.
func (w *World) Replug(c *Carrier, name string) error {
	p := c.Link.Params()
	up, down, err := c.Counters()
	if err == nil {
		err = w.Remove(c.Link)
	}
	if err != nil {
		return err
	}
	c.past[0], c.past[1] = up, down
	c.Interface = name
	return w.plug(c, p)
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
