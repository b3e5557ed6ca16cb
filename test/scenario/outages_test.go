package scenario

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write generated files anew")

// outageColumn returns an hour of round trips in ms, one a second, with 60 outages
// of 1 to 5 s, together 3 minutes, at random places.
func outageColumn(seed uint64, base float64) []float64 {
	const seconds, outages = 3600, 60
	r := rand.New(rand.NewPCG(125, seed))
	runs := make([]int, seconds-3*outages+outages) // lengths of outages, 0 for a second with service
	for i := range outages {
		runs[i] = 1 + i%5
	}
	r.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	var ms []float64
	for _, n := range runs {
		if n == 0 {
			ms = append(ms, base*math.Exp(0.15*r.NormFloat64()))
		}
		for range n {
			ms = append(ms, -1)
		}
	}
	return ms
}

// The trace of the scenario with independent outages is what it says there.
func TestOutageTrace(t *testing.T) {
	file := filepath.Join(examples, "p125-outages.csv")
	// With these seeds the outages coincide as often as independent ones do on average.
	a, b := outageColumn(1, 45), outageColumn(6, 60)
	var text strings.Builder
	text.WriteString("a,b\n")
	outA, outB, both := 0, 0, 0
	for i := range a {
		fmt.Fprintf(&text, "%.1f,%.1f\n", a[i], b[i])
		if a[i] < 0 {
			outA++
		}
		if b[i] < 0 {
			outB++
		}
		if a[i] < 0 && b[i] < 0 {
			both++
		}
	}
	if len(a) != 3600 || outA != 180 || outB != 180 || both != 9 {
		t.Errorf("of %d seconds a is out for %d, b for %d, both for %d", len(a), outA, outB, both)
	}
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(found) != text.String() {
		t.Errorf("%s is not what it was generated as (-update writes it)", file)
	}
}
