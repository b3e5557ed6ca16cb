package play

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/report"
	"github.com/fogplr/fogplr/test/scenario"
)

const ms = time.Millisecond

// oracleScenario has two carriers of one table; b goes dark in the second row.
func oracleScenario(t *testing.T) *scenario.Scenario {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rtt.csv")
	if err := os.WriteFile(file, []byte("a,b\n100,20\n60,-1\n-1,-1\n300,200\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &scenario.Scenario{Seed: 1}
	for _, c := range []string{"a", "b"} {
		p := lab.Params{Delay: ms, RTT: &lab.RTT{File: file, Column: c, Steps: true}}
		s.Carriers = append(s.Carriers, scenario.Carrier{CarrierOptions: lab.CarrierOptions{Interface: c, Up: p, Down: p}})
	}
	return s
}

func TestOracle(t *testing.T) {
	s := oracleScenario(t)
	for _, c := range []struct {
		at   time.Duration
		work time.Duration
		only []string
		want time.Duration
	}{
		{at: 0, want: 22 * ms},
		{at: 0, only: []string{"a"}, want: 102 * ms},
		{at: 995 * ms, want: 42 * ms},                              // up by b, down by a
		{at: 995 * ms, only: []string{"b"}, want: report.Lost},     // the way down is gone
		{at: 980 * ms, work: 100 * ms, want: (11 + 100 + 31) * ms}, // worked on meanwhile
		{at: 1500 * ms, want: 62 * ms},                             // a alone
		{at: 2500 * ms, want: report.Lost},                         // nobody
		{at: 3 * time.Second, only: []string{"b", "a"}, want: 202 * ms},
		{at: 5 * time.Second, want: 62 * ms}, // from the beginning again
	} {
		got, err := Oracle(s, c.only, []Call{{At: c.at}}, c.work)
		if err != nil || len(got) != 1 || got[0] != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	s.Carriers[1].Down.Loss = 0.1
	if _, err := Oracle(s, nil, nil, 0); err == nil {
		t.Error("an ideal was found for a link that loses by luck")
	}
}

func TestCallsOf(t *testing.T) {
	start := time.Unix(1000, 0)
	events := []apps.Event{
		{Seq: 1, T: 999.9, LatencyMS: 10, By: "west"}, // before the start
		{Seq: 2, T: 1000.5, LatencyMS: 40, By: "east"},
		{Seq: 2, T: 1000.5, LatencyMS: 70, By: "west", Extra: true},
		{Seq: 3, T: 1000.75, Lost: true},
		{Seq: 3, T: 1000.75, LatencyMS: 6000, By: "west", Late: true},
		{Seq: 4, T: 1002, LatencyMS: 40, By: "east"}, // after the end
	}
	want := []Call{
		{At: 500 * ms, Latency: 40 * ms, By: "east", Replies: 2},
		{At: 750 * ms, Latency: report.Lost, Replies: 1},
	}
	if got := callsOf(events, start, 2*time.Second); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPausesDependOnTheSeedAlone(t *testing.T) {
	s := &scenario.Scenario{Seed: 3, Duration: time.Hour, Gateways: []scenario.Gateway{
		{Name: "west", PauseEvery: 2 * time.Second, PauseFor: 300 * ms}, {Name: "east"}, {Name: "north", PauseEvery: 2 * time.Second, PauseFor: 300 * ms},
	}}
	one, again := Pauses(s), Pauses(s)
	if !reflect.DeepEqual(one, again) {
		t.Error("the same seed gave other pauses")
	}
	stopped, end := map[string]time.Duration{}, map[string]time.Duration{}
	for _, f := range one {
		if f.At < end[f.Gateway] || f.At >= s.Duration || f.For <= 0 {
			t.Fatalf("%+v after a pause that ends at %v", f, end[f.Gateway])
		}
		end[f.Gateway] = f.At + f.For
		stopped[f.Gateway] += f.For
	}
	for name, d := range stopped {
		// 0.3 of 2.3 s, from some 1,500 pauses.
		if share := d.Seconds() / s.Duration.Seconds(); share < 0.11 || share > 0.15 {
			t.Errorf("%s was stopped %.1f %% of the time", name, 100*share)
		}
	}
	if stopped["east"] != 0 || stopped["west"] == stopped["north"] {
		t.Errorf("stopped: %v", stopped)
	}
}

func TestDifference(t *testing.T) {
	before := []Carrier{{Name: "a", Up: lab.Counters{Received: 10, ReceivedBytes: 1000, Lost: 1}, Down: lab.Counters{Received: 10}}}
	after := []Carrier{{Name: "a", Up: lab.Counters{Received: 30, ReceivedBytes: 5000, Lost: 3}, Down: lab.Counters{Received: 13, Lost: 1}}}
	got := difference(after, before)[0]
	if got.Up.Received != 20 || got.Up.ReceivedBytes != 4000 || got.Up.Lost != 2 {
		t.Errorf("up: %+v", got.Up)
	}
	if got.Down.Received != 3 || got.Down.Lost != 1 {
		t.Errorf("down: %+v", got.Down)
	}
}
