package routing

import (
	"cmp"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Uplink is an interface that leads to the Internet now.
type Uplink struct {
	Interface string
	// Source is the address that the kernel sends from, the zero Addr when the
	// interface has none that it may use.
	Source netip.Addr
}

// Uplinks returns the interfaces of the main table's default routes, IPv4 before
// IPv6 and smaller metrics first, each interface once. Tunnels are left out. It
// changes nothing and needs no privilege.
func Uplinks() ([]Uplink, error) {
	k, err := openKernel()
	if err != nil {
		return nil, err
	}
	defer k.close()
	v, err := k.view(nil)
	if err != nil {
		return nil, err
	}
	return uplinks(v), nil
}

func uplinks(v *view) []Uplink {
	var defaults []route
	for _, r := range v.routes {
		if r.table == unix.RT_TABLE_MAIN && r.dst.Bits() == 0 && r.kind == unix.RTN_UNICAST && !r.dead {
			defaults = append(defaults, r)
		}
	}
	slices.SortStableFunc(defaults, func(a, b route) int {
		return cmp.Or(cmp.Compare(a.dst.Addr().BitLen(), b.dst.Addr().BitLen()), cmp.Compare(a.metric, b.metric))
	})
	var found []Uplink
	for _, r := range defaults {
		name := v.linkName(r.oif)
		l, ok := v.link(name)
		if !ok || l.loopback || l.kind == "tun" || l.kind == "wireguard" ||
			slices.ContainsFunc(found, func(u Uplink) bool { return u.Interface == name }) {
			continue
		}
		u := Uplink{Interface: name, Source: r.src}
		for _, a := range v.addressesOf(r.oif, r.v6()) {
			if !u.Source.IsValid() && !a.pending && !a.ip.IsLinkLocalUnicast() {
				u.Source = a.ip
			}
		}
		found = append(found, u)
	}
	return found
}
