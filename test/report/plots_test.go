package report

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"
	"pgregory.net/rapid"
)

// What is drawn of a distribution is what was measured, but for steps too small
// to see.
func TestLaterAgainstCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.SliceOfN(rapid.Float64Range(1, 1000), 0, 3000).Draw(t, "ms")
		slices.Sort(ms)
		n := len(ms) + rapid.IntRange(0, 100).Draw(t, "lost")
		if n == 0 {
			return
		}
		points := later(ms, n, 1, 2000)
		if !slices.IsSortedFunc(points, func(a, b plotter.XY) int {
			if a.X > b.X || a.Y < b.Y {
				return 1
			}
			return 0
		}) {
			t.Fatalf("the line turns back: %v", points)
		}
		for range 20 {
			x := rapid.Float64Range(1, 2000).Draw(t, "x")
			want := share(n-len(ms)+countLater(ms, x), n)
			got := 1.0
			for _, p := range points {
				if p.X <= x {
					got = p.Y
				}
			}
			if got < want || got-want > 1.0/linearSteps || want > 0 && (got-want)/want > 1.02/logSteps {
				t.Fatalf("%v of the calls are later than %v, drawn %v", want, x, got)
			}
		}
		if last := points[len(points)-1]; last.X != 2000 || last.Y != share(n-len(ms), n) {
			t.Fatalf("the line ends at %v", last)
		}
	})
}

func countLater(ms []float64, x float64) int {
	n := 0
	for _, m := range ms {
		if m > x {
			n++
		}
	}
	return n
}

// Slots keep every lost call and the slowest answer, in the order of time.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSeries(t, 0, 200)
		width := rapid.SampledFrom(append([]time.Duration{0}, slotWidths...)).Draw(t, "width")
		slots := s.slots(width)
		lost, slowest := 0, Lost
		for i, x := range slots {
			lost += x.lost
			slowest = max(slowest, x.slowest)
			if i > 0 && (x.from < slots[i-1].from || x.from < slots[i-1].to) {
				t.Fatalf("slot %d is from %v, but the one before from %v to %v", i, x.from, slots[i-1].from, slots[i-1].to)
			}
			if x.lost == 0 && x.slowest < 0 {
				t.Fatalf("slot %d is empty", i)
			}
		}
		wantLost, wantSlowest := 0, Lost
		for _, l := range s.Latency {
			if l < 0 {
				wantLost++
			}
			wantSlowest = max(wantSlowest, l)
		}
		if lost != wantLost || slowest != wantSlowest {
			t.Fatalf("%d lost and %v, want %d and %v", lost, slowest, wantLost, wantSlowest)
		}
	})
}

func TestSlotWidth(t *testing.T) {
	calls := func(n int, every time.Duration) Series {
		s := Series{At: make([]time.Duration, n), Latency: make([]time.Duration, n)}
		for i := range n {
			s.At[i] = time.Duration(i) * every
		}
		return s
	}
	tests := []struct {
		series []Series
		want   time.Duration
	}{
		{nil, 0},
		{[]Series{calls(600, 100*ms)}, 0},
		{[]Series{calls(4000, ms)}, 0},
		{[]Series{calls(4001, ms)}, time.Second},
		{[]Series{calls(3001, 100*ms), calls(3001, 100*ms), calls(3001, 100*ms), calls(3001, 100*ms)}, time.Second},
		{[]Series{calls(72_000, 100*ms)}, 2 * time.Second},
		{[]Series{calls(5000, 24*time.Hour)}, time.Hour},
	}
	for i, tt := range tests {
		if _, width := allSlots(tt.series); width != tt.want {
			t.Errorf("case %d: one step for %v, want %v", i, width, tt.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for x, want := range map[float64]string{0: "0 %", 1: "100 %", 0.1: "10 %", 0.123456: "12.3 %", 0.00389: "0.389 %", 0.000001234: "0.000123 %", 1e-20: "0 %"} {
		if got := percent(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
}

// Axes begin and end at numbers that they show.
func TestRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Pow(10, rapid.Float64Range(-2, 8).Draw(t, "exponent"))
		down, up := roundDown(x), roundUp(x)
		if down > x || up < x || up/x > 2.51 || x/down > 2.51 {
			t.Fatalf("%v is between %v and %v", x, down, up)
		}
		if ticks := (logTicks{}).Ticks(down, 2.5*up); len(ticks) == 0 {
			t.Fatalf("no number between %v and %v", down, up)
		}
	})
}

func TestLinearTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-100, 1000).Draw(t, "low")
		high := low + math.Pow(10, rapid.Float64Range(0, 6).Draw(t, "exponent"))
		ticks := linearTicks{}.Ticks(low, high)
		if len(ticks) < 4 || len(ticks) > 14 {
			t.Fatalf("%d numbers from %v to %v", len(ticks), low, high)
		}
	})
}

func TestWrap(t *testing.T) {
	style := textStyle(13)
	const width = 100
	for _, s := range []string{"", "short", "a line that is much too long for so little room and so is broken", "Donaudampfschifffahrtsgesellschaft alone"} {
		for _, l := range style.Handler.Lines(wrap(style, s, width)) {
			if style.Rectangle(l).Size().X > width && len(l) < 30 {
				t.Errorf("%q is too long", l)
			}
		}
	}
}
