package routing

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// planReverse4 sees to it that the kernel's reverse-path check (RFC 3704) accepts
// the answers. Strict, it drops what it would itself answer by another
// interface; loose, only what it has no route to at all.
func (p *familyPlan) planReverse4(v *view, l link, addresses []address, targets, gateways []netip.Addr) {
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
				"therefore drops answers that arrive by %s (rp_filter). If nothing comes back, try `sysctl -w %s=0 %s=0`.",
				a, l.name, rpFilterKey("all"), rpFilterKey(l.name)))
		case rev.none && p.usesTable():
			for _, from := range addresses {
				p.rules = append(p.rules, rule{pref: returnPref, src: host(from.ip), dst: host(a),
					table: p.routes[0].table, suppress: -1, protocol: Protocol})
			}
		}
	}
}

// planReverse6 does the same for the firewall, as the kernel itself checks IPv4
// alone. A strict firewall (firewalld's IPv6_rpfilter) drops an answer unless the
// way to its source, from the address that it came to, leads out by the same
// interface. So where the rules of others say differently, packets from the
// carrier's own addresses to its endpoints go by the carrier's table; and to its
// gateway, whose neighbour advertisements pass the same check, unless that has a
// link-local address, which the firewall looks for on the interface alone. An
// address that another interface has too tells the firewall nothing.
func (p *familyPlan) planReverse6(t *tablePlan, addresses []address, targets []netip.Addr) {
	if t.v.noRules(true) {
		return
	}
	if !p.usesTable() {
		t.finish()
	}
	sources := slices.DeleteFunc(slices.Clone(targets), func(a netip.Addr) bool { return !p.with[a] || a.IsUnspecified() })
	if len(sources) > 0 {
		sources = unique(append(sources, t.gateways...))
	}
	var rules []rule
	for _, a := range sources {
		if a.Is4() || a.IsLinkLocalUnicast() || t.v.reversePath(a).only(t.l.index) {
			continue
		}
		pref, _ := t.v.prefAhead(flow{dst: host(a)})
		for _, from := range addresses {
			if !t.v.shared(from) {
				rules = append(rules, rule{v6: true, pref: pref, src: host(from.ip), dst: host(a),
					table: t.number, suppress: -1, protocol: Protocol})
			}
		}
	}
	if len(rules) == 0 {
		return
	}
	p.routes = t.routes
	p.rules = append(p.rules, rules[:min(len(rules), maxReturnRules)]...)
}

// shared says that another interface has the same address.
func (v *view) shared(a address) bool {
	return slices.ContainsFunc(v.addresses, func(o address) bool { return o.ip == a.ip && o.index != a.index })
}

// reverse is what the kernel's reverse-path check can find for a source address:
// where it would send an unmarked, unbound packet to it.
type reverse struct {
	oifs map[int]bool
	// none: possibly no rule has a route. rejected: possibly a route or rule
	// that refuses.
	none, rejected bool
}

func (r reverse) only(oif int) bool {
	return !r.none && !r.rejected && len(r.oifs) == 1 && r.oifs[oif]
}

// reversePath collects every result that the rules make possible.
func (v *view) reversePath(addr netip.Addr) reverse {
	f := flow{dst: host(addr)}
	res := reverse{oifs: map[int]bool{}}
	if v.noRules(!addr.Is4()) {
		res.none = !v.collect(&res, rule{table: unix.RT_TABLE_MAIN, suppress: -1}, f.dst)
		return res
	}
	for _, r := range v.foreign(!addr.Is4()) {
		m := r.matches(f)
		if m == matchNo {
			continue
		}
		if v.collect(&res, r, f.dst) && m == matchYes {
			return res
		}
	}
	res.none = true
	return res
}

// collect adds what r's table has for dst, and says whether it has anything.
func (v *view) collect(res *reverse, r rule, dst netip.Prefix) bool {
	hit := false
	for _, found := range v.best(r.table, dst, 0) {
		switch {
		case found.rejects():
			res.rejected, hit = true, true
		case found.kind == unix.RTN_UNICAST && found.dst.Bits() > r.suppress:
			res.oifs[found.oif], hit = true, true
		}
	}
	return hit
}
