package daemon

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/resolve"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// same says whether the tunnel would notice a difference.
func same(a, b tunnel.RobotConfig) bool {
	return a.Deadline == b.Deadline && slices.Equal(a.Carriers, b.Carriers) &&
		slices.EqualFunc(a.Gateways, b.Gateways, func(x, y tunnel.GatewayPeer) bool {
			return x.Name == y.Name && x.Key == y.Key && slices.Equal(x.Addresses, y.Addresses) && slices.Equal(x.Endpoints, y.Endpoints)
		})
}

// choose returns what the tunnel is to be.
func (d *robot) choose(cfg *config.Robot) (tunnel.RobotConfig, error) {
	set := tunnel.RobotConfig{Common: d.common()}
	set.Deadline = cfg.Deadline
	if err := d.chooseCarriers(cfg); err != nil {
		return set, err
	}
	for _, c := range d.chosen {
		set.Carriers = append(set.Carriers, tunnelled(c, d.key))
	}
	for _, g := range cfg.Gateways {
		p := tunnel.GatewayPeer{Name: g.Name, Addresses: g.Addresses, Key: tunnel.Key(g.PublicKey)}
		for _, e := range g.Endpoints {
			if a, ok := e.AddrPort(); ok {
				p.Endpoints = append(p.Endpoints, a)
			}
		}
		set.Gateways = append(set.Gateways, p)
	}
	return set, nil
}

// tunnelled returns what the tunnel is to know of a carrier.
func tunnelled(c carriers.Carrier, key keys.Private) tunnel.Carrier {
	carrierKey := keys.CarrierKey(key, uint8(c.Slot))
	return tunnel.Carrier{
		Interface: c.Interface, Label: c.Label, Slot: c.Slot, ID: c.ID, Key: tunnel.Key(carrierKey),
		Port: keys.CarrierPort(carrierKey.PublicKey()), Metered: c.Metered(),
	}
}

// chooseCarriers finds out what the carriers are now, and keeps their slots.
func (d *robot) chooseCarriers(cfg *config.Robot) error {
	if d.chooser == nil {
		book, notes, err := slots.Load(cfg.StateDir)
		if err != nil {
			return slotsUnread(&cfg.Node, err)
		}
		d.note("slots", strings.Join(notes, " "))
		d.book, d.chooser = book, carriers.New(book)
	}
	interfaces, err := d.net.Interfaces()
	if err != nil {
		return err
	}
	choice := d.chooser.Choose(cfg, interfaces)
	d.note("no carrier", choice.None)
	d.note("carriers", strings.Join(append(choice.Notes, choice.Missing...), " "))
	unkept := ""
	if err := d.book.Save(); err != nil {
		unkept = slotsUnkept(&cfg.Node, err)
	}
	d.note("unkept", unkept)
	d.chosen, d.interfaces = choice.Carriers, interfaces
	select {
	case d.rechosen <- struct{}{}:
	default:
	}
	return nil
}

// ask has the names of gateways looked up through the carriers there are. What was
// found through one that cannot send now is kept for when it is back.
func (d *robot) ask() {
	var all []resolve.Carrier
	for _, c := range d.chosen {
		n := resolve.Carrier{Slot: c.Slot, Interface: c.Interface, Index: c.Index, DNS: c.DNS, Metered: c.Metered()}
		i := slices.IndexFunc(d.interfaces, func(i routing.Interface) bool { return i.Index == c.Index })
		if i >= 0 && d.interfaces[i].Up && d.resting(c) == "" {
			found := &d.interfaces[i]
			n.Addresses = found.Addresses
			n.IPv4 = found.Leads4 && sendsBy(found.Addresses, false)
			n.IPv6 = found.Leads6 && sendsBy(found.Addresses, true)
		}
		all = append(all, n)
	}
	d.names.SetCarriers(all)
	var gateways []resolve.Gateway
	for _, g := range d.cfg.Gateways {
		n := resolve.Gateway{Name: g.Name}
		for _, e := range g.Endpoints {
			n.Endpoints = append(n.Endpoints, resolve.Endpoint{Name: e.Host, Addr: e.Addr, Port: e.Port})
		}
		gateways = append(gateways, n)
	}
	d.names.SetGateways(gateways)
}

// sendsBy says whether there is an address of the family to send from beyond the
// link.
func sendsBy(addresses []netip.Prefix, v6 bool) bool {
	return slices.ContainsFunc(addresses, func(p netip.Prefix) bool {
		return p.Addr().Is4() != v6 && (!v6 || !p.Addr().IsLinkLocalUnicast())
	})
}

// endpoints returns where a carrier looks for gateways.
func (d *robot) endpoints(slot int) (all []netip.Addr) {
	for _, g := range d.set.Gateways {
		for _, e := range append(slices.Clone(g.Endpoints), d.found[place{slot, g.Name}]...) {
			if !slices.Contains(all, e.Addr()) {
				all = append(all, e.Addr())
			}
		}
	}
	for _, p := range d.tunnel.Paths() { // an address in use stays so until the path is down
		if p.Slot == slot && p.Up && !slices.Contains(all, p.Endpoint.Addr()) {
			all = append(all, p.Endpoint.Addr())
		}
	}
	return all
}
