package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fogplr/fogplr/internal/tables"
)

// Carrier is a [[carrier]]: which interfaces are carriers, and how they are used.
type Carrier struct {
	// Selectors must all match: at least one, and one of each property at most.
	Selectors []Selector
	Label     string  // for people, or empty
	Cost      float64 // 0 to 1e6, of no unit: it only counts beside other carriers'
	// MonthlyCap is how much each interface may send and receive in a month, in
	// bytes, 0 for any.
	MonthlyCap uint64
	DNS        []netip.Addr // servers to ask through this carrier; none: those of the system
}

// Title is how messages name c: `[[carrier]] with interface = "wwan*"`.
func (c *Carrier) Title() string { return "[[carrier]] with " + describe(c.Selectors) }

// Outright returns the name of the one interface that c names, or nothing. Then no
// deny applies to it.
func (c *Carrier) Outright() string {
	for _, s := range c.Selectors {
		if s.Plain() {
			return s.Pattern
		}
	}
	return ""
}

// Name is Outright if c has no other selector. Then the name is all that makes the
// carrier, which is there even while no interface has that name.
func (c *Carrier) Name() string {
	if len(c.Selectors) == 1 {
		return c.Outright()
	}
	return ""
}

// Discovery says what is a carrier when the configuration has no [[carrier]]; Deny
// also bounds those with patterns.
type Discovery struct {
	Allow, Deny []Selector
}

const carrierExpected = `"interface", "mac", "driver", "bus" or "kind", to say which interface it is`

func carriers(t *tables.Table, tun string) []Carrier {
	var out []Carrier
	taken := claims{}
	for _, c := range t.Tables("carrier", 1, maxCarriers) {
		k := Carrier{Selectors: selectors(c, tun)}
		k.Label = label(c)
		k.Cost = c.Real("cost", 0, maxCost, DefaultCost, ", where 2 is twice as dear as 1")
		k.MonthlyCap = monthlyCap(c)
		k.DNS = dns(c)
		c.Finish()
		if len(k.Selectors) == 0 {
			continue
		}
		if other := taken.claim("interface", describe(k.Selectors), c.Owner); other != "" {
			c.Fail(keyOf(k.Selectors[0].By), fmt.Sprintf("%q, which %s has already", k.Selectors[0].Pattern, other), "an interface of its own for every carrier")
		}
		for i, earlier := range out {
			if first := earlier.Selectors[0]; k.Name() != "" && len(earlier.Selectors) == 1 && !first.Plain() && first.By == ByName && first.Matches(k.Name()) {
				c.Fail("interface", fmt.Sprintf("%q, which carrier number %d takes already with %q", k.Name(), i+1, first.Pattern),
					"it before the [[carrier]] with the pattern: the first one that matches counts")
			}
		}
		out = append(out, k)
	}
	return out
}

// selectors reads which interface a [[carrier]] is; none when that is wrong.
func selectors(c *tables.Table, tun string) []Selector {
	var out []Selector
	before, some := c.Problems(), false
	for _, by := range []Property{ByName, ByMAC, ByDriver, ByBus, ByKind} {
		key := keyOf(by)
		some = c.Has(key) || some
		text, ok := c.Text(key, selectorExpected[by])
		if !ok {
			continue
		}
		s, complaint := newSelector(by, text)
		switch {
		case complaint != "":
			c.Wrong(key, complaint)
		case s.Plain() && s.Pattern == tun:
			c.Wrong(key, fmt.Sprintf("an uplink; %s is the overlay's own interface", tun))
		}
		out = append(out, s)
	}
	if !some {
		c.Fail("interface", "nothing", carrierExpected)
	}
	if c.Problems() > before {
		return nil
	}
	return out
}

func label(c *tables.Table) string {
	expected := fmt.Sprintf("a short text, at most %d characters", maxLabel)
	s, ok := c.Text("label", expected)
	bad := func(r rune) bool { return !unicode.IsPrint(r) }
	if ok && (strings.TrimSpace(s) != s || s == "" || len([]rune(s)) > maxLabel || strings.IndexFunc(s, bad) >= 0) {
		c.Wrong("label", expected)
		return ""
	}
	return s
}

// dns reads the DNS servers of a carrier.
func dns(c *tables.Table) []netip.Addr {
	if !c.Ask("dns") {
		return nil
	}
	expected := fmt.Sprintf("the address of a DNS server, such as \"9.9.9.9\", or a list of up to %d of them", maxDNS)
	var out []netip.Addr
	for _, it := range texts(c, "dns", expected, maxDNS) {
		a, err := netip.ParseAddr(it.Text)
		complaint := ""
		switch {
		case err != nil:
			complaint = expected
		case a.Zone() != "":
			complaint = "an address without %, since the carrier itself says which link it is on"
		case a.Is4In6():
			complaint = fmt.Sprintf("the same address written as IPv4, %v", a.Unmap())
		case a.IsUnspecified(), a.IsLoopback(), a.IsMulticast():
			complaint = "the address of a server that the carrier reaches"
		case slices.Contains(out, a):
			complaint = "every server once"
		}
		if complaint != "" {
			c.FailAt(it.Line, "dns", tables.Show(it.Text), complaint)
			continue
		}
		out = append(out, a)
	}
	return out
}

const capExpected = `an amount of data, such as "5GB" or "500MB", with kB, MB, GB or TB (decimal: 1 GB is 1,000 MB)`

// monthlyCap returns 0 when there is none.
func monthlyCap(c *tables.Table) uint64 {
	s, ok := c.Text("monthly_cap", capExpected)
	if !ok {
		return 0
	}
	n, ok := parseBytes(s)
	switch {
	case !ok:
		c.Wrong("monthly_cap", capExpected)
	case n < minCap || n > maxCap:
		c.Wrong("monthly_cap", fmt.Sprintf(`an amount of data from "%dMB" to "%dTB"`, uint64(minCap/1e6), uint64(maxCap/1e12)))
	default:
		return n
	}
	return 0
}

// zeros is how many zeros the units of data stand for.
var zeros = map[string]int{"kB": 3, "MB": 6, "GB": 9, "TB": 12}

// parseBytes reads an amount of data, such as "1.5GB", in bytes. It must be a whole
// number of bytes below 2^64.
func parseBytes(s string) (n uint64, ok bool) {
	if len(s) < 3 {
		return 0, false
	}
	number, unit := strings.TrimSuffix(s[:len(s)-2], " "), s[len(s)-2:]
	whole, fraction, point := strings.Cut(number, ".")
	places, known := zeros[unit]
	if !known || whole == "" || point && fraction == "" || len(fraction) > places || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", places-len(fraction)), 10, 64)
	return n, err == nil
}

// discovery reads the table [discovery]. Its keys do nothing beside some carriers,
// and what does nothing is refused.
func discovery(t *tables.Table, carriers []Carrier) (d Discovery) {
	s := t.Sub("discovery", "a table [discovery]")
	if s == nil {
		return d
	}
	d.Allow, d.Deny = selectorList(s, "allow"), selectorList(s, "deny")
	s.Finish()
	if len(carriers) > 0 && s.Has("allow") {
		s.Fail("allow", "a list beside a [[carrier]]", "it in a file without [[carrier]]: those say themselves what they take")
	}
	for _, x := range d.Allow {
		if slices.Contains(d.Deny, x) {
			s.Fail("deny", fmt.Sprintf("%q, which is in allow too", x), "it in one of the two")
		}
	}
	return d
}

func selectorList(t *tables.Table, key string) []Selector {
	expected := fmt.Sprintf(`a list of up to %d selectors, such as ["name:wwan*"]`, maxSelectors)
	var out []Selector
	for _, it := range t.List(key, expected, maxSelectors) {
		s, complaint := ParseSelector(it.Text)
		if complaint == "" && slices.Contains(out, s) {
			complaint = "every selector once"
		}
		if complaint != "" {
			t.FailAt(it.Line, key, tables.Show(it.Text), complaint)
			continue
		}
		out = append(out, s)
	}
	return out
}
