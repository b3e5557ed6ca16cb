package routing

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// conflicts returns a sentence for each interface that takes the overlay's
// traffic, or whose network the overlay takes: by an address whose network is
// the overlay's or a part of it, by an address that lies in the overlay, or by a
// route to the overlay or a part of it. A network of which the overlay is a part
// without the interface's own address is nobody's harm: the overlay's route is
// the longer one.
func (v *view) conflicts(tun string, overlay []netip.Prefix) []string {
	var found []string
	for _, l := range v.links {
		if l.name == tun || l.loopback || tun == "" {
			continue
		}
		if s := v.conflict(l, tun, overlay); s != "" {
			found = append(found, s)
		}
	}
	return found
}

func (v *view) conflict(l link, tun string, overlay []netip.Prefix) string {
	for _, o := range overlay {
		for _, a := range v.addresses {
			switch {
			case a.index != l.index || !(within(a.subnet, o) || o.Contains(a.ip)):
			case l.isTUN() && !l.carrier:
				return fmt.Sprintf("%s, which no program has open, has the address %s, and the overlay is %s: what the kernel sends there is "+
					"lost. If nobody needs %s any more, remove it with `ip link del %s`.", l.name, a.prefix(), o, l.name, l.name)
			default:
				return fmt.Sprintf("%s has the address %s, which overlaps the overlay %s of %s. Packets for the overlay may leave by %s, "+
					"unprotected, and packets for the network of %s may go into the overlay. Give the overlay another prefix, on robots and "+
					"gateways alike, or %s another network.", l.name, a.prefix(), o, tun, l.name, l.name, l.name)
			}
		}
		for _, r := range v.routes {
			if r.oif == l.index && r.table == unix.RT_TABLE_MAIN && r.kind == unix.RTN_UNICAST && !r.dead && within(r.dst, o) {
				return fmt.Sprintf("A route sends %s, of the overlay %s, to %s instead of %s. Packets for it leave there, unprotected. "+
					"If that is not meant, remove it with `%s route del %s`.", r.dst, o, l.name, tun, ip(r.v6()), r.line(l.name))
			}
		}
	}
	return ""
}

// within says that p is o or a part of it.
func within(p, o netip.Prefix) bool { return p.Bits() >= o.Bits() && o.Contains(p.Addr()) }

// warn keeps the sentences for Warnings, and logs those that are new.
func (m *Manager) warn(sentences []string) {
	old := m.Warnings()
	m.warnings.Store(&sentences)
	for _, s := range sentences {
		if !slices.Contains(old, s) {
			m.log.Warn(s)
		}
	}
}

// Warnings returns plain sentences about the overlay as the last Apply found it:
// what is wrong, what it means, what to do. It never waits for the kernel.
func (m *Manager) Warnings() []string {
	if all := m.warnings.Load(); all != nil {
		return slices.Clone(*all)
	}
	return nil
}
