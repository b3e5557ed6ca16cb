package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/internal/shell"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// socketFlag names the daemon to talk to.
type socketFlag struct {
	Socket fileName `placeholder:"PATH" xor:"daemon" help:"Control socket of the daemon (the one that its configuration names)."`
	Config fileName `placeholder:"FILE" xor:"daemon" help:"Configuration of the daemon (/etc/fogplr/robot.toml or gateway.toml)."`
}

// path returns the control socket of the daemon that the flags name, or of the
// only one of this machine.
func (f socketFlag) path() (string, error) {
	if f.Socket != "" {
		return string(f.Socket), nil
	}
	if f.Config != "" {
		node, err := config.LoadNode(string(f.Config))
		if err != nil {
			return "", err
		}
		return node.ControlSocket, nil
	}
	robot, gateway := socketOf(robotConfig, config.RobotSocket), socketOf(gatewayConfig, config.GatewaySocket)
	return onlySocket(robot, gateway, control.Running, func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	})
}

// words are the flags again, for a command that is to mean the same daemon.
func (f socketFlag) words() string {
	switch {
	case f.Socket != "":
		return " --socket " + shell.Quote(string(f.Socket))
	case f.Config != "":
		return " --config " + shell.Quote(string(f.Config))
	}
	return ""
}

// advise adds to an error of the daemon at path what to do about it; inUse says
// whether a program has a device open, and which node's it is.
func (f socketFlag) advise(err error, path string, inUse func(iface string) (used bool, owner string, err error)) error {
	stopped, silent := errors.Is(err, control.ErrNotRunning), errors.Is(err, control.ErrSilent)
	file, node := f.configOf(path)
	switch {
	case !stopped && !silent:
		return err
	case node == nil && stopped:
		return fmt.Errorf("%w; start it with `systemctl start fogplr-robot` or `systemctl start fogplr-gateway`", err)
	case node == nil:
		return fmt.Errorf("%w; `systemctl restart fogplr-robot` or `systemctl restart fogplr-gateway` starts it anew", err)
	case silent:
		return fmt.Errorf("%w; %s", err, config.RestartAdvice(node.Role, file))
	}
	switch used, owner, e := inUse(node.Interface); {
	case e != nil || !used:
	case owner != "" && owner != node.Role+" "+node.Name:
		return fmt.Errorf("%w; %s", err, config.Taken(node.Role, file, node.Interface, owner))
	default:
		return elsewhere(err, file, node)
	}
	return fmt.Errorf("%w; start it with `%s`", err, config.StartCommand(node.Role, file))
}

// elsewhere is the error of a daemon that runs, as its interface shows, and does not
// answer where its configuration says.
func elsewhere(err error, file string, node *config.Node) error {
	return fmt.Errorf("%w, yet a program has %s open: most likely a fogplr daemon that was started with another control_socket than %s has. "+
		"To have it take over that one, %s", err, node.Interface, file, config.RestartAdvice(node.Role, file))
}

// configOf returns the configuration that names the control socket path, nil if it
// is not known.
func (f socketFlag) configOf(path string) (string, *config.Node) {
	for _, file := range []string{string(f.Config), robotConfig, gatewayConfig} {
		if node, err := config.LoadNode(file); err == nil && node.ControlSocket == path {
			return file, node
		}
	}
	return "", nil
}

// socketOf returns the control socket that a configuration names, or otherwise
// when that cannot be read.
func socketOf(file, otherwise string) string {
	if node, err := config.LoadNode(file); err == nil {
		return node.ControlSocket
	}
	return otherwise
}

// onlySocket chooses by which daemon answers; when none does, by which one left
// its socket, or has one that this user may not open: the error is then about
// that.
func onlySocket(robot, gateway string, running, there func(path string) bool) (string, error) {
	robotRuns, gatewayRuns := running(robot), running(gateway)
	switch {
	case robotRuns && gatewayRuns && robot != gateway:
		return "", usageError{fmt.Errorf("both a robot and a gateway run here: say which with --socket %s or --socket %s", robot, gateway)}
	case gatewayRuns, !robotRuns && there(gateway) && !there(robot):
		return gateway, nil
	}
	return robot, nil
}

type statusCmd struct {
	socketFlag
	Check bool `help:"Exit with 1 when the node is not ready or a path is not up."`
}

// Help is the end of `fogplr status --help`.
func (statusCmd) Help() string {
	return "Every column and counter is explained in docs/STATUS.md, beside the README."
}

func (c statusCmd) Run(a *app) error {
	path, err := c.path()
	if err != nil {
		return err
	}
	s, err := control.Status(context.Background(), path)
	if err != nil {
		return c.advise(err, path, routing.InUse)
	}
	if err := a.print(s, func(w io.Writer) { statusText(w, s) }); err != nil {
		return err
	}
	if !c.Check {
		return nil
	}
	if failing := failing(s); len(failing) > 0 {
		for _, sentence := range failing {
			fmt.Fprintln(a.stderr, "fogplr:", sentence)
		}
		return failure{}
	}
	return nil
}

// failing says what --check objects to.
func failing(s *tunnel.Status) []string {
	var out []string
	if !s.Ready {
		out = append(out, s.Role+" "+printable(s.Name)+" is not ready")
	}
	out = append(out, unreached(s)...)
	names := carrierNames(s.Carriers)
	for _, peer := range s.Peers {
		for i := range peer.Paths {
			if p := &peer.Paths[i]; !p.Up && !unused(s.Role, p) {
				out = append(out, fmt.Sprintf("the path %s to %s is not up", cmp.Or(names[p.Slot], p.Carrier), peer.Name))
			}
		}
	}
	return out
}

// unused says whether a path of a gateway belongs to a slot that the robot has
// never used: a gateway has the keys of all eight.
func unused(role string, p *tunnel.PathStatus) bool {
	return role == "gateway" && !p.Up && p.LastProof < 0 && p.Stage == ""
}
