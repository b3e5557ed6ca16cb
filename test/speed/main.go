// Command speed compares fogplr with plain wireguard-go: TCP through each in
// turn, on the same links in the same minutes, and prints the ratios. Absolute
// figures of a shared machine say little; ratios of neighbouring runs do.
//
// It needs root, iperf3, wg, and the programs bin/fogplr and bin/wireguard-go.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 3, "how many times each tunnel is measured")
	seconds := flag.Int("seconds", 5, "length of one measurement")
	jsonFile := flag.String("json", "", "also write the results to this file")
	bin := flag.String("bin", "bin", "where fogplr and wireguard-go are")
	check := flag.Bool("check", false, "fail when a promise of the README is not kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *bin, *rounds, *seconds, *jsonFile, *check); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

// sample is one measurement of one tunnel.
type sample struct {
	Mbps float64 `json:"mbit_per_s"`
	CPU  float64 `json:"cpu_s_per_gb"` // of both ends' tunnel processes together
	RSS  float64 `json:"rss_mb"`       // the larger end's peak, after a flood of UDP as well
}

// contender is one tunnel.
type contender struct {
	name    string
	samples []sample
	start   func(context.Context, *bench) (*tunnel, error)
}

func run(ctx context.Context, bin string, rounds, seconds int, jsonFile string, check bool) error {
	b, err := newBench(bin)
	if err != nil {
		return err
	}
	defer b.lab.Close()
	contenders := []*contender{
		{name: "wireguard-go", start: startPlain},
		{name: "fogplr, 1 carrier", start: startFogplr(1)},
		{name: "fogplr, 2 carriers", start: startFogplr(2)},
	}
	for round := range rounds {
		for _, c := range contenders {
			s, err := b.measure(ctx, c, seconds)
			if err != nil {
				b.lab.KeepLogs()
				return fmt.Errorf("round %d, %s: %w (logs in %s)", round+1, c.name, err, b.lab.Dir())
			}
			fmt.Fprintf(os.Stderr, "round %d  %-20s %6.0f Mbit/s  %5.2f CPU s/GB  %4.0f MB\n", round+1, c.name, s.Mbps, s.CPU, s.RSS)
			c.samples = append(c.samples, s)
		}
	}
	return report(contenders, jsonFile, check)
}

// measure starts the tunnel, sends TCP through it for that long, and stops it.
func (b *bench) measure(ctx context.Context, c *contender, seconds int) (s sample, err error) {
	t, err := c.start(ctx, b)
	if err != nil {
		return s, err
	}
	defer t.stop()
	before, err := t.cpu()
	if err != nil {
		return s, err
	}
	out, err := b.iperf(ctx, t.target, "-t", fmt.Sprint(seconds), "-O", "1")
	if err != nil {
		return s, err
	}
	after, err := t.cpu()
	if err != nil {
		return s, err
	}
	var r struct {
		End struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
			Sent struct {
				Bytes float64 `json:"bytes"`
			} `json:"sum_sent"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return s, fmt.Errorf("iperf3's report: %w", err)
	}
	if r.End.Sent.Bytes == 0 {
		return s, fmt.Errorf("iperf3 sent nothing")
	}
	s.Mbps = r.End.Received.BitsPerSecond / 1e6
	// iperf3 leaves its first second out of the bytes, the CPU time has it.
	whole := float64(seconds+1) / float64(seconds)
	s.CPU = (after - before) / (r.End.Sent.Bytes * whole / 1e9)
	// Far more UDP than goes through, both ways: the tunnel must not hoard it.
	if _, err := b.iperf(ctx, t.target, "-t", "3", "-u", "-b", "500M", "-l", "1200", "--bidir"); err != nil {
		return s, err
	}
	s.RSS, err = t.rss()
	return s, err
}

// iperf runs iperf3 from robot to gateway and returns its report.
func (b *bench) iperf(ctx context.Context, target string, args ...string) (string, error) {
	server := b.gateway.Command(ctx, "iperf3", "-s", "-1", "-B", target)
	if err := server.Start(); err != nil {
		return "", err
	}
	defer func() { _ = server.Kill() }()
	time.Sleep(300 * time.Millisecond)
	out, err := b.robot.Command(ctx, "iperf3", append([]string{"-J", "-c", target}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("iperf3 %v: %w", args, err)
	}
	return out, nil
}

// result is one contender's medians, and their ratio to the first contender in
// the same round.
type result struct {
	Name     string   `json:"name"`
	Median   sample   `json:"median"`
	TCPRatio float64  `json:"tcp_ratio"`
	CPURatio float64  `json:"cpu_ratio"`
	Samples  []sample `json:"samples"`
}

func report(contenders []*contender, jsonFile string, check bool) error {
	var results []result
	base := contenders[0].samples
	for _, c := range contenders {
		r := result{Name: c.name, Samples: c.samples}
		r.Median.Mbps = median(c.samples, func(i int) float64 { return c.samples[i].Mbps })
		r.Median.CPU = median(c.samples, func(i int) float64 { return c.samples[i].CPU })
		r.Median.RSS = median(c.samples, func(i int) float64 { return c.samples[i].RSS })
		r.TCPRatio = median(c.samples, func(i int) float64 { return c.samples[i].Mbps / base[i].Mbps })
		r.CPURatio = median(c.samples, func(i int) float64 { return c.samples[i].CPU / base[i].CPU })
		results = append(results, r)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "tunnel\tTCP Mbit/s\tratio\tCPU s/GB\tratio\tpeak RSS MB")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.0f\n", r.Name, r.Median.Mbps, r.TCPRatio, r.Median.CPU, r.CPURatio, r.Median.RSS)
	}
	_ = w.Flush()
	if jsonFile != "" {
		text, err := json.MarshalIndent(results, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(jsonFile, append(text, '\n'), 0o644); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	if !check {
		return nil
	}
	return promises(results)
}

// promises holds the results against what the README says.
func promises(results []result) error {
	var broken []string
	for i, least := range []float64{1, 0.9, 0.5} {
		r := results[i]
		if r.TCPRatio < least {
			broken = append(broken, fmt.Sprintf("%s has %.2f of the first tunnel's TCP throughput, less than %.2f", r.Name, r.TCPRatio, least))
		}
		if i > 0 && r.Median.RSS > 150 {
			broken = append(broken, fmt.Sprintf("%s takes %.0f MB, more than 150", r.Name, r.Median.RSS))
		}
	}
	if broken != nil {
		return fmt.Errorf("%s", strings.Join(broken, "; "))
	}
	return nil
}

func median(samples []sample, value func(int) float64) float64 {
	v := make([]float64, len(samples))
	for i := range v {
		v[i] = value(i)
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
