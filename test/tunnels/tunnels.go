// Package tunnels has an adapter for each way to connect a robot with its
// gateways that the laboratory compares: fogplr, and what people use instead. A
// further one is one more file, and a line in the table of this one.
package tunnels

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/lab"
)

// Tunnel connects one robot with all gateways of a world. Its methods are called
// by one goroutine at a time, Start first and Stop last.
type Tunnel interface {
	// Name of the tunnel, for tables and plots.
	Name() string
	// Start brings it up over these carriers of the world's first robot, the best
	// one first, and returns when the robot reaches every gateway, or with an error
	// that says why not. The tunnel's programs run until Stop or the end of ctx.
	// Files belong under w.Dir().
	Start(ctx context.Context, w *lab.World, carriers []*lab.Carrier) error
	// Command prepares a DDS program on a node (the robot's or a gateway's), so
	// that its DDS uses the tunnel. The program is one of test/apps by its name, or
	// any other by its name or path.
	Command(ctx context.Context, node *lab.Node, name string, args ...string) (*lab.Cmd, error)
	// Address is a node's address inside.
	Address(node *lab.Node) netip.Addr
	// Kill ends the tunnel's own programs on a node by SIGKILL, Restart starts them
	// again, after a Kill if they still run. Pause stops them (SIGSTOP) or lets them
	// go on (SIGCONT). Kill and Pause do nothing where nothing runs.
	Kill(node *lab.Node) error
	Restart(ctx context.Context, node *lab.Node) error
	Pause(node *lab.Node, stopped bool) error
	// Whole waits until every path that the tunnel knows of works.
	Whole(ctx context.Context) error
	// Stop ends everything, also after a Start that failed, so that another tunnel
	// can be started in the same world.
	Stop() error
}

// Options are what tunnels need to know beside the world. The zero value is good.
type Options struct {
	// Fogplr and WireGuard are the paths of the programs fogplr and wireguard-go;
	// empty means those in bin of this repository.
	Fogplr, WireGuard string
	// Config has lines for the top of fogplr's robot.toml.
	Config string
}

// table has every tunnel there is.
var table = []struct {
	name string
	make func(Options) Tunnel
}{
	{"fogplr", func(o Options) Tunnel { return &fogplr{options: o} }},
	{"wireguard", func(o Options) Tunnel { return &wireguard{program: o.WireGuard} }},
	{"failover", func(o Options) Tunnel { return &wireguard{program: o.WireGuard, failover: true} }},
}

// Names lists the tunnels that ByName knows.
func Names() []string {
	var names []string
	for _, t := range table {
		names = append(names, t.name)
	}
	return names
}

// ByName returns the tunnel of that name, which is not started yet.
func ByName(name string, o Options) (Tunnel, error) {
	for _, t := range table {
		if t.name == name {
			return t.make(o), nil
		}
	}
	return nil, fmt.Errorf("there is no tunnel %q; there are %s", name, strings.Join(Names(), ", "))
}

// patience is how long a tunnel may take to start.
const patience = 20 * time.Second

// await waits until try succeeds, and returns its last error when that takes too
// long.
func await(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// pause stops a child of this process with its group (SIGSTOP) and waits until
// none of its threads runs, or lets it go on (SIGCONT). A child that has ended is
// no error.
func pause(pid int, stopped bool) error {
	signal := unix.SIGCONT
	if stopped {
		signal = unix.SIGSTOP
	}
	err := unix.Kill(-pid, signal)
	if err == nil && stopped {
		err = await(context.Background(), func() error {
			var info unix.Siginfo
			err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
			if err == nil && info.Signo == 0 {
				return errors.New("it still runs")
			}
			return err
		})
	}
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ECHILD) {
		return fmt.Errorf("signal %v to process %d: %w", signal, pid, err)
	}
	return nil
}

// inside returns the addresses that all tunnels give to the nodes of a world.
func inside(w *lab.World) map[*lab.Node]netip.Addr {
	addresses := map[*lab.Node]netip.Addr{w.Robots[0].Node: netip.MustParseAddr("10.77.0.2")}
	for i, g := range w.Gateways {
		addresses[g.Node] = netip.AddrFrom4([4]byte{10, 77, 0, byte(11 + i)})
	}
	return addresses
}

// insideBits is the length of the prefix of all of them.
const insideBits = 16

// port is where gateways listen.
const port = 51820

// stranger is the error for a node that is not part of the tunnel.
func stranger(n *lab.Node) error {
	return fmt.Errorf("node %s has no part in the tunnel", n.Name())
}

// binary returns the path of a tunnel's program: path, or name in this
// repository's bin. make is the command that makes it.
func binary(path, name, make string) (string, error) {
	if path == "" {
		root, err := apps.Root()
		if err != nil {
			return "", fmt.Errorf("cannot find the program %s: %w", name, err)
		}
		path = filepath.Join(root, "bin", name)
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = exec.LookPath(path)
	}
	if err != nil {
		return "", fmt.Errorf("the program %s is missing (make it with: %s): %w", name, make, err)
	}
	return path, nil
}

// program returns the path of a DDS program; see Tunnel.Command.
func program(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	own, notOwn := apps.Path(name)
	if notOwn == nil {
		return own, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no program %s: %w", name, errors.Join(notOwn, err))
	}
	return path, nil
}
