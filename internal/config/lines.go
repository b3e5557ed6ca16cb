package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lineIndex maps the path of every key, table and list element of a document
// to its line: "mtu", "gateway[1]", "gateway[1].endpoint", "address[0]". Its
// zero value is empty.
type lineIndex map[string]int

func childPath(parent, key string) string {
	if strings.ContainsAny(key, ".[]\"") {
		key = fmt.Sprintf("%q", key)
	}
	if parent == "" {
		return key
	}
	return parent + "." + key
}

func elementPath(parent string, i int) string { return fmt.Sprintf("%s[%d]", parent, i) }

// indexer builds a lineIndex from the expressions of a document.
type indexer struct {
	index    lineIndex
	newlines []int          // offsets of the line ends
	tables   map[string]int // number of elements so far of every [[table]]
}

// indexLines returns the lines of doc, which must be valid TOML.
func indexLines(doc []byte) lineIndex {
	x := indexer{index: lineIndex{}, tables: map[string]int{}}
	for i, c := range doc {
		if c == '\n' {
			x.newlines = append(x.newlines, i)
		}
	}
	var p unstable.Parser
	p.Reset(doc)
	current := ""
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table:
			current = x.keys("", e, true)
		case unstable.ArrayTable:
			current = x.arrayTable(e)
		case unstable.KeyValue:
			x.keyValue(current, e)
		}
	}
	return x.index
}

func (x *indexer) lineOf(n *unstable.Node) int {
	i, _ := slices.BinarySearch(x.newlines, int(n.Raw.Offset))
	return i + 1
}

func (x *indexer) note(path string, n *unstable.Node) {
	if _, ok := x.index[path]; !ok {
		x.index[path] = x.lineOf(n)
	}
}

// keys follows the dotted key of n below parent, notes the line of every part
// and returns the path. With descend a part that names a [[table]] means the
// last element of it, also when it is the last part.
func (x *indexer) keys(parent string, n *unstable.Node, descend bool) string {
	path := parent
	for it := n.Key(); it.Next(); {
		path = childPath(path, string(it.Node().Data))
		x.note(path, it.Node())
		if count := x.tables[path]; descend && count > 0 {
			path = elementPath(path, count-1)
		}
	}
	return path
}

func (x *indexer) arrayTable(n *unstable.Node) string {
	path, last := "", n.Child()
	for it := n.Key(); it.Next(); {
		if count := x.tables[path]; count > 0 {
			path = elementPath(path, count-1)
		}
		last = it.Node()
		path = childPath(path, string(last.Data))
		x.note(path, last)
	}
	element := elementPath(path, x.tables[path])
	x.tables[path]++
	x.note(element, last)
	return element
}

func (x *indexer) keyValue(parent string, n *unstable.Node) {
	x.value(x.keys(parent, n, false), n.Value())
}

func (x *indexer) value(path string, n *unstable.Node) {
	switch n.Kind {
	case unstable.Array:
		i := 0
		for it := n.Children(); it.Next(); i++ {
			element := elementPath(path, i)
			if it.Node().Raw.Length > 0 {
				x.note(element, it.Node())
			}
			x.value(element, it.Node())
		}
	case unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			x.keyValue(path, it.Node())
		}
	}
}
