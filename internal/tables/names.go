package tables

import (
	"strings"
	"unicode"
)

const (
	// MaxName is the longest name in bytes, as for a DNS label.
	MaxName = 63
	// MaxInterface is the longest interface name in bytes (IFNAMSIZ - 1).
	MaxInterface = 15
)

// What Name and Interface expect.
const (
	NameExpected      = "a name of letters, digits, '-', '_' and '.', at most 63 of them"
	InterfaceExpected = "the name of a network interface, at most 15 characters, without '/', ':', '%' or spaces"
)

// NameRune reports whether r may be in a name.
func NameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
}

// Name returns the name of key; ok is false when it is absent or no name.
func (t *Table) Name(key string) (s string, ok bool) {
	bad := func(r rune) bool { return !NameRune(r) }
	s, ok = t.Text(key, NameExpected)
	if ok && (s == "" || len(s) > MaxName || strings.IndexFunc(s, bad) >= 0) {
		t.Wrong(key, NameExpected)
		ok = false
	}
	return s, ok
}

// Interface returns the name of a network interface of key; ok is false when it is
// absent or the kernel would not take it.
func (t *Table) Interface(key string) (s string, ok bool) {
	s, ok = t.Text(key, InterfaceExpected)
	if ok && !ValidInterface(s) {
		t.Wrong(key, InterfaceExpected)
		ok = false
	}
	return s, ok
}

// ValidInterface reports whether the kernel takes a text as an interface's name.
func ValidInterface(s string) bool {
	bad := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("/:%", r) }
	return s != "" && s != "." && s != ".." && len(s) <= MaxInterface && strings.IndexFunc(s, bad) < 0
}
