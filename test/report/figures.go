package report

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// lostAs is what a lost call counts as in the mean, and what every answer that
// took longer counts as.
const lostAs = 5 * time.Second

// deadlines are those that misses are counted for.
var deadlines = []time.Duration{100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond}

// Millis is a time in milliseconds: +Inf is that of a lost call, NaN that of no
// call at all. In JSON both are null.
type Millis float64

func millis(d time.Duration) Millis { return Millis(d.Seconds() * 1000) }

// MarshalJSON writes a number with a resolution of a microsecond, or null.
func (m Millis) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(m), 0) || math.IsNaN(float64(m)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(float64(m)*1000)/1000, 'f', -1, 64), nil
}

// String is for tables: three digits or more, "lost", or a dash where there is
// nothing.
func (m Millis) String() string {
	x := float64(m)
	switch {
	case math.IsNaN(x):
		return "–"
	case math.IsInf(x, 0):
		return "lost"
	case x < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 99.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return count(int(math.Round(x)))
}

// Figures are what a table says of a series.
type Figures struct {
	Calls     int     `json:"calls"`
	Answered  int     `json:"answered"`
	Lost      int     `json:"lost"`
	LostShare float64 `json:"lost_share"`
	// Mean counts a lost call, and an answer after more than 5 s, as 5 s.
	Mean Millis `json:"mean_ms"`
	// The quantiles are latencies that were measured: of 100 calls sorted by
	// latency P90 is the 90th. A lost call sorts last.
	P50    Millis `json:"p50_ms"`
	P90    Millis `json:"p90_ms"`
	P99    Millis `json:"p99_ms"`
	P999   Millis `json:"p999_ms"`
	Max    Millis `json:"max_ms"`
	Misses []Miss `json:"misses"`
	// Gap is the longest time without an answer: between two answers, from the
	// first call to the first answer, or from the last answer to the last call.
	Gap Millis `json:"longest_gap_ms"`
}

// Miss counts the calls without an answer by a deadline, lost ones included. An
// answer right at the deadline is in time.
type Miss struct {
	Deadline Millis  `json:"deadline_ms"`
	Count    int     `json:"count"`
	Share    float64 `json:"share"`
}

// Figures of the series. If it has no calls, all are 0, and the times NaN.
func (s Series) Figures() Figures {
	sorted := slices.DeleteFunc(slices.Clone(s.Latency), func(l time.Duration) bool { return l < 0 })
	slices.Sort(sorted)
	n := len(s.Latency)
	f := Figures{
		Calls: n, Answered: len(sorted), Lost: n - len(sorted), LostShare: share(n-len(sorted), n),
		Mean: mean(sorted, n),
		P50:  quantile(sorted, n, 500),
		P90:  quantile(sorted, n, 900),
		P99:  quantile(sorted, n, 990),
		P999: quantile(sorted, n, 999),
		Max:  quantile(sorted, n, 1000),
		Gap:  s.gap(),
	}
	for _, d := range deadlines {
		inTime, _ := slices.BinarySearch(sorted, d+1)
		f.Misses = append(f.Misses, Miss{Deadline: millis(d), Count: n - inTime, Share: share(n-inTime, n)})
	}
	return f
}

// share is k/n, or 0 of none.
func share(k, n int) float64 {
	if n == 0 {
		return 0
	}
	return float64(k) / float64(n)
}

// mean of n calls of which only those in answered were not lost.
func mean(answered []time.Duration, n int) Millis {
	if n == 0 {
		return Millis(math.NaN())
	}
	sum := float64(n-len(answered)) * lostAs.Seconds()
	for _, l := range answered {
		sum += min(l, lostAs).Seconds()
	}
	return Millis(1000 * sum / float64(n))
}

// quantile is the smallest latency that at least permille of n calls do not
// exceed; answered are those that were not lost, sorted.
func quantile(answered []time.Duration, n, permille int) Millis {
	rank := (n*permille + 999) / 1000 // of the n calls sorted, from 1
	switch {
	case n == 0:
		return Millis(math.NaN())
	case rank > len(answered):
		return Millis(math.Inf(1))
	}
	return millis(answered[max(rank, 1)-1])
}

// gap is Figures.Gap.
func (s Series) gap() Millis {
	if len(s.At) == 0 {
		return Millis(math.NaN())
	}
	first, last := slices.Min(s.At), slices.Max(s.At)
	instants := []time.Duration{first}
	for i, l := range s.Latency {
		if l >= 0 {
			instants = append(instants, s.At[i]+l)
		}
	}
	slices.Sort(instants)
	instants = append(instants, max(last, instants[len(instants)-1]))
	var longest time.Duration
	for i := 1; i < len(instants); i++ {
		longest = max(longest, instants[i]-instants[i-1])
	}
	return millis(longest)
}
