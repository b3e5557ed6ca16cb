package tunnels_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/tunnels"
)

// options has the wireguard-go that TestMain built.
var options tunnels.Options

func TestMain(m *testing.M) {
	lab.Main()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fogplr-tunnels-")
	if err == nil {
		defer os.RemoveAll(dir)
		options.WireGuard = filepath.Join(dir, "wireguard-go")
		err = ready()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "The tests of the tunnels cannot run:", err)
		return 1
	}
	return m.Run()
}

// ready makes wireguard-go and tells what else is missing.
func ready() error {
	build := exec.Command("go", "build", "-o", options.WireGuard, "golang.zx2c4.com/wireguard")
	var errs []error
	if out, err := build.CombinedOutput(); err != nil {
		errs = append(errs, fmt.Errorf("build wireguard-go: %w\n%s", err, out))
	}
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("they make network namespaces, so run them as root"))
	}
	if _, err := os.Stat("../../bin/fogplr"); err != nil {
		errs = append(errs, fmt.Errorf("run `make build` first: %w", err))
	}
	for _, name := range []string{"rpc_server", "rpc_client", "fast_rpc_server", "fast_rpc_client"} {
		if _, err := apps.Path(name); err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range []string{"ip", "ping", "unshare", "wg"} {
		if _, err := exec.LookPath(name); err != nil {
			errs = append(errs, fmt.Errorf("run `make needs` first: %w", err))
		}
	}
	return errors.Join(errs...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// trial is a tunnel in a world.
type trial struct {
	*testing.T
	ctx    context.Context
	world  *lab.World
	robot  *lab.Robot
	tunnel tunnels.Tunnel
}

const rate = 30 // calls a second

// Every tunnel carries both vendors' DDS to both gateways, over the carriers
// that it should use; its programs can be killed, paused and started again; and
// it leaves nothing behind.
func TestTunnels(t *testing.T) {
	for _, name := range tunnels.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			w, err := lab.Test(t, name).Standard(lab.Options{Seed: 1, Carriers: []lab.CarrierOptions{carrier(40), carrier(20)}})
			must(t, err)
			tunnel, err := tunnels.ByName(name, options)
			must(t, err)
			trial := &trial{t, ctx, w, w.Robots[0], tunnel}
			must(t, tunnel.Start(ctx, w, trial.robot.Carriers))
			trial.addresses()
			trial.bothVendors(name == "fogplr")
			switch name {
			case "fogplr":
				trial.noGap()
			case "failover":
				trial.failover()
			}
			trial.programs()
			must(t, tunnel.Stop())
			trial.nothingLeft()
		})
	}
}

// carrier is an uplink with a round trip of so many ms.
func carrier(ms int) lab.CarrierOptions {
	p := lab.RoundTrip(time.Duration(ms)*time.Millisecond, time.Millisecond, 0)
	return lab.CarrierOptions{Up: p, Down: p}
}

func (t *trial) addresses() {
	t.Helper()
	for node, want := range map[*lab.Node]string{
		t.robot.Node: "10.77.0.2", t.world.Gateways[0].Node: "10.77.0.11", t.world.Gateways[1].Node: "10.77.0.12", t.world.Inet: "invalid IP",
	} {
		if got := t.tunnel.Address(node).String(); got != want {
			t.Errorf("%s has the address %s, want %s", node.Name(), got, want)
		}
	}
}

// bothVendors makes calls with Cyclone DDS and with Fast DDS, which must all be
// answered, and looks which carriers they take.
func (t *trial) bothVendors(bothCarriers bool) {
	t.Helper()
	for _, vendor := range []string{"", "fast_"} {
		stop := t.serve(vendor)
		before := t.sent()
		c := t.call(vendor, 2*rate)
		must(t, c.cmd.Wait())
		after := t.sent()
		s := c.summary(t.T)
		if s.Requests != 2*rate || s.Replies != s.Requests || s.Lost != 0 {
			t.Errorf("%srpc_client: %d of %d calls were answered and %d lost", vendor, s.Replies, s.Requests, s.Lost)
		}
		for _, g := range t.world.Gateways {
			if s.By[g.Name()].All == 0 {
				t.Errorf("%srpc_client: %s answered nothing", vendor, g.Name())
			}
		}
		a, b := after[0]-before[0], after[1]-before[1]
		if a < 2*rate || (b >= 2*rate) != bothCarriers {
			t.Errorf("%srpc_client: the carriers took %d and %d packets", vendor, a, b)
		}
		stop()
	}
}

// sent counts the packets that each carrier took up.
func (t *trial) sent() (n []uint64) {
	t.Helper()
	for _, c := range t.robot.Carriers {
		up, _, err := c.Link.Counters()
		must(t, err)
		n = append(n, up.Received)
	}
	return n
}

// serve starts a server on each gateway.
func (t *trial) serve(vendor string) (stop func()) {
	t.Helper()
	var servers []*lab.Cmd
	for _, g := range t.world.Gateways {
		c, err := t.tunnel.Command(t.ctx, g.Node, vendor+"rpc_server", "--name", g.Name())
		must(t, err)
		must(t, c.Start())
		servers = append(servers, c)
	}
	return func() {
		for _, c := range servers {
			must(t, c.Kill())
		}
	}
}

// calls is a running rpc_client.
type calls struct {
	cmd *lab.Cmd
	mu  sync.Mutex
	out bytes.Buffer
}

// Write takes the client's output.
func (c *calls) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

func (t *trial) call(vendor string, count int) *calls {
	t.Helper()
	cmd, err := t.tunnel.Command(t.ctx, t.robot.Node, vendor+"rpc_client", "--servers=2", fmt.Sprintf("--count=%d", count),
		fmt.Sprintf("--rate=%d", rate), "--settle-ms=500", "--lost-after-ms=3000")
	must(t, err)
	c := &calls{cmd: cmd}
	cmd.Stdout = c
	must(t, cmd.Start())
	return c
}

func (c *calls) summary(t *testing.T) (s apps.Summary) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	must(t, apps.ParseSummary(c.out.Bytes(), &s))
	return s
}

// arrivals are the times of all replies so far, in seconds since 1970.
func (c *calls) arrivals() (times []float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range bytes.Lines(c.out.Bytes()) {
		if e, ok := apps.ParseEvent(line); ok && !e.Lost {
			times = append(times, e.T+e.LatencyMS/1000)
		}
	}
	slices.Sort(times)
	return times
}

// longestGap is the longest time without a reply, in seconds.
func (c *calls) longestGap() (gap float64) {
	times := c.arrivals()
	for i := 1; i < len(times); i++ {
		gap = max(gap, times[i]-times[i-1])
	}
	return gap
}

// until waits for something that should be so in a few seconds.
func (t *trial) until(what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 15 s: %s", what)
		}
	}
}

// noGap makes the first carrier a black hole, and nobody notices.
func (t *trial) noGap() {
	t.Helper()
	defer t.serve("")()
	c := t.call("", 3*rate)
	t.until("a first reply", func() bool { return len(c.arrivals()) > 0 })
	must(t, t.robot.Carriers[0].Link.BlackHole(true))
	must(t, c.cmd.Wait())
	must(t, t.robot.Carriers[0].Link.BlackHole(false))
	if s := c.summary(t.T); s.Replies != 3*rate || s.Lost != 0 {
		t.Errorf("black hole: %d of %d calls were answered and %d lost", s.Replies, s.Requests, s.Lost)
	}
	if gap := c.longestGap(); gap > 0.5 {
		t.Errorf("black hole: nothing came for %.1f s", gap)
	}
}

// failover makes the first carrier a black hole: WireGuard moves to the second
// one, and back when the first is well again.
func (t *trial) failover() {
	t.Helper()
	defer t.serve("")()
	c := t.call("", 0)
	// Some of these are always under way, also when the routes move.
	noise := t.robot.Command(t.ctx, "ping", "-n", "-q", "-i", "0.005", t.tunnel.Address(t.world.Gateways[0].Node).String())
	must(t, noise.Start())
	first := t.robot.Carriers[0]
	t.until("a first reply", func() bool { return len(c.arrivals()) > 0 })
	must(t, first.Link.BlackHole(true))
	time.Sleep(time.Second)
	n := len(c.arrivals())
	t.until("replies by the second carrier", func() bool { return len(c.arrivals()) > n+rate })
	must(t, first.Link.BlackHole(false))
	t.until("the route is back on the first carrier", func() bool { return t.route() == first.Interface })
	time.Sleep(200 * time.Millisecond) // for what was under way
	before := t.sent()
	time.Sleep(time.Second)
	after := t.sent()
	must(t, noise.Kill())
	if a, b := after[0]-before[0], after[1]-before[1]; a < 2*rate || b >= rate {
		t.Errorf("after the return the carriers took %d and %d packets in a second", a, b)
	}
	_ = c.cmd.Stop(10 * time.Second) // its status is bad, since calls were lost
	if s := c.summary(t.T); s.Replies < s.Requests/3 {
		t.Errorf("black hole: %d of %d calls were answered", s.Replies, s.Requests)
	}
	gap := c.longestGap()
	if gap < 1 || gap > 10 {
		t.Errorf("black hole: nothing came for %.1f s, want 1 to 10", gap)
	}
	t.Logf("black hole: nothing came for %.1f s", gap)
}

// With one carrier WireGuard uses no other, even when that one is down, and it
// is back when the carrier is.
func TestWireGuardKeepsToItsCarrier(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	raw := carrier(20)
	raw.Raw = true
	w, err := lab.Test(t, "keep").Standard(lab.Options{Carriers: []lab.CarrierOptions{carrier(20), raw}})
	must(t, err)
	tunnel, err := tunnels.ByName("wireguard", options)
	must(t, err)
	trial := &trial{t, ctx, w, w.Robots[0], tunnel}
	mine := trial.robot.Carriers[1]
	before := trial.sent()
	must(t, tunnel.Start(ctx, w, []*lab.Carrier{mine}))
	for _, trouble := range []struct{ begin, end func() error }{
		{mine.Down, mine.Up}, {mine.Readdress, func() error { return nil }},
	} {
		must(t, trouble.begin())
		if trial.ping(0) {
			t.Error("a gateway answers without the carrier")
		}
		must(t, trouble.end())
		trial.until("the gateways answer again", func() bool { return trial.ping(0) && trial.ping(1) })
	}
	// Neighbour discovery of its own is all that the other one may have.
	if used := trial.sent()[0] - before[0]; used > 10 {
		t.Errorf("the other carrier took %d packets", used)
	}
	must(t, tunnel.Stop())
}

// route is the interface by which the robot reaches the first gateway.
func (t *trial) route() string {
	t.Helper()
	out, err := t.robot.Command(t.ctx, "ip", "-4", "route", "get", t.world.Gateways[0].Address.String()).Output()
	must(t, err)
	_, rest, _ := strings.Cut(out, " dev ")
	dev, _, _ := strings.Cut(rest, " ")
	return dev
}

// ping reports whether a gateway answers through the tunnel.
func (t *trial) ping(gateway int) bool {
	t.Helper()
	to := t.tunnel.Address(t.world.Gateways[gateway].Node).String()
	return t.robot.Command(t.ctx, "ping", "-n", "-q", "-c", "1", "-W", "1", to).Run() == nil
}

// programs pauses, kills and starts again what belongs to the tunnel.
func (t *trial) programs() {
	t.Helper()
	west := t.world.Gateways[0].Node
	for _, paused := range []bool{true, false} {
		must(t, t.tunnel.Pause(west, paused))
		if paused && t.ping(0) {
			t.Error("west is paused, and answers")
		}
		if !paused { // it drops what may have waited meanwhile
			t.until("west goes on", func() bool { return t.ping(0) })
		}
		if !t.ping(1) {
			t.Errorf("west paused: %v, and east does not answer", paused)
		}
	}
	for range 2 { // the second time there is nothing to kill
		must(t, t.tunnel.Kill(t.robot.Node))
	}
	if t.ping(0) || t.ping(1) {
		t.Error("a gateway answers a robot whose tunnel was killed")
	}
	must(t, t.tunnel.Pause(t.robot.Node, true))
	for range 2 { // the second time it runs
		must(t, t.tunnel.Restart(t.ctx, t.robot.Node))
		must(t, t.tunnel.Whole(t.ctx))
		if !t.ping(0) || !t.ping(1) {
			t.Error("a gateway does not answer although the tunnel is whole again")
		}
	}
}

// nothingLeft looks for what Stop forgot.
func (t *trial) nothingLeft() {
	t.Helper()
	for _, n := range []*lab.Node{t.robot.Node, t.world.Gateways[0].Node} {
		links, err := n.Netlink().LinkList()
		must(t, err)
		for _, k := range links {
			if name := k.Attrs().Name; name != "lo" && name != "eth0" && !strings.HasPrefix(name, "cell-") {
				t.Errorf("%s still has the interface %s", n.Name(), name)
			}
		}
		routes, err := n.Command(t.ctx, "ip", "-4", "route").Output()
		must(t, err)
		for line := range strings.Lines(routes) {
			if !strings.HasPrefix(line, "default via ") && !strings.Contains(line, "scope link src") {
				t.Errorf("%s still has the route %s", n.Name(), strings.TrimSpace(line))
			}
		}
	}
}
