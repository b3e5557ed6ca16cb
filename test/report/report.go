// Package report turns latencies into figures, tables and plots that somebody
// who was not there can read. It measures nothing.
package report

import "time"

// Lost is the latency of a call that was not answered.
const Lost time.Duration = -1

// Series is what one variant of an experiment measured, call by call.
type Series struct {
	Name string
	// At is when each call was sent, since the start; Latency what it took, or
	// Lost. Both have the same length, and need not be in order of time.
	At, Latency []time.Duration
	// Bytes that crossed each carrier, by its name, up and down; nil if there are
	// none, as for an ideal.
	Bytes map[string]Bytes
}

// Bytes on a link.
type Bytes struct {
	Up   uint64 `json:"up"`
	Down uint64 `json:"down"`
}

// Table is a table of its own: the first row is its head.
type Table [][]string

// Experiment is one section of the report.
type Experiment struct {
	ID     string // of its files: letters, digits, hyphens; unique in a report
	Title  string
	Text   string // Markdown: what was done, and what to compare with
	Series []Series
	// Events happened to all series alike. The plot over time shows them.
	Events []Event
	// Misses are plots, each with its table, of misses against a number.
	Misses []Misses
	// Tables stand after those of series and misses, each after its title.
	Tables []Titled
	// Failed are sentences on what did not come out as it must.
	Failed []string
}

// Event is what happened at a time, such as a fault.
type Event struct {
	At   time.Duration // since the start
	Text string
}

// Titled is a table with what it shows.
type Titled struct {
	Title string `json:"title"`
	Table Table  `json:"table"`
}

// Misses compares the share of calls that missed their deadline with what was
// predicted, as a number grows.
type Misses struct {
	Title  string
	Number string // what is counted, in the plural: "carriers"
	Curves []Curve
}

// Curve is one line of a plot of misses.
type Curve struct {
	Name   string
	Points []Point // by rising Number
}

// Point is one run.
type Point struct {
	Number        int // of carriers or gateways, say
	Calls, Missed int
	Predicted     *float64 // share of calls; nil if nothing was predicted
}

// Head says what the whole report is and how to repeat it.
type Head struct {
	Title   string `json:"title"`
	Date    string `json:"date"`
	Machine string `json:"machine"`
	Commit  string `json:"commit"`
	// Commands repeat the run, one after the other.
	Commands []string `json:"commands"`
}
