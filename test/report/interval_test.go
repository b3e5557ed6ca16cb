package report

import (
	"math"
	"math/big"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"pgregory.net/rapid"
)

// The quantiles are those of R's qbinom.
func TestBinomialInterval(t *testing.T) {
	tests := []struct {
		n             int
		p, confidence float64
		lo, hi        int
	}{
		{0, 0.5, 0.95, 0, 0},
		{7, 0, 0.95, 0, 0},
		{7, 1, 0.95, 7, 7},
		{1, 0.5, 0.95, 0, 1},
		{10, 0.5, 0.95, 2, 8},
		{20, 0.5, 0.95, 6, 14},
		{100, 0.5, 0.95, 40, 60},
		{100, 0.1, 0.95, 5, 16},
	}
	for _, tt := range tests {
		if lo, hi := binomialInterval(tt.n, tt.p, tt.confidence); lo != tt.lo || hi != tt.hi {
			t.Errorf("of %d with probability %v, %v: %d to %d, want %d to %d", tt.n, tt.p, tt.confidence, lo, hi, tt.lo, tt.hi)
		}
	}
}

// With many trials the interval is that of the normal distribution, nearly.
func TestBinomialIntervalOfMany(t *testing.T) {
	const n, p, z = 1_000_000, 0.01, 3.2905 // of 99.9 %
	lo, hi := binomialInterval(n, p, 0.999)
	half := z * math.Sqrt(n*p*(1-p))
	if math.Abs(float64(lo)-(n*p-half)) > 5 || math.Abs(float64(hi)-(n*p+half)) > 5 {
		t.Errorf("%d to %d, but the normal distribution says %.1f to %.1f", lo, hi, n*p-half, n*p+half)
	}
}

// Both ends are held against sums of fractions.
func TestBinomialIntervalAgainstSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		percent := rapid.Int64Range(0, 100).Draw(t, "percent")
		confidence := rapid.SampledFrom([]float64{0.5, 0.9, 0.95, 0.99, 0.999, 0.999999}).Draw(t, "confidence")
		lo, hi := binomialInterval(n, float64(percent)/100, confidence)
		below, above := 0.0, 0.0 // fewer than lo, more than hi
		belowNext, aboveNext := 0.0, 0.0
		for k := range n + 1 {
			mass, _ := mass(k, n, big.NewRat(percent, 100)).Float64()
			if k < lo {
				below += mass
			}
			if k <= lo {
				belowNext += mass
			}
			if k > hi {
				above += mass
			}
			if k >= hi {
				aboveNext += mass
			}
		}
		tail, nearly := (1-confidence)/2, 1e-12
		if below > tail+nearly || above > tail+nearly {
			t.Fatalf("%d to %d leaves out too much: %v below, %v above, of %v", lo, hi, below, above, tail)
		}
		if belowNext <= tail-nearly || hi > 0 && aboveNext <= tail-nearly {
			t.Fatalf("%d to %d could be narrower: %v, %v, %v", lo, hi, belowNext, aboveNext, tail)
		}
	})
}

// mass is the probability of k of n.
func mass(k, n int, p *big.Rat) *big.Rat {
	m := new(big.Rat).SetInt(new(big.Int).Binomial(int64(n), int64(k)))
	q := new(big.Rat).Sub(big.NewRat(1, 1), p)
	for range k {
		m.Mul(m, p)
	}
	for range n - k {
		m.Mul(m, q)
	}
	return m
}

// The intervals are those that R's binom.test prints.
func TestClopperPearson(t *testing.T) {
	tests := []struct {
		k, n   int
		lo, hi float64
	}{
		{0, 0, 0, 1},
		{0, 10, 0, 0.3084971},
		{10, 10, 1 - 0.3084971, 1},
		{5, 10, 0.1870860, 0.8129140},
		{1, 100, 0.0002531460, 0.0544593},
		{682, 925, 0.7076683, 0.7654066},
	}
	for _, tt := range tests {
		lo, hi := clopperPearson(tt.k, tt.n, 0.95)
		if math.Abs(lo-tt.lo) > 1e-6 || math.Abs(hi-tt.hi) > 1e-6 {
			t.Errorf("%d of %d: %.7f to %.7f, want %.7f to %.7f", tt.k, tt.n, lo, hi, tt.lo, tt.hi)
		}
	}
}

// At the ends so few, or so many, have just the probability of a tail.
func TestClopperPearsonTails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200_000).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		lo, hi := clopperPearson(k, n, Confidence)
		const tail = (1 - Confidence) / 2
		if share := share(k, n); lo > share || hi < share {
			t.Fatalf("%d of %d: %v to %v without %v", k, n, lo, hi, share)
		}
		if k > 0 {
			if got := mathext.RegIncBeta(float64(k), float64(n-k+1), lo); math.Abs(got-tail) > 1e-6 {
				t.Errorf("%d or more of %d have probability %v at %v", k, n, got, lo)
			}
		}
		if k < n {
			if got := mathext.RegIncBeta(float64(n-k), float64(k+1), 1-hi); math.Abs(got-tail) > 1e-6 {
				t.Errorf("%d or fewer of %d have probability %v at %v", k, n, got, hi)
			}
		}
	})
}

func TestPoint(t *testing.T) {
	tests := []struct {
		missed    int
		predicted *float64
		agrees    bool
	}{
		{10, nil, true},
		{10, new(0.01), true},
		{0, new(0.01), false},
		{30, new(0.01), false},
		{0, new(0.0), true},
		{1, new(0.0), false},
		{1000, new(1.0), true},
	}
	for _, tt := range tests {
		p := Point{Calls: 1000, Missed: tt.missed, Predicted: tt.predicted}
		if p.Agrees() != tt.agrees {
			t.Errorf("%d of 1000 agree with the prediction: %v", tt.missed, p.Agrees())
		}
	}
}

func TestIntervalsRefuse(t *testing.T) {
	for name, f := range map[string]func(){
		"a negative number":        func() { binomialInterval(-1, 0.5, 0.9) },
		"no probability":           func() { binomialInterval(1, 1.5, 0.9) },
		"a probability of NaN":     func() { binomialInterval(1, math.NaN(), 0.9) },
		"a confidence of 1":        func() { binomialInterval(1, 0.5, 1) },
		"more successes than runs": func() { clopperPearson(2, 1, 0.9) },
		"a confidence of 0":        func() { clopperPearson(1, 1, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", name)
				}
			}()
			f()
		}()
	}
}
