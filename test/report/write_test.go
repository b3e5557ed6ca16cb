package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

// example is a small report with everything in it.
func example() (Head, []Experiment) {
	head := Head{
		Title: "What the laboratory measured", Date: "2030-01-02", Machine: "2 cores, Linux 6.1", Commit: "abcdef0",
		Commands: []string{"make build", "make bench"},
	}
	one := evenly(30*ms, 40*ms, Lost, 160*ms, 50*ms)
	one.Name = "one carrier | alone"
	one.Bytes = map[string]Bytes{"wwan0": {Up: 1_500_000, Down: 2_250_000}}
	both := evenly(30*ms, 35*ms, 45*ms, 90*ms, 50*ms)
	both.Name = "both <fogplr> & co."
	both.Bytes = map[string]Bytes{"wwan0": {Up: 1_500_000, Down: 2_250_000}, "wlan0": {Up: 10_000, Down: 0}}
	return head, []Experiment{
		{
			ID: "drive", Title: "A drive", Text: "Two carriers.\n\nCompare with the paper.",
			Series: []Series{one, both, {Name: "nothing"}},
			Events: []Event{{At: 250 * ms, Text: "black hole of wwan0"}},
			Tables: []Titled{{Title: "Ratios.", Table: Table{{"", "p99"}, {"one / both", "1.8"}, {"a row without a number"}}}},
			Failed: []string{"The p99 of both is more than 5 % above the oracle's."},
		},
		{
			ID: "exponent", Title: "The exponent",
			Misses: []Misses{{Title: "Misses by carriers", Number: "carriers", Curves: []Curve{{
				Name: "fogplr",
				Points: []Point{
					{Number: 1, Calls: 2000, Missed: 203, Predicted: new(0.1)},
					{Number: 2, Calls: 2000, Missed: 60, Predicted: new(0.01)},
					{Number: 3, Calls: 2000, Missed: 0},
					{Number: 4, Calls: 0, Missed: 0},
				},
			}}}},
		},
	}
}

func TestWriteGolden(t *testing.T) {
	dir := t.TempDir()
	head, experiments := example()
	if err := Write(dir, head, experiments); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"results.md", "results.json", "drive.csv"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not as in testdata (-update writes it anew):\n%s", name, got)
		}
	}
}

// Whoever sees only a plot must learn what it shows, in which units, of how many
// calls.
func TestPlotsExplainThemselves(t *testing.T) {
	dir := t.TempDir()
	head, experiments := example()
	if err := Write(dir, head, experiments); err != nil {
		t.Fatal(err)
	}
	ofSeries := []string{"A drive", "one carrier | alone: n = 5 calls, 1 (20 %) lost", "both <fogplr> & co.: n = 5 calls, none lost", "nothing: n = 0 calls"}
	for name, want := range map[string][]string{
		"drive-tail.svg":        append(ofSeries, "latency (ms, logarithmic)", "share of calls that took longer", "p90: 10 %", "deadlines: 100 ms, 150 ms"),
		"drive-cdf.svg":         append(ofSeries, "latency (ms, logarithmic)", "share of calls answered by then", "50 %"),
		"drive-time.svg":        append(ofSeries, "latency (ms)", "time since the start (s)", "lost", "at 0.25 s: black hole of wwan0"),
		"exponent-misses-1.svg": {"Misses by carriers", "number of carriers", "share of calls that missed", "observed with 99.9 % interval: n = 2,000 calls each", "fogplr, predicted", "10 %", "10.2 %"},
	} {
		svg, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		text, err := svgText(svg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q, but:\n%s", name, w, text)
			}
		}
	}
}

// svgText is all text in a picture, line by line. It fails where something has no
// place.
func svgText(svg []byte) (string, error) {
	var b strings.Builder
	inText := false
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		switch x := token.(type) {
		case xml.StartElement:
			inText = x.Name.Local == "text"
			for _, a := range x.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					return "", fmt.Errorf("%s is drawn nowhere: %s", x.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				b.Write(x)
				b.WriteString("\n")
			}
		}
	}
}

// drawExperiment has anything that may come.
func drawExperiment(t *rapid.T) Experiment {
	text := rapid.OneOf(rapid.String(), rapid.StringN(0, 400, -1), rapid.Just("a\x00|\xff\uFFFE\n<&>"))
	e := Experiment{
		ID:     rapid.StringMatching(`[A-Za-z0-9-]{1,20}`).Draw(t, "id"),
		Title:  text.Draw(t, "title"),
		Text:   text.Draw(t, "text"),
		Failed: rapid.SliceOfN(text, 0, 2).Draw(t, "failed"),
		Events: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Event {
			return Event{time.Duration(rapid.Int64Range(-int64(time.Second), int64(time.Hour)).Draw(t, "at")), text.Draw(t, "event")}
		}), 0, 15).Draw(t, "events"),
		Tables: []Titled{{text.Draw(t, "table"), rapid.SliceOfN(rapid.SliceOfN(text, 0, 3), 0, 3).Draw(t, "cells")}},
	}
	for range rapid.IntRange(0, 9).Draw(t, "series") {
		s := drawSeries(t, 0, 40)
		s.Name = text.Draw(t, "name")
		e.Series = append(e.Series, s)
	}
	point := rapid.Custom(func(t *rapid.T) Point {
		p := Point{Number: rapid.IntRange(-3, 20).Draw(t, "number"), Calls: rapid.IntRange(0, 100_000).Draw(t, "calls")}
		p.Missed = rapid.OneOf(rapid.Just(0), rapid.Just(p.Calls), rapid.IntRange(0, p.Calls)).Draw(t, "missed")
		if rapid.Bool().Draw(t, "is predicted") {
			p.Predicted = new(rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1, 1e-9})).Draw(t, "predicted"))
		}
		return p
	})
	for range rapid.IntRange(0, 2).Draw(t, "misses") {
		m := Misses{Title: text.Draw(t, "title"), Number: text.Draw(t, "number")}
		for range rapid.IntRange(0, 4).Draw(t, "curves") {
			m.Curves = append(m.Curves, Curve{text.Draw(t, "curve"), rapid.SliceOfN(point, 0, 5).Draw(t, "points")})
		}
		e.Misses = append(e.Misses, m)
	}
	return e
}

// Whatever comes, files can be read and the same again comes out the same.
func TestWriteAnything(t *testing.T) {
	dirs := [2]string{t.TempDir(), t.TempDir()}
	rapid.Check(t, func(t *rapid.T) {
		e := drawExperiment(t)
		for _, dir := range dirs {
			if err := Write(dir, Head{Title: e.Title}, []Experiment{e}); err != nil {
				t.Fatal(err)
			}
		}
		files, err := os.ReadDir(dirs[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			first, err := os.ReadFile(filepath.Join(dirs[0], f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			second, err := os.ReadFile(filepath.Join(dirs[1], f.Name()))
			if err != nil || !bytes.Equal(first, second) {
				t.Fatalf("%s differs from run to run: %v", f.Name(), err)
			}
			switch filepath.Ext(f.Name()) {
			case ".svg":
				_, err = svgText(first)
			case ".json":
				err = json.Unmarshal(first, new(any))
			case ".csv":
				_, err = csv.NewReader(bytes.NewReader(first)).ReadAll()
			}
			if err != nil {
				t.Fatalf("%s: %v", f.Name(), err)
			}
			for _, dir := range dirs {
				if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// Half an hour at 30 calls a second, with much lost, still makes small pictures.
func TestPlotsStaySmall(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	e := Experiment{ID: "long", Title: "Long"}
	for range 6 {
		var s Series
		for i := range 54_000 {
			s.At = append(s.At, time.Duration(i)*time.Second/30)
			latency := time.Duration(random.ExpFloat64() * float64(50*ms))
			if random.IntN(20) == 0 {
				latency = Lost
			}
			s.Latency = append(s.Latency, latency)
		}
		e.Series = append(e.Series, s)
	}
	dir := t.TempDir()
	if err := Write(dir, Head{}, []Experiment{e}); err != nil {
		t.Fatal(err)
	}
	for _, plot := range []string{"tail", "cdf", "time"} {
		info, err := os.Stat(filepath.Join(dir, "long-"+plot+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 1_000_000 {
			t.Errorf("the plot %s has %d bytes", plot, info.Size())
		}
	}
}

func TestWriteLeavesOutWhatContradictsItself(t *testing.T) {
	misses := func(p Point) []Misses { return []Misses{{Number: "carriers", Curves: []Curve{{"c", []Point{p}}}}} }
	experiments := []Experiment{
		{ID: "good", Title: "Good"},
		{ID: "../bad"},
		{ID: ""},
		{ID: "good"},
		{ID: "short", Series: []Series{{Name: "s", At: make([]time.Duration, 2), Latency: make([]time.Duration, 1)}}},
		{ID: "many", Misses: misses(Point{Calls: 1, Missed: 2})},
		{ID: "sure", Misses: misses(Point{Calls: 1, Predicted: new(1.5)})},
		{ID: "last", Title: "Last"},
	}
	dir := filepath.Join(t.TempDir(), "made", "by", "write")
	err := Write(dir, Head{Title: "T"}, experiments)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`experiment 2 ("../bad") is not in the report: an ID is letters, digits and hyphens`,
		`experiment 3 ("")`,
		`experiment 4 ("good") is not in the report: another experiment has the same ID`,
		`series "s" has 2 calls but 1 latencies`,
		`curve "c", 0 carriers: 2 of 1 calls cannot have missed`,
		`1.5 cannot be predicted for a share`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n## "); n != 2 || !strings.Contains(string(text), "## Last") {
		t.Errorf("the report has %d experiments:\n%s", n, text)
	}
}

func TestWriteNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, Head{}, nil); err == nil {
		t.Error("a file is taken for a folder")
	}
}
