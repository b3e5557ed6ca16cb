package routing

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Interface is one interface of the network namespace, as far as it matters for
// choosing carriers.
type Interface struct {
	Index int // the kernel's, never used again while the machine runs
	Name  string
	// Kind is one of "ethernet", "wifi", "wwan", "usb" (a tethered phone or
	// modem), "vlan", "ppp", "bridge", "bond", "veth", "macvlan" (ipvlan, too),
	// "tun", "tap", "wireguard", "tunnel", "loopback", "other".
	Kind string
	// MAC is the permanent address if the kernel tells one, else the current
	// one, like "0c:5b:8f:27:9a:64"; empty on links without.
	MAC string
	// Driver is the kernel driver's name, like "cdc_ether". Bus is the path of
	// the hardware below /sys/devices, like
	// "pci0000:00/0000:00:14.0/usb1/1-3": the same as long as the hardware stays
	// in its socket. Both are empty when there is no hardware, or sysfs does not
	// show this namespace.
	Driver, Bus string
	// Addresses are all that the interface has, with the length of their network.
	Addresses []netip.Prefix
	// Up says that somebody set the interface up and that it has a link.
	Up bool
	// Leads says that the interface leads beyond its link: it has a default route
	// (of any metric, in any table), a route by a gateway to public addresses, or
	// another end that needs no address to be named.
	Leads bool
	// Leads4 and Leads6 say by which family.
	Leads4, Leads6 bool
	// Excluded says in plain words why discovery never takes the interface,
	// like "a WireGuard tunnel, ..."; empty if it may. A carrier that the
	// configuration names outright may be excluded all the same.
	Excluded string
}

// Interfaces returns all interfaces of the namespace, by index. It changes
// nothing.
func (m *Manager) Interfaces() ([]Interface, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	return listInterfaces(m.kernel, m.tun)
}

// Interfaces is what Manager.Interfaces returns, for the current network
// namespace and without a Manager. It needs no privilege.
func Interfaces() ([]Interface, error) {
	k, err := openKernel()
	if err != nil {
		return nil, err
	}
	defer k.close()
	return listInterfaces(k, "")
}

func listInterfaces(k kernel, tun string) ([]Interface, error) {
	v, err := k.view(nil)
	if err != nil {
		return nil, err
	}
	devices := map[int]device{}
	for _, l := range v.links {
		if l.mayBeHardware() {
			devices[l.index] = k.device(l)
		}
	}
	return interfaces(v, tun, devices), nil
}

func interfaces(v *view, tun string, devices map[int]device) []Interface {
	n := newNeighbours(v.links, devices)
	leads := v.leading()
	addresses := map[int][]netip.Prefix{}
	for _, a := range v.addresses {
		addresses[a.index] = append(addresses[a.index], a.prefix())
	}
	found := make([]Interface, 0, len(v.links))
	for _, l := range v.links {
		i := Interface{Index: l.index, Name: l.name, MAC: l.mac, Driver: devices[l.index].driver, Bus: devices[l.index].bus,
			Addresses: addresses[l.index], Up: l.up && l.carrier,
			Leads4: leads[l.index].v4, Leads6: leads[l.index].v6}
		i.Leads = i.Leads4 || i.Leads6
		if i.Kind, i.Excluded = n.classify(l); l.name == tun {
			i.Excluded = ownDevice
		}
		found = append(found, i)
	}
	slices.SortFunc(found, func(a, b Interface) int { return a.Index - b.Index })
	return found
}

// families says something of IPv4 and of IPv6.
type families struct{ v4, v6 bool }

func (f families) with(v6 bool) families { return families{f.v4 || !v6, f.v6 || v6} }

// leading returns by which families interfaces, by index, lead beyond their link.
func (v *view) leading() map[int]families {
	leads := map[int]families{}
	for _, r := range v.routes {
		if r.kind != unix.RTN_UNICAST || r.dead || r.protocol == Protocol || r.table == unix.RT_TABLE_LOCAL {
			continue
		}
		if r.dst.Bits() == 0 || (r.gateway.IsValid() && public(r.dst)) {
			leads[r.oif] = leads[r.oif].with(r.v6())
		}
	}
	distant := map[int]bool{}
	for _, l := range v.links {
		distant[l.index] = l.up && l.carrier && l.pointToPoint && !l.loopback
	}
	for _, a := range v.addresses {
		if (distant[a.index] || a.peer) && len(sending([]address{a})) > 0 {
			leads[a.index] = leads[a.index].with(!a.ip.Is4())
		}
	}
	return leads
}

// private are the networks that are no part of the Internet (RFC 6890).
var private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// public says that the network is, at least in part, one of the Internet.
func public(p netip.Prefix) bool {
	return !slices.ContainsFunc(private, func(o netip.Prefix) bool { return within(p, o) })
}
