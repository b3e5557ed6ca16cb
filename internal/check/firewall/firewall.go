// Package firewall answers one question from a packet filter's rules as
// nft(8) and iptables-save(8) print them: is there any way by which a packet
// gets in? It is pure. What it does not understand it takes for a match that
// may hold, so "blocked" is only said where no rule could let the packet pass.
package firewall

import "strings"

// Rules is a packet filter. The zero Rules lets everything pass; ParseNFT and
// ParseIPTables fill it.
type Rules struct {
	Chains []Chain
	// DNAT says that some rule sends packets on to another machine or container.
	DNAT bool

	index map[objectName]int
}

type objectName struct{ family, table, name string }

// Chain is a list of rules.
type Chain struct {
	Family string // "ip", "ip6" or "inet"
	Table  string
	Name   string
	// Hook is where a base chain sits: "input", "forward", "prerouting"; empty:
	// other chains jump here.
	Hook string
	// Drops is the policy of a base chain.
	Drops bool
	Rules []Rule
}

// Verdict is what a rule does with a packet that it selects.
type Verdict int

// Verdicts. Continue is any action that leaves the packet on its way.
const (
	Continue Verdict = iota
	Accept
	Drop // or reject
	Return
	Jump
	Goto
)

// Rule is one rule.
type Rule struct {
	Match   []Match
	Verdict Verdict
	Target  string // chain of Jump and Goto
	// ReversePath says that the rule drops what the kernel would answer by
	// another interface (RFC 3704, 2.2).
	ReversePath bool
}

// Match is one condition of a rule; each kind that is not there holds for every
// packet.
type Match struct {
	Ports      []Range  // UDP destination ports
	Interfaces []string // where it came in; a * at the end stands for any rest
	New        *bool    // whether the first packet of a flow is meant
	Family     string   // "ip" or "ip6"
	Never      bool     // another protocol than UDP
	Unknown    bool     // not understood: may hold
	Not        bool     // the opposite of all that
}

// Range is a range of ports, both ends included.
type Range struct{ From, To uint16 }

// Packet is the first packet of a flow of UDP datagrams.
type Packet struct {
	Port uint16
	V6   bool
	// In is the interface by which it arrives; empty stands for any of those that
	// lead out of this machine.
	In string
	// Inside are interfaces that are not meant by an empty In, besides lo.
	Inside []string
}

// truth is whether a condition holds.
type truth int

const (
	no truth = iota
	maybe
	yes
)

func (t truth) not() truth { return yes - t }

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// Blocks returns the first base chain at the hook that lets nothing like p pass,
// as "TABLE CHAIN", and whether there is one.
func (r *Rules) Blocks(hook string, p Packet) (where string, blocked bool) {
	for i := range r.Chains {
		c := &r.Chains[i]
		if c.Hook != hook || !c.sees(p) {
			continue
		}
		w := walk{rules: r, packet: p, family: c.Family, table: c.Table, steps: maxSteps}
		accepts, through := w.chain(c, 0)
		if !accepts && (!through || c.Drops) {
			return c.Family + " " + c.Table + " " + c.Name, true
		}
	}
	return "", false
}

// StrictReversePath6 returns the first chain, as "FAMILY TABLE CHAIN", that
// drops IPv6 packets which the kernel would answer by another interface.
func (r *Rules) StrictReversePath6() (where string, found bool) {
	for i := range r.Chains {
		c := &r.Chains[i]
		if c.Family == "ip" {
			continue
		}
		for _, rule := range c.Rules {
			if rule.ReversePath && rule.holds(Packet{V6: true}) != no {
				return c.Family + " " + c.Table + " " + c.Name, true
			}
		}
	}
	return "", false
}

func (c *Chain) sees(p Packet) bool {
	return c.Family == "inet" || (c.Family == "ip6") == p.V6
}

// walk is one packet on its way through one base chain.
type walk struct {
	rules         *Rules
	packet        Packet
	family, table string
	steps         int
}

// chain says whether some way through c ends with an accept, and whether some
// way leads to its end. In doubt it accepts.
func (w *walk) chain(c *Chain, depth int) (accepts, through bool) {
	if depth > maxDepth {
		return true, true
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		if w.steps--; w.steps < 0 {
			return true, true
		}
		holds := r.holds(w.packet)
		if holds == no {
			continue
		}
		a, t, ends := w.verdict(r, depth)
		accepts, through = accepts || a, through || t
		if ends && holds == yes {
			return accepts, through
		}
	}
	return accepts, true
}

// verdict says what r does with a packet that it selects: some way accepts it,
// some way ends the chain without a verdict, no way leads to the next rule.
func (w *walk) verdict(r *Rule, depth int) (accepts, through, ends bool) {
	switch r.Verdict {
	case Accept:
		return true, false, true
	case Drop:
		return false, false, true
	case Return:
		return false, true, true
	case Jump, Goto:
		c := w.rules.chain(w.family, w.table, r.Target)
		if c == nil {
			return true, true, false // not shown to us
		}
		a, t := w.chain(c, depth+1)
		if r.Verdict == Goto {
			return a, t, true
		}
		return a, false, !t
	}
	return false, false, false
}

// declare adds a chain without rules, unless it is there.
func (r *Rules) declare(c Chain) {
	name := objectName{c.Family, c.Table, c.Name}
	if _, ok := r.index[name]; ok {
		return
	}
	if r.index == nil {
		r.index = map[objectName]int{}
	}
	r.index[name] = len(r.Chains)
	r.Chains = append(r.Chains, c)
}

// chain returns a chain, nil if there is none of that name.
func (r *Rules) chain(family, table, name string) *Chain {
	if i, ok := r.index[objectName{family, table, name}]; ok {
		return &r.Chains[i]
	}
	return nil
}

func (r *Rule) holds(p Packet) truth {
	t := yes
	for _, m := range r.Match {
		t = min(t, m.holds(p))
	}
	return t
}

func (m Match) holds(p Packet) truth {
	t := yes
	switch {
	case m.Never:
		t = no
	case m.Unknown:
		t = maybe
	}
	if m.Ports != nil {
		t = min(t, m.port(p))
	}
	if m.Interfaces != nil {
		t = min(t, m.arrives(p))
	}
	if m.New != nil {
		t = min(t, truthOf(*m.New))
	}
	if m.Family != "" {
		t = min(t, truthOf((m.Family == "ip6") == p.V6))
	}
	if m.Not {
		return t.not()
	}
	return t
}

func (m Match) port(p Packet) truth {
	for _, r := range m.Ports {
		if r.From <= p.Port && p.Port <= r.To {
			return yes
		}
	}
	return no
}

func (m Match) arrives(p Packet) truth {
	for _, name := range m.Interfaces {
		switch {
		case p.In != "":
			if like(name, p.In) {
				return yes
			}
		case like(name, "lo") && name != "*":
		case !inside(name, p.Inside):
			return maybe
		}
	}
	return no
}

func inside(pattern string, names []string) bool {
	for _, n := range names {
		if pattern == n {
			return true
		}
	}
	return false
}

// like says whether pattern, which may end in a *, means name.
func like(pattern, name string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, start)
	}
	return pattern == name
}
