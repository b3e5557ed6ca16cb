package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/play"
	"github.com/fogplr/fogplr/test/report"
	"github.com/fogplr/fogplr/test/scenario"
)

const (
	// drivePrefix opens the IDs of drives.
	drivePrefix = "drive-"
	// generatedLength is how much of a generated drive is replayed at most.
	generatedLength = 10 * time.Minute
	// rowLength is that of all traces.
	rowLength = time.Second
	// What fogplr may lose against the ideal: 5 % and 1 ms at the 99th percentile.
	mayBeSlower   = 1.05
	mayBeSlowerMS = 1
)

// Drive is a trace of round trips over two carriers.
type Drive struct {
	ID    string // of the experiment; it begins with drive-
	Title string
	RTT   [2]lab.RTT
	Names [2]string // of the carriers, up to 15 letters
	// Claim is what others published about such a drive.
	Claim string
}

// The figures of the paper that the experiment repeats.
const (
	claimDriving = "The paper that fogplr builds on reports, driving with two providers: 99th percentile 3.7 and 2.4 times better than with either provider alone, mean 2.7 and 1.9 times better."
	claimIndoor  = "The paper that fogplr builds on reports, indoors with Wi-Fi and 5G: mean 36 % and 99th percentile 33 % lower."
)

// generatedDrives need no file.
func generatedDrives(seed uint64) []Drive {
	pair := func(kind string, seed uint64) [2]lab.RTT {
		return [2]lab.RTT{{File: kind, Column: "1", Seed: seed}, {File: kind, Column: "2", Seed: seed}}
	}
	return []Drive{
		{drivePrefix + "generated", "A generated drive with two operators", pair(lab.Driving, seed), [2]string{"op-a", "op-b"}, claimDriving},
		{drivePrefix + "indoor", "A generated walk indoors, with Wi-Fi and 5G", pair(lab.Indoor, seed), [2]string{"wifi", "fiveg"}, claimIndoor},
	}
}

// FileDrive is a drive from two columns of a file, by name or number.
func FileDrive(name, file, first, second string) Drive {
	return Drive{
		ID: drivePrefix + name, Title: "Drive " + name, RTT: [2]lab.RTT{{File: file, Column: first}, {File: file, Column: second}},
		Names: [2]string{"carrier-a", "carrier-b"}, Claim: claimDriving,
	}
}

// scenario replays the drive for length, from a row that the seed chooses; all of
// it if length is 0.
func (d *Drive) scenario(length time.Duration, seed uint64) (*scenario.Scenario, error) {
	trace, err := d.RTT[0].Load()
	if err != nil {
		return nil, err
	}
	if isGenerated(d.RTT[0]) && (length == 0 || length > generatedLength) {
		length = generatedLength
	}
	rows, wanted := trace.Rows(), int(length/rowLength)
	if length == 0 || wanted > rows {
		wanted, length = rows, time.Duration(rows)*rowLength
	}
	first := rand.New(rand.NewPCG(seed, 0)).IntN(rows - wanted + 1)
	s := callScenario(d.ID, length, seed)
	for i, rtt := range d.RTT {
		rtt.Row, rtt.First = rowLength, first
		s.Carriers = append(s.Carriers, scenario.Carrier{CarrierOptions: lab.CarrierOptions{
			Interface: d.Names[i], Up: lab.Params{RTT: &rtt}, Down: lab.Params{RTT: &rtt},
		}})
	}
	return s, nil
}

// datagrams is a workload without DDS: nothing is sent twice, or waits for what
// came before it.
func datagrams(w scenario.Workload) scenario.Workload {
	w.Name, w.Vendor = "datagrams", "udp"
	return w
}

// callScenario calls a service on two gateways, and has no carriers yet.
func callScenario(name string, length time.Duration, seed uint64) *scenario.Scenario {
	return &scenario.Scenario{
		Name: name, Seed: seed, Duration: length,
		Gateways: []scenario.Gateway{{Name: "west"}, {Name: "east"}},
		Workloads: []scenario.Workload{{
			Name: "calls", Type: scenario.RPC, Vendor: "cyclone", Rate: 30, Size: 64, ReplySize: 64,
			Deadline: 200 * time.Millisecond, LostAfter: 5 * time.Second,
		}},
	}
}

// experiment replays the drive over both carriers, over each alone, over what
// people use instead, and computes the ideal.
func (d *Drive) experiment(ctx context.Context, b *bench) (*report.Experiment, error) {
	s, err := d.scenario(b.Length, b.Seed)
	if err != nil {
		return nil, err
	}
	best, other, err := d.order(s)
	if err != nil {
		return nil, err
	}
	more := *s
	more.Workloads = append(more.Workloads[:1:1], datagrams(s.Workloads[0]))
	variants := []variant{
		{"fogplr, both", "fogplr", nil, &more},
		{"fogplr, " + d.Names[0] + " alone", "fogplr", []string{d.Names[0]}, s},
		{"fogplr, " + d.Names[1] + " alone", "fogplr", []string{d.Names[1]}, s},
		{"WireGuard, " + best, "wireguard", []string{best}, s},
		{"WireGuard, fail-over", "failover", []string{best, other}, s},
	}
	results, err := b.together(ctx, d.ID, variants)
	if err != nil {
		return nil, err
	}
	e := &report.Experiment{ID: d.ID, Title: d.Title}
	figures := map[string]report.Figures{}
	for i, r := range results {
		work, err := calls(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variants[i].name, err)
		}
		series := r.Series(work, variants[i].name)
		e.Series = append(e.Series, series)
		figures[series.Name] = series.Figures()
	}
	plain := results[0].Series(&results[0].Work[1], variants[0].name+", datagrams")
	plain.Bytes = nil // those of the calls over DDS are among them
	e.Series = append(e.Series, plain)
	ideal, err := d.ideal(s, &results[0].Work[0])
	if err != nil {
		return nil, err
	}
	e.Series = append(e.Series, ideal...)
	e.Text = d.text(s)
	e.Tables = []report.Titled{d.gains(figures[variants[0].name], figures[variants[1].name], figures[variants[2].name])}
	e.Failed = append(compare("calls over DDS", figures[variants[0].name], ideal[0].Figures()),
		compare("datagrams", plain.Figures(), ideal[0].Figures())...)
	return e, nil
}

// order returns the carriers, the one with the better ideal first.
func (d *Drive) order(s *scenario.Scenario) (best, other string, err error) {
	var each []play.Call
	for at := time.Duration(0); at < s.Duration; at += rowLength {
		each = append(each, play.Call{At: at})
	}
	var mean [2]float64
	for i, name := range d.Names {
		latency, err := play.Oracle(s, []string{name}, each, 0)
		if err != nil {
			return "", "", err
		}
		mean[i] = float64(report.Series{At: make([]time.Duration, len(each)), Latency: latency}.Figures().Mean)
	}
	if mean[1] < mean[0] {
		return d.Names[1], d.Names[0], nil
	}
	return d.Names[0], d.Names[1], nil
}

// ideal returns what the calls of a workload would have taken over both carriers
// and over each alone.
func (d *Drive) ideal(s *scenario.Scenario, w *play.Work) ([]report.Series, error) {
	at := make([]time.Duration, len(w.Calls))
	for i, c := range w.Calls {
		at[i] = c.At
	}
	var all []report.Series
	for _, v := range []struct {
		name string
		only []string
	}{{"ideal, both", nil}, {"ideal, " + d.Names[0] + " alone", d.Names[:1]}, {"ideal, " + d.Names[1] + " alone", d.Names[1:]}} {
		latency, err := play.Oracle(s, v.only, w.Calls, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, report.Series{Name: v.name, At: at, Latency: latency})
	}
	return all, nil
}

func (d *Drive) text(s *scenario.Scenario) string {
	return fmt.Sprintf("Calls at 30 Hz (Cyclone DDS, 64 bytes each way, two replicas) for %v, while each link replays its column of %s, one row a second, from row %d. "+
		"Between two rows the delay goes evenly from one to the other. All variants ran at the same time, each over links of its own with the same delays. "+
		"With both carriers there were as many calls by single datagrams beside those over DDS, which nobody sends again; the bytes are those of both. "+
		"The ideal takes, for each call, the carrier that is best at its moment, for each direction by itself; it knows no headers, no programs and no lost packet that is sent again. "+
		"A call that was not answered within 5 s is lost, and counts as 5 s in the mean.\n\n%s",
		s.Duration, traceName(d.RTT[0]), s.Carriers[0].Up.RTT.First, d.Claim)
}

func isGenerated(r lab.RTT) bool { return r.File == lab.Driving || r.File == lab.Indoor }

func traceName(r lab.RTT) string {
	if isGenerated(r) {
		return fmt.Sprintf("a generated trace (seed %d)", r.Seed)
	}
	return "`" + filepath.Base(r.File) + "`"
}

// gains says how much better both carriers are than each alone.
func (d *Drive) gains(both, first, second report.Figures) report.Titled {
	ratio := func(alone, both report.Millis) string {
		if x := float64(alone / both); !math.IsNaN(x) && !math.IsInf(x, 0) {
			return fmt.Sprintf("%.2f x", x)
		}
		return "–"
	}
	return report.Titled{Title: "How many times better both carriers are than one alone", Table: report.Table{
		{"than", "mean", "99 %"},
		{d.Names[0] + " alone", ratio(first.Mean, both.Mean), ratio(first.P99, both.P99)},
		{d.Names[1] + " alone", ratio(second.Mean, both.Mean), ratio(second.P99, both.P99)},
	}}
}

// compare holds the 99th percentile against the ideal's.
func compare(what string, got, ideal report.Figures) []string {
	limit := float64(ideal.P99)*mayBeSlower + mayBeSlowerMS
	if float64(got.P99) <= limit {
		return nil
	}
	return []string{fmt.Sprintf("The 99th percentile of %s is %v (ms), and that of the ideal %v: more than 5 %% and 1 ms apart.", what, got.P99, ideal.P99)}
}
