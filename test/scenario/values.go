package scenario

import (
	"slices"

	"github.com/fogplr/fogplr/internal/tables"
)

// words returns a list of texts, none when it is absent or wrong.
func words(t *tables.Table, key, expected string) []string {
	var out []string
	for _, it := range t.List(key, expected, maxArgs) {
		out = append(out, it.Text)
	}
	return out
}

// program is words for a command, which has a first word.
func program(t *tables.Table, key, expected string) []string {
	if v, ok := t.Value(key).([]any); ok && (len(v) == 0 || v[0] == "") {
		t.Wrong(key, expected)
	}
	return words(t, key, expected)
}

// name returns the name of a scenario or workload, or otherwise when it is absent
// or wrong.
func name(t *tables.Table, otherwise string) string {
	if s, ok := t.Name("name"); ok {
		return s
	}
	return otherwise
}

// kernelNames belong to the kernel itself.
var kernelNames = []string{"lo", "all", "default"}

// uplink returns the name of a carrier's interface; ok is false when it is absent
// or wrong. tun is the overlay's own.
func uplink(t *tables.Table, key, tun string) (s string, ok bool) {
	s, ok = t.Interface(key)
	switch {
	case !ok:
		return "", false
	case slices.Contains(kernelNames, s):
		t.Wrong(key, "a name that the kernel does not use itself")
		return "", false
	case s == tun:
		t.Wrong(key, "the name of an uplink; this one is the overlay's own interface")
		return "", false
	}
	return s, true
}

// refuse reports a key that belongs into such a table, but not into this one, as
// why says.
func refuse(t *tables.Table, key, why string) {
	t.Reject(key, tables.Show(t.Value(key)), "no such key here, since "+why)
}

// finish reports every key that nobody asked for. TOML puts keys of the top of a
// file into the table before them when they come too late.
func finish(t *tables.Table) {
	for _, key := range []string{"name", "seed", "duration", "robot_config"} {
		t.Reject(key, "an unknown key", "this key at the top of the file, before the first [table]; here "+t.Known())
	}
	t.Finish()
}
