package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fogplr/fogplr/test/bench"
	"github.com/fogplr/fogplr/test/play"
	"github.com/fogplr/fogplr/test/report"
	"github.com/fogplr/fogplr/test/scenario"
	"github.com/fogplr/fogplr/test/tunnels"
)

type runCommand struct {
	playOptions `embed:""`

	JSON string   `help:"Write what came of it, call by call, to this file." type:"path" placeholder:"FILE"`
	Plot string   `help:"Write figures and plots to this folder." type:"path" placeholder:"DIR"`
	Only []string `help:"The carriers that the tunnel may use, the best one first; all of them otherwise."`
}

func (c *runCommand) do(ctx context.Context) error {
	s, err := c.load()
	if err != nil {
		return err
	}
	if err := c.checkOutputs(); err != nil {
		return err
	}
	t, err := tunnels.ByName(c.Tunnel, tunnels.Options{Config: s.Robot})
	if err != nil {
		return err
	}
	fmt.Printf("Scenario %s, by %s, seed %d\n", s.Name, t.Name(), s.Seed)
	result, err := play.Run(ctx, s, play.Options{Tunnel: t, Only: c.Only, Log: os.Stdout})
	if err != nil {
		return err
	}
	print(result)
	if c.JSON != "" {
		data, err := json.MarshalIndent(result, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.JSON, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	if c.Plot != "" {
		if err := report.Write(c.Plot, c.head(s), []report.Experiment{experiment(s, result)}); err != nil {
			return err
		}
	}
	return found(result)
}

// checkOutputs finds out whether what is asked for can be written, before the run.
func (c *runCommand) checkOutputs() error {
	if c.Plot != "" {
		if err := os.MkdirAll(c.Plot, 0o755); err != nil {
			return err
		}
	}
	if c.JSON == "" {
		return nil
	}
	f, err := os.OpenFile(c.JSON, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// print says what came of a run.
func print(r *play.Result) {
	const row = "%-12s %8s %6s %9s %9s %9s %9s %9s\n"
	fmt.Println()
	head := false
	for i := range r.Work {
		w := &r.Work[i]
		switch {
		case w.Type == scenario.RPC:
			if !head {
				fmt.Printf(row, "", "calls", "lost", "mean ms", "50 %", "99 %", "slowest", "gap ms")
				head = true
			}
			f := r.Series(w, w.Name).Figures()
			fmt.Printf(row, w.Name, fmt.Sprint(f.Calls), fmt.Sprint(f.Lost), f.Mean, f.P50, f.P99, f.Max, f.Gap)
		case w.Type == scenario.Stream:
			for name, s := range w.Streams {
				fmt.Printf("%s to %s: %d samples, %d lost, longest gap %.0f ms\n", w.Name, name, s.Received, s.Lost, s.LongestGapMS)
			}
		default:
			fmt.Printf("%s:\n%s\n", w.Name, strings.TrimRight(w.Output, "\n"))
		}
		if w.Failed != "" {
			fmt.Printf("%s failed: %s (logs: %s)\n", w.Name, w.Failed, r.Logs)
		}
	}
	for _, c := range r.Carriers {
		fmt.Printf("%s: %d kB up, %d kB down\n", c.Name, c.Up.ReceivedBytes/1000, c.Down.ReceivedBytes/1000)
	}
}

// found is an error when a call was lost or a program failed.
func found(r *play.Result) error {
	if r.Failed() || slices.ContainsFunc(r.Work, func(w play.Work) bool { return w.Lost() > 0 }) {
		return errFindings
	}
	return nil
}

func (c *runCommand) head(s *scenario.Scenario) report.Head {
	return report.Head{
		Title: s.Name, Date: time.Now().Format("2006-01-02"), Machine: bench.Machine(), Commit: version,
		Commands: []string{strings.Join(append([]string{"fogplr-lab"}, os.Args[1:]...), " ")},
	}
}

// experiment is a run as a section of a report.
func experiment(s *scenario.Scenario, r *play.Result) report.Experiment {
	e := report.Experiment{ID: "run", Title: s.Name, Text: fmt.Sprintf("Connected by %s, for %v, seed %d.", r.Tunnel, r.Duration, r.Seed)}
	for i := range r.Work {
		if w := &r.Work[i]; len(w.Calls) > 0 {
			series := r.Series(w, w.Name)
			series.Bytes = nil // what crossed the carriers belongs to all workloads
			e.Series = append(e.Series, series)
		}
	}
	crossed := report.Table{{"carrier", "up, kB", "down, kB"}}
	for _, c := range r.Carriers {
		crossed = append(crossed, []string{c.Name, fmt.Sprint(c.Up.ReceivedBytes / 1000), fmt.Sprint(c.Down.ReceivedBytes / 1000)})
	}
	e.Tables = []report.Titled{{Title: "What crossed the carriers, for all workloads", Table: crossed}}
	for i := range s.Faults {
		e.Events = append(e.Events, report.Event{At: s.Faults[i].At, Text: play.Describe(&s.Faults[i])})
	}
	return e
}
