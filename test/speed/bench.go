package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

const (
	carriers = 2
	public   = "198.51.100.10" // the gateway's address
)

// bench is two nodes joined by plain veth pairs, one for each carrier.
type bench struct {
	lab            *lab.Lab
	robot, gateway *lab.Node
	bin            string
}

func newBench(bin string) (*bench, error) {
	l, err := lab.New("speed")
	if err != nil {
		return nil, err
	}
	b := &bench{lab: l, bin: bin}
	if err := b.build(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return b, nil
}

func (b *bench) build() (err error) {
	if b.robot, err = b.lab.Node("robot"); err != nil {
		return err
	}
	if b.gateway, err = b.lab.Node("gateway"); err != nil {
		return err
	}
	if err := b.gateway.AddAddress("lo", public+"/32"); err != nil {
		return err
	}
	for i := range carriers {
		here, there := fmt.Sprintf("c%d", i), fmt.Sprintf("up%d", i)
		if err := b.lab.Veth(b.robot, here, b.gateway, there); err != nil {
			return err
		}
		if err := b.robot.AddAddress(here, fmt.Sprintf("10.%d.0.2/24", i+1)); err != nil {
			return err
		}
		router := fmt.Sprintf("10.%d.0.1", i+1)
		if err := b.gateway.AddAddress(there, router+"/24"); err != nil {
			return err
		}
		if err := b.robot.AddRoute("default", router, here, 100+i); err != nil {
			return err
		}
	}
	return nil
}

// tunnel is a running contender.
type tunnel struct {
	target string // the gateway's inner address
	pids   [2]int
	stop   func()
}

// startPlain runs wireguard-go at both ends, with the same inner MTU as fogplr.
func startPlain(ctx context.Context, b *bench) (*tunnel, error) {
	bin, err := filepath.Abs(filepath.Join(b.bin, "wireguard-go"))
	if err != nil {
		return nil, err
	}
	robotKey, gatewayKey := keys.Generate(), keys.Generate()
	var daemons []*lab.Cmd
	stop := func() {
		for _, d := range daemons {
			_ = d.Kill()
		}
	}
	for _, end := range []struct {
		node          *lab.Node
		dev, address  string
		key, otherKey keys.Private
		peer          []string
	}{
		{b.gateway, "fpwg-g", "10.77.0.11/16", gatewayKey, robotKey, []string{"allowed-ips", "10.77.0.2/32"}},
		{b.robot, "fpwg-r", "10.77.0.2/16", robotKey, gatewayKey, []string{"allowed-ips", "10.77.0.11/32", "endpoint", public + ":51820"}},
	} {
		// One that was killed leaves its socket. `wg` removes it while wireguard-go
		// does, which then gives up.
		_ = os.Remove(filepath.Join("/var/run/wireguard", end.dev+".sock"))
		d := end.node.Command(ctx, bin, "-f", end.dev)
		if err := d.Start(); err != nil {
			stop()
			return nil, err
		}
		daemons = append(daemons, d)
		if err := b.setPlain(ctx, end.node, end.dev, end.address, end.key, end.otherKey, end.peer); err != nil {
			stop()
			return nil, err
		}
	}
	return &tunnel{target: "10.77.0.11", pids: [2]int{daemons[0].Pid(), daemons[1].Pid()}, stop: stop}, nil
}

func (b *bench) setPlain(ctx context.Context, node *lab.Node, dev, address string, key, other keys.Private, peer []string) error {
	file := filepath.Join(b.lab.Dir(), dev+".key")
	if err := keys.WritePrivate(file, key, true); err != nil {
		return err
	}
	args := append([]string{"set", dev, "private-key", file, "listen-port", "51820", "peer", other.PublicKey().String()}, peer...)
	var err error
	for range 100 { // until its socket is there
		if err = node.Command(ctx, "wg", args...).Run(); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("wg set %s: %w", dev, err)
	}
	if err := node.SetMTU(dev, 1280); err != nil {
		return err
	}
	if err := node.AddAddress(dev, address); err != nil {
		return err
	}
	return node.Up(dev)
}

// startFogplr runs fogplr at both ends over n carriers.
func startFogplr(n int) func(context.Context, *bench) (*tunnel, error) {
	return func(ctx context.Context, b *bench) (*tunnel, error) {
		r := deploy.Robot{Node: b.robot, Name: "robot", Addresses: []string{"10.77.0.2/16"}}
		for i := range n {
			r.Carriers = append(r.Carriers, fmt.Sprintf("c%d", i))
		}
		g := deploy.Gateway{Node: b.gateway, Name: "gateway", Addresses: []string{"10.77.0.11/16"}, Endpoint: public + ":51820"}
		f, err := deploy.New(filepath.Join(b.bin, "fogplr"), filepath.Join(b.lab.Dir(), fmt.Sprint("fleet", n)), []deploy.Robot{r}, []deploy.Gateway{g})
		if err != nil {
			return nil, err
		}
		stop := func() {
			_ = f.Stop()
			for _, name := range []string{"robot", "gateway"} { // its address would catch the next contender's packets
				_, _ = f.Member(name).CLI(ctx, "cleanup", "--all", "--config", f.Member(name).Config())
			}
		}
		if err := f.Start(ctx); err != nil {
			stop()
			return nil, err
		}
		if err := f.Member("robot").WaitUp(ctx); err != nil {
			stop()
			return nil, err
		}
		return &tunnel{target: "10.77.0.11", pids: [2]int{f.Member("robot").Pid(), f.Member("gateway").Pid()}, stop: stop}, nil
	}
}

// cpu returns the CPU seconds that both ends have used (proc(5), stat fields 14
// and 15, in ticks of 10 ms).
func (t *tunnel) cpu() (seconds float64, err error) {
	for _, pid := range t.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, fmt.Errorf("the tunnel's process is gone: %w", err)
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, f := range fields[11:13] {
			ticks, err := strconv.ParseFloat(f, 64)
			if err != nil {
				return 0, err
			}
			seconds += ticks / 100
		}
	}
	return seconds, nil
}

// rss returns the larger end's peak resident memory in MB.
func (t *tunnel) rss() (mb float64, err error) {
	for _, pid := range t.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), "VmHWM:")
		kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		if err != nil {
			return 0, err
		}
		mb = max(mb, kb/1000)
	}
	return mb, nil
}
