package tables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lineIndex maps the path of every key, table and list element of a document
// to its line: "mtu", "carrier[1]", "carrier[1].up.delay", "address[0]".
type lineIndex map[string]int

// maxPath is how long the path of a key may be, in bytes, whose line is wanted: no
// key that means something is so deep.
const maxPath = 1000

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
	elements map[string]int // how many of every [[table]] so far
}

// indexLines returns the lines of text, which must be valid TOML.
func indexLines(text []byte) lineIndex {
	x := indexer{index: lineIndex{}, elements: map[string]int{}}
	for i, c := range text {
		if c == '\n' {
			x.newlines = append(x.newlines, i)
		}
	}
	var p unstable.Parser
	p.Reset(text)
	table := ""
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = x.header(e)
		case unstable.KeyValue:
			x.pair(table, e)
		}
	}
	return x.index
}

// note remembers where path is first named.
func (x *indexer) note(path string, n *unstable.Node) {
	if _, known := x.index[path]; !known && path != "" {
		i, _ := slices.BinarySearch(x.newlines, int(n.Raw.Offset))
		x.index[path] = i + 1
	}
}

// header returns the path of the table that [a.b] or [[a.b]] opens. A part that
// names a [[table]] means its last element.
func (x *indexer) header(n *unstable.Node) string {
	path := ""
	var last *unstable.Node
	for it := n.Key(); len(path) < maxPath && it.Next(); {
		last = it.Node()
		path = childPath(x.latest(path), string(last.Data))
		x.note(path, last)
	}
	if n.Kind == unstable.ArrayTable {
		x.elements[path]++
	}
	path = x.latest(path)
	x.note(path, last)
	return path
}

func (x *indexer) latest(path string) string {
	if n := x.elements[path]; n > 0 {
		return elementPath(path, n-1)
	}
	return path
}

// pair notes the lines of a key below parent and of all in its value. A table
// without a header is where its first key is.
func (x *indexer) pair(parent string, n *unstable.Node) {
	path := parent
	for it := n.Key(); len(path) < maxPath && it.Next(); {
		x.note(path, it.Node())
		path = childPath(path, string(it.Node().Data))
		x.note(path, it.Node())
	}
	x.value(path, n.Value())
}

func (x *indexer) value(path string, n *unstable.Node) {
	if len(path) >= maxPath {
		return
	}
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
			x.pair(path, it.Node())
		}
	}
}
