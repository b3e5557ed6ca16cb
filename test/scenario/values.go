package scenario

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// text returns the string of key; ok is false when it is absent or, which is
// reported, not a string.
func (t *table) text(key, expected string) (s string, ok bool) {
	v, ok := t.get(key)
	if !ok {
		return "", false
	}
	if s, ok = v.(string); !ok {
		t.fail(key, unquoted(v), expected)
	}
	return s, ok
}

// require is text for a key that must be there.
func (t *table) require(key, expected string) (s string, ok bool) {
	if !t.has(key) {
		t.missing(key, expected)
	}
	return t.text(key, expected)
}

// number returns the integer of key, between lo and hi, or otherwise when it is
// absent or wrong.
func (t *table) number(key string, lo, hi, otherwise int64) int64 {
	v, ok := t.get(key)
	if !ok {
		return otherwise
	}
	n, ok := v.(int64)
	if !ok || n < lo || n > hi {
		t.fail(key, show(v), withoutQuotes(v, fmt.Sprintf("a whole number from %d to %d", lo, hi)))
		return otherwise
	}
	return n
}

// real returns the number of key, between lo and hi, or otherwise when it is
// absent or wrong. hint follows the range in the message.
func (t *table) real(key string, lo, hi, otherwise float64, hint string) float64 {
	v, ok := t.get(key)
	if !ok {
		return otherwise
	}
	x, ok := v.(float64)
	if n, whole := v.(int64); whole {
		x, ok = float64(n), true
	}
	if !ok || !(x >= lo && x <= hi) { // not a number is outside, too
		t.fail(key, show(v), withoutQuotes(v, "a number from "+plain(lo)+" to "+plain(hi)+hint))
		return otherwise
	}
	return x
}

// share returns a probability, 0 when it is absent.
func (t *table) share(key string, otherwise float64) float64 {
	return t.real(key, 0, 1, otherwise, ", where 0.02 is 2 %")
}

func (t *table) boolean(key string) bool {
	v, ok := t.get(key)
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		t.fail(key, show(v), withoutQuotes(v, "true or false"))
	}
	return b
}

// duration returns the time of key, between lo and hi, or otherwise when it is
// absent or wrong.
func (t *table) duration(key string, lo, hi, otherwise time.Duration) time.Duration {
	expected := fmt.Sprintf(`a time from %q to %q, such as "1.5s" or "40ms"`, short(lo), short(hi))
	s, ok := t.text(key, expected)
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < lo || d > hi {
		t.fail(key, show(s), expected)
		return otherwise
	}
	return d
}

// oneOf returns the text of key, which must be there and be one of choices; ok is
// false when it is not.
func oneOf[T ~string](t *table, key string, choices ...T) (value T, ok bool) {
	var quoted []string
	for _, c := range choices {
		quoted = append(quoted, strconv.Quote(string(c)))
	}
	expected := "one of " + strings.Join(quoted, ", ")
	s, ok := t.require(key, expected)
	if ok && !slices.Contains(choices, T(s)) {
		t.fail(key, show(s), expected)
		ok = false
	}
	return T(s), ok
}

// choice returns the text of key, one of choices, or otherwise when it is absent
// or wrong.
func choice[T ~string](t *table, key string, otherwise T, choices ...T) T {
	if _, set := t.get(key); set {
		if value, ok := oneOf(t, key, choices...); ok {
			return value
		}
	}
	return otherwise
}

// words returns a list of texts, nil when it is absent or wrong.
func (t *table) words(key, expected string) []string {
	v, ok := t.get(key)
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) > maxArgs {
		t.fail(key, unquoted(v), expected)
		return nil
	}
	out := make([]string, len(list))
	for i, v := range list {
		if out[i], ok = v.(string); !ok {
			line := t.doc.lines[elementPath(childPath(t.path, key), i)]
			t.doc.report(max(line, t.lineOf(key)), t.title(key), unquoted(v), expected)
		}
	}
	return out
}

// program is words for a command, which has a first word.
func (t *table) program(key, expected string) []string {
	w := t.words(key, expected)
	if v, ok := t.m[key].([]any); ok && (len(v) == 0 || v[0] == "") {
		t.fail(key, show(t.m[key]), expected)
	}
	return w
}

// locate returns file as it is found from the working directory: in the document
// it is relative to the document's folder.
func (d *document) locate(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(d.file), file)
}

const (
	nameExpected      = "a name of letters, digits, '-', '_' and '.', at most 63 of them"
	interfaceExpected = "the name of a network interface, at most 15 characters, without '/', ':', '%' or spaces"
)

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
}

// name returns the name of key, or otherwise when it is absent or wrong.
func (t *table) name(key, otherwise string) string {
	s, ok := t.text(key, nameExpected)
	if !ok {
		return otherwise
	}
	if s == "" || len(s) > maxName || strings.IndexFunc(s, func(r rune) bool { return !nameRune(r) }) >= 0 {
		t.fail(key, show(s), nameExpected)
		return otherwise
	}
	return s
}

// checkInterface reports a text that is no name for a carrier's interface. tun is
// the overlay's own.
func (t *table) checkInterface(key, s, tun string) bool {
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("/:%", r)
	}
	switch {
	case s == "", s == ".", s == "..", len(s) > maxInterface, strings.IndexFunc(s, bad) >= 0:
		t.fail(key, show(s), interfaceExpected)
	case s == "lo", s == "all", s == "default":
		t.fail(key, show(s), "a name that the kernel does not use itself")
	case s == tun:
		t.fail(key, show(s), "the name of an uplink; this one is the overlay's own interface")
	default:
		return true
	}
	return false
}

// show describes a TOML value to a person.
func show(v any) string {
	switch v := v.(type) {
	case string:
		if v == "" {
			return "an empty text"
		}
		return fmt.Sprintf("%.100q", v)
	case []any:
		if len(v) == 0 {
			return "an empty list"
		}
		return fmt.Sprintf("a list of %d", len(v))
	case map[string]any:
		return "a table"
	case float64:
		if v == math.Trunc(v) {
			return fmt.Sprintf("%.1f", v)
		}
	}
	return fmt.Sprint(v)
}

// unquoted is show for a value where a text was expected, which needs quotes.
func unquoted(v any) string {
	switch v.(type) {
	case int64, float64, bool:
		return show(v) + " (without quotes)"
	}
	return show(v)
}

// withoutQuotes says so behind expected if v is a text.
func withoutQuotes(v any, expected string) string {
	if _, quoted := v.(string); quoted {
		return expected + " (without quotes)"
	}
	return expected
}

// plain writes a number without exponent.
func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// short writes a time without the units that are zero.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
