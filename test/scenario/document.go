package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/pelletier/go-toml/v2"

	"github.com/fogplr/fogplr/internal/config"
)

// document is a file being read: its values by key, the line of every key and
// the problems found so far.
type document struct {
	file     string
	root     map[string]any
	lines    lineIndex
	problems []config.Problem
	reported map[config.Problem]bool
	end      int // the line behind the last one
	traces   *traces
}

// read opens and parses the document's file.
func (d *document) read() {
	const expected = "a readable scenario file"
	b, err := readLimited(d.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.report(0, "", "no such file", expected)
	case errors.Is(err, fs.ErrPermission):
		d.report(0, "", "a file that this user may not read", expected)
	case err != nil:
		d.report(0, "", fmt.Sprintf("a file that cannot be read (%v)", err), expected)
	default:
		d.parse(b)
	}
}

func readLimited(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

func (d *document) parse(b []byte) {
	if len(b) > maxFile {
		d.report(0, "", "a larger file", fmt.Sprintf("at most %d bytes", maxFile))
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

// report notes a problem, once: keys that hold for both directions of a link are
// read twice.
func (d *document) report(line int, key, found, expected string) {
	p := config.Problem{File: d.file, Line: line, Key: key, Found: found, Expected: expected}
	if d.reported[p] {
		return
	}
	if d.reported == nil {
		d.reported = map[config.Problem]bool{}
	}
	d.reported[p] = true
	d.problems = append(d.problems, p)
}

// err returns the problems in the order of their lines, or nil.
func (d *document) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b config.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	return &config.Error{Problems: d.problems[:min(len(d.problems), maxProblems)]}
}

// table is one TOML table of a document. Keys are read by name; finish reports
// those that nobody asked for.
type table struct {
	doc    *document
	path   string // in lineIndex
	line   int    // where it begins, from 1
	owner  string // `carrier "cell-a"`, empty for the top level
	prefix string // of keys inside of the owner, such as "up."
	m      map[string]any
	known  []string
	// refused are keys that are reported already if they are there.
	refused []string
}

func (d *document) top() *table { return &table{doc: d, line: 1, m: d.root} }

func (t *table) has(key string) bool {
	_, ok := t.m[key]
	return ok
}

// lineOf is the line of key or, when it is absent, of the table.
func (t *table) lineOf(key string) int {
	return cmp.Or(t.doc.lines[childPath(t.path, key)], t.line)
}

func (t *table) title(key string) string {
	if t.owner == "" {
		return t.prefix + key
	}
	return t.prefix + key + " of " + t.owner
}

func (t *table) fail(key, found, expected string) {
	t.doc.report(t.lineOf(key), t.title(key), found, expected)
}

func (t *table) missing(key, expected string) { t.fail(key, "nothing", expected) }

// refuse reports a key that belongs into such a table, but not into this one, as
// why says.
func (t *table) refuse(key, why string) {
	t.refused = append(t.refused, key)
	if t.has(key) {
		t.fail(key, show(t.m[key]), "no such key here, since "+why)
	}
}

// get returns the value of key, which is known from now on.
func (t *table) get(key string) (any, bool) {
	if !slices.Contains(t.known, key) {
		t.known = append(t.known, key)
	}
	v, ok := t.m[key]
	return v, ok
}

// tables returns the tables [[key]], at most limit of them. An empty list is one
// that somebody forgot to fill.
func (t *table) tables(key string, limit int) []*table {
	v, ok := t.get(key)
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > limit {
		t.fail(key, show(v), fmt.Sprintf("tables [[%s]], 1 to %d", key, limit))
		return nil
	}
	var out []*table
	for i, v := range list {
		path := elementPath(childPath(t.path, key), i)
		line := cmp.Or(t.doc.lines[path], t.lineOf(key))
		m, ok := v.(map[string]any)
		if !ok {
			t.doc.report(line, t.title(key), show(v), fmt.Sprintf("a table [[%s]]", key))
			continue
		}
		out = append(out, &table{doc: t.doc, path: path, line: line, owner: fmt.Sprintf("%s number %d", key, i+1), m: m})
	}
	return out
}

// table returns the table of key, nil when it is absent or, which is reported,
// something else.
func (t *table) table(key, expected string) *table {
	v, ok := t.get(key)
	if !ok {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.fail(key, show(v), expected)
		return nil
	}
	return &table{
		doc: t.doc, path: childPath(t.path, key), line: t.lineOf(key),
		owner: t.owner, prefix: t.prefix + key + ".", m: m,
	}
}

// topKeys are the keys of the top of a file, which TOML puts into the table
// before them when they come too late.
var topKeys = []string{"name", "seed", "duration", "robot_config"}

// finish reports every key that was not asked for.
func (t *table) finish() {
	for key := range t.m {
		if slices.Contains(t.known, key) || slices.Contains(t.refused, key) {
			continue
		}
		expected := "one of " + strings.Join(t.known, ", ")
		if slices.Contains(topKeys, key) {
			expected = "this key at the top of the file, before the first [table]; here " + expected
		} else if near := nearest(key, t.known); near != "" {
			expected = near + ", perhaps; here " + expected
		}
		t.fail(key, "an unknown key", expected)
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
