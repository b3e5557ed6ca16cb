package firewall

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// errTooMany says that there are more rules than are judged.
var errTooMany = errors.New("the firewall has too many rules to judge")

// ParseNFT adds what `nft --json list ruleset` prints to r.
func (r *Rules) ParseNFT(text []byte) error {
	var doc struct {
		NFTables []nftObject `json:"nftables"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("nft prints what is not understood here: %w", err)
	}
	n := nft{rules: r, sets: map[objectName][]any{}}
	for _, o := range doc.NFTables { // rules name sets and chains that may come later
		n.declare(o)
	}
	total := 0
	for _, o := range doc.NFTables {
		if o.Rule == nil {
			continue
		}
		c := r.chain(o.Rule.Family, o.Rule.Table, o.Rule.Chain)
		if c == nil {
			continue
		}
		c.Rules = append(c.Rules, n.rule(o.Rule)...)
		if total++; total > maxRules || len(c.Rules) > maxRules {
			return errTooMany
		}
	}
	return nil
}

// nftObject is one entry of the list (libnftables-json(5)).
type nftObject struct {
	Chain *struct {
		Family, Table, Name, Hook, Policy string
	}
	Set, Map *struct {
		Family, Table, Name string
		Elem                []any
	}
	Rule *nftRule
}

type nftRule struct {
	Family, Table, Chain string
	Expr                 []map[string]any
}

type nft struct {
	rules *Rules
	sets  map[objectName][]any
}

func (n nft) declare(o nftObject) {
	switch {
	case o.Chain != nil && slices.Contains([]string{"ip", "ip6", "inet"}, o.Chain.Family):
		n.rules.declare(Chain{Family: o.Chain.Family, Table: o.Chain.Table, Name: o.Chain.Name,
			Hook: o.Chain.Hook, Drops: o.Chain.Policy == "drop"})
	case o.Set != nil:
		n.sets[objectName{o.Set.Family, o.Set.Table, o.Set.Name}] = o.Set.Elem
	case o.Map != nil:
		n.sets[objectName{o.Map.Family, o.Map.Table, o.Map.Name}] = o.Map.Elem
	}
}

// rule returns the rule, or several for one that looks its verdict up.
func (n nft) rule(in *nftRule) []Rule {
	var r Rule
	var lookups []Rule
	for _, e := range in.Expr {
		for kind, v := range e {
			body, _ := v.(map[string]any)
			switch kind {
			case "match":
				r.ReversePath = r.ReversePath || reversePath(body)
				r.Match = append(r.Match, n.match(in, body))
			case "accept":
				r.Verdict = Accept
			case "drop", "reject":
				r.Verdict = Drop
			case "return":
				r.Verdict = Return
			case "jump", "goto":
				r.Verdict, r.Target = jump(kind, body)
			case "vmap":
				lookups = n.vmap(in, body)
			case "dnat", "redirect":
				r.Verdict = Accept
				n.rules.DNAT = n.rules.DNAT || kind == "dnat"
			case "counter", "log", "mangle", "notrack", "masquerade", "snat":
			default: // limits, sets that are updated, iptables' own matches
				r.Match = append(r.Match, Match{Unknown: true})
			}
		}
	}
	if lookups == nil {
		r.ReversePath = r.ReversePath && r.Verdict == Drop
		return []Rule{r}
	}
	for i := range lookups {
		lookups[i].Match = append(lookups[i].Match, r.Match...)
	}
	return lookups
}

func jump(kind string, body map[string]any) (Verdict, string) {
	target, _ := body["target"].(string)
	if kind == "goto" {
		return Goto, target
	}
	return Jump, target
}

// reversePath recognises `fib saddr . iif oif missing`, also with a mark.
func reversePath(m map[string]any) bool {
	fib, _ := dig(m, "left", "fib").(map[string]any)
	flags, _ := fib["flags"].([]any)
	missing := m["right"] == false || m["right"] == "0" || m["right"] == 0.0
	return fib["result"] == "oif" && slices.Contains(flags, any("saddr")) && slices.Contains(flags, any("iif")) && missing && m["op"] == "=="
}

func dig(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// match reads one match statement.
func (n nft) match(in *nftRule, m map[string]any) Match {
	right, ok := n.values(in, m["right"])
	op, _ := m["op"].(string)
	if !ok || !slices.Contains([]string{"==", "!=", "in"}, op) {
		return Match{Unknown: true}
	}
	match := selector(m["left"], right)
	match.Not = op == "!="
	return match
}

// values returns what the right side may be as a flat list.
func (n nft) values(in *nftRule, v any) (list []any, ok bool) {
	switch v := v.(type) {
	case string:
		if len(v) > 1 && v[0] == '@' {
			list, ok = n.sets[objectName{in.Family, in.Table, v[1:]}]
			return list, ok
		}
	case []any:
		return v, true
	case map[string]any:
		if set, is := v["set"]; is {
			return n.values(in, set)
		}
	}
	return []any{v}, true
}

// selector says what a packet's field (left) must be: one of the values.
func selector(left any, values []any) Match {
	switch {
	case dig(left, "meta", "key") == "iifname", dig(left, "meta", "key") == "iif":
		if names, ok := texts(values); ok {
			return Match{Interfaces: names}
		}
	case dig(left, "meta", "key") == "nfproto":
		return family(values)
	case dig(left, "meta", "key") == "l4proto", dig(left, "payload", "field") == "nexthdr", dig(left, "payload", "field") == "protocol":
		return protocol(values)
	case dig(left, "ct", "key") == "state":
		fresh := slices.Contains(values, any("new"))
		return Match{New: &fresh}
	case dig(left, "payload", "field") == "dport" && dig(left, "payload", "protocol") == "tcp":
		return Match{Never: true}
	case dig(left, "payload", "field") == "dport":
		if ports, ok := ranges(values); ok {
			return Match{Ports: ports}
		}
	case dig(left, "payload", "protocol") == "ip":
		return Match{Unknown: true, Family: "ip"}
	case dig(left, "payload", "protocol") == "ip6":
		return Match{Unknown: true, Family: "ip6"}
	case slices.Contains([]any{"icmp", "icmpv6", "tcp", "sctp", "igmp"}, dig(left, "payload", "protocol")):
		return Match{Never: true}
	}
	return Match{Unknown: true}
}

func family(values []any) Match {
	v4, v6 := slices.Contains(values, any("ipv4")), slices.Contains(values, any("ipv6"))
	switch {
	case v4 && !v6:
		return Match{Family: "ip"}
	case v6 && !v4:
		return Match{Family: "ip6"}
	}
	return Match{Unknown: true}
}

func protocol(values []any) Match {
	if slices.Contains(values, any("udp")) || slices.Contains(values, any(17.0)) {
		return Match{}
	}
	names, ok := texts(values)
	if !ok || slices.ContainsFunc(names, func(s string) bool { return s == "" || s[0] <= '9' }) {
		return Match{Unknown: true}
	}
	return Match{Never: true}
}

func texts(values []any) (list []string, ok bool) {
	list = []string{} // not nil: an empty set selects nothing
	for _, v := range values {
		s, ok := v.(string)
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

func ranges(values []any) (list []Range, ok bool) {
	list = []Range{}
	for _, v := range values {
		from, to := v, v
		if ends, is := dig(v, "range").([]any); is && len(ends) == 2 {
			from, to = ends[0], ends[1]
		}
		a, ok := from.(float64)
		b, ok2 := to.(float64)
		if !ok || !ok2 || a < 0 || b > 65535 {
			return nil, false
		}
		list = append(list, Range{uint16(a), uint16(b)})
	}
	return list, true
}

// vmap returns a rule for each entry of a verdict map.
func (n nft) vmap(in *nftRule, body map[string]any) []Rule {
	doubt := []Rule{{Match: []Match{{Unknown: true}}, Verdict: Accept}}
	entries, ok := n.values(in, body["data"])
	if !ok {
		return doubt
	}
	rules := []Rule{}
	for _, e := range entries {
		pair, _ := e.([]any)
		if len(pair) != 2 {
			return doubt
		}
		r := Rule{Match: []Match{selector(body["key"], []any{pair[0]})}}
		verdict, _ := pair[1].(map[string]any)
		for kind, v := range verdict {
			to, _ := v.(map[string]any)
			switch kind {
			case "accept":
				r.Verdict = Accept
			case "drop":
				r.Verdict = Drop
			case "return":
				r.Verdict = Return
			case "jump", "goto":
				r.Verdict, r.Target = jump(kind, to)
			}
		}
		rules = append(rules, r)
	}
	return rules
}
