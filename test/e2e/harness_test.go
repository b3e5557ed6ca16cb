// Package e2e tests the real fogplr program, end to end: daemons in network
// namespaces of a laboratory (test/lab, test/deploy), traffic of real programs
// through them. It needs root, bin/fogplr (make build) and, for DDS, build/apps
// (make apps).
package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// What these tests need, relative to this directory.
const (
	fogplr  = "../../bin/fogplr"
	appsDir = "../../build/apps"
)

const (
	// wgPort is where every gateway listens.
	wgPort = 51820
	// patience bounds every wait for something that should take a second or two,
	// because the machine may be busy.
	patience = 20 * time.Second
)

func TestMain(m *testing.M) {
	lab.Main()
	if err := ready(); err != nil {
		fmt.Fprintln(os.Stderr, "The end-to-end tests cannot run:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// ready tells what is missing to run at all.
func ready() error {
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("they make network namespaces, so run them as root"))
	}
	if _, err := os.Stat(fogplr); err != nil {
		errs = append(errs, fmt.Errorf("run `make build` first: %w", err))
	}
	for _, program := range []string{"ip", "ss", "nft", "ping", "iperf3"} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("run `make needs` first: %w", err))
		}
	}
	return errors.Join(errs...)
}

// app is the path of a program that `make apps` builds.
func app(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(appsDir, name))
	must(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("run `make apps` first: %v", err)
	}
	return path
}

// world is a laboratory of one test with a fleet on it. Robots and gateways
// stand in the order of lab.Options.
type world struct {
	*lab.World
	fleet    *deploy.Fleet
	robots   []*robot
	gateways []*gateway
}

// robot is a node with a fogplr robot on it.
type robot struct {
	*deploy.Member
	lab *lab.Robot
	// ip and ip6 are its overlay addresses.
	ip, ip6 netip.Addr
}

// gateway is a node with a fogplr gateway on it.
type gateway struct {
	*deploy.Member
	lab     *lab.Gateway
	ip, ip6 netip.Addr
}

// options of a world beyond those of its laboratory.
type options struct {
	lab.Options
	// Endpoint6 has the robots reach the gateways by IPv6 (with IPv6).
	Endpoint6 bool
	// Extra are lines for the top of every robot.toml.
	Extra string
	// Program is the fogplr to run, bin/fogplr by default.
	Program string
	// Prepare is called before any daemon starts.
	Prepare func(*world)
}

// start makes a world and a fleet, starts it, and waits until all its paths are
// up. The end of the test stops the daemons, which must be well then, and removes
// everything.
func start(t testing.TB, o options) *world {
	t.Helper()
	w := build(t, o)
	w.startAll(t)
	for _, r := range w.robots {
		must(t, r.WaitUp(t.Context()))
	}
	return w
}

// startAll starts the daemons. They outlive the test's context, whose end would
// kill them before they can be stopped.
func (w *world) startAll(t testing.TB) {
	t.Helper()
	must(t, w.fleet.Start(context.WithoutCancel(t.Context())))
}

// run starts one daemon, as startAll does.
func run(t testing.TB, m *deploy.Member) {
	t.Helper()
	must(t, m.Start(context.WithoutCancel(t.Context())))
}

// build is start without starting the daemons.
func build(t testing.TB, o options) *world {
	t.Helper()
	l := lab.Test(t, "e2e")
	lw, err := l.Standard(o.Options)
	must(t, err)
	return settle(t, lw, o)
}

// settle puts a fleet on the nodes of a laboratory.
func settle(t testing.TB, lw *lab.World, o options) *world {
	t.Helper()
	w := &world{World: lw}
	var robots []deploy.Robot
	var gateways []deploy.Gateway
	for i, r := range lw.Robots {
		m := deploy.Robot{Node: r.Node, Name: r.Name(), Addresses: overlay(robotHost(i)), Extra: o.Extra}
		for _, c := range r.Carriers {
			m.Carriers = append(m.Carriers, c.Interface)
		}
		robots = append(robots, m)
	}
	for i, g := range lw.Gateways {
		outer := g.Address
		if o.Endpoint6 {
			outer = g.Address6
		}
		gateways = append(gateways, deploy.Gateway{
			Node: g.Node, Name: g.Name(), Addresses: overlay(gatewayHost(i)),
			Endpoint: netip.AddrPortFrom(outer, wgPort).String(),
		})
	}
	var err error
	w.fleet, err = deploy.New(cmp.Or(o.Program, fogplr), w.Dir(), robots, gateways)
	must(t, err)
	for i, r := range lw.Robots {
		ip, ip6 := overlayAddrs(robotHost(i))
		w.robots = append(w.robots, &robot{Member: w.fleet.Member(r.Name()), lab: r, ip: ip, ip6: ip6})
	}
	for i, g := range lw.Gateways {
		ip, ip6 := overlayAddrs(gatewayHost(i))
		w.gateways = append(w.gateways, &gateway{Member: w.fleet.Member(g.Name()), lab: g, ip: ip, ip6: ip6})
	}
	t.Cleanup(func() {
		if err := w.fleet.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			w.KeepLogs()
		}
	})
	if o.Prepare != nil {
		o.Prepare(w)
	}
	return w
}

// robotHost and gatewayHost number the nodes on the overlay: robots are
// 10.77.0.2 and then 10.77.0.101, 10.77.0.102 ..., gateways 10.77.0.11,
// 10.77.0.12 ....
func robotHost(i int) int {
	if i == 0 {
		return 2
	}
	return 100 + i
}

func gatewayHost(i int) int { return 11 + i }

// overlay returns a node's overlay addresses with prefix.
func overlay(host int) []string {
	ip, ip6 := overlayAddrs(host)
	return []string{ip.String() + "/16", ip6.String() + "/64"}
}

func overlayAddrs(host int) (ip, ip6 netip.Addr) {
	return netip.AddrFrom4([4]byte{10, 77, 0, byte(host)}),
		netip.MustParseAddr(fmt.Sprintf("fd77::%x", host))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until check returns nil, for up to patience, and returns how
// long that took. The test fails with the last error.
func eventually(t testing.TB, what string, check func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		took := time.Since(began)
		if err == nil {
			return took
		}
		if took > patience {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// output runs a program on a node and returns what it printed.
func output(t testing.TB, n *lab.Node, name string, args ...string) string {
	t.Helper()
	out, err := n.Command(t.Context(), name, args...).Output()
	must(t, err)
	return out
}

// status asks a member's daemon.
func status(t testing.TB, m *deploy.Member) *tunnel.Status {
	t.Helper()
	s, err := m.Status(t.Context())
	must(t, err)
	return s
}

// pathOf returns the path to a peer by a carrier, as status calls them.
func pathOf(t testing.TB, s *tunnel.Status, peer, carrier string) tunnel.PathStatus {
	t.Helper()
	for _, p := range s.Peers {
		for _, l := range p.Paths {
			if p.Name == peer && l.Carrier == carrier {
				return l
			}
		}
	}
	t.Fatalf("%s knows no path to %s by %s", s.Name, peer, carrier)
	return tunnel.PathStatus{}
}

// waitPath waits until a robot's path is up, or down.
func waitPath(t testing.TB, r *robot, gateway, carrier string, up bool) time.Duration {
	t.Helper()
	return eventually(t, fmt.Sprintf("path of %s to %s by %s, up=%v", r.Name, gateway, carrier, up), func() error {
		s, err := r.Status(context.WithoutCancel(t.Context()))
		if err != nil {
			return err
		}
		if p := pathOf(t, s, gateway, carrier); p.Up != up {
			return fmt.Errorf("up=%v %s", p.Up, p.Stage)
		}
		return nil
	})
}

// file is a path in the laboratory's directory, which goes away with it.
func (w *world) file(parts ...string) string {
	return filepath.Join(w.Dir(), strings.Join(parts, "-"))
}

// slotName is what a gateway calls the path by a robot's carrier number i.
func slotName(i int) string { return fmt.Sprintf("slot %d", i) }
