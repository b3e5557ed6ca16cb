package e2e

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// usualMTU is plr0's unless configured.
const usualMTU = 1280

// least is more than fogplr's small messages take up on a carrier, and less than
// probes for a size.
const least = 300

// upTo is a link of 5 ms that loses larger packets without a word, both ways.
func upTo(mtu int) lab.CarrierOptions {
	p := lab.Params{Delay: 5 * time.Millisecond, MTU: mtu}
	return lab.CarrierOptions{Up: p, Down: p}
}

// expected is what status should say of a path whose network takes packets of
// carrier bytes, on nodes whose plr0 has an MTU of mtu.
func expected(carrier, mtu int, ipv6 bool) (p tunnel.PathStatus) {
	most := mtu + replicate.TagLen
	p.Largest = path.FrameFor(carrier, most, ipv6)
	p.LargestPacket = path.CarrierBytes(p.Largest, most, ipv6)
	p.Parts = replicate.PartsFor(mtu, p.Largest)
	return p
}

// waitSize waits until both ends of a path know what it takes.
func waitSize(t testing.TB, r *robot, g *gateway, slot int, want tunnel.PathStatus) time.Duration {
	t.Helper()
	name := r.lab.Carriers[slot].Interface
	differs := func(p tunnel.PathStatus) error {
		if p.Largest != want.Largest || p.LargestPacket != want.LargestPacket || p.Parts != want.Parts {
			return fmt.Errorf("%s to %s: %+v; want %d, %d and %d parts", name, g.Name, p, want.Largest, want.LargestPacket, want.Parts)
		}
		return nil
	}
	took := waitStatus(t, r.Member, "size found", patience, func(s *tunnel.Status) error {
		p := pathOf(t, s, g.Name, name)
		if err := differs(p); err != nil || p.Search == path.SearchComplete.String() {
			return err
		}
		return fmt.Errorf("%s to %s: the search is %s", name, g.Name, p.Search)
	})
	waitStatus(t, g.Member, "size told", patience, func(s *tunnel.Status) error {
		return differs(pathOf(t, s, r.Name, slotName(slot)))
	})
	return took
}

// waitSizes is waitSize for all gateways. Where a busy machine made a search run out
// of probes, which costs the path a minute, it pulls the carrier and plugs it in
// again. It returns how many searches there were.
func waitSizes(t testing.TB, w *world, r *robot, slot int, want func(*gateway) tunnel.PathStatus) (searches int) {
	t.Helper()
	c := r.lab.Carriers[slot]
	for searches = 1; ; searches++ {
		waitStatus(t, r.Member, "sizes found", patience, func(s *tunnel.Status) error {
			for _, g := range w.gateways {
				if p := pathOf(t, s, g.Name, c.Interface); p.Search != path.SearchComplete.String() || p.Largest > want(g).Largest {
					return fmt.Errorf("%s to %s: %+v", c.Interface, g.Name, p)
				}
			}
			return nil
		})
		small := slices.ContainsFunc(w.gateways, func(g *gateway) bool { return r.path(t, g, slot).Largest < want(g).Largest })
		if !small || searches == 3 {
			break
		}
		t.Logf("%s: the search ran out of probes, so there is another one", c.Interface)
		must(t, c.Link.Plug(false))
		waitPath(t, r, w.gateways[0].Name, c.Interface, false)
		must(t, c.Link.Plug(true))
		for _, g := range w.gateways {
			waitPath(t, r, g.Name, c.Interface, true)
		}
	}
	for _, g := range w.gateways {
		waitSize(t, r, g, slot, want(g))
	}
	return searches
}

// steadyMTU fails the test unless plr0 has that MTU, as the kernel and status say.
func steadyMTU(t testing.TB, n *lab.Node, m *deploy.Member, want int) {
	t.Helper()
	link, err := n.Netlink().LinkByName("plr0")
	must(t, err)
	if s := status(t, m); link.Attrs().MTU != want || s.MTU != want {
		t.Errorf("%s: plr0 has an MTU of %d, status says %d, and it should be %d", m.Name, link.Attrs().MTU, s.MTU, want)
	}
}

// crossing is a UDP datagram between a robot and a gateway on a carrier.
type crossing struct {
	at      time.Time
	up      bool // to the gateway
	gateway netip.Addr
	size    int // of its IP packet, bytes
}

// crossings reads the capture of a carrier.
func crossings(t testing.TB, file string) (all []crossing) {
	t.Helper()
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		udp, ok := p.TransportLayer().(*layers.UDP)
		if !ok {
			return nil
		}
		c := crossing{at: p.Metadata().Timestamp, up: udp.DstPort == wgPort}
		var src, dst []byte
		switch ip := p.NetworkLayer().(type) {
		case *layers.IPv4:
			src, dst, c.size = ip.SrcIP.To4(), ip.DstIP.To4(), int(ip.Length)
		case *layers.IPv6:
			src, dst, c.size = ip.SrcIP, ip.DstIP, int(ip.Length)+40
		}
		if c.up {
			src = dst
		}
		c.gateway, _ = netip.AddrFromSlice(src)
		all = append(all, c)
		return nil
	}))
	return all
}

// between are those of a time, and of one direction.
func between(all []crossing, from, to time.Time, up bool) (some []crossing) {
	for _, c := range all {
		if c.up == up && !c.at.Before(from) && c.at.Before(to) {
			some = append(some, c)
		}
	}
	return some
}

// greatest is the largest packet, 0 of none.
func greatest(some []crossing) int {
	if len(some) == 0 {
		return 0
	}
	return slices.MaxFunc(some, func(a, b crossing) int { return cmp.Compare(a.size, b.size) }).size
}

// bothEnds captures a carrier at both of its ends: what the robot sends is in the
// first, whether it passes or not, and what comes to it; what the gateways send in
// the second, and what comes to them.
func bothEnds(t testing.TB, w *world, r *robot, slot int) (stop func() (atRobot, atGateways []crossing)) {
	t.Helper()
	name := r.lab.Carriers[slot].Interface
	near, endNear := capture(t, r.lab.Node, name, w.file(name))
	far, endFar := capture(t, w.Inet, upstream(0, slot), w.file(name, "far"))
	return func() (a, b []crossing) {
		t.Helper()
		endNear()
		endFar()
		return crossings(t, near), crossings(t, far)
	}
}

// largeTraffic sends all that can be large between a robot and gateways, both ways
// at once: packets as large as plr0 takes, datagrams of 10 kB in IP fragments, and
// TCP. All of it must come, once.
func largeTraffic(t testing.TB, r *robot, gateways []*gateway, what string) {
	t.Helper()
	began := time.Now()
	var tcp []*iperfRun
	flows := map[string]duplex{}
	for _, g := range gateways {
		tcp = append(tcp, startIperf(t, r, g, "-n", "500K", "--bidir"))
		for name, ends := range map[string][2]end{"IPv4": {r.end(), g.end()}, "IPv6": {r.end6(), g.end6()}} {
			udp := usualMTU - 28
			if name == "IPv6" {
				udp -= 20
			}
			flows[g.Name+", full packets by "+name] = sendBoth(t.Context(), ends[0], ends[1], load{rate: 100, count: 50, size: udp, linger: time.Second})
			flows[g.Name+", fragments by "+name] = sendBoth(t.Context(), ends[0], ends[1], load{rate: 20, count: 10, size: 10_000, linger: time.Second})
		}
	}
	for name, f := range flows {
		f.wait(t).complete(t, what+", "+name)
	}
	for _, run := range tcp {
		run.wait(t)
		if sent := run.client.End.SumSent; sent.Bytes < 250e3 {
			t.Errorf("%s: TCP brought only %.0f bytes", what, sent.Bytes)
		}
	}
	t.Logf("%s: all came, in %v", what, time.Since(began).Round(time.Millisecond))
}

// largeLoad goes between a robot and a gateway, both ways, until it is halted.
func largeLoad(t testing.TB, r *robot, g *gateway, rate float64, size int) traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return traffic{sendBoth(ctx, r.end(), g.end(), load{rate: rate, count: longestFlow, size: size, linger: 500 * time.Millisecond}), cancel}
}

// alone unplugs all carriers of a robot but one, plugs that in, and waits until its
// paths are the only ones.
func alone(t testing.TB, w *world, r *robot, slot int) {
	t.Helper()
	plug(t, w, r, func(i int) bool { return i == slot })
}

// plug plugs the carriers in that it should, pulls the others, and waits for their
// paths.
func plug(t testing.TB, w *world, r *robot, in func(slot int) bool) {
	t.Helper()
	for i, c := range r.lab.Carriers {
		must(t, c.Link.Plug(in(i)))
	}
	for i, c := range r.lab.Carriers {
		for _, g := range w.gateways {
			waitPath(t, r, g.Name, c.Interface, in(i))
		}
	}
}

// inParts fails the test unless packets went by the path in parts, both ways, and
// all of those came.
func inParts(t testing.TB, r *robot, g *gateway, slot int) {
	t.Helper()
	robots, gateways := r.path(t, g, slot), pathOf(t, status(t, g.Member), r.Name, slotName(slot))
	for _, p := range []tunnel.PathStatus{robots, gateways} {
		if p.TxParts < 100 || p.RxParts.Whole < 50 || p.RxParts.Incomplete+p.RxParts.Odd > 0 {
			t.Errorf("%s to %s: %d parts sent, and of those that came %+v", r.lab.Carriers[slot].Interface, g.Name, p.TxParts, p.RxParts)
		}
	}
	name := r.lab.Carriers[slot].Interface + " to " + g.Name
	text, err := r.CLI(t.Context(), "status", "--socket", r.Socket())
	must(t, err)
	text = strings.Join(strings.Fields(text), " ")
	if err := mentions(text, name+": IP packets of up to "+strconv.Itoa(robots.LargestPacket)+" bytes pass here, so the largest that plr0 takes go in "+strconv.Itoa(robots.Parts)+" parts."); err != nil {
		t.Error(err)
	}
}

// setMTU has all nodes that are not started yet give plr0 that MTU.
func setMTU(t testing.TB, w *world, mtu int) {
	t.Helper()
	for _, m := range w.members() {
		edit(t, m, "log_level", fmt.Sprintf("mtu = %d\nlog_level", mtu))
	}
}

// with are those with one gateway.
func with(all []crossing, g *gateway) (some []crossing) {
	for _, c := range all {
		if c.gateway == g.lab.Address || c.gateway == g.lab.Address6 {
			some = append(some, c)
		}
	}
	return some
}
