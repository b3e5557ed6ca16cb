package tunnels

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// fullTime is how long Start waits for every path; after that one path to each
// gateway is enough, since a carrier of the world may be dead.
const fullTime = 5 * time.Second

// cleanupTime bounds the removal of what fogplr leaves in a node by design.
const cleanupTime = 10 * time.Second

// fogplr is the tunnel of this project: its real program, as on a real robot.
type fogplr struct {
	options Options

	program   string
	addresses map[*lab.Node]netip.Addr
	fleet     *deploy.Fleet
	robot     *deploy.Member
	running   map[*lab.Node]bool
}

func (t *fogplr) Name() string { return "fogplr" }

func (t *fogplr) Start(ctx context.Context, w *lab.World, carriers []*lab.Carrier) (err error) {
	if t.program, err = binary(t.options.Fogplr, "fogplr", "make build"); err != nil {
		return err
	}
	t.addresses, t.running = inside(w), map[*lab.Node]bool{}
	node := w.Robots[0].Node
	robot := deploy.Robot{Node: node, Name: node.Name(), Addresses: t.prefix(node), Extra: lines(t.options.Config)}
	for _, c := range carriers {
		robot.Carriers = append(robot.Carriers, c.Interface)
	}
	var gateways []deploy.Gateway
	for _, g := range w.Gateways {
		gateways = append(gateways, deploy.Gateway{
			Node: g.Node, Name: g.Name(), Addresses: t.prefix(g.Node), Endpoint: fmt.Sprintf("%v:%d", g.Address, port),
		})
	}
	if t.fleet, err = deploy.New(t.program, filepath.Join(w.Dir(), "fogplr"), []deploy.Robot{robot}, gateways); err != nil {
		return err
	}
	for _, g := range w.Gateways {
		if err := t.start(ctx, g.Node); err != nil {
			return err
		}
	}
	if err := t.start(ctx, node); err != nil {
		return err
	}
	t.robot = t.fleet.Member(robot.Name)
	return t.awaitPaths(ctx)
}

// prefix is a node's address as deploy wants it.
func (t *fogplr) prefix(n *lab.Node) []string {
	return []string{netip.PrefixFrom(t.addresses[n], insideBits).String()}
}

// lines ends the last line of a text that has any.
func lines(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}

func (t *fogplr) start(ctx context.Context, n *lab.Node) error {
	t.running[n] = true // so that Stop ends one that starts but does not answer
	return t.fleet.Member(n.Name()).Start(ctx)
}

func (t *fogplr) awaitPaths(ctx context.Context) error {
	began := time.Now()
	return await(ctx, func() error {
		s, err := t.robot.Status(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("the robot's daemon does not answer (its log is %s): %w", t.robot.Log(), err)
		case deploy.AllUp(s):
			return nil
		}
		if peer := unreached(s); peer != "" {
			return fmt.Errorf("no path to gateway %s came up (the robot's log is %s)", peer, t.robot.Log())
		}
		if time.Since(began) < fullTime {
			return errors.New("not all paths are up")
		}
		return nil
	})
}

func (t *fogplr) Whole(ctx context.Context) error {
	return await(ctx, func() error {
		s, err := t.robot.Status(ctx)
		if err == nil && !deploy.AllUp(s) {
			err = fmt.Errorf("not all paths came up again (the robot's log is %s)", t.robot.Log())
		}
		return err
	})
}

// unreached names a peer without any path that is up, or nobody.
func unreached(s *tunnel.Status) string {
peers:
	for _, peer := range s.Peers {
		for _, path := range peer.Paths {
			if path.Up {
				continue peers
			}
		}
		return peer.Name
	}
	return ""
}

func (t *fogplr) Command(ctx context.Context, n *lab.Node, name string, args ...string) (*lab.Cmd, error) {
	m, err := t.member(n)
	if err != nil {
		return nil, err
	}
	path, err := program(name)
	if err != nil {
		return nil, err
	}
	return m.Program(ctx, path, args...)
}

func (t *fogplr) member(n *lab.Node) (*deploy.Member, error) {
	if !t.addresses[n].IsValid() {
		return nil, stranger(n)
	}
	return t.fleet.Member(n.Name()), nil
}

func (t *fogplr) Address(n *lab.Node) netip.Addr { return t.addresses[n] }

func (t *fogplr) Kill(n *lab.Node) error {
	m, err := t.member(n)
	if err != nil || !t.running[n] {
		return err
	}
	t.running[n] = false
	return m.Kill()
}

func (t *fogplr) Restart(ctx context.Context, n *lab.Node) error {
	if err := t.Kill(n); err != nil {
		return err
	}
	return t.start(ctx, n)
}

func (t *fogplr) Pause(n *lab.Node, stopped bool) error {
	m, err := t.member(n)
	if err != nil || !t.running[n] {
		return err
	}
	return pause(m.Pid(), stopped)
}

// Stop also removes the device and the routes that fogplr keeps for its next
// start.
func (t *fogplr) Stop() error {
	if t.fleet == nil {
		return nil
	}
	var errs []error
	for n, running := range t.running {
		if running {
			errs = append(errs, t.Pause(n, false))
		}
	}
	errs = append(errs, t.fleet.Stop())
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	for n := range t.running {
		m := t.fleet.Member(n.Name())
		if _, err := m.CLI(ctx, "cleanup", "--all", "--config", m.Config()); err != nil {
			errs = append(errs, fmt.Errorf("clean up after fogplr on %s: %w", n.Name(), err))
		}
	}
	t.fleet, t.addresses, t.running = nil, nil, nil
	return errors.Join(errs...)
}
