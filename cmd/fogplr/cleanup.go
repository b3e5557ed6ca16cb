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

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/routing"
)

type cleanupCmd struct {
	All    bool   `help:"Remove the overlay's interface, its addresses and its blackhole route, too."`
	Force  bool   `help:"Also while the daemon runs."`
	Config string `placeholder:"FILE" help:"Configuration of this robot or gateway (/etc/fogplr/robot.toml and gateway.toml)."`
}

// place is where a daemon leaves its traces, and where it answers while it runs.
type place struct{ iface, socket string }

func (c cleanupCmd) Run(a *app) error {
	places, err := c.find(a.stderr)
	if err != nil {
		return err
	}
	if places, err = c.unused(places, a.stderr); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	total := routing.Report{Changes: []string{}}
	var errs []error
	for _, p := range places {
		r, err := routing.Cleanup(filepath.Dir(p.socket), p.iface, c.All, log)
		total.Changes = append(total.Changes, r.Changes...)
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot clean up: %w", err))
		}
	}
	err = a.print(total, func(w io.Writer) {
		for _, line := range total.Changes {
			fmt.Fprintln(w, line)
		}
	})
	return errors.Join(append(errs, err)...)
}

// unused leaves out the places of daemons that run, and tells of them. It is an
// error if nothing is left, because then somebody wants to clean up behind a
// daemon's back.
func (c cleanupCmd) unused(places []place, stderr io.Writer) (left []place, err error) {
	if c.Force {
		return places, nil
	}
	var busy error
	for _, p := range places {
		used, err := routing.InUse(p.iface)
		switch {
		case control.Running(p.socket):
			busy = fmt.Errorf("the daemon at %s is running and needs what cleanup would remove: stop it first, or use --force", p.socket)
		case err != nil:
			return nil, fmt.Errorf("cannot clean up: %w", err)
		case used:
			busy = cmp.Or(busy, fmt.Errorf("a program has %s open, most likely a fogplr daemon, and needs what cleanup would remove: stop it first, or use --force", p.iface))
		default:
			left = append(left, p)
		}
	}
	switch {
	case len(left) == 0:
		return nil, busy
	case busy != nil:
		fmt.Fprintf(stderr, "fogplr: not everything is cleaned up: %v\n", busy)
	}
	return left, nil
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
