package report

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

// evenly sends a call every 100 ms.
func evenly(latencies ...time.Duration) Series {
	s := Series{Name: "s", Latency: latencies}
	for i := range latencies {
		s.At = append(s.At, time.Duration(i)*100*ms)
	}
	return s
}

func TestFigures(t *testing.T) {
	lost := Millis(math.Inf(1))
	thousand := make([]time.Duration, 1000)
	for i := range thousand {
		thousand[i] = time.Duration(1000-i) * ms // 1 to 1000 ms
	}
	tests := []struct {
		name   string
		series Series
		want   Figures
	}{
		{"one call", evenly(40 * ms), Figures{
			Calls: 1, Answered: 1, Mean: 40, P50: 40, P90: 40, P99: 40, P999: 40, Max: 40,
			Misses: []Miss{{100, 0, 0}, {150, 0, 0}, {200, 0, 0}}, Gap: 40}},
		{"one lost call", evenly(Lost), Figures{
			Calls: 1, Lost: 1, LostShare: 1, Mean: 5000, P50: lost, P90: lost, P99: lost, P999: lost, Max: lost,
			Misses: []Miss{{100, 1, 1}, {150, 1, 1}, {200, 1, 1}}, Gap: 0}},
		{"right at a deadline, and just after", evenly(100*ms, 100*ms+1, 200*ms, Lost), Figures{
			Calls: 4, Answered: 3, Lost: 1, LostShare: 0.25, Mean: (100 + 100.000001 + 200 + 5000) / 4,
			P50: 100.000001, P90: lost, P99: lost, P999: lost, Max: lost,
			Misses: []Miss{{100, 3, 0.75}, {150, 2, 0.5}, {200, 1, 0.25}}, Gap: 200 - 0.000001}},
		{"later than what lost calls count as", evenly(1*time.Minute, 10*ms), Figures{
			Calls: 2, Answered: 2, Mean: 2505, P50: 10, P90: 60000, P99: 60000, P999: 60000, Max: 60000,
			Misses: []Miss{{100, 1, 0.5}, {150, 1, 0.5}, {200, 1, 0.5}}, Gap: 59890}},
		{"a thousand", evenly(thousand...), Figures{
			Calls: 1000, Answered: 1000, Mean: 500.5, P50: 500, P90: 900, P99: 990, P999: 999, Max: 1000,
			Misses: []Miss{{100, 900, 0.9}, {150, 850, 0.85}, {200, 800, 0.8}}, Gap: 1000}},
	}
	for _, tt := range tests {
		compare(t, tt.name, tt.series.Figures(), tt.want)
	}
}

func compare(t interface{ Errorf(string, ...any) }, name string, got, want Figures) {
	near := func(a, b Millis) bool {
		return a == b || math.Abs(float64(a-b)) < 1e-6*max(1, math.Abs(float64(b)))
	}
	ok := got.Calls == want.Calls && got.Answered == want.Answered && got.Lost == want.Lost && got.LostShare == want.LostShare &&
		near(got.Mean, want.Mean) && near(got.P50, want.P50) && near(got.P90, want.P90) && near(got.P99, want.P99) &&
		near(got.P999, want.P999) && near(got.Max, want.Max) && near(got.Gap, want.Gap) && slices.Equal(got.Misses, want.Misses)
	if !ok {
		t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
	}
}

func TestFiguresOfNothing(t *testing.T) {
	f := Series{}.Figures()
	for _, m := range []Millis{f.Mean, f.P50, f.P999, f.Max, f.Gap} {
		if !math.IsNaN(float64(m)) || m.String() != "–" {
			t.Errorf("a time of no call is %v", m)
		}
	}
	if f.Calls != 0 || f.LostShare != 0 || f.Misses[0].Share != 0 {
		t.Errorf("figures of no call: %+v", f)
	}
}

func TestMillis(t *testing.T) {
	tests := []struct {
		ms         Millis
		text, json string
	}{
		{0, "0.00", "0"},
		{0.4567, "0.46", "0.457"},
		{9.994, "9.99", "9.994"},
		{9.996, "10.0", "9.996"},
		{99.94, "99.9", "99.94"},
		{99.96, "100", "99.96"},
		{12345.6, "12,346", "12345.6"},
		{Millis(math.Inf(1)), "lost", "null"},
		{Millis(math.NaN()), "–", "null"},
	}
	for _, tt := range tests {
		encoded, err := json.Marshal(tt.ms)
		if err != nil || string(encoded) != tt.json || tt.ms.String() != tt.text {
			t.Errorf("%v is %q and in JSON %s, %v; want %q and %s", float64(tt.ms), tt.ms.String(), encoded, err, tt.text, tt.json)
		}
	}
}

// naive computes figures by their definitions, without order or search.
func naive(s Series) Figures {
	n := len(s.Latency)
	f := Figures{Calls: n}
	value := func(l time.Duration) float64 {
		if l < 0 {
			return math.Inf(1)
		}
		return l.Seconds() * 1000
	}
	sum := 0.0
	for _, l := range s.Latency {
		if l < 0 {
			f.Lost++
		}
		sum += min(value(l), 5000)
	}
	f.Answered, f.LostShare, f.Mean = n-f.Lost, float64(f.Lost)/float64(n), Millis(sum/float64(n))
	quantile := func(permille int) Millis {
		best := math.Inf(1)
		for _, x := range s.Latency {
			within := 0
			for _, y := range s.Latency {
				if value(y) <= value(x) {
					within++
				}
			}
			if 1000*within >= permille*n {
				best = min(best, value(x))
			}
		}
		return Millis(best)
	}
	f.P50, f.P90, f.P99, f.P999, f.Max = quantile(500), quantile(900), quantile(990), quantile(999), quantile(1000)
	for _, deadline := range []float64{100, 150, 200} {
		late := 0
		for _, l := range s.Latency {
			if value(l) > deadline {
				late++
			}
		}
		f.Misses = append(f.Misses, Miss{Millis(deadline), late, float64(late) / float64(n)})
	}
	moments := []time.Duration{slices.Min(s.At)}
	for i, l := range s.Latency {
		if l >= 0 {
			moments = append(moments, s.At[i]+l)
		}
	}
	if end := slices.Max(s.At); end > slices.Max(moments) {
		moments = append(moments, end)
	}
	for _, from := range moments {
		next := slices.Max(moments)
		for _, m := range moments {
			if m > from {
				next = min(next, m)
			}
		}
		f.Gap = max(f.Gap, Millis((next-from).Seconds()*1000))
	}
	return f
}

// drawSeries has calls at any times, many of them alike, lost, or right at a
// deadline.
func drawSeries(t *rapid.T, fewest, most int) Series {
	n := rapid.IntRange(fewest, most).Draw(t, "calls")
	latency := rapid.OneOf(
		rapid.Just(Lost),
		rapid.SampledFrom([]time.Duration{0, 1, 100 * ms, 100*ms + 1, 150 * ms, 200 * ms, 5 * time.Second}),
		rapid.Map(rapid.IntRange(0, 300), func(x int) time.Duration { return time.Duration(x) * ms }),
		rapid.Map(rapid.Int64Range(0, int64(time.Hour)), func(x int64) time.Duration { return time.Duration(x) }),
	)
	return Series{
		Name:    "drawn",
		At:      rapid.SliceOfN(rapid.Map(rapid.IntRange(-100, 10000), func(x int) time.Duration { return time.Duration(x) * ms }), n, n).Draw(t, "at"),
		Latency: rapid.SliceOfN(latency, n, n).Draw(t, "latency"),
	}
}

func TestFiguresAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSeries(t, 1, 120)
		compare(t, "drawn", s.Figures(), naive(s))
	})
}
