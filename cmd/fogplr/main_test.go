package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/daemon"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"fogplr": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"noisy":  func() { os.Exit(noisy()) },
	})
}

// noisy is a daemon that logs until nobody reads its log and a little longer. It
// returns 0 if it could.
func noisy() int {
	a := app{stdout: &output{w: os.Stdout}, stderr: os.Stderr}
	err := a.daemon("", func(_ context.Context, o daemon.Options) error {
		for {
			o.Log.Info("noise")
			if _, err := fmt.Fprintln(os.Stderr, "noise"); errors.Is(err, unix.EPIPE) {
				o.Log.Info("still here")
				return nil
			}
		}
	})
	return report(os.Stderr, err)
}

// TestScripts runs the command as a person does, for all that needs no daemon.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "mode": mode},
	})
}

// A person is told what is awaited, a pipe is not.
func TestTerminal(t *testing.T) {
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pty.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if !terminal(pty) || terminal(null) || terminal(strings.NewReader("")) {
		t.Errorf("terminal %v, /dev/null %v, text %v", terminal(pty), terminal(null), terminal(strings.NewReader("")))
	}
}

// exits runs a program that must end with a status: exits STATUS PROGRAM ARGS...
// What it prints is compared by the commands stdout and stderr as after exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = exitCode(err)
	}
	if code != args[0] {
		ts.Fatalf("exit status %s, want %s", code, args[0])
	}
}

// mode checks a file's permission bits: mode FILE 0600.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode FILE BITS")
	}
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := octal(info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

func exitCode(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Sprint(exit.ExitCode())
	}
	return err.Error()
}

func octal(m fs.FileMode) string { return fmt.Sprintf("%04o", uint32(m)) }
