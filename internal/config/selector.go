package config

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fogplr/fogplr/internal/tables"
)

// Property is what of an interface a Selector looks at.
type Property string

// Properties of interfaces.
const (
	ByName   Property = "name" // `interface` in a [[carrier]]
	ByMAC    Property = "mac"
	ByDriver Property = "driver"
	ByBus    Property = "bus"  // path of the device below /sys/devices
	ByKind   Property = "kind" // one of Kinds
	ByCIDR   Property = "cidr" // an address of the interface; only in [discovery]
)

// Kinds are the kinds of interfaces, as routing tells them.
var Kinds = []string{
	"ethernet", "wifi", "wwan", "usb", "vlan", "ppp", "bridge", "bond", "veth", "macvlan", "tun", "tap", "wireguard", "tunnel", "loopback", "other",
}

// Selector picks interfaces by one property.
type Selector struct {
	By Property
	// Pattern is what the property must be like: `*` and `?` stand for any
	// characters and for one, `[a-c]` for one of several. It is a plain text for
	// ByKind, and Prefix as a text for ByCIDR.
	Pattern string
	Prefix  netip.Prefix // ByCIDR alone
}

// String returns the selector as it stands in [discovery].
func (s Selector) String() string { return string(s.By) + ":" + s.Pattern }

// Plain reports whether s is the name of one interface.
func (s Selector) Plain() bool { return s.By == ByName && !strings.ContainsAny(s.Pattern, wild) }

// wild are the characters with a meaning in patterns.
const wild = `*?[\`

// Matches reports whether text, the property that s looks at, is like its
// pattern. An empty text, a property that the interface does not have, is not. It
// is not for ByCIDR.
func (s Selector) Matches(text string) bool {
	ok, err := path.Match(unslash(s.Pattern), unslash(text))
	return err == nil && ok && text != ""
}

// unslash lets `*` reach across the parts of a bus path.
func unslash(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

const patternHint = "; * stands for any characters, ? for one, [a-c] for one of several"

// What a selector by each property expects.
var selectorExpected = map[Property]string{
	ByName:   "the name of a network interface, such as \"wwan0\", or a pattern, such as \"wwan*\"" + patternHint,
	ByMAC:    "a hardware address, such as \"0c:5b:8f:27:9a:64\", or a pattern, such as \"0c:5b:8f:*\"" + patternHint,
	ByDriver: "the name of a kernel driver, such as \"cdc_ether\" (`ls -l /sys/class/net/NAME/device/driver` tells it), or a pattern" + patternHint,
	ByBus: "the path of a device below /sys/devices, such as \"pci0000:00/0000:00:14.0/usb1/1-3\" (`ls -l /sys/class/net/NAME/device` tells it), " +
		"or a pattern, such as \"*/usb1/1-3\"" + patternHint,
	ByKind: tables.Choices(Kinds),
	ByCIDR: "a prefix of addresses, such as \"192.168.100.0/24\"",
}

// ParseSelector reads a selector as it stands in [discovery], such as
// "name:wwan*". The complaint is what was expected instead, or empty.
func ParseSelector(text string) (s Selector, complaint string) {
	by, pattern, found := strings.Cut(text, ":")
	properties := []Property{ByName, ByMAC, ByDriver, ByBus, ByKind, ByCIDR}
	if !found || !slices.Contains(properties, Property(by)) {
		return s, `a selector: "name:", "mac:", "driver:", "bus:", "kind:" or "cidr:" and what it must be, such as "name:wwan*"`
	}
	s, complaint = newSelector(Property(by), pattern)
	if complaint != "" {
		complaint = fmt.Sprintf("behind %q %s", by+":", complaint)
	}
	return s, complaint
}

// newSelector returns the selector for a pattern, or what was expected instead.
func newSelector(by Property, pattern string) (s Selector, complaint string) {
	s = Selector{By: by, Pattern: pattern}
	ok := false
	switch by {
	case ByName:
		if s.Plain() {
			ok = tables.ValidInterface(pattern)
			break
		}
		ok = validPattern(pattern, "/:%")
	case ByMAC:
		s.Pattern = strings.ToLower(pattern)
		if mac, err := net.ParseMAC(pattern); err == nil {
			s.Pattern, ok = mac.String(), true
			break
		}
		if !strings.Contains(pattern, "[") {
			s.Pattern = strings.ReplaceAll(s.Pattern, "-", ":")
		}
		ok = strings.ContainsAny(pattern, wild) && validPattern(pattern, "") && strings.Trim(s.Pattern, "0123456789abcdef:-^*?[]") == ""
	case ByDriver:
		ok = validPattern(pattern, "/")
	case ByBus:
		s.Pattern = strings.Trim(strings.TrimPrefix(pattern, "/sys/devices"), "/")
		ok = validPattern(s.Pattern, "")
	case ByKind:
		ok = slices.Contains(Kinds, pattern)
	case ByCIDR:
		p, err := netip.ParsePrefix(pattern)
		if err == nil && !p.Addr().Is4In6() {
			s.Prefix = p.Masked()
			s.Pattern, ok = s.Prefix.String(), true
		}
	}
	if !ok {
		return Selector{}, selectorExpected[by]
	}
	return s, ""
}

// validPattern reports whether pattern is one, without spaces and the characters
// of never.
func validPattern(pattern, never string) bool {
	bad := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(never, r) }
	_, err := path.Match(unslash(pattern), "")
	return err == nil && pattern != "" && len(pattern) <= maxPattern && strings.IndexFunc(pattern, bad) < 0
}

// keyOf is the key of a [[carrier]] for a property.
func keyOf(by Property) string {
	if by == ByName {
		return "interface"
	}
	return string(by)
}

// describe returns selectors as a [[carrier]] has them: `interface = "wwan*"`.
func describe(selectors []Selector) string {
	parts := make([]string, len(selectors))
	for i, s := range selectors {
		parts[i] = keyOf(s.By) + " = " + strconv.Quote(s.Pattern)
	}
	return strings.Join(parts, ", ")
}
