package routing

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// plan is what should exist, and what it means for each carrier.
type plan struct {
	rules  []rule
	routes []route // in the order of adding: gateways after what makes them reachable
	loose  []string
	// carriers are in the order of the wants.
	carriers []carrierPlan
	warnings []string // about the node, not one carrier
}

type carrierPlan struct {
	link         link
	want         Want
	problem      string // set: nothing was planned
	repair       string // of the problem: a command
	ipv4, ipv6   familyPlan
	loose        bool
	warnings     []string
	anyEndpoints bool
}

// familyPlan is one carrier's plan in one address family.
type familyPlan struct {
	// with is what is reached when rules and routes are in place, bound what is
	// reached by binding the socket alone. The unspecified address stands for
	// any destination.
	with, bound map[netip.Addr]bool
	rules       []rule
	routes      []route
	hasAddress  bool
	loose       bool
	warnings    []string
}

func (p familyPlan) usesTable() bool { return len(p.rules) > 0 }

// usable says whether any of the destinations is reached.
func usable(reached map[netip.Addr]bool) bool {
	for _, ok := range reached {
		if ok {
			return true
		}
	}
	return false
}

// desired computes which rules, routes and rp_filter settings should exist so
// that every want's sockets (bound to the interface, marked with Mark) reach its
// endpoints, and so that traffic to the overlay's own prefixes finds the main
// table. It ignores what fogplr itself added before: applied, its result is a
// fixpoint.
func desired(v *view, tun string, overlay []netip.Prefix, wants []Want) plan {
	var p plan
	for _, o := range overlay {
		p.planOverlay(v, o.Masked())
	}
	for _, w := range wants {
		c := planCarrier(v, tun, w)
		for _, f := range []familyPlan{c.ipv4, c.ipv6} {
			p.rules = append(p.rules, f.rules...)
			p.routes = append(p.routes, f.routes...)
			c.warnings = append(c.warnings, f.warnings...)
			c.loose = c.loose || f.loose
		}
		if c.loose {
			p.loose = append(p.loose, w.Interface)
		}
		p.carriers = append(p.carriers, c)
	}
	p.rules = unique(p.rules)
	p.routes = unique(p.routes)
	if s := v.bareWarning(wants); s != "" {
		p.warnings = append(p.warnings, s)
	}
	return p
}

// bareWarning is about the families that wants need and the kernel has no policy
// routing for. A kernel without IPv6 has none to miss.
func (v *view) bareWarning(wants []Want) string {
	var families, options []string
	for _, v6 := range []bool{false, true} {
		needed := slices.ContainsFunc(wants, func(w Want) bool { return len(targetsOf(w, v6)) > 0 })
		spoken := !v6 || slices.ContainsFunc(v.addresses, func(a address) bool { return !a.ip.Is4() })
		if needed && spoken && v.noRules(v6) {
			families = append(families, familyName(v6))
			options = append(options, map[bool]string{false: "CONFIG_IP_MULTIPLE_TABLES", true: "CONFIG_IPV6_MULTIPLE_TABLES"}[v6])
		}
	}
	if len(families) == 0 {
		return ""
	}
	return fmt.Sprintf("This kernel has no policy routing for %s (%s). fogplr only binds its sockets to the carriers, so a carrier that has "+
		"no route to a gateway in the main table stays unused. Give each carrier a default route there, with metrics that differ.",
		strings.Join(families, " and "), strings.Join(options, ", "))
}

func unique[T comparable](in []T) []T {
	seen := map[T]bool{}
	return slices.DeleteFunc(in, func(x T) bool {
		if seen[x] {
			return true
		}
		seen[x] = true
		return false
	})
}

// planOverlay adds a rule when somebody else's rule could send the overlay's
// traffic elsewhere (a VPN with a default route of its own). A rule that names a
// part of the overlay is taken as meant.
func (p *plan) planOverlay(v *view, o netip.Prefix) {
	v6 := !o.Addr().Is4()
	f := flow{dst: o}
	for _, r := range v.foreign(v6) {
		if r.dst.IsValid() && r.dst.Bits() > 0 {
			continue
		}
		switch m := r.matches(f); {
		case m == matchNo:
			continue
		case m == matchYes && r.table == unix.RT_TABLE_MAIN && r.suppress < o.Bits():
			return
		}
		pref := r.pref - 1
		if pref < lowestPref {
			p.warnings = append(p.warnings, fmt.Sprintf("A rule of another program at priority %d comes before every other "+
				"and may send the overlay's traffic (%s) elsewhere. Give that rule a higher number.", r.pref, o))
			return
		}
		p.rules = append(p.rules, rule{v6: v6, pref: min(preferredPref, pref), dst: o,
			table: unix.RT_TABLE_MAIN, suppress: -1, protocol: Protocol})
		return
	}
}

func planCarrier(v *view, tun string, w Want) carrierPlan {
	c := carrierPlan{want: w, anyEndpoints: len(w.Endpoints) > 0}
	l, ok := v.link(w.Interface)
	c.link = l
	switch {
	case !ok:
		c.problem = fmt.Sprintf("There is no interface %s now. It is used as soon as it appears.", w.Interface)
	case w.Interface == tun:
		c.problem = fmt.Sprintf("%s is fogplr's own overlay device and cannot be a carrier. Name an uplink instead.", w.Interface)
	case l.loopback:
		c.problem = fmt.Sprintf("%s is the loopback device and leads nowhere. Name an uplink instead.", w.Interface)
	case !l.up:
		c.repair = fmt.Sprintf("ip link set %s up", w.Interface)
		c.problem = fmt.Sprintf("%s is down. Bring it up with `%s`.", w.Interface, c.repair)
	case !l.running:
		c.problem = fmt.Sprintf("%s is up but has no link: the cable is unplugged, or the modem or Wi-Fi is not connected.", w.Interface)
	}
	if c.problem != "" {
		return c
	}
	c.ipv4 = planFamily(v, l, w, false)
	c.ipv6 = planFamily(v, l, w, true)
	return c
}

// planFamily plans one carrier in one address family.
func planFamily(v *view, l link, w Want, v6 bool) familyPlan {
	p := familyPlan{with: map[netip.Addr]bool{}, bound: map[netip.Addr]bool{}}
	addresses := sending(v.addressesOf(l.index, v6))
	p.hasAddress = len(addresses) > 0
	targets := targetsOf(w, v6)
	if !p.hasAddress || len(targets) == 0 {
		return p
	}
	t := tablePlan{v: v, l: l, v6: v6, number: TableBase + w.Slot}
	t.connect(addresses)
	ahead := preferredPref
	for _, a := range targets {
		f := flow{dst: host(a), mark: Mark, oif: l.name}
		p.bound[a] = v.bindingSuffices(f, l) || (v.noRules(v6) && !v6 && l.pointToPoint)
		p.with[a] = t.reach(f.dst) || p.bound[a]
		if a.IsUnspecified() {
			continue // nobody to reach: report only
		}
		pref, ok := v.prefAhead(f)
		ahead = min(ahead, pref)
		if !ok {
			p.warnings = append(p.warnings, fmt.Sprintf("A rule of another program comes before every other and may divert "+
				"what leaves by %s. Give that rule a priority above %d.", l.name, lowestPref))
		}
	}
	if v.noRules(v6) {
		p.with = p.bound
	} else if w.needsTable(p) {
		t.finish()
		p.routes = t.routes
		p.rules = []rule{{v6: v6, pref: ahead, mark: Mark, mask: 0xffffffff, oif: l.name,
			table: t.number, suppress: -1, protocol: Protocol}}
	}
	if v6 {
		p.planReverse6(&t, addresses, targets)
	} else {
		p.planReverse4(v, l, addresses, targets, t.gateways)
	}
	return p
}

// needsTable says that some endpoint is reached by a table of the carrier's own
// but not by binding alone.
func (w Want) needsTable(p familyPlan) bool {
	for a, ok := range p.with {
		if ok && !p.bound[a] && !a.IsUnspecified() {
			return true
		}
	}
	return false
}

// sending leaves the addresses that the kernel uses as a source towards the
// internet.
func sending(all []address) []address {
	return slices.DeleteFunc(all, func(a address) bool {
		return a.pending || a.ip.IsLoopback() || (!a.ip.Is4() && a.ip.IsLinkLocalUnicast())
	})
}

// targetsOf returns the want's endpoints of one family; for a want without any
// endpoint the unspecified address, which only a default route covers.
func targetsOf(w Want, v6 bool) []netip.Addr {
	if len(w.Endpoints) == 0 {
		if v6 {
			return []netip.Addr{netip.IPv6Unspecified()}
		}
		return []netip.Addr{netip.IPv4Unspecified()}
	}
	var found []netip.Addr
	for _, e := range w.Endpoints {
		if a := e.Unmap().WithZone(""); a.Is4() != v6 {
			found = append(found, a)
		}
	}
	return found
}
