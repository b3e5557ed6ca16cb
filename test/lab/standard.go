package lab

import (
	"errors"
	"fmt"
	"net/netip"
)

// Options describe a standard laboratory; see Standard. The zero value is one
// robot with two perfect carriers and the gateways west and east.
type Options struct {
	Robots int // 0 means 1
	// Carriers of every robot, at most 8; none means cell-a and cell-b.
	Carriers []CarrierOptions
	Gateways []string // at most 8; none means west and east
	// Modems puts every carrier behind a modem that translates addresses: all
	// the robot's interfaces have the same address then, 192.168.8.100/24, and
	// the emulated link runs between modem and internet.
	Modems bool
	// IPv6 gives every outer link IPv6 as well. Not with Modems.
	IPv6 bool
	// Seed decides all luck on the links.
	Seed uint64
}

// CarrierOptions describe one uplink.
type CarrierOptions struct {
	Interface string // empty means cell-a, cell-b ..., or wwan0, wwan1 ... with Modems
	Up, Down  Params
	// Raw makes it a device without Ethernet, as of a modem that speaks IP alone.
	Raw bool
	// NAT puts an address translator between the link and the internet.
	NAT NAT
}

// World is a standard laboratory.
type World struct {
	*Lab
	Robots   []*Robot
	Inet     *Node // the router between robots and gateways
	Gateways []*Gateway
}

// Robot is a node with carriers.
type Robot struct {
	*Node
	Carriers []*Carrier
}

// Carrier is one uplink of a robot.
type Carrier struct {
	Interface string
	Address   netip.Prefix // of the interface
	Router    netip.Addr   // the next hop
	Address6  netip.Prefix // with IPv6 only
	Router6   netip.Addr
	Modem     *Node // with Modems only
	// Link is emulated: AB is up, BA is down.
	Link *Link

	robot *Robot
	seat  seat
	raw   bool
	far   *Node  // the other end of Link
	port  string // its interface
	nat   *translator
	moves int         // address changes so far
	mtu   int         // if it was set
	past  [2]Counters // of the links it had before, up and down
}

// Gateway is a node in the cloud. Its interface is eth0.
type Gateway struct {
	*Node
	Address  netip.Addr
	Address6 netip.Addr // with IPv6 only
}

// Standard fills the laboratory:
//
//	robot --cell-a 10.1.0.2/24 ~~~ up-a 10.1.0.1-- inet --198.51.100.1 === 198.51.100.10 eth0-- west
//	      --cell-b 10.2.0.2/24 ~~~ up-b 10.2.0.1--      --203.0.113.1  === 203.0.113.20  eth0-- east
//
// ~~~ is an emulated link, === a plain veth pair. The second robot is robot2,
// with 10.1.1.2/24 and so on. With IPv6 the same links have 2001:db8:1::2/64
// (cell-a; the second robot 2001:db8:1:1::2/64) and 2001:db8:a000::10/64 (west),
// 2001:db8:a001::20/64 (east). Robots have one default route per carrier, with
// metrics 100, 101 and so on.
func (l *Lab) Standard(o Options) (*World, error) {
	w := &World{Lab: l}
	if err := o.complete(); err != nil {
		return nil, err
	}
	var err error
	if w.Inet, err = l.router("inet"); err != nil {
		return nil, err
	}
	for i, name := range o.Gateways {
		if err := w.addGateway(i, name, o.IPv6); err != nil {
			return nil, fmt.Errorf("gateway %s: %w", name, err)
		}
	}
	for i := range o.Robots {
		if err := w.addRobot(i, o); err != nil {
			return nil, fmt.Errorf("robot %d: %w", i+1, err)
		}
	}
	return w, nil
}

// complete fills in what was left to the default.
func (o *Options) complete() error {
	const most = 8
	if o.Robots == 0 {
		o.Robots = 1
	}
	if len(o.Gateways) == 0 {
		o.Gateways = []string{"west", "east"}
	}
	carriers := make([]CarrierOptions, max(len(o.Carriers), 2))
	if len(o.Carriers) > 0 {
		carriers = carriers[:copy(carriers, o.Carriers)]
	}
	o.Carriers = carriers
	if len(o.Carriers) > most || len(o.Gateways) > most || o.Robots > 250 {
		return errors.New("a standard laboratory has at most 250 robots, 8 carriers each, and 8 gateways")
	}
	if o.Modems && o.IPv6 {
		return errors.New("modems of a standard laboratory speak IPv4 only")
	}
	for i := range o.Carriers {
		c := &o.Carriers[i]
		switch {
		case c.Interface != "":
		case o.Modems:
			c.Interface = fmt.Sprintf("wwan%d", i)
		default:
			c.Interface = "cell-" + letter(i)
		}
	}
	return nil
}

func letter(i int) string { return string(rune('a' + i)) }

// router makes a node that forwards.
func (l *Lab) router(name string) (*Node, error) {
	n, err := l.Node(name)
	if err != nil {
		return nil, err
	}
	return n, errors.Join(
		n.Sysctl("net.ipv4.ip_forward", "1"),
		n.Sysctl("net.ipv6.conf.all.forwarding", "1"),
		n.Sysctl("net.ipv4.conf.all.rp_filter", "0"),
		n.Sysctl("net.ipv4.conf.default.rp_filter", "0"),
	)
}

// addGateway adds gateway i with its own veth pair to the router.
func (w *World) addGateway(i int, name string, ipv6 bool) error {
	n, err := w.Node(name)
	if err != nil {
		return err
	}
	port := "to-" + name
	if err := w.Veth(n, "eth0", w.Inet, port); err != nil {
		return err
	}
	address, router, bits := gatewayAddress(i)
	g := &Gateway{Node: n, Address: netip.MustParseAddr(address)}
	w.Gateways = append(w.Gateways, g)
	err = errors.Join(
		n.AddAddress("eth0", fmt.Sprintf("%s/%d", address, bits)),
		w.Inet.AddAddress(port, fmt.Sprintf("%s/%d", router, bits)),
		n.AddRoute("default", router, "eth0", 0),
	)
	if err != nil || !ipv6 {
		return err
	}
	router6 := fmt.Sprintf("2001:db8:a%03x::1", i)
	g.Address6 = netip.MustParseAddr(fmt.Sprintf("2001:db8:a%03x::%d0", i, i+1))
	return errors.Join(
		n.AddAddress("eth0", g.Address6.String()+"/64"),
		w.Inet.AddAddress(port, router6+"/64"),
		n.AddRoute("default", router6, "eth0", 0),
	)
}

// gatewayAddress returns the address of gateway i and of its router.
func gatewayAddress(i int) (address, router string, bits int) {
	switch i {
	case 0:
		return "198.51.100.10", "198.51.100.1", 24
	case 1:
		return "203.0.113.20", "203.0.113.1", 24
	}
	return fmt.Sprintf("192.0.2.%d", 16*i+2), fmt.Sprintf("192.0.2.%d", 16*i+1), 28
}

// robotName returns the name of robot i: robot, robot2, robot3 ...
func robotName(i int) string {
	if i == 0 {
		return "robot"
	}
	return fmt.Sprintf("robot%d", i+1)
}

func (w *World) addRobot(i int, o Options) error {
	n, err := w.Node(robotName(i))
	if err != nil {
		return err
	}
	r := &Robot{Node: n}
	w.Robots = append(w.Robots, r)
	for j, c := range o.Carriers {
		seat := seat{robot: i, slot: j, seed: o.Seed + uint64(2*(i*len(o.Carriers)+j))}
		add := w.addCarrier
		if o.Modems {
			add = w.addModem
		}
		carrier, err := add(r, seat, c)
		if err == nil && o.IPv6 {
			err = w.addIPv6(r, seat, carrier)
		}
		if err != nil {
			return fmt.Errorf("carrier %s: %w", c.Interface, err)
		}
		r.Carriers = append(r.Carriers, carrier)
	}
	return nil
}

// seat says which carrier of which robot is meant.
type seat struct {
	robot, slot int
	seed        uint64
}

// port names the router's interface for a carrier: up-a, or up-a-2 for robot2.
func (s seat) port() string {
	if s.robot == 0 {
		return "up-" + letter(s.slot)
	}
	return fmt.Sprintf("up-%s-%d", letter(s.slot), s.robot+1)
}

func (s seat) metric() int { return 100 + s.slot }

// addCarrier adds a carrier whose own interface is the emulated link:
//
//	robot --cell-a 10.1.0.2/24 ~~~ up-a 10.1.0.1-- inet
//	robot --cell-a 10.1.0.2/24 ~~~ lan 10.1.0.1-- nat-a --wan 100.64.0.2 === up-a 100.64.0.1-- inet
func (w *World) addCarrier(r *Robot, s seat, o CarrierOptions) (*Carrier, error) {
	subnet := fmt.Sprintf("10.%d.%d.", s.slot+1, s.robot)
	c := &Carrier{
		Interface: o.Interface,
		Address:   netip.MustParsePrefix(subnet + "2/24"),
		Router:    netip.MustParseAddr(subnet + "1"),
		robot:     r, seat: s, raw: o.Raw, far: w.Inet, port: s.port(),
	}
	if o.NAT.Kind != NoNAT {
		var err error
		if c.nat, err = w.addTranslator(s, o.NAT); err != nil {
			return nil, err
		}
		c.far, c.port = c.nat.node, lanPort
	}
	return c, w.plug(c, LinkParams{AB: o.Up, BA: o.Down, Seed: s.seed, Raw: o.Raw})
}

func (w *World) addIPv6(r *Robot, s seat, c *Carrier) error {
	subnet := fmt.Sprintf("2001:db8:%x:%x::", s.slot+1, s.robot)
	c.Address6 = netip.MustParsePrefix(subnet + "2/64")
	c.Router6 = netip.MustParseAddr(subnet + "1")
	return errors.Join(
		r.AddAddress(c.Interface, c.Address6.String()),
		w.Inet.AddAddress(s.port(), subnet+"1/64"),
		r.AddRoute("default", c.Router6.String(), c.Interface, s.metric()),
	)
}
