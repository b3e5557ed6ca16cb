package play

import (
	"slices"
	"time"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/report"
)

// Result is what came of a run. Times are in nanoseconds.
type Result struct {
	Scenario string        `json:"scenario"`
	Tunnel   string        `json:"tunnel"`
	Seed     uint64        `json:"seed"`
	Start    time.Time     `json:"start"` // of the workloads, and of the traces
	Duration time.Duration `json:"duration"`
	Carriers []Carrier     `json:"carriers"`
	Work     []Work        `json:"workloads"`
	// Logs is the folder of the programs' logs, which stay if one of them failed.
	Logs string `json:"logs"`
}

// Carrier is what crossed a carrier's link while the workloads ran.
type Carrier struct {
	Name string       `json:"name"`
	Up   lab.Counters `json:"up"`
	Down lab.Counters `json:"down"`
}

// Work is what came of a workload.
type Work struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Calls of rpc that were made between start and end.
	Calls []Call `json:"calls,omitempty"`
	// Streams are the summaries of stream's receivers, by gateway.
	Streams map[string]apps.StreamSummary `json:"streams,omitempty"`
	// Output of the other programs.
	Output string `json:"output,omitempty"`
	// Failed says how a program ended that did not end well.
	Failed string `json:"failed,omitempty"`
}

// Call is one call: when it was made, since the start, and what the first reply
// took, report.Lost if there was none in time.
type Call struct {
	At      time.Duration `json:"at"`
	Latency time.Duration `json:"latency"`
	By      string        `json:"by,omitempty"` // the gateway whose reply was first
	Replies int           `json:"replies"`
}

// Failed reports whether a program of any workload ended badly.
func (r *Result) Failed() bool {
	return slices.ContainsFunc(r.Work, func(w Work) bool { return w.Failed != "" })
}

// Lost counts the calls without a reply.
func (w *Work) Lost() (n int) {
	for _, c := range w.Calls {
		if c.Latency == report.Lost {
			n++
		}
	}
	return n
}

// Series returns the calls of a workload under a name, with what crossed the
// carriers meanwhile.
func (r *Result) Series(w *Work, name string) report.Series {
	s := report.Series{Name: name, Bytes: map[string]report.Bytes{}}
	for _, c := range w.Calls {
		s.At = append(s.At, c.At)
		s.Latency = append(s.Latency, c.Latency)
	}
	for _, c := range r.Carriers {
		s.Bytes[c.Name] = report.Bytes{Up: c.Up.ReceivedBytes, Down: c.Down.ReceivedBytes}
	}
	return s
}

// difference returns what was counted between two readings.
func difference(after, before []Carrier) []Carrier {
	for i := range after {
		after[i].Up = after[i].Up.Since(before[i].Up)
		after[i].Down = after[i].Down.Since(before[i].Down)
	}
	return after
}

// callsOf returns the calls of an RPC client that were made between start and
// start + duration.
func callsOf(events []apps.Event, start time.Time, duration time.Duration) []Call {
	index := map[int64]int{}
	var calls []Call
	for _, e := range events {
		at := time.Duration((e.T - float64(start.UnixNano())/1e9) * 1e9)
		if at < 0 || at >= duration {
			continue
		}
		i, known := index[e.Seq]
		if !known {
			i = len(calls)
			index[e.Seq] = i
			calls = append(calls, Call{At: at, Latency: report.Lost})
		}
		if e.Lost {
			continue
		}
		if e.First() {
			calls[i].Latency = time.Duration(e.LatencyMS * float64(time.Millisecond))
			calls[i].By = e.By
		}
		calls[i].Replies++
	}
	return calls
}
