package routing

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// aliasPrefix begins the alias of every TUN device that fogplr set up; the
// owner follows.
const aliasPrefix = "fogplr "

// robotOwner begins TUN.Owner of a robot.
const robotOwner = "robot "

func (t TUN) alias() string { return aliasPrefix + t.Owner }

// ours says that the link is a TUN device that a fogplr daemon set up.
func (l link) ours() bool { return l.isTUN() && strings.HasPrefix(l.alias, aliasPrefix) }

// owner is TUN.Owner of one of ours, else empty.
func (l link) owner() string {
	if owner, ok := strings.CutPrefix(l.alias, aliasPrefix); ok && l.isTUN() {
		return owner
	}
	return ""
}

func (l link) isTUN() bool { return l.kind == "tun" && !l.tap }

// dropLeftovers removes what an earlier start with another configuration left:
// this node's TUN device of another name, if nobody has it open, and blackhole
// routes that are neither for t's prefixes nor for those of another fogplr TUN
// device. It returns the view after that.
func (m *Manager) dropLeftovers(v *view, t TUN) (*view, error) {
	for _, l := range v.links {
		if l.name == t.Name || !l.ours() || l.carrier || !(l.alias == t.alias() || v.hasAny(l, t.Addresses)) {
			continue
		}
		if err := m.kernel.delLink(l.index); err != nil && !gone(err) {
			return nil, fmt.Errorf("removing %s, which an earlier start of this node left: %w", l.name, why(err))
		}
		m.log.Info(leftBehind, "change", "ip link del "+l.name)
		var err error
		if v, err = m.kernel.view(nil); err != nil {
			return nil, err
		}
	}
	keep := append(v.overlays(t.Name), prefixes(t.Addresses)...)
	for _, r := range v.routes {
		if !r.ourBlackhole() || slices.Contains(keep, r.dst) {
			continue
		}
		o := op{verb: delRoute, route: r}
		if err := m.kernel.delRoute(r); err != nil && !gone(err) {
			return nil, fmt.Errorf("%s: %w", o, why(err))
		}
		m.log.Info(leftBehind, "change", o.String())
	}
	return v, nil
}

func (r route) ourBlackhole() bool {
	return r.protocol == Protocol && r.kind == unix.RTN_BLACKHOLE
}

// hasAny says that the link has one of the addresses, whatever the prefix length.
func (v *view) hasAny(l link, addresses []netip.Prefix) bool {
	return slices.ContainsFunc(v.addresses, func(a address) bool {
		return a.index == l.index && slices.ContainsFunc(addresses, func(p netip.Prefix) bool { return p.Addr() == a.ip })
	})
}

// overlays returns the networks of all fogplr TUN devices but the named one. A
// daemon keeps exactly its own addresses on its device, which outlives it, so
// these are the prefixes of the other nodes on this machine.
func (v *view) overlays(but string) []netip.Prefix {
	return v.networksOf(func(l link) bool { return l.name != but && l.ours() })
}

func (v *view) networksOf(which func(link) bool) []netip.Prefix {
	var found []netip.Prefix
	for _, a := range v.addresses {
		for _, l := range v.links {
			if l.index == a.index && which(l) {
				found = append(found, a.subnet)
			}
		}
	}
	return found
}

// others are the fogplr daemons that run in the same network namespace: a
// robot beside a gateway. What they have in the kernel is not left behind.
type others struct {
	robot    bool
	overlays []netip.Prefix
}

// others returns those with another TUN device than the named one.
func (v *view) others(tun string) others {
	lives := func(l link) bool { return l.name != tun && l.ours() && l.carrier }
	return others{
		robot:    slices.ContainsFunc(v.links, func(l link) bool { return lives(l) && strings.HasPrefix(l.alias, aliasPrefix+robotOwner) }),
		overlays: v.networksOf(lives),
	}
}

// need says that one of them may have put the rule there, for its carriers or its
// overlay.
func (o others) need(r rule) bool {
	return o.robot && isCarrierTable(r.table) || r.table == unix.RT_TABLE_MAIN && slices.Contains(o.overlays, r.dst)
}

func isCarrierTable(table int) bool { return table >= TableBase && table <= TableBase+maxSlot }

// dropUnused removes the blackhole routes that this Manager added, if its TUN
// device is gone.
func (m *Manager) dropUnused(v *view) error {
	if _, ok := v.link(m.tun); ok {
		return nil
	}
	for _, r := range m.added {
		o := op{verb: delRoute, route: r}
		if err := m.do(v, o); err != nil {
			return fmt.Errorf("%s: %w", o, why(err))
		}
		m.log.Info("network configuration changed", "change", o.String())
	}
	return nil
}

// InUse says whether some program has the TUN device of that name, in the current
// network namespace, open and up, and whose it is: TUN.Owner, or empty for another
// program's. It needs no privilege.
func InUse(name string) (used bool, owner string, err error) {
	k, err := openKernel()
	if err != nil {
		return false, "", err
	}
	defer k.close()
	v, err := k.view(nil)
	if err != nil {
		return false, "", err
	}
	l, ok := v.link(name)
	if !ok || !l.isTUN() || !l.carrier {
		return false, "", nil
	}
	return true, l.owner(), nil
}
