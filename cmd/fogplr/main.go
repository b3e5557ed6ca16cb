// Command fogplr is the robot's and the gateway's daemon and all the tools
// around them. See docs/ARCHITECTURE.md.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/fogplr/fogplr/internal/config"
)

// version is set by the linker (make build).
var version = "dev"

// Exit statuses.
const (
	exitFailed = 1 // it did not work, or --check found something
	exitUsage  = 2 // wrong usage or configuration
)

// commands is the command line.
type commands struct {
	JSON bool `help:"Print JSON."`

	Robot   robotCmd   `cmd:"" help:"Run a robot's daemon."`
	Gateway gatewayCmd `cmd:"" help:"Run a gateway's daemon."`
	Init    initCmd    `cmd:"" help:"Write a commented configuration and a key; print the block for the other side."`
	Status  statusCmd  `cmd:"" help:"Show every path with its state, latency and loss."`
	Check   checkCmd   `cmd:"" help:"Say what on this machine keeps the node from working, and how to repair it."`
	Env     envCmd     `cmd:"" help:"Point ROS 2 at the overlay: eval \"$$(fogplr env)\"."`
	Keygen  keygenCmd  `cmd:"" help:"Print a new private key."`
	Pubkey  pubkeyCmd  `cmd:"" help:"Read a private key from standard input and print the public key."`
	Reload  reloadCmd  `cmd:"" help:"Have the daemon read its configuration again."`
	Cleanup cleanupCmd `cmd:"" help:"Remove what a crashed daemon left behind."`
	Prepare prepareCmd `cmd:"" hidden:"" help:"Do what a daemon that is not root cannot (before its start, as root)."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// app is what commands talk to.
type app struct {
	json   bool
	stdin  io.Reader
	stdout *output
	stderr io.Writer
}

// usageError is a mistake of the caller.
type usageError struct{ error }

// failure ends the program with exitFailed after everything has been said.
type failure struct{}

func (failure) Error() string { return "failed" }

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	err := execute(args, &app{stdin: stdin, stdout: out, stderr: stderr})
	return max(report(stderr, err), report(stderr, out.failed()))
}

// execute does what args say.
func execute(args []string, a *app) (err error) {
	type helped struct{}
	defer func() { // --help ends the parser by way of this
		if r := recover(); r != nil && r != (helped{}) {
			panic(r)
		}
	}()
	var c commands
	parser := kong.Must(&c,
		kong.Name("fogplr"),
		kong.Description("Use the cloud as if it were one reliable machine: every packet over several uplinks to several gateways, and the first copy and the first reply win."),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(int) { panic(helped{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	ctx, err := parser.Parse(plainArgs(args))
	switch {
	case a.stdout.err != nil: // in the middle of --help
		return nil
	case err != nil:
		return usage(err)
	}
	a.json = c.JSON
	return ctx.Run(a)
}

// report says what went wrong and returns the exit status for it.
func report(stderr io.Writer, err error) int {
	var problems *config.Error
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &problems):
		fmt.Fprintln(stderr, problems)
		return exitUsage
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, "fogplr:", strings.TrimSpace(err.Error()))
		return exitUsage
	case !errors.Is(err, failure{}):
		fmt.Fprintln(stderr, "fogplr:", strings.TrimSpace(err.Error()))
	}
	return exitFailed
}

// print writes v as JSON with --json, and what text writes otherwise. A write
// that fails is told at the end of run.
func (a *app) print(v any, text func(w io.Writer)) error {
	var b bytes.Buffer
	if a.json {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(v); err != nil {
			return err
		}
	} else {
		text(&b)
	}
	_, _ = a.stdout.Write(b.Bytes())
	return nil
}

type versionCmd struct{}

func (versionCmd) Run(a *app) error {
	v := struct {
		Version string `json:"version"`
		Go      string `json:"go"`
	}{Version: version}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Go = info.GoVersion
	}
	return a.print(v, func(w io.Writer) { fmt.Fprintln(w, "fogplr", v.Version, v.Go) })
}
