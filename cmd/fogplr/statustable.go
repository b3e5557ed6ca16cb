package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// columns is the width that status is made for: that of every terminal.
const columns = 80

const (
	columnGap    = 2 // between two columns
	narrowest    = 5 // what a name is cut to at least, in characters
	manyPaths    = 6 // paths that a hint lists before it only counts
	hangingWidth = 2 // how far the lines after the first are moved in
)

// table aligns its columns. If it is wider than columns, names are cut.
type table struct {
	rows  [][]string
	names []int // the columns that may be cut
}

func newTable(names []int, head ...string) *table { return &table{[][]string{head}, names} }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	widths := make([]int, len(t.rows[0]))
	total := columnGap * (len(widths) - 1)
	for i := range widths {
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		total += widths[i]
	}
	for ; total > columns; total-- {
		widest := slices.MaxFunc(t.names, func(a, b int) int { return widths[a] - widths[b] })
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	for _, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", columnGap))
			}
			fmt.Fprintf(&b, "%-*s", widths[i], cut(cell, widths[i]))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// cut shortens s to n characters. Its end stays, since names and endpoints often
// differ there.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	end := (n - 1) / 2
	return string(r[:n-1-end]) + "…" + string(r[len(r)-end:])
}

// fill writes words with sep between them, in lines of at most columns; all but
// the first are moved in.
func fill(w io.Writer, words []string, sep string) {
	line := ""
	for i, word := range words {
		switch {
		case i == 0:
			line = word
		case utf8.RuneCountInString(line+sep+word) > columns:
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", hangingWidth) + word
		default:
			line += sep + word
		}
	}
	fmt.Fprintln(w, line)
}

// wordOrCommand keeps a command in backquotes on one line, so that it can be
// copied.
var wordOrCommand = regexp.MustCompile("[^\\s`]*`[^`]*`\\S*|\\S+")

// paragraph writes a text of sentences.
func paragraph(w io.Writer, text string) { fill(w, wordOrCommand.FindAllString(text, -1), " ") }
