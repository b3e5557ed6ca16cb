package firewall

import (
	"slices"
	"strconv"
	"strings"
)

// ParseIPTables adds to r what iptables-save(8), or with v6 ip6tables-save,
// prints. Lines that it does not understand are passed over.
func (r *Rules) ParseIPTables(text string, v6 bool) error {
	p := iptables{rules: r, family: "ip"}
	if v6 {
		p.family = "ip6"
	}
	lines := strings.Split(text, "\n")
	for _, line := range lines { // rules name chains of the same table only
		p.declare(line)
	}
	p.table = ""
	total := 0
	for _, line := range lines {
		if table, ok := strings.CutPrefix(line, "*"); ok {
			p.table = tableName(table)
		}
		if !strings.HasPrefix(line, "-A ") {
			continue
		}
		if total++; total > maxRules {
			return errTooMany
		}
		p.rule(words(line))
	}
	return nil
}

type iptables struct {
	rules         *Rules
	family, table string
}

// tableName keeps iptables' tables apart from those of nftables, whose listing
// shows them too, less clearly.
func tableName(s string) string { return "iptables-" + strings.TrimSpace(s) }

func (p *iptables) declare(line string) {
	if table, ok := strings.CutPrefix(line, "*"); ok {
		p.table = tableName(table)
		return
	}
	chain, ok := strings.CutPrefix(line, ":")
	f := strings.Fields(chain)
	if !ok || len(f) < 2 {
		return
	}
	c := Chain{Family: p.family, Table: p.table, Name: f[0], Drops: f[1] == "DROP"}
	if f[1] != "-" {
		c.Hook = strings.ToLower(f[0])
	}
	p.rules.declare(c)
}

// words splits a line of a rule, in which comments stand in double quotes.
func words(line string) []string {
	var out []string
	var word strings.Builder
	open, quoted := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quoted && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		case c == '"':
			quoted, open = !quoted, true
		case (c == ' ' || c == '\t' || c == '\r') && !quoted:
			if open {
				out = append(out, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		out = append(out, word.String())
	}
	return out
}

// modules are the matches whose options are understood here, or whose presence
// alone selects nothing.
var modules = []string{"udp", "tcp", "conntrack", "state", "comment", "multiport", "rpfilter"}

// rule adds the rule of the line w: -A CHAIN, conditions, each with a ! before it
// when it is meant the other way round, and the target.
func (p *iptables) rule(w []string) {
	if len(w) < 2 {
		return
	}
	c := p.rules.chain(p.family, p.table, w[1])
	if c == nil {
		return
	}
	var r Rule
	rpfilter, inverted, loose := false, false, false
	for i := 2; i < len(w); {
		not := w[i] == "!"
		if not {
			i++
		}
		if i >= len(w) {
			break
		}
		option := w[i]
		i++
		from := i
		for i < len(w) && w[i] != "!" && (len(w[i]) == 0 || w[i][0] != '-' || option == "--comment" && i == from) {
			i++
		}
		args := w[from:i]
		switch option {
		case "-j", "-g":
			p.target(&r, option, args)
			i = len(w) // the rest is the target's own
		case "--invert":
			inverted = true
		case "--loose":
			loose = true
		case "--validmark", "--comment", "-c":
		default:
			rpfilter = rpfilter || option == "-m" && slices.Contains(args, "rpfilter")
			m := condition(option, args)
			m.Not = not
			r.Match = append(r.Match, m)
		}
	}
	if rpfilter {
		r.ReversePath = inverted && !loose && r.Verdict == Drop
		r.Match = append(r.Match, Match{Unknown: true})
	}
	c.Rules = append(c.Rules, r)
}

func (p *iptables) target(r *Rule, option string, args []string) {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	switch name {
	case "ACCEPT":
		r.Verdict = Accept
	case "DROP", "REJECT":
		r.Verdict = Drop
	case "RETURN":
		r.Verdict = Return
	case "DNAT", "REDIRECT":
		r.Verdict = Accept
		p.rules.DNAT = p.rules.DNAT || name == "DNAT"
	default: // a chain, or a target such as LOG, which leaves the packet on its way
		if p.rules.chain(p.family, p.table, name) == nil {
			return
		}
		r.Verdict, r.Target = Jump, name
		if option == "-g" {
			r.Verdict = Goto
		}
	}
}

func condition(option string, args []string) Match {
	unknown := Match{Unknown: true}
	if len(args) != 1 {
		return unknown
	}
	arg := args[0]
	switch option {
	case "-m":
		if slices.Contains(modules, arg) {
			return Match{}
		}
	case "-i":
		if name, ok := strings.CutSuffix(arg, "+"); ok {
			arg = name + "*"
		}
		return Match{Interfaces: []string{arg}}
	case "-p":
		switch arg {
		case "udp", "17", "all", "0":
			return Match{}
		case "tcp", "icmp", "ipv6-icmp", "icmpv6", "sctp", "igmp", "esp", "ah", "gre", "udplite":
			return Match{Never: true}
		}
	case "--dport", "--dports":
		if ports, ok := portList(arg); ok {
			return Match{Ports: ports}
		}
	case "--ctstate", "--state":
		fresh := slices.Contains(strings.Split(arg, ","), "NEW")
		return Match{New: &fresh}
	}
	return unknown
}

// portList reads 500,4500:4600.
func portList(s string) (list []Range, ok bool) {
	for part := range strings.SplitSeq(s, ",") {
		a, b, ranged := strings.Cut(part, ":")
		if !ranged {
			b = a
		}
		from, err := strconv.ParseUint(a, 10, 16)
		to, err2 := strconv.ParseUint(b, 10, 16)
		if err != nil || err2 != nil {
			return nil, false
		}
		list = append(list, Range{uint16(from), uint16(to)})
	}
	return list, true
}
