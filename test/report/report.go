// Package report turns latencies into figures, tables and plots that somebody
// who was not there can read.
package report

import "time"

// Lost is the latency of a call that was not answered.
const Lost time.Duration = -1

// Series is what one variant of an experiment measured, call by call.
type Series struct {
	Name string
	// At is when each call was sent, since the start; Latency what it took, or
	// Lost. Both have the same length.
	At, Latency []time.Duration
	// Bytes that crossed each carrier, by its name, up and down; nil if there are
	// none, as for an ideal.
	Bytes map[string]Bytes
}

// Bytes on a link.
type Bytes struct{ Up, Down uint64 }

// Table is a table of its own: the first row is its head.
type Table [][]string

// Experiment is one section of the report.
type Experiment struct {
	ID     string // of the files of its plots: letters, digits, hyphens
	Title  string
	Text   string // Markdown: what was done, and what to compare with
	Series []Series
	// Tables stand after that of the series, each after its sentence.
	Tables []Titled
	// Failed are sentences on what did not come out as it must.
	Failed []string
}

// Titled is a table with what it shows.
type Titled struct {
	Title string
	Table Table
}
