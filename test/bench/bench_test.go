package bench

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/play"
	"github.com/fogplr/fogplr/test/report"
	"github.com/fogplr/fogplr/test/scenario"
)

func TestMain(m *testing.M) {
	lab.Main()
	os.Exit(m.Run())
}

// table writes a drive: carrier b is better on the whole.
func table(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "my drive.csv")
	text := "a,b\n" + strings.Repeat("100,40\n", 5) + "20,-1\n" + strings.Repeat("100,40\n", 4)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDriveScenario(t *testing.T) {
	d := FileDrive("mine", table(t), "a", "b")
	for _, c := range []struct {
		length, want time.Duration
		first        int // at most
	}{{0, 10 * time.Second, 0}, {time.Hour, 10 * time.Second, 0}, {4 * time.Second, 4 * time.Second, 6}} {
		s, err := d.scenario(c.length, 3)
		if err != nil {
			t.Fatal(err)
		}
		a, b := s.Carriers[0].Up.RTT, s.Carriers[1].Down.RTT
		if s.Duration != c.want || a.First > c.first || a.First != b.First {
			t.Errorf("length %v: %v from rows %d and %d", c.length, s.Duration, a.First, b.First)
		}
	}
	s, err := d.scenario(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if best, other, err := d.order(s); err != nil || best != "carrier-a" || other != "carrier-b" {
		// b is lost for a second in ten, which counts as 5 s.
		t.Errorf("%s before %s, %v", best, other, err)
	}
	generated := generatedDrives(1)[0]
	if s, err := generated.scenario(0, 1); err != nil || s.Duration != generatedLength {
		t.Errorf("a generated drive of %v, %v", s.Duration, err)
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		got, ideal float64
		fails      bool
	}{{100, 100, false}, {105.9, 100, false}, {106.1, 100, true}, {math.Inf(1), 100, true}, {math.Inf(1), math.Inf(1), false}} {
		failed := compare("calls", report.Figures{P99: report.Millis(c.got)}, report.Figures{P99: report.Millis(c.ideal)})
		if (len(failed) > 0) != c.fails {
			t.Errorf("%v against %v: %q", c.got, c.ideal, failed)
		}
	}
}

func TestLateShare(t *testing.T) {
	s := &scenario.Scenario{Duration: 10 * time.Second, Gateways: []scenario.Gateway{{Name: "one"}, {Name: "two"}},
		Faults: []scenario.Fault{{At: 2 * time.Second, For: time.Second, Kind: scenario.GatewayKill, Gateway: "one"}}}
	var calls []play.Call
	for at := time.Duration(0); at < s.Duration; at += 10 * time.Millisecond {
		calls = append(calls, play.Call{At: at})
	}
	// Too late from 2 s, less the way there, to 3 s and what it takes to come back,
	// less what the deadline leaves.
	want := (time.Second + comesBack - (replicaDue - replicaRTT)).Seconds() / s.Duration.Seconds()
	if got := lateShare(s, "one", calls); math.Abs(got-want) > 0.002 {
		t.Errorf("%v of the calls, want %v", got, want)
	}
	if got := lateShare(s, "two", calls); got != 0 {
		t.Errorf("%v of the calls to a gateway that is well", got)
	}
}

// A drive and the replicas, much shorter than for a report.
func TestBench(t *testing.T) {
	dir := t.TempDir()
	o := Options{
		Dir: dir, Drives: []Drive{FileDrive("mine", table(t), "a", "b")}, Only: []string{"replicas", "drive-mine"},
		Length: 4 * time.Second, Short: 3 * time.Second, Seed: 1, Log: testLog{t},
	}
	if _, err := Run(t.Context(), o); err != nil { // so short a run need not come out well
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fogplr, both", "fogplr, carrier-b alone", "WireGuard, carrier-", "WireGuard, fail-over", "fogplr, both, datagrams",
		"ideal, both", "2 gateways", "3.7 and 2.4 times"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	for _, file := range []string{"results.json", "drive-mine-tail.svg", "drive-mine-time.svg", "replicas-misses-1.svg"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
	o.Only = []string{"flying"}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "drive-mine") {
		t.Errorf("an unknown experiment: %v", err)
	}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}
