// Command fogplr-lab is a network laboratory for fogplr and what it is compared
// with: it runs scenario files, keeps a laboratory standing to try things in, and
// makes the bench. It needs root, since it makes network namespaces.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/fogplr/fogplr/test/bench"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/scenario"
	"github.com/fogplr/fogplr/test/tunnels"
)

// playOptions are what run and up have in common.
type playOptions struct {
	Scenario string  `arg:"" help:"The scenario, a TOML file; test/lab/scenarios has some." placeholder:"SCENARIO.toml" type:"existingfile"`
	Trace    string  `help:"Traces of round trips for the first, second ... carrier, in the place of the scenario's." placeholder:"FILE:COLUMN,..."`
	Seed     *uint64 `help:"Seed of all luck, in the place of the scenario's."`
	Tunnel   string  `help:"What connects robot and gateways: ${tunnels}." default:"fogplr"`
}

func (o *playOptions) load() (*scenario.Scenario, error) {
	s, err := scenario.Load(o.Scenario)
	if err != nil {
		return nil, err
	}
	if o.Seed != nil {
		s.SetSeed(*o.Seed)
	}
	if o.Trace != "" {
		err = s.TraceOverride(o.Trace)
	}
	return s, err
}

// args are the options as a command line.
func (o *playOptions) args() []string {
	args := []string{o.Scenario, "--trace=" + o.Trace, "--tunnel=" + o.Tunnel}
	if o.Seed != nil {
		args = append(args, fmt.Sprintf("--seed=%d", *o.Seed))
	}
	return args
}

// version is set by the build.
var version = "dev"

// commands are what the program can do.
type commands struct {
	Run      runCommand   `cmd:"" help:"Run a scenario and say what came of it."`
	Up       playOptions  `cmd:"" help:"Make a scenario's laboratory and leave it standing, for exec and fault."`
	Hold     playOptions  `cmd:"" hidden:""`
	Exec     execCommand  `cmd:"" help:"Run a program in a node of the standing laboratory: fogplr-lab exec robot -- ping 10.77.0.11"`
	Fault    faultCommand `cmd:"" help:"Let something fail in the standing laboratory: fogplr-lab fault black-hole --carrier cell-a --for 3s"`
	Undo     struct{}     `cmd:"" help:"Undo the faults that have no end of their own."`
	Down     struct{}     `cmd:"" help:"Take the standing laboratory down."`
	SelfTest struct{}     `cmd:"" help:"Measure the laboratory itself: what its links add, and how exact their delay is."`
	Bench    benchCommand `cmd:"" help:"Compare fogplr with the ideal and with what people use instead; takes its time."`

	Version kong.VersionFlag `help:"Print the version."`
}

type execCommand struct {
	Node string   `arg:"" help:"robot, or a gateway's name."`
	Args []string `arg:"" help:"The program and its arguments, after --." passthrough:""`
}

type faultCommand struct {
	Kind      string        `arg:"" help:"As in a scenario: black-hole, link-down, unplug, address-change, replug, nat-rebind, gateway-kill, gateway-stop, gateway-restart, robot-restart."`
	Carrier   string        `help:"The carrier that it happens to."`
	Gateway   string        `help:"The gateway that it happens to."`
	Direction string        `help:"Of a black hole, as the robot sees it: both, up or down." default:"both"`
	As        string        `help:"The new name of a replugged interface."`
	For       time.Duration `help:"Undo it after this time." placeholder:"3s"`
}

type benchCommand struct {
	Out    string        `help:"Folder for figures and plots." default:"build/bench" type:"path"`
	Only   []string      `help:"Make these experiments alone, by their names."`
	Drive  []string      `help:"A drive to replay as well: a table of round trips and two of its columns. Can be given again." placeholder:"FILE.csv:COLUMN:COLUMN" sep:"none"`
	Length time.Duration `help:"How much of each drive to replay; 0 for whole drives. A generated one takes 10 minutes at most." default:"0"`
	Short  time.Duration `help:"How long each of the other experiments takes." default:"60s"`
	Seed   uint64        `help:"Seed of all luck." default:"1"`
}

func main() {
	lab.Main()
	var c commands
	command := kong.Parse(&c, kong.Name("fogplr-lab"), kong.Description("A network laboratory for fogplr."),
		kong.Vars{"tunnels": strings.Join(tunnels.Names(), ", "), "version": version},
		kong.Exit(func(code int) {
			if code != 0 {
				code = misuse
			}
			os.Exit(code)
		}))
	// Whatever ends the terminal or the pipe ends the laboratory in order, too.
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := c.do(ctx, command.Command())
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fogplr-lab:", err)
		os.Exit(status(err))
	}
}

// misuse is the exit status for what the user has to mend, findings that for what
// the laboratory found.
const (
	findings = 1
	misuse   = 2
)

func status(err error) int {
	if errors.Is(err, errFindings) {
		return findings
	}
	return misuse
}

// errFindings is what a run ends with that went to its end and lost something.
var errFindings = errors.New("see above")

func (c *commands) do(ctx context.Context, command string) error {
	switch name, _, _ := strings.Cut(command, " "); name {
	case "run":
		return c.Run.do(ctx)
	case "up":
		return up(ctx, &c.Up)
	case "hold":
		return hold(ctx, &c.Hold)
	case "exec":
		return execute(c.Exec.Node, programOf(c.Exec.Args))
	case "fault":
		return tell(request{Op: "fault", Fault: c.Fault.fault()})
	case "undo":
		return tell(request{Op: "undo"})
	case "down":
		return down()
	case "self-test":
		return selfTest(ctx)
	default:
		return c.Bench.do(ctx)
	}
}

// tell asks the holder and prints what it says.
func tell(q request) error {
	r, err := ask(q)
	if err == nil {
		fmt.Println(r.Text)
	}
	return err
}

// programOf leaves the -- out.
func programOf(args []string) []string {
	if len(args) > 1 && args[0] == "--" {
		return args[1:]
	}
	return args
}

func (f *faultCommand) fault() *scenario.Fault {
	return &scenario.Fault{
		Kind: scenario.Kind(f.Kind), Carrier: f.Carrier, Gateway: f.Gateway, Direction: scenario.Direction(f.Direction), As: f.As, For: f.For,
	}
}

func selfTest(ctx context.Context) error {
	r, err := lab.SelfTest(ctx)
	if err == nil {
		fmt.Println(r)
	}
	return err
}

func (b *benchCommand) do(ctx context.Context) error {
	if b.Short < time.Second || b.Length < 0 || b.Length > 0 && b.Length < time.Second {
		return errors.New("an experiment takes a second at least")
	}
	o := bench.Options{
		Dir: b.Out, Only: b.Only, Length: b.Length, Short: b.Short, Seed: b.Seed, Log: os.Stdout,
		Commit: version, Commands: []string{"make build apps peers", strings.Join(append([]string{"bin/fogplr-lab"}, os.Args[1:]...), " ")},
	}
	for _, d := range b.Drive {
		parts := strings.Split(d, ":")
		if len(parts) != 3 {
			return fmt.Errorf("--drive %s: want FILE.csv:COLUMN:COLUMN", d)
		}
		name := strings.TrimSuffix(filepath.Base(parts[0]), filepath.Ext(parts[0]))
		o.Drives = append(o.Drives, bench.FileDrive(plain(name), parts[0], parts[1], parts[2]))
	}
	failed, err := bench.Run(ctx, o)
	if err == nil {
		fmt.Printf("The report is in %s\n", filepath.Join(b.Out, "results.md"))
	}
	if err == nil && failed {
		err = errFindings
	}
	return err
}

// plain leaves in a name what experiments' names have: letters, digits, hyphens.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
}
