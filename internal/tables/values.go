package tables

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Text returns the string of key; ok is false when it is absent or no string.
func (t *Table) Text(key, expected string) (s string, ok bool) {
	if !t.Ask(key) {
		return "", false
	}
	s, ok = t.values[key].(string)
	if !ok {
		t.Fail(key, unquoted(t.values[key]), expected)
	}
	return s, ok
}

// Require is Text for a key that must be there.
func (t *Table) Require(key, expected string) (s string, ok bool) {
	t.Need(key, expected)
	return t.Text(key, expected)
}

// Item is a text of a list, with its line.
type Item struct {
	Text string
	Line int
}

// List returns the texts of key, a list of at most limit of them. It is empty when
// key is absent or no such list, and lacks what is no text.
func (t *Table) List(key, expected string, limit int) []Item {
	if !t.Ask(key) {
		return nil
	}
	list, ok := t.values[key].([]any)
	if !ok || len(list) > limit {
		t.Fail(key, unquoted(t.values[key]), expected)
		return nil
	}
	var out []Item
	for i, v := range list {
		_, line := t.element(key, i)
		if s, ok := v.(string); ok {
			out = append(out, Item{s, line})
		} else {
			t.FailAt(line, key, unquoted(v), expected)
		}
	}
	return out
}

// Integer returns the integer of key, between lo and hi, or otherwise when it is
// absent or wrong.
func (t *Table) Integer(key string, lo, hi, otherwise int64) int64 {
	if !t.Ask(key) {
		return otherwise
	}
	n, ok := t.values[key].(int64)
	if !ok || n < lo || n > hi {
		t.wrongType(key, fmt.Sprintf("a whole number from %d to %d", lo, hi))
		return otherwise
	}
	return n
}

// Integers returns the integers of key, one or a list of 1 to limit different ones,
// each between lo and hi; otherwise when it is absent or wrong.
func (t *Table) Integers(key string, lo, hi int64, limit int, otherwise ...int64) []int64 {
	list, isList := t.Value(key).([]any)
	if !isList {
		if n := t.Integer(key, lo, hi, lo-1); n >= lo {
			return []int64{n}
		}
		return otherwise
	}
	t.Ask(key)
	if len(list) < 1 || len(list) > limit {
		t.Wrong(key, fmt.Sprintf("a whole number from %d to %d, or a list of 1 to %d of them", lo, hi, limit))
		return otherwise
	}
	var out []int64
	for i, v := range list {
		n, ok := v.(int64)
		_, line := t.element(key, i)
		switch {
		case !ok || n < lo || n > hi:
			t.FailAt(line, key, Show(v), fmt.Sprintf("a whole number from %d to %d", lo, hi))
		case slices.Contains(out, n):
			t.FailAt(line, key, fmt.Sprintf("%d again", n), "every number once")
		default:
			out = append(out, n)
		}
	}
	if len(out) < len(list) {
		return otherwise
	}
	return out
}

// Real returns the number of key, between lo and hi, or otherwise when it is
// absent or wrong. hint follows the range in the message.
func (t *Table) Real(key string, lo, hi, otherwise float64, hint string) float64 {
	if !t.Ask(key) {
		return otherwise
	}
	x, ok := t.values[key].(float64)
	if n, whole := t.values[key].(int64); whole {
		x, ok = float64(n), true
	}
	if !ok || !(x >= lo && x <= hi) { // not a number is outside, too
		t.wrongType(key, "a number from "+plain(lo)+" to "+plain(hi)+hint)
		return otherwise
	}
	return x
}

// Share returns the probability of key, or otherwise when it is absent or wrong.
func (t *Table) Share(key string, otherwise float64) float64 {
	return t.Real(key, 0, 1, otherwise, ", where 0.02 is 2 %")
}

// Bool returns the truth value of key, false when it is absent or wrong.
func (t *Table) Bool(key string) bool {
	if !t.Ask(key) {
		return false
	}
	b, ok := t.values[key].(bool)
	if !ok {
		t.wrongType(key, "true or false")
	}
	return b
}

// Duration returns the time of key, between lo and hi, or otherwise when it is
// absent or wrong.
func (t *Table) Duration(key string, lo, hi, otherwise time.Duration) time.Duration {
	expected := fmt.Sprintf(`a time from %q to %q, such as "1.5s" or "40ms"`, ShowTime(lo), ShowTime(hi))
	s, ok := t.Text(key, expected)
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < lo || d > hi {
		t.Wrong(key, expected)
		return otherwise
	}
	return d
}

// OneOf returns the text of key, which must be there and be one of choices; ok is
// false when it is not.
func OneOf[T ~string](t *Table, key string, choices ...T) (value T, ok bool) {
	expected := Choices(choices)
	s, ok := t.Require(key, expected)
	if ok && !slices.Contains(choices, T(s)) {
		t.Wrong(key, expected)
		ok = false
	}
	return T(s), ok
}

// Choice returns the text of key, one of choices, or otherwise when it is absent
// or wrong.
func Choice[T ~string](t *Table, key string, otherwise T, choices ...T) T {
	if t.Ask(key) {
		if value, ok := OneOf(t, key, choices...); ok {
			return value
		}
	}
	return otherwise
}

// Choices describes texts of which one is expected.
func Choices[T ~string](choices []T) string {
	quoted := make([]string, len(choices))
	for i, c := range choices {
		quoted[i] = strconv.Quote(string(c))
	}
	return "one of " + strings.Join(quoted, ", ")
}
