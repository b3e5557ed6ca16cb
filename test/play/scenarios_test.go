package play_test

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/fogplr/fogplr/test/play"
	"github.com/fogplr/fogplr/test/scenario"
	"github.com/fogplr/fogplr/test/tunnels"
)

// played runs one of the scenario files over fogplr.
func played(t *testing.T, name string) *play.Result {
	t.Helper()
	s, err := scenario.Load(filepath.Join("../lab/scenarios", name+".toml"))
	if err != nil {
		t.Fatal(err)
	}
	tunnel, err := tunnels.ByName("fogplr", tunnels.Options{Config: s.Robot})
	if err != nil {
		t.Fatal(err)
	}
	r, err := play.Run(t.Context(), s, play.Options{Tunnel: tunnel, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// noneLost fails the test if a call or a sample was lost, or a program failed.
func noneLost(t *testing.T, r *play.Result) {
	t.Helper()
	for i := range r.Work {
		w := &r.Work[i]
		if w.Failed != "" {
			t.Errorf("%s: %s", w.Name, w.Failed)
		}
		if w.Type == scenario.RPC {
			f := r.Series(w, w.Name).Figures()
			t.Logf("%s: %d calls, %d lost, 99 %% %v ms, slowest %v ms, longest gap %v ms", w.Name, f.Calls, f.Lost, f.P99, f.Max, f.Gap)
			if f.Lost > 0 || f.Calls == 0 {
				t.Errorf("%s: %d of %d calls lost", w.Name, f.Lost, f.Calls)
			}
		}
		for gateway, s := range w.Streams {
			t.Logf("%s to %s: %+v", w.Name, gateway, s)
			if s.Lost > 0 || s.Received == 0 {
				t.Errorf("%s to %s: %d samples lost, %d received", w.Name, gateway, s.Lost, s.Received)
			}
		}
	}
}

// One of three carriers is taken down, and 100 samples a second go on.
func TestOneOfThreeDown(t *testing.T) {
	r := played(t, "p037-one-of-three-down")
	noneLost(t, r)
	for gateway, s := range r.Work[0].Streams {
		// 10 ms between two samples and 4 ms of jitter; the machine may be busy.
		if s.LongestGapMS > 40 {
			t.Errorf("%s: %v ms without a sample", gateway, s.LongestGapMS)
		}
	}
}

// A deadline of 30 ms is met while the faster carrier is a black hole: nobody has
// the time to send anything again.
func TestDeadlineOf30ms(t *testing.T) {
	r := played(t, "p039-deadline-30ms")
	noneLost(t, r)
	late := 0
	for _, c := range r.Work[0].Calls {
		if c.Latency.Milliseconds() > 30 {
			late++
		}
	}
	if most := len(r.Work[0].Calls) / 200; late > most { // the machine may be busy
		t.Errorf("%d of %d calls took more than 30 ms", late, len(r.Work[0].Calls))
	}
}
