package report

import (
	"fmt"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// Confidence of every interval in a report.
const Confidence = 0.999

// binomialInterval is the central interval of a binomial count: of n independent
// trials that succeed with probability p, fewer than lo succeed with probability
// (1-confidence)/2 at most, and so do more than hi. Both ends are exact. It
// panics if n is negative, p not within 0 and 1, or confidence not between them.
func binomialInterval(n int, p, confidence float64) (lo, hi int) {
	if n < 0 || !(p >= 0 && p <= 1) || !(confidence > 0 && confidence < 1) {
		panic(fmt.Sprintf("report: no binomial interval for n = %d, p = %v, confidence %v", n, p, confidence))
	}
	tail := (1 - confidence) / 2
	// The first k that leaves too much below it, and the first that leaves little
	// enough above it.
	lo = sort.Search(n, func(k int) bool { return atMost(k, n, p) > tail })
	hi = sort.Search(n, func(k int) bool { return atLeast(k+1, n, p) <= tail })
	return lo, hi
}

// atLeast is the probability of k successes or more.
func atLeast(k, n int, p float64) float64 {
	switch {
	case k <= 0:
		return 1
	case k > n:
		return 0
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

// atMost is the probability of k successes or fewer.
func atMost(k, n int, p float64) float64 { return atLeast(n-k, n, 1-p) }

// clopperPearson is the exact interval for the share behind k successes in n
// independent trials: a true share outside it would give so few, or so many, with
// probability (1-confidence)/2 at most. Of no trials nothing is known: 0 to 1. It
// panics if k is not within 0 and n, or confidence not between 0 and 1.
func clopperPearson(k, n int, confidence float64) (lo, hi float64) {
	if k < 0 || k > n || !(confidence > 0 && confidence < 1) {
		panic(fmt.Sprintf("report: no interval for %d of %d with confidence %v", k, n, confidence))
	}
	tail := (1 - confidence) / 2
	hi = 1
	if k > 0 {
		lo = mathext.InvRegIncBeta(float64(k), float64(n-k+1), tail)
	}
	if k < n {
		hi = 1 - mathext.InvRegIncBeta(float64(n-k), float64(k+1), tail)
	}
	return lo, hi
}

// Share of the calls that missed; 0 of none.
func (p Point) Share() float64 { return share(p.Missed, p.Calls) }

// Interval is where the true share lies, with Confidence.
func (p Point) Interval() (lo, hi float64) { return clopperPearson(p.Missed, p.Calls, Confidence) }

// Expected is between how many misses a run must end, with Confidence, if the
// prediction is right and calls are independent. It needs a prediction.
func (p Point) Expected() (lo, hi int) { return binomialInterval(p.Calls, *p.Predicted, Confidence) }

// Agrees says whether the run came out as predicted; without a prediction it did.
func (p Point) Agrees() bool {
	if p.Predicted == nil {
		return true
	}
	lo, hi := p.Expected()
	return lo <= p.Missed && p.Missed <= hi
}
