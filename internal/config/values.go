package config

import (
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/fogplr/fogplr/internal/tables"
	"github.com/fogplr/fogplr/replicate"
)

const (
	prefixExpected = `an overlay address with its prefix length, such as "10.77.0.2/16", or a list of up to 8 of them`
	plainExpected  = `an overlay address without prefix length, such as "10.77.0.11", or a list of up to 8 of them`
	levelExpected  = `"debug", "info", "warn" or "error"`
)

// texts returns the texts of key, which is one text or a list of 1 to limit.
func texts(t *tables.Table, key, expected string, limit int) []tables.Item {
	t.Need(key, expected)
	switch v := t.Value(key).(type) {
	case string:
		t.Ask(key)
		return []tables.Item{{Text: v, Line: t.LineOf(key)}}
	case []any:
		if len(v) == 0 {
			t.Wrong(key, expected)
		}
	}
	return t.List(key, expected, limit)
}

func logLevel(t *tables.Table) slog.Level {
	s, ok := t.Text("log_level", levelExpected)
	if !ok {
		return slog.LevelInfo
	}
	switch s {
	case "debug":
		return slog.LevelDebug
	case "info":
		return slog.LevelInfo
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	t.Wrong("log_level", levelExpected)
	return slog.LevelInfo
}

// prefixes reads this node's own overlay addresses; none when one of them is
// wrong, so that nothing is measured by half of them.
func prefixes(t *tables.Table) []netip.Prefix {
	var out []netip.Prefix
	before := t.Problems()
	for _, it := range texts(t, "address", prefixExpected, maxAddresses) {
		p, complaint := parsePrefix(it.Text)
		for _, q := range out {
			if complaint == "" && p.Overlaps(q) {
				complaint = fmt.Sprintf("a prefix that does not overlap with %v", q)
			}
		}
		if complaint != "" {
			t.FailAt(it.Line, "address", tables.Show(it.Text), complaint)
			continue
		}
		out = append(out, p)
	}
	if t.Problems() > before {
		return nil
	}
	return out
}

// parsePrefix returns the overlay address s or what was expected instead.
func parsePrefix(s string) (p netip.Prefix, complaint string) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, prefixExpected
	}
	longest := maxBits
	if p.Addr().Is6() {
		longest = maxBits6
	}
	if p.Bits() < minBits || p.Bits() > longest {
		return p, fmt.Sprintf("a prefix length from /%d to /%d", minBits, longest)
	}
	return p, checkHost(p)
}

// checkHost returns what was expected instead of p as the address of a node,
// or nothing.
func checkHost(p netip.Prefix) string {
	a := p.Addr()
	switch {
	case a.Is4In6():
		return fmt.Sprintf("the same address written as IPv4, %v", a.Unmap())
	case a.IsUnspecified(), a.IsLoopback(), a.IsMulticast(), a.IsLinkLocalUnicast():
		return "an ordinary unicast address, not a loopback, link-local, multicast or unspecified one"
	}
	if _, err := replicate.NodeOf(p); err != nil {
		return fmt.Sprintf("an address whose host part (at most its last 24 bits) is not zero, since that part names the node; %v is the network itself", a)
	}
	if a.Is4() && isBroadcast(p) {
		return fmt.Sprintf("the address of a node; %v is the broadcast address of %v", a, p.Masked())
	}
	return ""
}

func isBroadcast(p netip.Prefix) bool {
	b := p.Addr().As4()
	var host, ones uint32
	for _, c := range b {
		host = host<<8 | uint32(c)
	}
	ones = uint32(1)<<(32-p.Bits()) - 1
	return host&ones == ones
}
