package routing

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// plan is what should exist, and what it means for each carrier.
type plan struct {
	rules  []rule
	routes []route // in the order of adding: gateways after what makes them reachable
	loose  []string
	// carriers are in the order of the wants.
	carriers []carrierPlan
	warnings []string // about the overlay
}

type carrierPlan struct {
	link         link
	want         Want
	problem      string // set: nothing was planned
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
	return p
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
		c.problem = fmt.Sprintf("%s is down. Bring it up: ip link set %s up", w.Interface, w.Interface)
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
	if !v6 {
		p.planReverse(v, l, addresses, targets, t.gateways)
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

// tablePlan collects the routes of a carrier's own table.
type tablePlan struct {
	v        *view
	l        link
	v6       bool
	number   int
	routes   []route
	have     map[netip.Prefix]bool
	sources  map[netip.Addr]bool
	gateways []netip.Addr
	peer     bool
}

// connect adds what is on the link.
func (t *tablePlan) connect(addresses []address) {
	t.have = map[netip.Prefix]bool{}
	t.sources = map[netip.Addr]bool{}
	for _, a := range addresses {
		t.sources[a.ip] = true
		t.peer = t.peer || a.peer
		if a.peer || a.subnet.Bits() < a.ip.BitLen() {
			t.add(route{dst: a.subnet})
		}
	}
}

// add puts a route into the table, normalised to what the kernel reads back.
func (t *tablePlan) add(r route) {
	if t.have[r.dst] {
		return
	}
	t.have[r.dst] = true
	n := route{table: t.number, dst: r.dst, kind: unix.RTN_UNICAST, gateway: r.gateway, oif: t.l.index,
		mtu: r.mtu, protocol: Protocol}
	if t.sources[r.src] {
		n.src = r.src
	}
	switch {
	case t.v6:
		n.metric = carrierMetric6
	case !r.gateway.IsValid():
		n.scope = unix.RT_SCOPE_LINK
	}
	t.routes = append(t.routes, n)
	if r.gateway.IsValid() {
		t.gateways = append(t.gateways, r.gateway)
	}
}

// reach finds a route to dst through the carrier and adds it: from the main
// table, or else from any other (some programs give each modem its own), or else
// from the nature of the link, when the other end needs no address to be named.
func (t *tablePlan) reach(dst netip.Prefix) bool {
	r, ok := t.v.through(unix.RT_TABLE_MAIN, dst, t.l.index)
	if !ok {
		r, ok = t.elsewhere(dst)
	}
	if !ok && (t.l.pointToPoint || t.peer) {
		r, ok = route{dst: netip.PrefixFrom(unspecified(t.v6), 0)}, true
	}
	if !ok {
		// On the link, though the kernel has no route for it (noprefixroute).
		return slices.ContainsFunc(t.routes, func(c route) bool { return c.dst.Contains(dst.Addr()) })
	}
	t.add(r)
	return true
}

// elsewhere looks through all tables but the main, the local and our own.
func (t *tablePlan) elsewhere(dst netip.Prefix) (route, bool) {
	var tables []int
	for _, r := range t.v.routes {
		if r.oif == t.l.index && r.protocol != Protocol && r.table != unix.RT_TABLE_MAIN && r.table != unix.RT_TABLE_LOCAL {
			tables = append(tables, r.table)
		}
	}
	slices.Sort(tables)
	var found route
	ok := false
	for _, table := range slices.Compact(tables) {
		r, hit := t.v.through(table, dst, t.l.index)
		if hit && (!ok || compareRoutes(r, found) < 0) {
			found, ok = r, true
		}
	}
	return found, ok
}

// finish adds the default route, so that endpoints learnt later need no change,
// and puts the routes into an order in which the kernel accepts them.
func (t *tablePlan) finish() {
	t.reach(host(unspecified(t.v6)))
	for i, r := range t.routes {
		if r.gateway.IsValid() && !(r.gateway.Is6() && r.gateway.IsLinkLocalUnicast()) {
			t.routes[i].onlink = !t.onLink(r.gateway)
		}
	}
	slices.SortStableFunc(t.routes, func(a, b route) int {
		return cmp.Or(boolCompare(a.gateway.IsValid(), b.gateway.IsValid()),
			cmp.Compare(b.dst.Bits(), a.dst.Bits()), a.dst.Addr().Compare(b.dst.Addr()))
	})
}

// onLink says that a route of the table without gateway covers a.
func (t *tablePlan) onLink(a netip.Addr) bool {
	return slices.ContainsFunc(t.routes, func(r route) bool { return !r.gateway.IsValid() && r.dst.Contains(a) })
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func unspecified(v6 bool) netip.Addr {
	if v6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// planReverse sees to it that the kernel's reverse-path check (RFC 3704) accepts
// the answers. Strict, it drops what it would itself answer by another
// interface; loose, only what it has no route to at all.
func (p *familyPlan) planReverse(v *view, l link, addresses []address, targets, gateways []netip.Addr) {
	effective := max(v.rpFilter["all"], v.rpFilter[l.name])
	if effective == 0 {
		return
	}
	for _, g := range gateways {
		// The gateway's ARP requests and ICMP errors pass the same check.
		if effective == 1 && g.Is4() && !v.reversePath(g).only(l.index) {
			p.loose = true
		}
	}
	for _, a := range targets {
		if !p.with[a] || a.IsUnspecified() {
			continue
		}
		rev := v.reversePath(a)
		if effective == 1 && !rev.only(l.index) {
			p.loose = true
		}
		switch {
		case rev.rejected:
			p.warnings = append(p.warnings, fmt.Sprintf("A route or rule of another program refuses traffic to %s, and the kernel "+
				"therefore drops answers that arrive by %s (rp_filter). If nothing comes back: sysctl -w %s=0 %s=0",
				a, l.name, rpFilterKey("all"), rpFilterKey(l.name)))
		case rev.none && p.usesTable():
			for _, from := range addresses {
				p.rules = append(p.rules, rule{pref: returnPref, src: host(from.ip), dst: host(a),
					table: p.routes[0].table, suppress: -1, protocol: Protocol})
			}
		}
	}
}
