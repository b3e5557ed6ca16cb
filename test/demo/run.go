package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// run is one run of the demo: a laboratory, daemons, servers and a client of
// its own.
type run struct {
	title    string
	carriers []carrier
	length   time.Duration
	faults   []fault
	seed     uint64

	world   *lab.World
	fogplr  string // the program
	fleet   *deploy.Fleet
	robot   *deploy.Member
	servers map[string]*lab.Cmd // by gateway
	client  *apps.Client
}

// fault is something that goes wrong.
type fault struct {
	after time.Duration // the first call
	what  string
	do    func(*run) error
}

// result is the outcome of a run.
type result struct {
	Run     string             `json:"run"`
	Calls   apps.Summary       `json:"calls"`
	Traffic map[string]traffic `json:"traffic"` // by carrier, while calls were made
	Events  []apps.Event       `json:"events"`
	Logs    string             `json:"-"` // where they are, if kept
}

// complete reports whether every call was answered.
func (r *result) complete() bool {
	return r.Calls.Requests > 0 && r.Calls.Replies == r.Calls.Requests
}

// traffic is bytes of UDP payload.
type traffic struct {
	Sent     uint64 `json:"sent_bytes"`
	Received uint64 `json:"received_bytes"`
}

// do makes the run. Its logs are kept when something went wrong.
func (r *run) do(ctx context.Context) (result *result, err error) {
	l, err := lab.New("demo")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w (logs: %s)", err, l.Dir())
		}
		if err != nil || !result.complete() {
			l.KeepLogs()
		}
		err = errors.Join(err, l.Close())
	}()
	if err := r.start(ctx, l); err != nil {
		return nil, err
	}
	if result, err = r.measure(ctx); err != nil {
		return nil, err
	}
	result.Logs = l.Dir()
	return result, r.fleet.Stop()
}

// start brings up laboratory, daemons and servers.
func (r *run) start(ctx context.Context, l *lab.Lab) (err error) {
	o := lab.Options{Seed: r.seed}
	for _, c := range r.carriers {
		o.Carriers = append(o.Carriers, c.options())
	}
	if r.world, err = l.Standard(o); err != nil {
		return err
	}
	if err := r.deploy(); err != nil {
		return err
	}
	if err := r.fleet.Start(ctx); err != nil {
		return err
	}
	if err := r.robot.WaitUp(ctx); err != nil {
		return err
	}
	r.servers = map[string]*lab.Cmd{}
	for _, g := range r.world.Gateways {
		server, err := program(ctx, r.fleet.Member(g.Name()), "rpc_server", "--name", g.Name())
		if err == nil {
			err = server.Start()
		}
		if err != nil {
			return err
		}
		r.servers[g.Name()] = server
	}
	return nil
}

// deploy writes keys and configurations.
func (r *run) deploy() (err error) {
	root, err := apps.Root()
	if err != nil {
		return err
	}
	r.fogplr = filepath.Join(root, "bin", "fogplr")
	node := r.world.Robots[0].Node
	robot := deploy.Robot{Node: node, Name: node.Name(), Addresses: []string{"10.77.0.2/16"}}
	for _, c := range r.carriers {
		robot.Carriers = append(robot.Carriers, c.name)
	}
	var gateways []deploy.Gateway
	for i, g := range r.world.Gateways {
		gateways = append(gateways, deploy.Gateway{
			Node: g.Node, Name: g.Name(), Addresses: []string{fmt.Sprintf("10.77.0.%d/16", 11+i)},
			Endpoint: fmt.Sprintf("%v:51820", g.Address),
		})
	}
	r.fleet, err = deploy.New(r.fogplr, r.world.Dir(), []deploy.Robot{robot}, gateways)
	if err == nil {
		r.robot = r.fleet.Member(robot.Name)
	}
	return err
}

// program prepares a DDS program of ours on a member's node.
func program(ctx context.Context, m *deploy.Member, name string, args ...string) (*lab.Cmd, error) {
	path, err := apps.Path(name)
	if err != nil {
		return nil, err
	}
	return m.Program(ctx, path, args...)
}

// measure runs the client to its end, breaks what is to break, and prints a
// line every second.
func (r *run) measure(ctx context.Context) (*result, error) {
	before, err := r.traffic(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.startClient(ctx); err != nil {
		return nil, err
	}
	if err := r.watch(ctx); err != nil {
		return nil, err
	}
	after, err := r.traffic(ctx)
	if err != nil {
		return nil, err
	}
	result := &result{Run: r.title, Traffic: map[string]traffic{}, Events: r.client.Events()}
	for name, t := range after {
		result.Traffic[name] = traffic{t.Sent - before[name].Sent, t.Received - before[name].Received}
	}
	result.Calls, err = r.client.Finish()
	return result, err
}

func (r *run) startClient(ctx context.Context) error {
	count := int(r.length/time.Second) * callsPerS
	cmd, err := program(ctx, r.robot, "rpc_client", "--servers=2", fmt.Sprintf("--count=%d", count),
		fmt.Sprintf("--rate=%d", callsPerS), fmt.Sprintf("--deadline-ms=%d", deadlineMS), "--match-timeout-s=40", "--settle-ms=500")
	if err != nil {
		return err
	}
	r.client = apps.NewClient(cmd)
	return cmd.Start()
}

// watch prints a line every second until the client ends.
func (r *run) watch(ctx context.Context) error {
	if err := r.client.AwaitFirst(ctx); err != nil {
		return err
	}
	printHeader(os.Stdout, r.carriers)
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	faults := r.faults
	for {
		var next <-chan time.Time
		if len(faults) > 0 {
			next = time.After(time.Until(began.Add(faults[0].after)))
		}
		select {
		case <-ctx.Done():
			return errors.New("interrupted")
		case <-r.client.Cmd().Done():
			return nil
		case <-next:
			fmt.Printf("      >> %s\n", faults[0].what)
			if err := faults[0].do(r); err != nil {
				return err
			}
			faults = faults[1:]
		case <-tick.C:
			s, err := r.robot.Status(ctx)
			if err != nil {
				return fmt.Errorf("the robot's daemon does not answer: %w", err)
			}
			printLine(os.Stdout, time.Since(began), r.carriers, s, r.client.Events())
		}
	}
}

// darken swallows everything on the first carrier.
func (r *run) darken() error {
	return r.world.Robots[0].Carriers[0].Link.BlackHole(true)
}

// killWest kills daemon and server of the first gateway.
func (r *run) killWest() error {
	west := r.world.Gateways[0].Name()
	return errors.Join(r.fleet.Member(west).Kill(), r.servers[west].Kill())
}

func (r *run) traffic(ctx context.Context) (map[string]traffic, error) {
	s, err := r.robot.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the robot's daemon for its counters: %w", err)
	}
	return trafficOf(s), nil
}

func trafficOf(s *tunnel.Status) map[string]traffic {
	t := map[string]traffic{}
	for _, c := range s.Carriers {
		t[c.Interface] = traffic{c.Socket.TxBytes, c.Socket.RxBytes}
	}
	return t
}
