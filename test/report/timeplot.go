package report

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bounds of a plot over time, so that its file stays well below 1 MB.
const (
	maxSlots      = 4000  // of one series
	maxSlotsOfAll = 12000 // of all series
)

// longestSlot is how long the line stays at a single call.
const longestSlot = time.Second

// maxEvents is how many events a legend explains.
const maxEvents = 10

// slotWidths are how much time one step of the line may stand for.
var slotWidths = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}

// slot is a piece of time with the calls sent in it.
type slot struct {
	from, to time.Duration
	slowest  time.Duration // of those answered; Lost if none was
	lost     int
}

// slots puts calls into slots of this width, or each into its own if width is 0.
// A slot without calls is left out.
func (s Series) slots(width time.Duration) []slot {
	order := make([]int, len(s.At))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.At[a], s.At[b]) })
	var out []slot
	for k, i := range order {
		at := s.At[i]
		if n := len(out); width > 0 && n > 0 && at < out[n-1].to {
			out[n-1].add(s.Latency[i])
			continue
		}
		next := slot{from: at, to: at + longestSlot, slowest: Lost}
		switch {
		case width > 0:
			next.from = at.Truncate(width)
			next.to = next.from + width
		case k+1 < len(order):
			next.to = min(next.to, s.At[order[k+1]])
		case k > 0: // the last is drawn like the one before
			next.to = at + min(longestSlot, at-s.At[order[k-1]])
		}
		next.add(s.Latency[i])
		out = append(out, next)
	}
	return out
}

func (s *slot) add(latency time.Duration) {
	if latency < 0 {
		s.lost++
	}
	s.slowest = max(s.slowest, latency)
}

// allSlots puts the calls of all series into slots of one width, the smallest
// that keeps within the bounds; the largest one if none does.
func allSlots(series []Series) (slots [][]slot, width time.Duration) {
	for _, width = range append([]time.Duration{0}, slotWidths...) {
		slots = slots[:0]
		sum, most := 0, 0
		for _, s := range series {
			x := s.slots(width)
			slots = append(slots, x)
			sum, most = sum+len(x), max(most, len(x))
		}
		if sum <= maxSlotsOfAll && most <= maxSlots {
			break
		}
	}
	return slots, width
}

// timePlot has a panel for each series.
func timePlot(e Experiment) *figure {
	all, width := allSlots(e.Series)
	what := "latency of each call, by the time it was sent"
	switch {
	case width == time.Second:
		what = "slowest answer to the calls sent in each second"
	case width > 0:
		what = fmt.Sprintf("slowest answer to the calls sent in every %.0f s", width.Seconds())
	}
	f := newFigure(e.Title+": "+what, 1.7*vg.Inch)
	low, high := latencyRange(e.Series)
	band := lostBand{high, high * math.Pow(high/low, 0.3)}
	start, end := timeRange(all, e.Events)
	for i, s := range e.Series {
		x := ""
		if i == len(e.Series)-1 {
			x = "time since the start (s)"
		}
		p := f.panel(s.label(), x, "latency (ms)")
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, band
		p.Y.Min, p.Y.Max = low, band.top
		p.X.Tick.Marker = linearTicks{}
		p.X.Min, p.X.Max = start.Seconds(), end.Seconds()
		p.Add(eventLines(e.Events), steps{all[i], lineStyle(i).Color, band})
	}
	f.explainEvents(e.Events)
	return f
}

// timeRange is from the start, or the first call if that is earlier, to when all
// is over.
func timeRange(all [][]slot, events []Event) (start, end time.Duration) {
	for _, slots := range all {
		for _, s := range slots {
			start, end = min(start, s.from), max(end, s.to)
		}
	}
	for _, e := range events {
		start, end = min(start, e.At), max(end, e.At)
	}
	return start, max(end, start+time.Second)
}

// lostBand is where calls without an answer are marked, above the slowest answer.
type lostBand struct{ bottom, top float64 }

// at is the height of a share of the band.
func (b lostBand) at(share float64) float64 { return b.bottom * math.Pow(b.top/b.bottom, share) }

// Ticks are those of the latencies, and one for lost calls.
func (b lostBand) Ticks(low, _ float64) []plot.Tick {
	digits := []float64{1}
	if math.Log10(b.bottom/low) < 2 {
		digits = []float64{1, 2, 5}
	}
	return append(logTicksAt(digits, low, b.bottom), plot.Tick{Value: b.at(0.7), Label: "lost"})
}

// steps draws slots: a line at the slowest answer, and marks for lost calls.
type steps struct {
	slots []slot
	color color.Color
	band  lostBand
}

// shortestStep is long enough to be seen.
const shortestStep = vg.Length(0.75)

func (s steps) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var answers, lost vg.Path
	var last slot
	for i, now := range s.slots {
		from, to := x(now.from.Seconds()), x(now.to.Seconds())
		if now.lost > 0 {
			lost.Move(vg.Point{X: from, Y: y(s.band.at(0.45))})
			lost.Line(vg.Point{X: from, Y: y(s.band.at(0.95))})
		}
		if now.slowest >= 0 {
			height := y(float64(millis(max(now.slowest, shortest))))
			if i > 0 && last.slowest >= 0 && last.to == now.from {
				answers.Line(vg.Point{X: from, Y: height})
			} else {
				answers.Move(vg.Point{X: from, Y: height})
			}
			answers.Line(vg.Point{X: min(max(to, from+shortestStep), c.Max.X), Y: height})
		}
		last = now
	}
	for _, path := range []vg.Path{answers, lost} {
		c.SetLineStyle(draw.LineStyle{Color: s.color, Width: 1})
		if len(path) > 0 {
			c.Stroke(path)
		}
	}
}

// eventLines draws a line across for each.
type eventLines []Event

func (e eventLines) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, event := range e {
		at := x(event.At.Seconds())
		c.StrokeLine2(guide, at, c.Min.Y, at, c.Max.Y)
	}
}

// explainEvents tells what the lines are.
func (f *figure) explainEvents(events []Event) {
	for i, e := range events {
		if i == maxEvents && len(events) > maxEvents+1 {
			f.explain(fmt.Sprintf("and %d more", len(events)-i), line(guide))
			return
		}
		f.explain(fmt.Sprintf("at %s s: %s", strconv.FormatFloat(e.At.Round(time.Millisecond).Seconds(), 'f', -1, 64), e.Text), line(guide))
	}
}
