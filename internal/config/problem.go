package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong in a configuration file.
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
	// Blank means that the value is an empty text, as the blanks are that
	// `fogplr init` leaves.
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

// Error is every problem found in one configuration file, at least one, in the
// order of their lines. A program that gets it should exit with status 2.
type Error struct{ Problems []Problem }

// Error returns the problems one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i := range e.Problems {
		lines[i] = e.Problems[i].Error()
	}
	return strings.Join(lines, "\n")
}
