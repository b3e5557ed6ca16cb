package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
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

// place is where a daemon leaves its traces.
type place struct{ iface, runtimeDir string }

func (c cleanupCmd) Run(a *app) error {
	sockets, places, err := c.find(a.stderr)
	if err != nil {
		return err
	}
	for _, socket := range sockets {
		if !c.Force && control.Running(socket) {
			return fmt.Errorf("the daemon at %s is running and needs what cleanup would remove: stop it first, or use --force", socket)
		}
	}
	for _, p := range places {
		used, err := routing.InUse(p.iface)
		if err != nil {
			return fmt.Errorf("cannot clean up: %w", err)
		}
		if used && !c.Force {
			return fmt.Errorf("a program has %s open, most likely a fogplr daemon, and needs what cleanup would remove: stop it first, or use --force", p.iface)
		}
	}
	log := slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	total := routing.Report{Changes: []string{}}
	var errs []error
	for _, p := range places {
		r, err := routing.Cleanup(p.runtimeDir, p.iface, c.All, log)
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

// find returns the control sockets to ask and the places to clean. A default
// configuration that is wrong or missing stands for the defaults: cleaning up
// must be possible all the same.
func (c cleanupCmd) find(stderr io.Writer) (sockets []string, places []place, err error) {
	files := []string{robotConfig, gatewayConfig}
	if c.Config != "" {
		files = []string{c.Config}
	} else {
		sockets = []string{config.RobotSocket, config.GatewaySocket}
		places = []place{{config.DefaultInterface, filepath.Dir(config.RobotSocket)}}
	}
	for _, file := range files {
		if _, err := os.Stat(file); c.Config == "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		n, err := config.LoadNode(file)
		switch {
		case err == nil:
			sockets = appendNew(sockets, n.ControlSocket)
			places = appendNew(places, place{n.Interface, filepath.Dir(n.ControlSocket)})
		case c.Config != "":
			return nil, nil, err
		default:
			fmt.Fprintf(stderr, "%v\nfogplr: cleaning up as if %s had the default interface and control socket\n", err, file)
		}
	}
	return sockets, places, nil
}

func appendNew[T comparable](list []T, x T) []T {
	for _, y := range list {
		if x == y {
			return list
		}
	}
	return append(list, x)
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
