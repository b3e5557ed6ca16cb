package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// Write makes dir, if need be, and in it results.md for people, results.json with
// the same figures for programs, and for each experiment its calls, one by one
// (ID.csv), and its plots (ID-*.svg). Files of these names are replaced. The same
// input gives the same bytes.
//
// An experiment that cannot be shown, because its ID is no ID or its numbers
// contradict one another, is left out, and the error says so; the others are
// written all the same.
func Write(dir string, head Head, experiments []Experiment) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make a folder for the report: %w", err)
	}
	var errs []error
	var sections []section
	ids := map[string]bool{}
	for i, e := range experiments {
		err := e.check()
		if err == nil && ids[e.ID] {
			err = errors.New("another experiment has the same ID")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("experiment %d (%q) is not in the report: %w", i+1, e.ID, err))
			continue
		}
		ids[e.ID] = true
		s, err := newSection(dir, e)
		if err != nil {
			errs = append(errs, fmt.Errorf("experiment %s: %w", e.ID, err))
		}
		sections = append(sections, s)
	}
	results, err := resultsJSON(head, sections)
	if err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, write(dir, "results.json", results))
	}
	errs = append(errs, write(dir, "results.md", markdown(head, sections)))
	return errors.Join(errs...)
}

func write(dir, name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

var validID = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// check says what in an experiment contradicts itself.
func (e Experiment) check() error {
	if !validID.MatchString(e.ID) {
		return errors.New("an ID is letters, digits and hyphens")
	}
	for _, s := range e.Series {
		if len(s.At) != len(s.Latency) {
			return fmt.Errorf("series %q has %d calls but %d latencies", s.Name, len(s.At), len(s.Latency))
		}
	}
	for _, m := range e.Misses {
		for _, c := range m.Curves {
			for _, p := range c.Points {
				if err := p.check(); err != nil {
					return fmt.Errorf("curve %q, %d %s: %w", c.Name, p.Number, m.Number, err)
				}
			}
		}
	}
	return nil
}

func (p Point) check() error {
	if p.Missed < 0 || p.Missed > p.Calls {
		return fmt.Errorf("%d of %d calls cannot have missed", p.Missed, p.Calls)
	}
	if p.Predicted != nil && !(*p.Predicted >= 0 && *p.Predicted <= 1) {
		return fmt.Errorf("%v cannot be predicted for a share", *p.Predicted)
	}
	return nil
}

// section is an experiment with what was made of it.
type section struct {
	Experiment
	figures []Figures // by series
	plots   []picture
}

// picture is a plot's file.
type picture struct{ file, alt string }

// newSection computes an experiment's figures and writes its own files.
func newSection(dir string, e Experiment) (section, error) {
	s := section{Experiment: e}
	for _, x := range e.Series {
		s.figures = append(s.figures, x.Figures())
	}
	var errs []error
	draw := func(suffix, alt string, f *figure) {
		if f == nil {
			return
		}
		file := e.ID + "-" + suffix + ".svg"
		svg, err := f.svg()
		if err == nil {
			err = write(dir, file, svg)
		}
		if err != nil {
			errs = append(errs, err)
			return
		}
		s.plots = append(s.plots, picture{file, alt})
	}
	if len(e.Series) > 0 {
		errs = append(errs, write(dir, e.ID+".csv", callsCSV(e.Series)))
		draw("tail", "Share of calls that took longer, by latency", tailPlot(e))
		draw("cdf", "Share of calls answered, by latency", cdfPlot(e))
		draw("time", "Latency over time", timePlot(e))
	}
	for i, m := range e.Misses {
		draw(fmt.Sprintf("misses-%d", i+1), m.Title, missesPlot(m))
	}
	return s, errors.Join(errs...)
}

// callsCSV has a line for each call; that of a lost one has no latency.
func callsCSV(series []Series) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b) // never fails, as the buffer does not
	_ = w.Write([]string{"series", "seconds", "latency_ms"})
	for _, s := range series {
		for i, at := range s.At {
			latency := ""
			if s.Latency[i] >= 0 {
				latency = decimal(s.Latency[i], time.Millisecond, 3)
			}
			_ = w.Write([]string{s.Name, decimal(at, time.Second, 6), latency})
		}
	}
	w.Flush()
	return b.Bytes()
}

func decimal(d, unit time.Duration, digits int) string {
	return strconv.FormatFloat(float64(d)/float64(unit), 'f', digits, 64)
}

// The shape of results.json.
type (
	document struct {
		Head
		LostAs      Millis     `json:"mean_counts_lost_as_ms"`
		Confidence  float64    `json:"confidence_of_intervals"`
		Experiments []jsonPart `json:"experiments"`
	}
	jsonPart struct {
		ID     string       `json:"id"`
		Title  string       `json:"title"`
		Text   string       `json:"text"`
		Series []jsonSeries `json:"series"`
		Events []jsonEvent  `json:"events,omitempty"`
		Misses []jsonMisses `json:"misses,omitempty"`
		Tables []Titled     `json:"tables,omitempty"`
		Failed []string     `json:"failed"`
		Calls  string       `json:"calls_file,omitempty"`
		Plots  []string     `json:"plots"`
	}
	jsonSeries struct {
		Name string `json:"name"`
		Figures
		Bytes map[string]Bytes `json:"bytes,omitempty"`
	}
	jsonEvent struct {
		At   float64 `json:"at_s"`
		Text string  `json:"text"`
	}
	jsonMisses struct {
		Title  string      `json:"title"`
		Number string      `json:"number"`
		Curves []jsonCurve `json:"curves"`
	}
	jsonCurve struct {
		Name   string      `json:"name"`
		Points []jsonPoint `json:"points"`
	}
	jsonPoint struct {
		Number    int        `json:"number"`
		Calls     int        `json:"calls"`
		Missed    int        `json:"missed"`
		Share     float64    `json:"share"`
		Interval  [2]float64 `json:"interval"`
		Predicted *float64   `json:"predicted"`
		Expected  *[2]int    `json:"expected_missed"`
		Agrees    *bool      `json:"as_predicted"`
	}
)

func resultsJSON(head Head, sections []section) ([]byte, error) {
	d := document{Head: head, LostAs: millis(lostAs), Confidence: Confidence, Experiments: []jsonPart{}}
	for _, s := range sections {
		d.Experiments = append(d.Experiments, s.json())
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("encode results.json: %w", err)
	}
	return b.Bytes(), nil
}

func (s section) json() jsonPart {
	p := jsonPart{ID: s.ID, Title: s.Title, Text: s.Text, Series: []jsonSeries{}, Tables: s.Tables,
		Failed: append([]string{}, s.Failed...), Plots: []string{}}
	for i, x := range s.Series {
		p.Series = append(p.Series, jsonSeries{Name: x.Name, Figures: s.figures[i], Bytes: x.Bytes})
		p.Calls = s.ID + ".csv"
	}
	for _, e := range s.Events {
		p.Events = append(p.Events, jsonEvent{At: e.At.Seconds(), Text: e.Text})
	}
	for _, m := range s.Misses {
		out := jsonMisses{Title: m.Title, Number: m.Number}
		for _, c := range m.Curves {
			curve := jsonCurve{Name: c.Name}
			for _, x := range c.Points {
				curve.Points = append(curve.Points, x.json())
			}
			out.Curves = append(out.Curves, curve)
		}
		p.Misses = append(p.Misses, out)
	}
	for _, x := range s.plots {
		p.Plots = append(p.Plots, x.file)
	}
	return p
}

func (p Point) json() jsonPoint {
	out := jsonPoint{Number: p.Number, Calls: p.Calls, Missed: p.Missed, Share: p.Share(), Predicted: p.Predicted}
	lo, hi := p.Interval()
	out.Interval = [2]float64{rounded(lo), rounded(hi)}
	if p.Predicted != nil {
		lo, hi := p.Expected()
		out.Expected, out.Agrees = &[2]int{lo, hi}, new(p.Agrees())
	}
	return out
}

// rounded to nine digits, which no machine's arithmetic changes.
func rounded(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64) // what it wrote itself
	return y
}
