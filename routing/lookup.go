package routing

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// flow is traffic of this machine whose way through the rules is asked for. Its
// source address is not known.
type flow struct {
	dst  netip.Prefix
	mark uint32
	oif  string // interface the socket is bound to; empty: none
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// match is whether a rule selects a flow.
type match int

const (
	matchNo match = iota
	matchMaybe
	matchYes
)

func (r rule) matches(f flow) match {
	m := r.selects(f)
	if r.invert {
		m = matchYes - m
	}
	return m
}

func (r rule) selects(f flow) match {
	if r.mask != 0 && f.mark&r.mask != r.mark {
		return matchNo
	}
	if r.iif != "" && r.iif != "lo" {
		return matchNo
	}
	if r.oif != "" && r.oif != f.oif {
		return matchNo
	}
	if r.ipProto != 0 && r.ipProto != unix.IPPROTO_UDP {
		return matchNo
	}
	m := matchYes
	if r.dst.IsValid() {
		switch {
		case !r.dst.Overlaps(f.dst):
			return matchNo
		case r.dst.Bits() > f.dst.Bits():
			m = matchMaybe
		}
	}
	if r.opaque || r.src.IsValid() {
		m = matchMaybe
	}
	return m
}

// foreign returns the family's rules of everybody else, without the kernel's own
// for the local table.
func (v *view) foreign(v6 bool) []rule {
	var found []rule
	for _, r := range v.rules {
		if r.v6 == v6 && r.protocol != Protocol && r.table != unix.RT_TABLE_LOCAL {
			found = append(found, r)
		}
	}
	return found
}

// prefAhead returns the priority at which a rule for f comes before everybody
// else's that could select f, and false when there is none.
func (v *view) prefAhead(f flow) (pref int, ok bool) {
	pref = preferredPref
	for _, r := range v.foreign(!f.dst.Addr().Is4()) {
		if r.matches(f) != matchNo {
			pref = min(pref, r.pref-1)
			break
		}
	}
	return max(pref, lowestPref), pref >= lowestPref
}

// best returns the routes of one table that the kernel would choose for dst:
// longest prefix, then lowest metric; several when a route has several next
// hops. With oif other than 0 only routes through that interface count, and
// those that reject.
func (v *view) best(table int, dst netip.Prefix, oif int) []route {
	var found []route
	for _, r := range v.routes {
		switch {
		case r.table != table || r.protocol == Protocol || r.tos != 0 || r.dead:
			continue
		case r.v6() == dst.Addr().Is4() || !r.dst.Contains(dst.Addr()) || r.dst.Bits() > dst.Bits():
			continue
		case r.kind == unix.RTN_UNICAST && oif != 0 && r.oif != oif:
			continue
		case r.kind != unix.RTN_UNICAST && r.kind != unix.RTN_THROW && !r.rejects():
			continue
		}
		if len(found) > 0 {
			if c := compareRoutes(r, found[0]); c > 0 {
				continue
			} else if c < 0 {
				found = found[:0]
			}
		}
		found = append(found, r)
	}
	return found
}

// compareRoutes is negative when the kernel tries a before b.
func compareRoutes(a, b route) int {
	if a.dst.Bits() != b.dst.Bits() {
		return b.dst.Bits() - a.dst.Bits()
	}
	switch {
	case a.metric < b.metric:
		return -1
	case a.metric > b.metric:
		return 1
	}
	return 0
}

// through returns the route to dst that leads through oif in the given table, as
// best does for a bound socket.
func (v *view) through(table int, dst netip.Prefix, oif int) (route, bool) {
	found := v.best(table, dst, oif)
	if len(found) == 0 || found[0].kind != unix.RTN_UNICAST {
		return route{}, false
	}
	return found[0], true
}

// bindingSuffices says that a socket bound to l reaches f.dst by the main table,
// and that no rule of anybody else can divert it. It looks at the routes
// themselves, because asked for a route through an interface that has none, an
// IPv4 kernel pretends that the destination is on the link.
func (v *view) bindingSuffices(f flow, l link) bool {
	for _, r := range v.foreign(!f.dst.Addr().Is4()) {
		m := r.matches(f)
		if m == matchNo {
			continue
		}
		if m == matchMaybe || r.table != unix.RT_TABLE_MAIN {
			return false
		}
		found, ok := v.through(unix.RT_TABLE_MAIN, f.dst, l.index)
		if ok && found.dst.Bits() > r.suppress {
			return true
		}
		if r.suppress < 0 {
			return false
		}
	}
	// A kernel without rules has the main table alone.
	if v.noRules(!f.dst.Addr().Is4()) {
		_, ok := v.through(unix.RT_TABLE_MAIN, f.dst, l.index)
		return ok
	}
	return false
}
