package play

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/scenario"
)

// Describe says what a fault is, in a few words.
func Describe(f *scenario.Fault) string {
	text := string(f.Kind)
	for _, on := range []string{f.Carrier, f.Gateway} {
		if on != "" {
			text += " of " + on
		}
	}
	switch f.Direction {
	case scenario.Up, scenario.Down:
		text += ", on the way " + string(f.Direction)
	}
	if f.As != "" {
		text += ", back as " + f.As
	}
	if f.For > 0 {
		text += fmt.Sprintf(", for %v", f.For.Round(time.Millisecond))
	}
	return text
}

// Suffer makes a fault happen and, when its time is over, undoes it, where it can
// be undone. One without an end stays.
func (s *Standing) Suffer(ctx context.Context, f *scenario.Fault) error {
	undo, err := s.Inject(ctx, f)
	if err != nil || f.For == 0 || undo == nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(f.For):
		return undo(ctx)
	}
}

// Inject makes a fault happen and returns how it is undone, nil if it cannot be.
// With an error, undo may be set: some of the fault has happened. Faults and their
// ends come one after the other, whoever asks for them.
func (s *Standing) Inject(ctx context.Context, f *scenario.Fault) (undo func(context.Context) error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, err := s.inject(ctx, f)
	if end == nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return end(ctx)
	}, err
}

func (s *Standing) inject(ctx context.Context, f *scenario.Fault) (undo func(context.Context) error, err error) {
	switch {
	case f.Kind == scenario.RobotRestart:
		node := s.World.Robots[0].Node
		if err := s.Tunnel.Kill(node); err != nil {
			return nil, err
		}
		return nil, s.Tunnel.Restart(ctx, node)
	case f.Carrier != "":
		c, err := s.carrier(f.Carrier)
		if err != nil {
			return nil, err
		}
		return s.onCarrier(c, f)
	}
	g, err := s.gateway(f.Gateway)
	if err != nil {
		return nil, err
	}
	return s.onGateway(ctx, g, f)
}

func (s *Standing) onCarrier(c *lab.Carrier, f *scenario.Fault) (undo func(context.Context) error, err error) {
	switch f.Kind {
	case scenario.BlackHole:
		set := (*lab.Link).BlackHole
		switch f.Direction {
		case scenario.Up:
			set = (*lab.Link).BlackHoleAB
		case scenario.Down:
			set = (*lab.Link).BlackHoleBA
		}
		// By its end the carrier may have another link.
		return func(context.Context) error { return set(c.Link, false) }, set(c.Link, true)
	case scenario.LinkDown:
		return func(context.Context) error { return c.Up() }, c.Down()
	case scenario.Unplug:
		return func(context.Context) error { return c.Link.Plug(true) }, c.Link.Plug(false)
	case scenario.AddressChange:
		return nil, c.Readdress()
	case scenario.Replug:
		name := f.As
		if name == "" {
			name = c.Interface
		}
		return nil, s.World.Replug(c, name)
	case scenario.NATRebind:
		return nil, c.Rebind()
	}
	return nil, fmt.Errorf("a carrier cannot suffer %s", f.Kind)
}

func (s *Standing) onGateway(ctx context.Context, g *lab.Gateway, f *scenario.Fault) (undo func(context.Context) error, err error) {
	servers := s.servers[g.Name()]
	switch f.Kind {
	case scenario.GatewayKill:
		undo = func(ctx context.Context) error {
			return errors.Join(s.Tunnel.Restart(ctx, g.Node), startAll(ctx, servers))
		}
		return undo, errors.Join(s.Tunnel.Kill(g.Node), killAll(servers))
	case scenario.GatewayStop:
		undo = func(context.Context) error {
			return errors.Join(s.Tunnel.Pause(g.Node, false), signalAll(servers, syscall.SIGCONT))
		}
		return undo, errors.Join(s.Tunnel.Pause(g.Node, true), signalAll(servers, syscall.SIGSTOP))
	case scenario.GatewayRestart:
		if err := s.Tunnel.Kill(g.Node); err != nil {
			return nil, err
		}
		return nil, s.Tunnel.Restart(ctx, g.Node)
	case scenario.ServerStop:
		return func(context.Context) error { return signalAll(servers, syscall.SIGCONT) }, signalAll(servers, syscall.SIGSTOP)
	case scenario.ServerKill:
		return func(ctx context.Context) error { return startAll(ctx, servers) }, killAll(servers)
	}
	return nil, fmt.Errorf("a gateway cannot suffer %s", f.Kind)
}

// Pauses returns the pauses of the gateways' programs as faults. They depend on
// the seed and on the gateway's place alone.
func Pauses(s *scenario.Scenario) (all []scenario.Fault) {
	for i, g := range s.Gateways {
		if g.PauseEvery == 0 {
			continue
		}
		r := rand.New(rand.NewPCG(s.Seed, uint64(i)))
		for at := time.Duration(0); ; {
			at += time.Duration(r.ExpFloat64() * float64(g.PauseEvery))
			if at >= s.Duration {
				break
			}
			length := max(time.Millisecond, time.Duration(r.ExpFloat64()*float64(g.PauseFor)))
			all = append(all, scenario.Fault{At: at, Kind: scenario.ServerStop, Gateway: g.Name, For: length})
			at += length
		}
	}
	return all
}
