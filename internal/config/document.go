package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// document is a file being read: its values by key, the line of every key and
// the problems found so far.
type document struct {
	file     string
	root     map[string]any
	lines    lineIndex
	problems []Problem
	// foreign are the top-level keys of the other role's file, which is named
	// with each.
	foreign map[string]string
	end     int // the line behind the last one
}

// readDocument opens and parses file.
func readDocument(file string) *document {
	d := &document{file: file}
	b, err := readLimited(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.report(0, "", "no such file", "a configuration file (`fogplr init` writes one)")
	case errors.Is(err, fs.ErrPermission):
		d.report(0, "", "a file that this user may not read", "a readable configuration file")
	case err != nil:
		d.report(0, "", fmt.Sprintf("a file that cannot be read (%v)", err), "a readable configuration file")
	default:
		d.parse(b)
	}
	return d
}

func readLimited(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return b, err
}

func (d *document) parse(b []byte) {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		d.report(0, "", "a text in UTF-16", "a text in UTF-8: save it so in your editor")
		return
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) // the mark that some editors put at the start of UTF-8
	d.end = bytes.Count(b, []byte("\n")) + 1
	if err := toml.Unmarshal(b, &d.root); err != nil {
		line := 0
		var decode *toml.DecodeError
		if errors.As(err, &decode) {
			line, _ = decode.Position()
		}
		what := strings.TrimPrefix(err.Error(), "toml: ")
		d.report(line, "", "a mistake in the TOML syntax ("+what+")", "key = value, [[table]] or # comment")
		return
	}
	d.lines = indexLines(b)
}

func (d *document) report(line int, key, found, expected string) {
	d.problems = append(d.problems, Problem{File: d.file, Line: line, Key: key, Found: found, Expected: expected, Blank: found == empty})
}

// reportPaste reports that a block is missing at the end of the file.
func (d *document) reportPaste(key, expected string) {
	d.problems = append(d.problems, Problem{File: d.file, Line: d.end, Key: key, Found: "no [[" + key + "]]", Expected: expected, Blank: true})
}

// err returns the problems as an *Error, or nil.
func (d *document) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{Problems: d.problems[:min(len(d.problems), maxProblems)]}
}

// table is one TOML table of a document. Keys are read by name; finish reports
// those that nobody asked for.
type table struct {
	doc   *document
	path  string // of the table in lineIndex
	owner string // `gateway "west"`, empty for the top level
	m     map[string]any
	known []string
}

func (d *document) top() *table { return &table{doc: d, m: d.root} }

// item is a value of a list with its line.
type item struct {
	value string
	line  int
}

func (t *table) line(key string) int {
	if n := t.doc.lines[childPath(t.path, key)]; n > 0 {
		return n
	}
	return max(t.doc.lines[t.path], 1)
}

func (t *table) title(key string) string {
	if t.owner == "" {
		return key
	}
	return key + " of " + t.owner
}

func (t *table) fail(key, found, expected string) {
	t.doc.report(t.line(key), t.title(key), found, expected)
}

func (t *table) failAt(line int, key, found, expected string) {
	t.doc.report(line, t.title(key), found, expected)
}

func (t *table) missing(key, expected string) { t.fail(key, "nothing", expected) }

func (t *table) get(key string) (any, bool) {
	t.known = append(t.known, key)
	v, ok := t.m[key]
	return v, ok
}

// text returns the string of key; ok is false when it is absent or, which is
// reported, not a string.
func (t *table) text(key, expected string) (s string, ok bool) {
	v, ok := t.get(key)
	if !ok {
		return "", false
	}
	s, ok = v.(string)
	if !ok {
		t.fail(key, unquoted(v), expected)
	}
	return s, ok
}

// require is text for a key that must be there.
func (t *table) require(key, expected string) (s string, ok bool) {
	if _, set := t.m[key]; !set {
		t.missing(key, expected)
	}
	return t.text(key, expected)
}

// number returns the integer of key, between lo and hi, or otherwise when it is
// absent.
func (t *table) number(key string, lo, hi, otherwise int64) int64 {
	v, ok := t.get(key)
	if !ok {
		return otherwise
	}
	n, ok := v.(int64)
	if !ok || n < lo || n > hi {
		expected := fmt.Sprintf("a whole number from %d to %d", lo, hi)
		if _, quoted := v.(string); quoted {
			expected += ", without quotes"
		}
		t.fail(key, show(v), expected)
		return otherwise
	}
	return n
}

// texts returns the strings of key, which is a string or a list of at most
// limit strings. It reports a key that is absent, empty or of another type.
func (t *table) texts(key, expected string, limit int) []item {
	v, ok := t.get(key)
	if !ok {
		t.missing(key, expected)
		return nil
	}
	if s, ok := v.(string); ok {
		return []item{{s, t.line(key)}}
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > limit {
		t.fail(key, unquoted(v), expected)
		return nil
	}
	var out []item
	for i, v := range list {
		line := cmp.Or(t.doc.lines[elementPath(childPath(t.path, key), i)], t.line(key))
		if s, ok := v.(string); ok {
			out = append(out, item{s, line})
		} else {
			t.failAt(line, key, unquoted(v), expected)
		}
	}
	return out
}

// tables returns the tables [[key]], at most limit of them. When need is not
// empty there must be one, and need is what was expected otherwise.
func (t *table) tables(key string, limit int, need string) []*table {
	expected := fmt.Sprintf("tables [[%s]], at most %d", key, limit)
	v, ok := t.get(key)
	if !ok {
		if need != "" {
			t.doc.reportPaste(key, need)
		}
		return nil
	}
	list, ok := v.([]any)
	if ok && len(list) == 0 && need != "" {
		t.fail(key, show(v), need)
		return nil
	}
	if !ok || len(list) > limit {
		t.fail(key, show(v), expected)
		return nil
	}
	var out []*table
	for i, v := range list {
		path := elementPath(childPath(t.path, key), i)
		m, ok := v.(map[string]any)
		if !ok {
			t.failAt(cmp.Or(t.doc.lines[path], t.line(key)), key, show(v), fmt.Sprintf("a table [[%s]]", key))
			continue
		}
		out = append(out, &table{doc: t.doc, path: path, owner: fmt.Sprintf("%s number %d", key, i+1), m: m})
	}
	return out
}

// finish reports every key that was not asked for.
func (t *table) finish() {
	for key := range t.m {
		if file := t.doc.foreign[key]; file != "" && t.owner == "" {
			t.fail(key, "a key that belongs in "+file, "one of "+strings.Join(t.known, ", "))
		} else if !slices.Contains(t.known, key) {
			t.fail(key, "an unknown key", "one of "+strings.Join(t.known, ", "))
		}
	}
}

// empty is how an empty text is described.
const empty = "an empty text"

// show describes a TOML value to a person.
func show(v any) string {
	switch v := v.(type) {
	case string:
		if v == "" {
			return empty
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
