package play

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/scenario"
	"github.com/fogplr/fogplr/test/tunnels"
)

// startsIn is how far ahead the start of traces and workloads is set, so that all
// links know it when it comes.
const startsIn = 200 * time.Millisecond

// Standing is a scenario's world that is up.
type Standing struct {
	Scenario *scenario.Scenario
	World    *lab.World
	Tunnel   tunnels.Tunnel

	mu      sync.Mutex           // one fault, or one end of a fault, at a time
	servers map[string][]*server // by gateway
	calling []*job               // that make calls
}

// Build makes a scenario's nodes and links in a new laboratory.
func Build(l *lab.Lab, s *scenario.Scenario) (*lab.World, error) {
	o := lab.Options{Seed: s.Seed}
	for _, c := range s.Carriers {
		o.Carriers = append(o.Carriers, c.CarrierOptions)
	}
	for _, g := range s.Gateways {
		o.Gateways = append(o.Gateways, g.Name)
	}
	w, err := l.Standard(o)
	if err != nil {
		return nil, err
	}
	for i, c := range s.Carriers {
		if c.MTU > 0 {
			if err := w.Robots[0].Carriers[i].SetMTU(c.MTU); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

// Up brings the tunnel up over the carriers that are named, in that order, or
// over all.
func (s *Standing) Up(ctx context.Context, only []string) error {
	carriers := s.World.Robots[0].Carriers
	if len(only) > 0 {
		carriers = nil
		for _, name := range only {
			c, err := s.carrier(name)
			if err != nil {
				return err
			}
			if slices.Contains(carriers, c) {
				return fmt.Errorf("carrier %s is named twice", name)
			}
			carriers = append(carriers, c)
		}
	}
	if err := s.Tunnel.Start(ctx, s.World, carriers); err != nil {
		return fmt.Errorf("bring %s up: %w", s.Tunnel.Name(), err)
	}
	return nil
}

// Play starts the traces of all links, at one time shortly after now, and returns
// when it has come.
func (s *Standing) Play() (start time.Time, err error) {
	start = time.Now().Add(startsIn)
	for _, c := range s.World.Robots[0].Carriers {
		err = errors.Join(err, c.Link.Play(start))
	}
	time.Sleep(time.Until(start))
	return start, err
}

// Whole waits until the tunnel is as it was before anything failed and every
// server answers calls again.
func (s *Standing) Whole(ctx context.Context) error {
	if err := s.Tunnel.Whole(ctx); err != nil {
		return err
	}
	for _, j := range s.calling {
		if err := j.answered(ctx, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (s *Standing) carrier(name string) (*lab.Carrier, error) {
	for i, c := range s.Scenario.Carriers { // whose names stay when an interface is renamed
		if c.Interface == name {
			return s.World.Robots[0].Carriers[i], nil
		}
	}
	var names []string
	for i := range s.Scenario.Carriers {
		names = append(names, s.Scenario.Carriers[i].Interface)
	}
	return nil, fmt.Errorf("there is no carrier %s; there are %s", name, strings.Join(names, ", "))
}

func (s *Standing) gateway(name string) (*lab.Gateway, error) {
	for _, g := range s.World.Gateways {
		if g.Name() == name {
			return g, nil
		}
	}
	return nil, fmt.Errorf("there is no gateway %s", name)
}
