// Package play runs a scenario: it builds the world, brings a tunnel up, lets the
// workloads run while traces play and things fail, and returns what came of it.
package play

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/scenario"
	"github.com/fogplr/fogplr/test/tunnels"
)

// Options of a run.
type Options struct {
	// Tunnel connects robot and gateways. It is used for this run alone.
	Tunnel tunnels.Tunnel
	// Only, when not empty, are the names of the carriers that the tunnel may use,
	// the best one first.
	Only []string
	// Log gets a line for each thing that happens.
	Log io.Writer
	// Instead, when set, is called in the place of the scenario's faults, and the run
	// lasts until it returns.
	Instead func(context.Context, *Standing) error
}

// Run runs a scenario. It is an error when the scenario could not be carried out;
// what the workloads lost is in the result. The logs stay when there was an error.
func Run(ctx context.Context, s *scenario.Scenario, o Options) (result *Result, err error) {
	l, err := lab.New("lab")
	if err != nil {
		return nil, err
	}
	defer func() {
		switch {
		case ctx.Err() != nil:
			err = errors.New("it was interrupted, so that there is no result")
		case err != nil:
			err = fmt.Errorf("%w (logs: %s)", err, l.Dir())
			l.KeepLogs()
		case result.Failed():
			l.KeepLogs()
		}
		err = errors.Join(err, l.Close())
	}()
	w, err := Build(l, s)
	if err != nil {
		return nil, err
	}
	return (&run{Standing: &Standing{Scenario: s, World: w, Tunnel: o.Tunnel}, o: o}).do(ctx)
}

// run is a run under way.
type run struct {
	*Standing
	o     Options
	start time.Time
}

func (r *run) do(ctx context.Context) (*Result, error) {
	if err := r.Up(ctx, r.o.Only); err != nil {
		return nil, err
	}
	early, late, err := r.jobs()
	if err != nil {
		return nil, err
	}
	for _, j := range early {
		if err := j.begin(ctx); err != nil {
			return nil, fmt.Errorf("workload %s: %w", j.w.Name, err)
		}
	}
	if r.start, err = r.Play(); err != nil {
		return nil, err
	}
	r.say("the workloads run, for %v", r.Scenario.Duration)
	before, err := r.counters()
	if err != nil {
		return nil, err
	}
	for _, j := range late {
		if err := j.begin(ctx); err != nil {
			return nil, fmt.Errorf("workload %s: %w", j.w.Name, err)
		}
	}
	duration, err := r.meanwhile(ctx)
	if err != nil {
		return nil, err
	}
	after, err := r.counters()
	if err != nil {
		return nil, err
	}
	result := &Result{
		Scenario: r.Scenario.Name, Tunnel: r.o.Tunnel.Name(), Seed: r.Scenario.Seed, Start: r.start,
		Duration: duration, Carriers: difference(after, before), Work: []Work{}, Logs: r.World.Dir(),
	}
	for _, j := range append(early, late...) {
		work, err := j.end(ctx, r.start, duration)
		if err != nil {
			return nil, fmt.Errorf("workload %s: %w", j.w.Name, err)
		}
		result.Work = append(result.Work, *work)
	}
	r.stopServers()
	return result, r.Tunnel.Stop()
}

// meanwhile lets things fail until the run's end, and returns how long it was.
func (r *run) meanwhile(ctx context.Context) (time.Duration, error) {
	if r.o.Instead != nil {
		err := r.o.Instead(ctx, r.Standing)
		return time.Since(r.start), err
	}
	// What a fault's end starts lives longer than this group, so that its context
	// must be the run's own.
	var group errgroup.Group
	r.later(ctx, &group, r.Scenario.Duration, func() error { return nil })
	for _, f := range Pauses(r.Scenario) {
		r.later(ctx, &group, f.At, func() error { return r.Suffer(ctx, &f) })
	}
	for _, f := range r.Scenario.Faults {
		r.later(ctx, &group, f.At, func() error {
			r.say("%s", Describe(&f))
			f.For = min(f.For, r.Scenario.Duration-f.At) // the run's end is its end
			return r.Suffer(ctx, &f)
		})
	}
	return r.Scenario.Duration, group.Wait()
}

func (r *run) later(ctx context.Context, group *errgroup.Group, at time.Duration, f func() error) {
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(r.start.Add(at))):
			return f()
		}
	})
}

// say tells the user what happens.
func (r *run) say(format string, args ...any) {
	at := "      "
	if !r.start.IsZero() {
		at = fmt.Sprintf("%4.0f s", time.Since(r.start).Seconds())
	}
	fmt.Fprintf(r.o.Log, "%s  %s\n", at, fmt.Sprintf(format, args...))
}

// counters returns what crossed each carrier.
func (r *run) counters() ([]Carrier, error) {
	r.mu.Lock() // links may be made anew
	defer r.mu.Unlock()
	var all []Carrier
	for i, c := range r.World.Robots[0].Carriers {
		up, down, err := c.Counters()
		if err != nil {
			return nil, err
		}
		all = append(all, Carrier{Name: r.Scenario.Carriers[i].Interface, Up: up, Down: down})
	}
	return all, nil
}
