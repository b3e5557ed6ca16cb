package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Cmd is a program in a node. It runs in a process group of its own; what it
// prints goes to a log file of the laboratory. Set the fields before Start. Each
// Cmd is for one run.
type Cmd struct {
	// Env is added to the environment of this process.
	Env []string
	Dir string
	// Stdin is read, if not nil.
	Stdin io.Reader
	// Stdout receives a copy of the standard output, if not nil.
	Stdout io.Writer

	node *Node
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
	err  error // valid once done is closed
}

// Command prepares a program; nothing happens before Start, Run or Output. The
// program and all it started get SIGKILL when ctx ends, when Close is called, or
// when this process dies.
func (n *Node) Command(ctx context.Context, name string, args ...string) *Cmd {
	return &Cmd{node: n, cmd: exec.CommandContext(ctx, name, args...), done: make(chan struct{})}
}

// Start starts the program. A missing program is an error.
func (c *Cmd) Start() error {
	var err error
	if c.log, err = c.node.lab.logFile(c.node.name, c.cmd.Path); err != nil {
		return err
	}
	fmt.Fprintf(c.log, "+ %s\n", strings.Join(c.cmd.Args, " "))
	c.cmd.Env = append(os.Environ(), c.Env...)
	c.cmd.Dir, c.cmd.Stdin = c.Dir, c.Stdin
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	if c.Stdout != nil {
		c.cmd.Stdout = io.MultiWriter(c.log, c.Stdout)
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.cmd.Cancel = func() error { return c.Signal(syscall.SIGKILL) }
	c.cmd.WaitDelay = stopGrace // for grandchildren that keep the output open
	result := make(chan error)
	c.node.starts <- func() { result <- c.cmd.Start() }
	if err := <-result; err != nil {
		return errors.Join(fmt.Errorf("node %s: %w", c.node.name, err), c.log.Close())
	}
	c.node.lab.adopt(c)
	go c.reap()
	return nil
}

func (l *Lab) adopt(c *Cmd) {
	l.mu.Lock()
	l.commands = append(l.commands, c)
	l.mu.Unlock()
}

func (c *Cmd) reap() {
	c.err = c.cmd.Wait()
	if c.err != nil {
		c.err = fmt.Errorf("%s in node %s: %w (log: %s)", c.cmd.Args[0], c.node.name, c.err, c.log.Name())
	}
	_ = c.log.Close()
	close(c.done)
}

// Wait waits for the end of a started program. An exit status other than 0 is
// an *exec.ExitError. It may be called more than once.
func (c *Cmd) Wait() error {
	<-c.done
	return c.err
}

// Done is closed when a started program has ended.
func (c *Cmd) Done() <-chan struct{} { return c.done }

// Run starts the program and waits for it.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output runs the program and returns its standard output.
func (c *Cmd) Output() (string, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := c.Run()
	return out.String(), err
}

// Pid is the process id of a started program.
func (c *Cmd) Pid() int { return c.cmd.Process.Pid }

// Log is the path of a started program's log file.
func (c *Cmd) Log() string { return c.log.Name() }

// Signal sends a signal to a started program's process group. A program that
// has ended is no error.
func (c *Cmd) Signal(sig syscall.Signal) error {
	select {
	case <-c.done:
		return nil
	default:
	}
	if err := syscall.Kill(-c.cmd.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to %s: %w", sig, c.cmd.Args[0], err)
	}
	return nil
}

// Kill ends a started program at once (SIGKILL) and waits for it.
func (c *Cmd) Kill() error {
	if err := c.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.done
	return nil
}

// Stop asks a started program to end (SIGTERM), waits for up to grace, then
// kills it, which is an error. Otherwise it returns what Wait returns.
func (c *Cmd) Stop(grace time.Duration) error {
	if err := c.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.done:
		return c.err
	case <-time.After(grace):
		return errors.Join(fmt.Errorf("%s in node %s did not end within %v of SIGTERM (log: %s)",
			c.cmd.Args[0], c.node.name, grace, c.log.Name()), c.Kill())
	}
}

// Args are the program and its arguments.
func (c *Cmd) Args() []string { return c.cmd.Args }
