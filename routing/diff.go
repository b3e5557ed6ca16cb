package routing

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

type verb int

const (
	addRoute verb = iota
	replaceRoute
	addRule
	loosen
	delRule
	delRoute
)

// op is one change to the kernel.
type op struct {
	verb  verb
	rule  rule
	route route
	name  string // interface of the route, or the one to loosen
}

// carrier returns the table and family that the change is for.
func (o op) carrier() (table int, v6 bool) {
	switch o.verb {
	case addRule, delRule:
		return o.rule.table, o.rule.v6
	case addRoute, replaceRoute, delRoute:
		return o.route.table, o.route.v6()
	}
	return 0, false
}

// ownership says which rules and routes with our Protocol this Manager answers
// for; there may be another one in the same namespace (robot and gateway).
type ownership struct {
	slots   [maxSlot + 1]bool
	overlay []netip.Prefix // masked
}

func (o *ownership) ownsTable(table int) bool {
	return isCarrierTable(table) && o.slots[table-TableBase]
}

func (o *ownership) ownsRule(r rule) bool {
	return r.protocol == Protocol && (o.ownsTable(r.table) ||
		(r.table == unix.RT_TABLE_MAIN && slices.Contains(o.overlay, r.dst)))
}

func (o *ownership) ownsRoute(r route) bool {
	return r.protocol == Protocol && o.ownsTable(r.table)
}

// changes returns what leads from the view to the plan, in an order that never
// leaves a rule without the routes it points at: new routes, new rules, then old
// rules, old routes.
func changes(v *view, p plan, own *ownership) []op {
	var ops, gone []op
	haveRoutes := map[route]bool{}
	haveKeys := map[routeKey]bool{}
	for _, r := range v.routes {
		if own.ownsRoute(r) {
			haveRoutes[r] = true
			haveKeys[r.key()] = true
		}
	}
	wantKeys := map[routeKey]bool{}
	wantRoutes := map[route]bool{}
	for _, r := range p.routes {
		wantKeys[r.key()] = true
		wantRoutes[r] = true
		if haveRoutes[r] {
			continue
		}
		o := op{verb: addRoute, route: r, name: v.linkName(r.oif)}
		if haveKeys[r.key()] {
			o.verb = replaceRoute
		}
		ops = append(ops, o)
	}
	haveRules := map[rule]bool{}
	for _, r := range v.rules {
		if own.ownsRule(r) {
			// The kernel may hold the same rule twice when others copied it.
			if haveRules[r] || !slices.Contains(p.rules, r) {
				gone = append(gone, op{verb: delRule, rule: r})
			}
			haveRules[r] = true
		}
	}
	for _, r := range p.rules {
		if !haveRules[r] {
			ops = append(ops, op{verb: addRule, rule: r})
		}
	}
	for _, name := range p.loose {
		if v.rpFilter[name] != rpLoose {
			ops = append(ops, op{verb: loosen, name: name})
		}
	}
	for _, r := range slices.Backward(v.routes) {
		if own.ownsRoute(r) && !wantRoutes[r] && !wantKeys[r.key()] {
			gone = append(gone, op{verb: delRoute, route: r, name: v.linkName(r.oif)})
		}
	}
	return append(ops, gone...)
}

// String is the change in the syntax of ip(8) and sysctl(8).
func (o op) String() string {
	switch o.verb {
	case loosen:
		return fmt.Sprintf("sysctl -w %s=%d", rpFilterKey(o.name), rpLoose)
	case addRule, delRule:
		verb := "add"
		if o.verb == delRule {
			verb = "del"
		}
		return fmt.Sprintf("%s rule %s %s", ip(o.rule.v6), verb, o.rule)
	}
	verb := map[verb]string{addRoute: "add", replaceRoute: "replace", delRoute: "del"}[o.verb]
	return fmt.Sprintf("%s route %s %s", ip(o.route.v6()), verb, o.route.line(o.name))
}

func ip(v6 bool) string {
	if v6 {
		return "ip -6"
	}
	return "ip"
}

// String is the rule as ip-rule(8) takes it.
func (r rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pref %d", r.pref)
	if r.invert {
		b.WriteString(" not")
	}
	if r.src.IsValid() {
		fmt.Fprintf(&b, " from %s", r.src)
	}
	if r.dst.IsValid() {
		fmt.Fprintf(&b, " to %s", r.dst)
	}
	switch {
	case r.mask == 0xffffffff:
		fmt.Fprintf(&b, " fwmark %#x", r.mark)
	case r.mask != 0:
		fmt.Fprintf(&b, " fwmark %#x/%#x", r.mark, r.mask)
	}
	if r.iif != "" {
		fmt.Fprintf(&b, " iif %s", r.iif)
	}
	if r.oif != "" {
		fmt.Fprintf(&b, " oif %s", r.oif)
	}
	fmt.Fprintf(&b, " lookup %s", tableName(r.table))
	if r.suppress >= 0 {
		fmt.Fprintf(&b, " suppress_prefixlength %d", r.suppress)
	}
	return b.String() + protoSuffix(r.protocol)
}

// line is the route as ip-route(8) takes it; dev is the interface's name.
func (r route) line(dev string) string {
	var b strings.Builder
	switch r.kind {
	case unix.RTN_BLACKHOLE:
		b.WriteString("blackhole ")
	case unix.RTN_UNREACHABLE:
		b.WriteString("unreachable ")
	}
	if r.dst.Bits() == 0 {
		b.WriteString("default")
	} else {
		b.WriteString(r.dst.String())
	}
	if r.gateway.IsValid() {
		b.WriteString(" via ")
		if r.gateway.Is4() != r.dst.Addr().Is4() {
			b.WriteString("inet6 ")
		}
		b.WriteString(r.gateway.String())
	}
	if r.oif != 0 && dev != "" {
		fmt.Fprintf(&b, " dev %s", dev)
	}
	if r.onlink {
		b.WriteString(" onlink")
	}
	if !r.v6() && r.scope == unix.RT_SCOPE_LINK {
		b.WriteString(" scope link")
	}
	if r.src.IsValid() {
		fmt.Fprintf(&b, " src %s", r.src)
	}
	if r.metric != 0 {
		fmt.Fprintf(&b, " metric %d", r.metric)
	}
	if r.mtu != 0 {
		fmt.Fprintf(&b, " mtu %d", r.mtu)
	}
	if r.table != unix.RT_TABLE_MAIN {
		fmt.Fprintf(&b, " table %s", tableName(r.table))
	}
	return b.String() + protoSuffix(r.protocol)
}

func protoSuffix(p uint8) string {
	if p == 0 {
		return ""
	}
	return fmt.Sprintf(" proto %d", p)
}

func tableName(t int) string {
	switch t {
	case unix.RT_TABLE_MAIN:
		return "main"
	case unix.RT_TABLE_LOCAL:
		return "local"
	case unix.RT_TABLE_DEFAULT:
		return "default"
	}
	return fmt.Sprint(t)
}
