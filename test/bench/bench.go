// Package bench makes the experiments that hold fogplr against what it claims,
// against the ideal, and against what people use instead, and writes them up.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/test/play"
	"github.com/fogplr/fogplr/test/report"
	"github.com/fogplr/fogplr/test/scenario"
	"github.com/fogplr/fogplr/test/tunnels"
)

// Options of a bench.
type Options struct {
	Dir string // of what it writes
	// Only are the IDs of the experiments to make, all if empty.
	Only []string
	// Drives are replayed in addition to the generated ones.
	Drives []Drive
	// Length of each drive's replay; 0 means whole drives. A generated one takes ten
	// minutes at most.
	Length time.Duration
	// Short is how long the other experiments take, at least a second.
	Short time.Duration
	Seed  uint64
	Log   io.Writer
	// Commit and Commands say in the report what was run, and how.
	Commit   string
	Commands []string
}

// bench is a bench under way.
type bench struct {
	Options
	mu sync.Mutex // of Log
}

// experiment is one section of the report.
type experiment struct {
	id   string
	make func(context.Context, *bench) (*report.Experiment, error)
}

func (o *Options) experiments() []experiment {
	all := []experiment{
		{"failover-carrier", failCarrier},
		{"failover-gateway", failGateway},
		{"replicas", replicas},
		{"exponent", exponent},
	}
	for _, d := range append(slices.Clone(o.Drives), generatedDrives(o.Seed)...) {
		all = append(all, experiment{d.ID, d.experiment})
	}
	return all
}

// Run makes the experiments, one after the other, and writes the report, with an
// error of some of them that of the others. failed says that something did not come
// out as it must; the report says what.
func Run(ctx context.Context, o Options) (failed bool, err error) {
	b := &bench{Options: o}
	all := o.experiments()
	var known []string
	for _, e := range all {
		if slices.Contains(known, e.id) {
			return false, fmt.Errorf("two drives would be called %s; rename a file", e.id)
		}
		known = append(known, e.id)
	}
	for _, id := range o.Only {
		if !slices.Contains(known, id) {
			return false, fmt.Errorf("there is no experiment %q; there are %s", id, strings.Join(known, ", "))
		}
	}
	chosen := slices.DeleteFunc(all, func(e experiment) bool { return len(o.Only) > 0 && !slices.Contains(o.Only, e.id) })
	for _, d := range o.Drives {
		if _, err := d.scenario(o.Length, o.Seed); err != nil { // not after an hour
			return false, err
		}
	}
	var sections []report.Experiment
	for _, e := range chosen {
		s, sectionErr := b.section(ctx, e)
		if sectionErr != nil {
			err = errors.Join(err, sectionErr)
			continue
		}
		sections = append(sections, *s)
		failed = failed || len(s.Failed) > 0
	}
	return failed, errors.Join(err, report.Write(o.Dir, b.head(), sections))
}

// section makes one experiment.
func (b *bench) section(ctx context.Context, e experiment) (*report.Experiment, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	b.say("%s begins", e.id)
	s, err := e.make(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("experiment %s: %w", e.id, err)
	}
	b.say("%s is done", e.id)
	for _, sentence := range s.Failed {
		b.say("%s: %s", e.id, sentence)
	}
	return s, nil
}

// say prints a line.
func (b *bench) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.Log, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

func (b *bench) head() report.Head {
	return report.Head{
		Title:   "fogplr in the laboratory",
		Date:    time.Now().Format("2006-01-02"),
		Machine: Machine(),
		Commit:  b.Commit, Commands: b.Commands,
	}
}

// Machine describes the computer in a few words.
func Machine() string {
	var u unix.Utsname
	kernel := "unknown kernel"
	if unix.Uname(&u) == nil {
		kernel = "Linux " + unix.ByteSliceToString(u.Release[:])
	}
	cpu := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores (%s), %s; robot, gateways and links on this one machine", runtime.NumCPU(), cpu, kernel)
}

// variant is one way to run a scenario.
type variant struct {
	name   string
	tunnel string
	only   []string // carriers
	s      *scenario.Scenario
}

// together runs variants at the same time, each in a laboratory of its own, and
// returns their results in order.
func (b *bench) together(ctx context.Context, id string, variants []variant) ([]*play.Result, error) {
	results := make([]*play.Result, len(variants))
	group, ctx := errgroup.WithContext(ctx)
	for i, v := range variants {
		group.Go(func() error {
			t, err := tunnels.ByName(v.tunnel, tunnels.Options{})
			if err != nil {
				return err
			}
			log := &lines{b: b, before: id + ", " + v.name + ": "}
			results[i], err = play.Run(ctx, v.s, play.Options{Tunnel: t, Only: v.only, Log: log})
			if err != nil {
				err = fmt.Errorf("%s: %w", v.name, err)
			}
			return err
		})
	}
	return results, group.Wait()
}

// lines passes on what a run says, with its name before it.
type lines struct {
	b      *bench
	before string
}

func (l *lines) Write(p []byte) (int, error) {
	l.b.say("%s%s", l.before, strings.TrimSpace(string(p)))
	return len(p), nil
}

// calls are those of a result's first workload.
func calls(r *play.Result) (*play.Work, error) {
	if len(r.Work) == 0 || len(r.Work[0].Calls) == 0 {
		return nil, errors.New("no calls were made")
	}
	return &r.Work[0], nil
}
