package tables

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Table is one table of a document. Keys are read by name; Finish reports those
// that nobody asked for. The methods that read a value report what is wrong with
// it.
type Table struct {
	// Owner is whose keys they are, in problems: `carrier number 1`, until the
	// reader of the table knows better. It is empty for the top level.
	Owner string
	Line  int // where the table begins, from 1

	doc    *document
	path   string // in lineIndex
	prefix string // of keys inside of the owner, such as "up."
	values map[string]any
	// known are the keys that were asked for, rejected those that are reported
	// already.
	known, rejected []string
}

// File is the name of the document's file.
func (t *Table) File() string { return t.doc.file }

// Locate returns file, which is relative to the document's folder, as it is found
// from the working directory.
func (t *Table) Locate(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(t.doc.file), file)
}

// Err returns the problems of the whole document as an *Error, or nil.
func (t *Table) Err() error { return Join(t.doc.problems...) }

// Problems is how many problems the whole document has so far.
func (t *Table) Problems() int { return len(t.doc.problems) }

// Has reports whether key is there.
func (t *Table) Has(key string) bool {
	_, ok := t.values[key]
	return ok
}

// Value is the value of key as go-toml decodes it, nil when it is absent.
func (t *Table) Value(key string) any { return t.values[key] }

// Ask is Has for a key that may be there.
func (t *Table) Ask(key string) bool {
	if !slices.Contains(t.known, key) {
		t.known = append(t.known, key)
	}
	return t.Has(key)
}

// Known lists the keys that were asked for, as what is expected.
func (t *Table) Known() string { return "one of " + strings.Join(t.known, ", ") }

// LineOf is the line of key or, when it is absent, of the table.
func (t *Table) LineOf(key string) int {
	return cmp.Or(t.doc.lines[childPath(t.path, key)], t.Line)
}

// Title names a key and whose it is.
func (t *Table) Title(key string) string {
	if t.Owner == "" {
		return t.prefix + key
	}
	return t.prefix + key + " of " + t.Owner
}

// Fail reports a problem of key.
func (t *Table) Fail(key, found, expected string) { t.FailAt(t.LineOf(key), key, found, expected) }

// FailAt is Fail for a part of the value that has a line of its own.
func (t *Table) FailAt(line int, key, found, expected string) {
	t.doc.report(line, t.Title(key), found, expected)
}

// Wrong reports that the value of key is not what was expected.
func (t *Table) Wrong(key, expected string) { t.Fail(key, Show(t.values[key]), expected) }

// Need reports key when it is absent.
func (t *Table) Need(key, expected string) {
	if !t.Has(key) {
		t.Fail(key, "nothing", expected)
	}
}

// NeedTables reports that there is no [[key]], which should come at the end of the
// file, when it is absent.
func (t *Table) NeedTables(key, expected string) {
	if !t.Has(key) {
		t.doc.problems = append(t.doc.problems, Problem{
			File: t.doc.file, Line: t.doc.end, Key: key, Found: "no [[" + key + "]]", Expected: expected, Blank: true,
		})
	}
}

// Tables returns the tables [[key]], from least to most of them; none when key is
// absent.
func (t *Table) Tables(key string, least, most int) []*Table {
	if !t.Ask(key) {
		return nil
	}
	list, ok := t.values[key].([]any)
	if !ok || len(list) < least || len(list) > most {
		t.Wrong(key, fmt.Sprintf("tables [[%s]], %d to %d", key, least, most))
		return nil
	}
	var out []*Table
	for i, v := range list {
		path, line := t.element(key, i)
		if m, ok := v.(map[string]any); ok {
			out = append(out, &Table{Owner: fmt.Sprintf("%s number %d", key, i+1), Line: line, doc: t.doc, path: path, values: m})
		} else {
			t.FailAt(line, key, Show(v), "a table [["+key+"]]")
		}
	}
	return out
}

// element returns where element i of the list of key is.
func (t *Table) element(key string, i int) (path string, line int) {
	path = elementPath(childPath(t.path, key), i)
	return path, cmp.Or(t.doc.lines[path], t.LineOf(key))
}

// Sub returns the table of key, whose owner is that of t; nil when it is absent or
// no table.
func (t *Table) Sub(key, expected string) *Table {
	if !t.Ask(key) {
		return nil
	}
	m, ok := t.values[key].(map[string]any)
	if !ok {
		t.Wrong(key, expected)
		return nil
	}
	return &Table{
		Owner: t.Owner, Line: t.LineOf(key),
		doc: t.doc, path: childPath(t.path, key), prefix: t.prefix + key + ".", values: m,
	}
}

// Reject reports key, if it is there and nobody asked for it, with more to say
// than Finish has.
func (t *Table) Reject(key, found, expected string) {
	if t.Has(key) && !slices.Contains(t.known, key) && !slices.Contains(t.rejected, key) {
		t.rejected = append(t.rejected, key)
		t.Fail(key, found, expected)
	}
}

// Finish reports every key that nobody asked for.
func (t *Table) Finish() {
	for _, key := range slices.Sorted(maps.Keys(t.values)) {
		expected := t.Known()
		if near := nearest(key, t.known); near != "" {
			expected = near + ", perhaps; here " + expected
		}
		t.Reject(key, "an unknown key", expected)
	}
}

// nearest returns which of the known keys was probably meant, or nothing.
func nearest(key string, known []string) string {
	key = strings.ReplaceAll(strings.ToLower(key), "-", "_")
	best, least := "", min(3, 1+len(key)/3)
	for _, k := range known {
		if n := levenshtein.ComputeDistance(key, k); n < least {
			best, least = k, n
		}
	}
	return best
}
