package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxProblems bounds the problems reported of one file: more than a person mends
// before trying again.
const MaxProblems = 50

// Problem is one thing that is wrong in a file.
type Problem struct {
	File string `json:"file"`
	// Line counts from 1; 0 when the file as a whole is meant. A key that is
	// missing is reported at the head of the table it should be in.
	Line int `json:"line,omitempty"`
	// Key names the key and whose it is, such as `endpoint of gateway "west"`.
	Key string `json:"key,omitempty"`
	// Found is what is there, Expected what should be.
	Found    string `json:"found"`
	Expected string `json:"expected"`
	// Blank means that there is something to fill in: the value is an empty text,
	// or a block is still to be pasted at the end.
	Blank bool `json:"blank,omitempty"`
}

// Error returns the problem as one line.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString("found " + p.Found + ", expected " + p.Expected)
	return b.String()
}

// Error is the problems of one file, at least one and at most MaxProblems, each
// once, in the order of their lines. A program that gets it should exit with
// status 2.
type Error struct{ Problems []Problem }

// Error returns the problems one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i := range e.Problems {
		lines[i] = e.Problems[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Join returns the problems of one file as an *Error, nil if there are none.
func Join(problems ...Problem) error {
	if len(problems) == 0 {
		return nil
	}
	var e Error
	told := map[Problem]bool{}
	for _, p := range problems {
		if !told[p] {
			told[p] = true
			e.Problems = append(e.Problems, p)
		}
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	e.Problems = e.Problems[:min(len(e.Problems), MaxProblems)]
	return &e
}
