package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// busy is what a loaded machine may add to a time that is judged.
const busy = 4 * time.Second

// trust is how long a path may stay silent before it is down, idleInterval how
// often it is probed without traffic at least.
var trust, idleInterval = path.DefaultConfig().Trust, path.DefaultConfig().MaxIdle

// near20 is a link with a round trip of 20 ms.
var near20 = lab.CarrierOptions{Up: lab.Params{Delay: 10 * time.Millisecond}, Down: lab.Params{Delay: 10 * time.Millisecond}}

// upstream is the router's end of a robot's carrier.
func upstream(robot, slot int) string {
	port := "up-" + string(rune('a'+slot))
	if robot > 0 {
		port += "-" + strconv.Itoa(robot+1)
	}
	return port
}

// Families whose packets a router may lose.
const (
	bothFamilies = "dead"
	onlyIPv4     = "dead4"
)

// upstreams lets the router between robots and gateways stop to forward, as a
// provider does that has lost its own uplink: links, addresses and neighbours stay.
type upstreams struct {
	t testing.TB
	n *lab.Node
}

func newUpstreams(t testing.TB, w *world) upstreams {
	t.Helper()
	must(t, w.Inet.NFT(`table inet upstreams {
	set dead { type ifname; }
	set dead4 { type ifname; }
	chain forward {
		type filter hook forward priority 0
		iifname @dead drop
		oifname @dead drop
		meta nfproto ipv4 iifname @dead4 drop
		meta nfproto ipv4 oifname @dead4 drop
	}
}`))
	return upstreams{t, w.Inet}
}

// cut stops to forward for the ports, mend begins again.
func (u upstreams) cut(family string, ports ...string) { u.t.Helper(); u.change("add", family, ports) }
func (u upstreams) mend(family string, ports ...string) {
	u.t.Helper()
	u.change("delete", family, ports)
}

func (u upstreams) change(verb, family string, ports []string) {
	u.t.Helper()
	must(u.t, u.n.NFT(fmt.Sprintf(`%s element inet upstreams %s { "%s" }`, verb, family, strings.Join(ports, `", "`))))
}

// killSwitch lets nothing leave a node that does not carry another program's mark,
// as wg-quick's rules do while the VPN is away. Local networks stay.
func killSwitch(t testing.TB, n *lab.Node) {
	t.Helper()
	for _, command := range [][]string{
		{"route", "add", "unreachable", "default", "table", "51820"},
		{"rule", "add", "not", "fwmark", "51820", "table", "51820", "pref", "100"},
		{"rule", "add", "table", "main", "suppress_prefixlength", "0", "pref", "99"},
	} {
		must(t, n.Command(t.Context(), "ip", command...).Run())
	}
}

// answer starts a server of plain datagrams on every gateway.
func answer(t testing.TB, w *world) {
	t.Helper()
	for _, g := range w.gateways {
		c := g.lab.Command(lasting(t), "nice", "-n", strconv.Itoa(urgency), app(t, "udp_rpc_server"), "--name", g.Name)
		must(t, c.Start())
	}
}

// request starts to call all gateways by datagrams, each request to every one of
// them. The first reply counts, and nothing is ever sent again.
func request(t testing.TB, w *world, r *robot, args ...string) *calls {
	t.Helper()
	var to []string
	for _, g := range w.gateways {
		to = append(to, g.ip.String())
	}
	cmd := r.lab.Command(lasting(t), "nice", append([]string{"-n", strconv.Itoa(urgency), app(t, "udp_rpc_client"),
		"--to", strings.Join(to, ",")}, args...)...)
	c := &calls{cmd, apps.NewClient(cmd)}
	must(t, c.Start())
	return c
}

// end ends a client that calls for ever and returns its summary.
func (c *calls) end(t testing.TB) apps.Summary {
	t.Helper()
	_ = c.Stop(patience) // status 1 says that something was lost, which the caller judges
	return c.finish(t)
}

// reload has a robot read its configuration again, and returns what that said.
func reload(t testing.TB, r *robot) error {
	t.Helper()
	out, err := r.CLI(t.Context(), "reload", "--config", r.Config())
	if err != nil {
		return errors.Join(err, errors.New(out))
	}
	return nil
}

// path returns a robot's path by its carrier number slot.
func (r *robot) path(t testing.TB, g *gateway, slot int) tunnel.PathStatus {
	t.Helper()
	return pathOf(t, status(t, r.Member), g.Name, r.lab.Carriers[slot].Interface)
}

// deaths counts how often a robot gave a path up, by its log.
func deaths(t testing.TB, r *robot, g *gateway, slot int) (n int) {
	t.Helper()
	for line := range strings.Lines(read(t, r.Log())) {
		if strings.Contains(line, "Path down.") && strings.Contains(line, "gateway="+g.Name) &&
			strings.Contains(line, "carrier="+r.lab.Carriers[slot].Interface+" ") {
			n++
		}
	}
	return n
}

// traffic goes both ways, 200 packets/s each, until it is halted.
type traffic struct {
	duplex
	cancel context.CancelFunc
}

// longestFlow bounds traffic in packets: what is sent in ten minutes.
const longestFlow = 200 * 600

// startTraffic starts traffic and returns when it flows.
func startTraffic(t testing.TB, a, b end) traffic {
	t.Helper()
	return startLoad(t, a, b, load{rate: 200, count: longestFlow, size: 200, linger: 500 * time.Millisecond})
}

// startLoad is startTraffic with another load.
func startLoad(t testing.TB, a, b end, l load) traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	f := traffic{sendBoth(ctx, a, b, l), cancel}
	time.Sleep(300 * time.Millisecond)
	return f
}

// halt ends the traffic and returns what came.
func (f traffic) halt(t testing.TB) reports {
	t.Helper()
	f.cancel()
	return f.wait(t)
}

// longestGap is the longest time without a packet, on either way.
func (r reports) longestGap() time.Duration { return max(r[0].LongestGap, r[1].LongestGap) }

// within fails the test when something took too long.
func within(t testing.TB, what string, took, limit time.Duration) {
	t.Helper()
	t.Logf("%s: %v", what, took.Round(time.Millisecond))
	if took > limit {
		t.Errorf("%s: it took %v, the limit is %v", what, took, limit)
	}
}

// sources counts the UDP datagrams to a port in a capture by their source, of
// those that were seen after a moment.
func sources(t testing.TB, file string, port uint16, after time.Time) map[netip.Addr]int {
	t.Helper()
	found := map[netip.Addr]int{}
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		udp, ok := p.TransportLayer().(*layers.UDP)
		if !ok || uint16(udp.DstPort) != port || p.Metadata().Timestamp.Before(after) {
			return nil
		}
		from, ok := netip.AddrFromSlice(p.NetworkLayer().NetworkFlow().Src().Raw())
		if !ok {
			return errors.New("a packet without a source")
		}
		found[from]++
		return nil
	}))
	return found
}

// kernelAddresses lists the addresses of a node's interface.
func kernelAddresses(t testing.TB, n *lab.Node, iface string) []string {
	t.Helper()
	return slices.Sorted(slices.Values(strings.Fields(output(t, n, "ip", "-br", "addr", "show", "dev", iface))[2:]))
}

// reachBy has a robot that is not started yet reach a gateway at those addresses.
func reachBy(t testing.TB, r *robot, g *gateway, addresses ...netip.Addr) {
	t.Helper()
	var quoted []string
	for _, a := range addresses {
		quoted = append(quoted, strconv.Quote(netip.AddrPortFrom(a, wgPort).String()))
	}
	edit(t, r.Member, strconv.Quote(netip.AddrPortFrom(g.lab.Address, wgPort).String()), "["+strings.Join(quoted, ", ")+"]")
}

// other is another address of the same subnet.
func other(p netip.Prefix) netip.Prefix {
	a := p.Addr().As4()
	a[3] += 75
	return netip.PrefixFrom(netip.AddrFrom4(a), p.Bits())
}

// waitMoved waits until a gateway knows the robot's first carrier at another
// endpoint than before.
func waitMoved(t testing.TB, r *robot, g *gateway, old string) time.Duration {
	t.Helper()
	return eventually(t, "another endpoint than "+old, func() error {
		if p := pathOf(t, status(t, g.Member), r.Name, slotName(0)); p.Endpoint == old || !p.Up {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
}

// udpSockets lists the UDP sockets of a robot's daemon, as ss tells them.
func udpSockets(t testing.TB, r *robot) []string {
	t.Helper()
	var found []string
	for line := range strings.Lines(output(t, r.lab.Node, "ss", "-Huanp")) {
		if strings.Contains(line, fmt.Sprintf("pid=%d,", r.Pid())) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	if len(found) == 0 {
		t.Fatal("the robot has no UDP socket")
	}
	return found
}

// seedEnv chooses another seed for what is random in these tests.
const seedEnv = "FOGPLR_SEED"

// seed is the seed of a test; a test that fails says it.
func seed(t testing.TB) uint64 {
	t.Helper()
	n := uint64(1)
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the seed was %s=%d", seedEnv, n)
		}
	})
	return n
}

// findPath is pathOf for paths that may be missing.
func findPath(s *tunnel.Status, peer, carrier string) (tunnel.PathStatus, bool) {
	for _, p := range s.Peers {
		for _, l := range p.Paths {
			if p.Name == peer && l.Carrier == carrier {
				return l, true
			}
		}
	}
	return tunnel.PathStatus{}, false
}

// stoodStill reports whether the machine stood still within a second of t.
func stoodStill(pauses []pause, t time.Time) bool {
	return slices.ContainsFunc(pauses, func(p pause) bool {
		return t.After(p.from.Add(-time.Second)) && t.Before(p.from.Add(p.length+time.Second))
	})
}

// members are the nodes with a daemon, robots first.
func (w *world) members() (all []*deploy.Member) {
	for _, r := range w.robots {
		all = append(all, r.Member)
	}
	for _, g := range w.gateways {
		all = append(all, g.Member)
	}
	return all
}

// ownNet is what a node's network consists of: devices, addresses, rules and
// routes, without what differs between two devices of the same kind and without
// the kernel's own link-local addresses.
func ownNet(t testing.TB, n *lab.Node) []string {
	t.Helper()
	var lines []string
	for _, line := range kernelNet(t, n) {
		if strings.HasPrefix(line, "-o link show") {
			line, _, _ = strings.Cut(deviceIndex.ReplaceAllString(line, ": "), " qdisc ")
		}
		lines = append(lines, line)
	}
	for line := range strings.Lines(output(t, n, "ip", "-br", "addr")) {
		f := strings.Fields(linkLocal.ReplaceAllString(line, ""))
		lines = append(lines, strings.Join(append(f[:1], f[2:]...), " ")) // f[1] is the state
	}
	return lines
}

var (
	deviceIndex = regexp.MustCompile(`: \d+: `)
	linkLocal   = regexp.MustCompile(`fe80::\S+`)
)

// holdings are what the daemons of a world hold of their machines, by node.
type holdings map[string]holding

type holding struct {
	files, threads int
	sockets, net   []string
}

// holdingsOf counts what all daemons of a world hold now.
func holdingsOf(t testing.TB, w *world) holdings {
	t.Helper()
	all := holdings{}
	nodes := map[string]*lab.Node{}
	for _, r := range w.robots {
		nodes[r.Name] = r.lab.Node
	}
	for _, g := range w.gateways {
		nodes[g.Name] = g.lab.Node
	}
	for _, m := range w.members() {
		var h holding
		h.files, h.threads = fewest(t, m)
		h.net = ownNet(t, nodes[m.Name])
		for line := range strings.Lines(output(t, nodes[m.Name], "ss", "-Hanp")) {
			// Its type, its state and where it listens; a control connection may be
			// closing just now.
			if f := strings.Fields(line); strings.Contains(line, fmt.Sprintf("pid=%d,", m.Pid())) && f[1] != "ESTAB" {
				h.sockets = append(h.sockets, strings.Join([]string{f[0], f[1], f[4]}, " "))
			}
		}
		slices.Sort(h.sockets)
		all[m.Name] = h
	}
	return all
}

// fewest counts a daemon's open files and threads when no control connection of a
// moment ago is among them.
func fewest(t testing.TB, m *deploy.Member) (files, threads int) {
	t.Helper()
	files, threads = use(t, m)
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		f, n := use(t, m)
		files, threads = min(files, f), min(threads, n)
	}
	return files, threads
}

// withoutOverlay leaves out what stays when a daemon stops: plr0, its addresses
// and the blackhole routes.
func withoutOverlay(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, "plr0") || strings.Contains(line, "blackhole")
	})
}

// moreThreads is how many threads Go may have added: it keeps each one that ever
// waited in the kernel.
const moreThreads = 10

// differ says what is not as before.
func (before holdings) differ(now holdings) error {
	var errs []error
	for name, b := range before {
		n := now[name]
		if n.files > b.files {
			errs = append(errs, fmt.Errorf("%s had %d files open and has %d", name, b.files, n.files))
		}
		if n.threads > b.threads+moreThreads {
			errs = append(errs, fmt.Errorf("%s had %d threads and has %d", name, b.threads, n.threads))
		}
		for _, line := range append(difference(b.sockets, n.sockets), difference(b.net, n.net)...) {
			errs = append(errs, fmt.Errorf("%s: %s", name, line))
		}
		if len(b.sockets) != len(n.sockets) || len(b.net) != len(n.net) {
			errs = append(errs, fmt.Errorf("%s had %d sockets and %d lines of network, and has %d and %d",
				name, len(b.sockets), len(b.net), len(n.sockets), len(n.net)))
		}
	}
	return errors.Join(errs...)
}
