package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/internal/shell"
	"github.com/fogplr/fogplr/routing"
)

type cleanupCmd struct {
	All    bool   `help:"Remove the overlay's interface, its addresses and its blackhole route, too."`
	Force  bool   `help:"Also while the daemon runs."`
	Quiet  bool   `help:"Print nothing when there was nothing to clean up, as after a daemon that ended well."`
	Config string `placeholder:"FILE" help:"Configuration of this robot or gateway (/etc/fogplr/robot.toml and gateway.toml)."`
}

// place is where a daemon leaves its traces, and where it answers while it runs.
type place struct{ iface, socket string }

func (c cleanupCmd) Run(a *app) error {
	places, err := c.find(a.stderr)
	if err != nil {
		return err
	}
	return c.clean(a, places, routing.InUse)
}

// clean cleans places; inUse says whether a program has a device open. What fails
// keeps nothing else from being removed and printed.
func (c cleanupCmd) clean(a *app, places []place, inUse func(iface string) (used bool, owner string, err error)) error {
	total := routing.Report{Changes: []string{}}
	var errs []error
	note := func(r routing.Report, err error) {
		total.Changes = append(total.Changes, r.Changes...)
		errs = append(errs, parts(err)...)
	}
	note(removeSockets(places)) // of which no daemon that runs needs any
	left, busy, err := c.unused(places, inUse, a.stderr)
	note(routing.Report{}, err)
	log := slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if len(left) > 0 {
		note(removeTunnelSockets(wireGuardDir))
	}
	for _, p := range left {
		note(routing.Cleanup(filepath.Dir(p.socket), p.iface, c.All, log))
	}
	errs = failures(errs, os.Geteuid() == 0)
	if busy != nil && len(left) > 0 {
		fmt.Fprintf(a.stderr, "fogplr: not everything is cleaned up: %v\n", busy)
	} else if busy != nil {
		errs = append(errs, busy)
	}
	if len(total.Changes) > 0 || len(errs) == 0 && !c.Quiet {
		errs = append(errs, a.print(total, func(w io.Writer) { cleanedText(w, total.Changes, busy != nil) }))
	}
	return errors.Join(errs...)
}

// parts returns the errors that errors.Join has put together, or err itself.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, parts(e)...)
	}
	return all
}

// failures says what could not be cleaned up: all that only root may do in one
// sentence with what to do, which quotes the first of it.
func failures(errs []error, root bool) []error {
	var out []error
	told := false
	for _, err := range errs {
		switch {
		case root || !errors.Is(err, fs.ErrPermission):
			out = append(out, fmt.Errorf("cannot clean up: %w", err))
		case !told:
			told = true
			out = append(out, fmt.Errorf("cannot clean up as this user: use `sudo fogplr cleanup`, with the same flags (%w)", err))
		}
	}
	return out
}

// cleanedText prints what was removed or put back, for people.
func cleanedText(w io.Writer, changes []string, spared bool) {
	switch {
	case len(changes) == 0 && spared:
		fmt.Fprintln(w, "There was nothing else to clean up.")
		return
	case len(changes) == 0:
		fmt.Fprintln(w, "There was nothing to clean up.")
		return
	}
	fmt.Fprintln(w, "Cleaned up, as these commands would:")
	for _, line := range changes {
		fmt.Fprintln(w, " ", printable(line))
	}
}

// removeSockets removes the control sockets of places on which nobody listens.
func removeSockets(places []place) (r routing.Report, err error) {
	var errs []error
	for _, p := range places {
		removed, err := control.Sweep(p.socket)
		if err != nil {
			errs = append(errs, fmt.Errorf("the socket %s: %w", p.socket, err))
		} else if removed {
			r.Changes = append(r.Changes, "rm "+shell.Quote(p.socket))
		}
	}
	return r, errors.Join(errs...)
}

// removeTunnelSockets removes the sockets of fogplr's tunnels in dir on which
// nobody listens. They have no lock, so it looks twice.
func removeTunnelSockets(dir string) (r routing.Report, err error) {
	abandoned := func(path string) bool {
		yes, _ := control.Abandoned(path) // what this user may not open is another's
		return yes
	}
	all, _ := filepath.Glob(filepath.Join(dir, "fogplr-*.sock")) // the pattern is right
	all = slices.DeleteFunc(all, func(path string) bool { return !abandoned(path) })
	if len(all) > 0 {
		time.Sleep(socketSettles)
	}
	var errs []error
	for _, path := range all {
		if !abandoned(path) {
			continue
		}
		if err := os.Remove(path); err != nil {
			errs = append(errs, err)
			continue
		}
		r.Changes = append(r.Changes, "rm "+shell.Quote(path))
	}
	return r, errors.Join(errs...)
}

// socketSettles is many times what passes between making a socket and listening
// on it, two system calls in a row: until then it refuses, too.
const socketSettles = 100 * time.Millisecond

// unused leaves out the places of daemons that run, and those of which that cannot
// be told, for the reasons in err; busy says which need what.
func (c cleanupCmd) unused(places []place, inUse func(iface string) (used bool, owner string, err error), stderr io.Writer) (left []place, busy, err error) {
	var errs []error
	for _, p := range places {
		runs := control.Running(p.socket)
		if c.Force {
			if left = append(left, p); runs {
				fmt.Fprintf(stderr, "fogplr: the daemon at %s is running, so its control socket stays\n", p.socket)
			}
			continue
		}
		used, _, err := inUse(p.iface)
		switch {
		case runs:
			busy = fmt.Errorf("the daemon at %s is running and needs what cleanup would remove: stop it first, or use --force", p.socket)
		case err != nil:
			errs = append(errs, err)
		case used:
			busy = cmp.Or(busy, fmt.Errorf("a program has %s open, most likely a fogplr daemon, and needs what cleanup would remove: stop it first, or use --force", p.iface))
		default:
			left = append(left, p)
		}
	}
	return left, busy, errors.Join(errs...)
}

// find returns the places to clean. A default configuration that is wrong or
// missing stands for the defaults: cleaning up must be possible all the same.
func (c cleanupCmd) find(stderr io.Writer) (places []place, err error) {
	files := []string{robotConfig, gatewayConfig}
	if c.Config != "" {
		files = []string{c.Config}
	} else {
		places = []place{{config.DefaultInterface, config.RobotSocket}, {config.DefaultInterface, config.GatewaySocket}}
	}
	for _, file := range files {
		if _, err := os.Stat(file); c.Config == "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		n, err := config.LoadNode(file)
		switch {
		case err == nil:
			if p := (place{n.Interface, n.ControlSocket}); !slices.Contains(places, p) {
				places = append(places, p)
			}
		case c.Config != "":
			return nil, err
		default:
			fmt.Fprintf(stderr, "%v\nfogplr: cleaning up as if %s had the default interface and control socket\n", err, file)
		}
	}
	return places, nil
}

type prepareCmd struct {
	User string `default:"fogplr" help:"User of the daemon."`
}

// Run fails only when it was called wrongly: a daemon that misses something
// says so itself, better.
func (c prepareCmd) Run(a *app) error {
	if err := shareWireGuardDir(wireGuardDir, c.User); err != nil {
		fmt.Fprintln(a.stderr, "fogplr:", err)
	}
	return nil
}

// wireGuardDir is where WireGuard's programs look for the sockets of devices.
const wireGuardDir = "/run/wireguard"

// shareWireGuardDir lets the group of the daemon's user make sockets in dir, and
// nobody remove those of others.
func shareWireGuardDir(dir, name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("there is no user %s to share %s with, so `wg show` works for a daemon of root only: %w", name, dir, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.Chown(dir, 0, gid)
	}
	if err == nil {
		err = os.Chmod(dir, 0o775|fs.ModeSticky)
	}
	if err != nil {
		return fmt.Errorf("cannot share %s with user %s, so `wg show` may not find the tunnels: %w", dir, name, err)
	}
	return nil
}
