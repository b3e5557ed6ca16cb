package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// shortest is the least latency that a logarithmic axis shows; less is drawn as
// this.
const shortest = 10 * time.Microsecond

// Steps of a distribution that are drawn: all of the slowest calls, and then so
// many that neither axis shows a difference.
const (
	slowestSteps = 50
	linearSteps  = 400
	logSteps     = 100 // for each factor of e
)

// answered are the latencies of s in ms that were not lost, sorted.
func (s Series) answered() []float64 {
	var ms []float64
	for _, l := range s.Latency {
		if l >= 0 {
			ms = append(ms, float64(millis(max(l, shortest))))
		}
	}
	slices.Sort(ms)
	return ms
}

// label names a series with the number of its calls.
func (s Series) label() string {
	n := len(s.Latency)
	lost := n - len(s.answered())
	if lost == 0 {
		return fmt.Sprintf("%s: n = %s calls, none lost", s.Name, count(n))
	}
	return fmt.Sprintf("%s: n = %s calls, %s lost", s.Name, count(n), countOf(lost, share(lost, n)))
}

// latencyRange is from the fastest answer to the slowest, rounded outwards to
// numbers that axes show.
func latencyRange(series []Series) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range series {
		if ms := s.answered(); len(ms) > 0 {
			low, high = min(low, ms[0]), max(high, ms[len(ms)-1])
		}
	}
	if low > high { // no answer at all
		return 1, 1000
	}
	return roundDown(low), roundUp(high * 1.05)
}

// later is the share of n calls that took longer than each latency, as steps
// from low to high; ms are those that were answered.
func later(ms []float64, n int, low, high float64) plotter.XYs {
	points := plotter.XYs{{X: low, Y: 1}}
	last, drawn := 1.0, n
	for i, x := range ms {
		left := n - 1 - i
		if left > slowestSteps && i != len(ms)-1 && drawn-left < n/linearSteps && drawn-left < left/logSteps {
			continue
		}
		drawn = left
		y := share(left, n)
		points = append(points, plotter.XY{X: x, Y: last}, plotter.XY{X: x, Y: y})
		last = y
	}
	return append(points, plotter.XY{X: high, Y: last})
}

// view is a way to show distributions.
type view struct {
	what, side string
	lost       string // where to see the lost calls
	endsAtNone bool   // the line ends where no later call is left
	// axis sets up the vertical axis, told the largest number of calls, and
	// returns what to draw of a share of later calls.
	axis func(y *plot.Axis, most int) func(later float64) float64
}

// tailPlot shows the slow calls: the share of calls later than x, both axes
// logarithmic.
func tailPlot(e Experiment) *figure {
	return distribution(e, view{
		what:       "share of calls that took longer than a time",
		side:       "share of calls that took longer",
		lost:       "where a line stays level to the right end, that share was lost",
		endsAtNone: true,
		axis: func(y *plot.Axis, most int) func(float64) float64 {
			floor := 0.5 / float64(max(most, 5))
			y.Scale = plot.LogScale{}
			y.Tick.Marker = shareTicks{notes: map[int]string{-1: "p90: ", -2: "p99: ", -3: "p99.9: ", -4: "p99.99: "}}
			y.Min, y.Max = floor, 1
			return func(later float64) float64 { return max(later, floor) }
		},
	})
}

// cdfPlot shows the share of calls answered within x.
func cdfPlot(e Experiment) *figure {
	return distribution(e, view{
		what: "share of calls answered within a time",
		side: "share of calls answered by then",
		lost: "where a line ends below 100 %, the rest was lost",
		axis: func(y *plot.Axis, _ int) func(float64) float64 {
			var ticks plot.ConstantTicks
			for tenths := range 11 {
				ticks = append(ticks, plot.Tick{Value: float64(tenths) / 10, Label: percent(float64(tenths) / 10)})
			}
			y.Tick.Marker = ticks
			y.Min, y.Max = 0, 1
			return func(later float64) float64 { return 1 - later }
		},
	})
}

// distribution draws a line for each series.
func distribution(e Experiment, v view) *figure {
	f := newFigure(e.Title+": "+v.what, 4.2*vg.Inch)
	p := f.panel("", "latency (ms, logarithmic)", v.side)
	low, high := latencyRange(e.Series)
	most := 0
	for _, s := range e.Series {
		most = max(most, len(s.Latency))
	}
	value := v.axis(&p.Y, most)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
	p.X.Min, p.X.Max = low, high
	guides := deadlineGuides(p)
	lost := false
	for i, s := range e.Series {
		f.explain(s.label(), line(lineStyle(i)))
		lost = lost || len(s.answered()) < len(s.Latency)
		if len(s.Latency) == 0 {
			continue
		}
		points := later(s.answered(), len(s.Latency), low, high)
		if n := len(points); v.endsAtNone && points[n-1].Y == 0 {
			points = points[:n-1]
		}
		for k := range points {
			points[k].Y = value(points[k].Y)
		}
		p.Add(&plotter.Line{XYs: points, LineStyle: lineStyle(i)})
	}
	if len(guides) > 0 {
		f.explain("deadlines: "+strings.Join(guides, ", "), line(guide))
	}
	if lost {
		f.explain(v.lost)
	}
	return f
}

// deadlineGuides draws the deadlines that are in sight and returns their names.
func deadlineGuides(p *plot.Plot) (names []string) {
	for _, d := range deadlines {
		x := float64(millis(d))
		if x > p.X.Min && x < p.X.Max {
			names = append(names, millis(d).String()+" ms")
			p.Add(&plotter.Line{XYs: plotter.XYs{{X: x, Y: p.Y.Min}, {X: x, Y: p.Y.Max}}, LineStyle: guide})
		}
	}
	return names
}
