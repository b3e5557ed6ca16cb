// Command demo shows what fogplr is for: a robot calls a service on two cloud
// gateways over two bad cellular links, through unmodified DDS programs; one
// link goes dark, then one gateway dies, and no call is lost. Two shorter runs
// with each link alone come first, for comparison. All of it happens in network
// namespaces of this machine; it needs root and takes about two minutes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/fogplr/fogplr/test/lab"
)

// Length of the runs and times of the faults, from the first call.
const (
	aloneTime  = 10 * time.Second
	bothTime   = 20 * time.Second
	blackHole  = 6 * time.Second
	killWest   = 12 * time.Second
	callsPerS  = 30
	deadlineMS = 200
)

// The two links, as round trips.
var (
	cellA = carrier{"cell-a", 40 * time.Millisecond, 8 * time.Millisecond, 0.02}
	cellB = carrier{"cell-b", 55 * time.Millisecond, 15 * time.Millisecond, 0.03}
)

// carrier is a link of the demo.
type carrier struct {
	name          string
	delay, jitter time.Duration
	loss          float64
}

func (c carrier) String() string {
	return fmt.Sprintf("%s: round trip %v +- %v, loss %.0f %%", c.name, c.delay, c.jitter, 100*c.loss)
}

func (c carrier) options() lab.CarrierOptions {
	p := lab.RoundTrip(c.delay, c.jitter, c.loss)
	return lab.CarrierOptions{Interface: c.name, Up: p, Down: p}
}

func main() {
	lab.Main()
	var args struct {
		JSON string `help:"Write the results to this file as well." type:"path" placeholder:"FILE"`
		Seed uint64 `help:"Seed of the links' luck." default:"1"`
	}
	kong.Parse(&args, kong.Description("DDS calls survive losing a carrier and a gateway."))
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	results, err := demo(ctx, args.Seed)
	cancel()
	if err == nil && args.JSON != "" {
		err = writeJSON(args.JSON, results)
	}
	if err == nil {
		err = verdict(results[len(results)-1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nThe demo failed:", err)
		os.Exit(1)
	}
}

// demo makes all runs and prints the table.
func demo(ctx context.Context, seed uint64) ([]*result, error) {
	fmt.Printf("A robot calls a service %d times a second; a replica of it runs on each of two gateways, west and east.\n", callsPerS)
	fmt.Printf("Its carriers:\n  %v\n  %v\n", cellA, cellB)
	faults := []fault{
		{blackHole, "cell-a becomes a black hole: its packets vanish, but its interface stays up", (*run).darken},
		{killWest, "gateway west and its replica are killed (kill -9)", (*run).killWest},
	}
	var results []*result
	for i, r := range []*run{
		{title: "cell-a alone", carriers: []carrier{cellA}, length: aloneTime},
		{title: "cell-b alone", carriers: []carrier{cellB}, length: aloneTime},
		{title: "both, with two failures", carriers: []carrier{cellA, cellB}, length: bothTime, faults: faults},
	} {
		fmt.Printf("\nRun %d of 3: %s, %v\n", i+1, r.title, r.length)
		r.seed = seed
		result, err := r.do(ctx)
		if err != nil {
			return nil, fmt.Errorf("run %q: %w", r.title, err)
		}
		results = append(results, result)
	}
	fmt.Println()
	printResults(os.Stdout, results)
	return results, nil
}

// verdict says what came out of the run with both carriers; it is an error when
// a call was lost.
func verdict(r *result) error {
	if !r.complete() {
		return fmt.Errorf("with both carriers %d of %d calls were answered and %d lost (logs: %s)",
			r.Calls.Replies, r.Calls.Requests, r.Calls.Lost, r.Logs)
	}
	fmt.Printf("\nA carrier and a gateway failed, and all %d calls were answered; the slowest took %.0f ms.\n", r.Calls.Requests, r.Calls.MaxMS)
	return nil
}

func writeJSON(path string, results []*result) error {
	data, err := json.MarshalIndent(map[string]any{
		"calls_per_s": callsPerS, "deadline_ms": deadlineMS, "runs": results,
	}, "", "  ")
	return errors.Join(err, os.WriteFile(path, append(data, '\n'), 0o644))
}
