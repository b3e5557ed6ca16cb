package routing

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

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
