package replicate

import (
	"math/rand/v2"
	"testing"
	"time"
)

// carriage is one path of a simulation: a copy of number n arrives after delay
// unless lose(n).
type carriage struct {
	delay time.Duration
	lose  func(n int) bool
}

// randomly loses a share of the copies.
func randomly(share float64, seed uint64) func(int) bool {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(int) bool { return r.Float64() < share }
}

// never loses nothing.
func never(int) bool { return false }

// simulate sends count numbers at a steady rate over the paths, starting after
// the number given, and checks that each number of which a copy came is passed
// once. It returns the counters 3 s after the last copy.
func simulate(t *testing.T, from Seq, rate, count int, paths []carriage) Counters {
	t.Helper()
	e := NewEliminator()
	c := clock{now: t0, settled: t0}
	arrived := make([]bool, count)
	passed := make([]uint8, count)
	step := time.Second / time.Duration(rate)
	sent := make([]int, len(paths)) // numbers that have come, or will not, per path
	for done := 0; done < len(paths); {
		next, at := -1, time.Duration(0)
		for i, p := range paths {
			if due := time.Duration(sent[i])*step + p.delay; sent[i] < count && (next < 0 || due < at) {
				next, at = i, due
			}
		}
		n := sent[next]
		if sent[next]++; sent[next] == count {
			done++
		}
		if paths[next].lose(n) {
			continue
		}
		c.advance(e, t0.Add(at).Sub(c.now))
		verdict := e.Accept(epA, from+Seq(n), c.now)
		if verdict == Pass {
			passed[n]++
		}
		if verdict == Rogue || arrived[n] == (verdict == Pass) {
			t.Fatalf("number %d on path %d at %v: verdict %d, came before: %v", n, next, at, verdict, arrived[n])
		}
		arrived[n] = true
	}
	for n := range passed {
		if arrived[n] != (passed[n] == 1) {
			t.Fatalf("number %d passed %d times, arrived: %v", n, passed[n], arrived[n])
		}
	}
	c.advance(e, 3*time.Second)
	return e.Counters()
}

func TestSkewedPaths(t *testing.T) {
	const rate, count = 20_000, 10 * 20_000
	burst := func(n int) bool { return n/rate%3 == 1 } // one second in three
	tests := []struct {
		name  string
		paths []carriage
		lost  bool // some numbers come by no path
	}{
		{"A loses 20 %, B is 300 ms later", []carriage{{0, randomly(0.2, 1)}, {300 * time.Millisecond, never}}, false},
		{"A loses 80 %, B is 300 ms later", []carriage{{0, randomly(0.8, 2)}, {300 * time.Millisecond, never}}, false},
		{"A loses seconds, B is 300 ms later", []carriage{{0, burst}, {300 * time.Millisecond, never}}, false},
		{"A loses all, B is 3 s later", []carriage{{0, func(n int) bool { return n > 0 }}, {3 * time.Second, never}}, false},
		{"A loses 50 %, B is 3.2 s later", []carriage{{0, randomly(0.5, 3)}, {3200 * time.Millisecond, never}}, false},
		{"both lose, three paths", []carriage{
			{0, randomly(0.5, 4)}, {30 * time.Millisecond, randomly(0.3, 5)}, {300 * time.Millisecond, randomly(0.8, 6)},
		}, true},
	}
	for _, tt := range tests {
		for _, from := range []Seq{1, 1<<32 - count/2} {
			t.Run(tt.name, func(t *testing.T) {
				got := simulate(t, from, rate, count, tt.paths)
				if got.Passed+got.Lost != count && !tt.lost || got.Rogue != 0 || got.Resets != 0 {
					t.Errorf("%+v", got)
				}
				if (got.Lost > 0) != tt.lost || got.Passed+got.Lost < count-1000 {
					t.Errorf("%+v", got)
				}
			})
		}
	}
}

// Copies come in the worst order that the window allows, block after block.
func TestDeepReorder(t *testing.T) {
	orders := map[string]func(i int) int{
		"backwards": func(i int) int { return Window - 1 - i },
		"last first": func(i int) int {
			return (i + Window - 1) % Window
		},
		"strided": func(i int) int { return i * 4097 % Window },
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			e := NewEliminator()
			base := Seq(1<<32 - 3*Window/2)
			for range 4 {
				for round, want := range []Verdict{Pass, Discard} {
					for i := range Window {
						s := base + Seq(order(i))
						if got := e.Accept(epA, s, t0); got != want {
							t.Fatalf("round %d, number %d: %d", round, s, got)
						}
					}
				}
				base += Window
			}
			if got := e.Counters(); got.Passed != 4*Window || got.Discarded != 4*Window || got.Rogue != 0 || got.Lost != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}
