package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fogplr/fogplr/replicate"
	"github.com/fogplr/fogplr/routing"
)

// Findings about carriers that are not used.
const (
	idUnusable = "carrier.unusable"
	idResting  = "carrier.resting" // since its monthly cap is used up
	idLeftOut  = "carrier.left_out"
)

// judgeCarriers looks at a robot's carriers.
func judgeCarriers(f *Facts) []Finding {
	if f.Network == nil || !f.robot() {
		return nil
	}
	var out []Finding
	left := f.unused()
	usable := slices.ContainsFunc(f.Network.Carriers, func(c routing.CarrierFacts) bool { return c.Problem == "" && left[c.Interface].problem == "" })
	for i := range f.Network.Carriers {
		c := &f.Network.Carriers[i]
		switch {
		case c.Problem != "":
			out = append(out, unusable(idUnusable, c.Problem, c.Repair, usable, len(f.Network.Carriers)))
		case c.Warning != "":
			out = append(out, Finding{ID: "carrier.routes", Level: Warning, Text: c.Warning})
		}
		if u, ok := left[c.Interface]; ok {
			out = append(out, unusable(u.id, u.problem, "", usable, len(f.Network.Carriers)))
		}
		out = append(out, f.wayBack(c)...)
		out = append(out, f.size(c)...)
		out = append(out, f.tunnelled(c)...)
	}
	out = append(out, f.chosen()...)
	if usable {
		out = append(out, f.unreached()...)
	}
	return append(out, f.wayBack6()...)
}

// chosen is about how the carriers were chosen.
func (f *Facts) chosen() []Finding {
	var out []Finding
	c := &f.Config
	for _, m := range c.Missing {
		out = append(out, Finding{ID: "carrier.missing", Level: Warning, Text: m})
	}
	for _, n := range c.Notes {
		out = append(out, Finding{ID: "carrier.choice", Level: Note, Text: n})
	}
	if len(c.Carriers) == 0 && c.Node != nil && len(c.Problems) == 0 {
		out = append(out, Finding{ID: "carrier.none", Level: Fails,
			Text: "No interface of this machine is taken for a carrier, so nothing can leave. Connect an uplink, or name one with [[carrier]] in " + c.File + "."})
		out = append(out, c.leftOut()...)
	}
	return out
}

// candidates are the interfaces that are no carriers although they may be.
func (c *Config) candidates() []Other {
	return slices.DeleteFunc(slices.Clone(c.Others), func(o Other) bool { return !o.Candidate })
}

// leftOut says of each interface why it is no carrier, of those first that might be.
func (c *Config) leftOut() []Finding {
	others := append(c.candidates(), slices.DeleteFunc(slices.Clone(c.Others), func(o Other) bool { return o.Candidate })...)
	var out []Finding
	for _, o := range others[:min(len(others), maxOthers)] {
		out = append(out, Finding{ID: idLeftOut, Level: Note, Text: fmt.Sprintf("%s is no carrier (%s).", o.Interface, o.Reason)})
	}
	switch n := len(others) - maxOthers; {
	case n == 1:
		out = append(out, Finding{ID: idLeftOut, Level: Note, Text: "1 more interface is no carrier."})
	case n > 1:
		out = append(out, Finding{ID: idLeftOut, Level: Note, Text: fmt.Sprintf("%d more interfaces are no carriers.", n)})
	}
	return out
}

// unusable is about one of all carriers, when others can be used or not.
func unusable(id, problem, repair string, others bool, all int) Finding {
	if !strings.HasSuffix(problem, ".") {
		problem += "."
	}
	found := Finding{ID: id, Level: Fails, Repair: repair, Text: problem + " There is no other carrier, so nothing can leave."}
	switch {
	case others:
		found.Level, found.Text = Warning, problem+" The other carriers work without it."
	case all > 1:
		found.Text = problem + " No other carrier can be used either, so nothing can leave."
	}
	return found
}

// wayBack is about rp_filter (RFC 3704, 2.2).
func (f *Facts) wayBack(c *routing.CarrierFacts) []Finding {
	// What a carrier that is down will need is not known; with others it is likely.
	likely := c.Problem != "" && len(f.Network.Carriers) > 1
	if c.Index == 0 || !c.Strict || !c.NeedsLoose && !likely {
		return nil
	}
	found := Finding{ID: "carrier.rp_filter", Level: Note,
		Text: fmt.Sprintf("The kernel checks the way back strictly on %s (rp_filter=1) and drops answers that arrive there, because it would itself send to their source by another interface.", c.Interface)}
	if f.running() {
		found.Level, found.Repair = Warning, "sysctl -w "+c.RPFilter+"=2"
		found.Text += " fogplr runs and has not changed it, so it is not permitted to."
	} else {
		found.Text += " fogplr sets it to loose (2) when it starts and puts it back when it ends; there is nothing to repair."
	}
	return []Finding{found}
}

// headers are what fogplr, WireGuard, UDP and IP add to an inner packet, in
// bytes.
func headers(v6 bool) int {
	if v6 {
		return replicate.TagLen + wireGuard + udp + ipv6
	}
	return replicate.TagLen + wireGuard + udp + ipv4
}

// size is about inner packets that do not fit into one packet of the carrier.
func (f *Facts) size(c *routing.CarrierFacts) []Finding {
	l := f.link(c.Interface)
	if l == nil || l.MTU == 0 || f.Config.Node == nil {
		return nil
	}
	v6, any := false, false
	for a, reached := range c.Reached {
		any, v6 = any || reached, v6 || reached && !a.Unmap().Is4()
	}
	inner := f.Config.Node.MTU
	need := inner + headers(v6)
	if !any || l.MTU >= need {
		return nil
	}
	ip := fmt.Sprintf("%d IPv4", ipv4)
	if v6 {
		ip = fmt.Sprintf("%d IPv6", ipv6)
	}
	found := Finding{ID: "carrier.mtu", Level: Note, Repair: fmt.Sprintf("ip link set dev %s mtu %d", c.Interface, need),
		Text: fmt.Sprintf("%s takes packets of %d bytes at most, but a full one of the overlay (%d) has %d bytes there: %d + %d tag + %d WireGuard + %d UDP + %s.",
			c.Interface, l.MTU, inner, need, inner, replicate.TagLen, wireGuard, udp, ip)}
	frame := (l.MTU - headers(v6) + replicate.TagLen) &^ (wireGuardBlock - 1)
	if parts := replicate.PartsFor(inner, frame); parts > 0 {
		found.Text += fmt.Sprintf(" Large packets go over this carrier in %d parts, which costs some data.", parts)
	} else {
		found.Level = Warning
		found.Text += fmt.Sprintf(" Not even in %d parts do large packets fit, so this carrier is for small ones alone.", replicate.MaxParts)
	}
	least := leastMTU
	if slices.ContainsFunc(f.Config.Node.Addresses, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		least = leastMTU6
	}
	if fits := l.MTU - headers(v6); fits >= least {
		found.Text += fmt.Sprintf(" If its network takes no larger ones, mtu = %d in the configuration of every node avoids that.", fits)
	}
	return []Finding{found}
}

// tunnelled is about a carrier that is itself a tunnel.
func (f *Facts) tunnelled(c *routing.CarrierFacts) []Finding {
	l := f.link(c.Interface)
	if l == nil || !isVPN(l) {
		return nil
	}
	return []Finding{{ID: "carrier.tunnel", Level: Warning,
		Text: fmt.Sprintf("The carrier %s is a tunnel (%s) that itself needs an uplink of this machine: it fails together with that one, and copies sent through it add little. Name the uplink instead.", l.Name, l.Kind)}}
}

func isVPN(l *routing.LinkFacts) bool { return !l.Ours && (l.TUN || l.Kind == "wireguard") }

// unreached is about gateways to which no carrier has a route.
func (f *Facts) unreached() []Finding {
	var out []Finding
	for _, g := range f.Config.Gateways {
		ends := f.endpoints(g)
		if len(ends) == 0 || slices.ContainsFunc(ends, f.reached) {
			continue
		}
		out = append(out, Finding{ID: "gateway.route", Level: Warning,
			Text: fmt.Sprintf("No carrier has a route to gateway %s (%s): none of its addresses is of a family that a carrier has. Give the gateway an endpoint of the other family as well.", g.Name, list(ends))})
	}
	return out
}

// endpoints are the addresses and ports of a gateway as far as they are known.
func (f *Facts) endpoints(g Gateway) []netip.AddrPort {
	var out []netip.AddrPort
	for _, e := range g.Endpoints {
		if e.Addr.IsValid() {
			out = append(out, netip.AddrPortFrom(e.Addr, e.Port))
			continue
		}
		for _, n := range f.Names {
			if n.Host != e.Host {
				continue
			}
			for _, a := range n.Addrs {
				out = append(out, netip.AddrPortFrom(a, e.Port))
			}
		}
	}
	return out
}

func (f *Facts) reached(e netip.AddrPort) bool {
	return slices.ContainsFunc(f.Network.Carriers, func(c routing.CarrierFacts) bool { return c.Reached[e.Addr()] })
}

func list[T any](items []T) string {
	words := make([]string, len(items))
	for i, it := range items {
		words[i] = fmt.Sprint(it)
	}
	return strings.Join(words, ", ")
}

// wayBack6 is about packet filters that do for IPv6 what rp_filter does for IPv4.
func (f *Facts) wayBack6() []Finding {
	if f.Firewall == nil {
		return nil
	}
	where, strict := f.Firewall.StrictReversePath6()
	if !strict {
		return nil
	}
	var names []string
	holders := map[netip.Addr]int{}
	twice := false
	for _, c := range f.Network.Carriers {
		l := f.link(c.Interface)
		if l == nil {
			continue
		}
		global := false
		for _, p := range l.Addresses {
			if a := p.Addr(); a.Is6() && !a.IsLinkLocalUnicast() {
				global = true
				holders[a]++
				twice = twice || holders[a] > 1
			}
		}
		if global {
			names = append(names, c.Interface)
		}
	}
	if len(names) < 2 {
		return nil
	}
	found := Finding{ID: "carrier.ipv6_rpfilter", Level: Note,
		Text: fmt.Sprintf("The packet filter (%s) drops IPv6 packets that the kernel would answer by another interface, which concerns the carriers %s.",
			where, list(names))}
	switch {
	case f.Network.NoRules6:
		found.Text += " fogplr could answer that with rules, but this kernel has none for IPv6, so most likely only one of them gets answers by IPv6."
	case twice:
		found.Text += " fogplr answers that with rules that tell the carriers by their addresses, but two of them have the same address, so most likely only one of them gets answers by IPv6."
	default:
		found.Text += " While it runs, fogplr answers that with rules for the carriers' addresses; there is nothing to repair."
		return []Finding{found}
	}
	found.Level = Warning
	family, table, chain := split(where)
	switch {
	case strings.HasPrefix(table, "firewalld"):
		found.Repair = "sed -i 's/^IPv6_rpfilter=.*/IPv6_rpfilter=no/' /etc/firewalld/firewalld.conf && firewall-cmd --complete-reload"
		found.Text += " firewalld 2.2 and later also know IPv6_rpfilter=loose."
	case strings.HasPrefix(table, iptablesTable):
		found.Text += fmt.Sprintf(" Give that rule --loose, or put before it: ip6tables -t %s -I %s -i CARRIER -j ACCEPT.", strings.TrimPrefix(table, iptablesTable), chain)
	default:
		found.Text += fmt.Sprintf(" Leave iif out of that rule's fib expression; `nft --handle list chain %s %s %s` shows it.", family, table, chain)
	}
	return []Finding{found}
}

// judgeVPNs looks at other tunnels that take the machine's traffic.
func judgeVPNs(f *Facts) []Finding {
	if f.Network == nil || !f.robot() {
		return nil
	}
	var out []Finding
	for i := range f.Network.Links {
		l := &f.Network.Links[i]
		if !isVPN(l) || !l.Default || slices.Contains(f.Config.Carriers, l.Name) || f.Config.Node != nil && l.Name == f.Config.Node.Interface {
			continue
		}
		out = append(out, Finding{ID: "vpn.default_route", Level: Note,
			Text: fmt.Sprintf("Another VPN, %s (%s), has a default route. fogplr's datagrams do not go through it: they are bound to the carriers, and fogplr adds rules for them. "+
				"But a kill switch that comes with it, a packet filter for everything that leaves by another interface, would stop them.", l.Name, l.Kind)})
	}
	return out
}
