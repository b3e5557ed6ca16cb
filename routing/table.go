package routing

import (
	"cmp"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

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
