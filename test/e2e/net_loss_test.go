package e2e

import (
	"context"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// Each path's loss is its own: copies that came by another path do not count as
// lost here, nor the other way round.
func TestLossIsToldPathByPath(t *testing.T) {
	shares := []float64{0, 0.1, 0.5}
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: make([]lab.CarrierOptions, len(shares)), Seed: 7}})
	r, g := w.robots[0], w.gateways[0]
	acquaint(t, w)
	for i, s := range shares {
		must(t, r.lab.Carriers[i].Link.Set(lab.Params{Loss: s}, lab.Params{Loss: s}))
	}
	flow := sendBoth(t.Context(), r.end(), g.end(), load{rate: 400, count: 2800, size: 100, linger: 500 * time.Millisecond})
	stay := stayUp(t, r, "cell-c")
	flow.wait(t).complete(t, "one of three carriers loses half")
	stay()
	atRobot, atGateway := status(t, r.Member), status(t, g.Member)
	for i, want := range shares {
		up := pathOf(t, atRobot, g.Name, r.lab.Carriers[i].Interface)
		down := pathOf(t, atGateway, r.Name, slotName(i))
		for what, got := range map[string]float64{
			"robot's loss_in": up.LossIn, "robot's loss_out": up.LossOut,
			"gateway's loss_in": down.LossIn, "gateway's loss_out": down.LossOut,
		} {
			t.Logf("%s, %s: %.3f", up.Carrier, what, got)
			if math.Abs(got-want) > 0.03 {
				t.Errorf("%s loses %.0f %%, but %s says %.1f %%", up.Carrier, want*100, what, got*100)
			}
		}
	}

	// Without the good one, only what both of the others lose is lost.
	must(t, r.lab.Carriers[0].Link.BlackHole(true))
	rest := sendBoth(t.Context(), r.end(), g.end(), load{rate: 400, count: 2000, size: 100, linger: 500 * time.Millisecond}).wait(t)
	for _, report := range rest {
		lost := float64(len(report.Lost)) / float64(report.Sent)
		t.Logf("without the good carrier: %v", report)
		if product := shares[1] * shares[2]; math.Abs(lost-product) > 0.02 || report.Duplicates > 0 {
			t.Errorf("two carriers that lose 10 %% and 50 %% should lose %.0f %% together: %v", product*100, report)
		}
	}
	deadFor(t, r, g, "cell-a")
}

// acquaint tells both ends of the first robot's links each other's hardware
// address for good: resolving it again over a lossy link holds packets back for a
// second or loses them, which is not what is tested here.
func acquaint(t testing.TB, w *world) {
	t.Helper()
	r := w.robots[0].lab
	for i, c := range r.Carriers {
		port := "up-" + string(rune('a'+i))
		for _, e := range []struct {
			node, other   *lab.Node
			iface, remote string
			address       netip.Addr
		}{{r.Node, w.Inet, c.Interface, port, c.Router}, {w.Inet, r.Node, port, c.Interface, c.Address.Addr()}} {
			there, err := e.other.Netlink().LinkByName(e.remote)
			must(t, err)
			must(t, e.node.Netlink().NeighSet(&netlink.Neigh{
				LinkIndex: ifindex(t, e.node, e.iface), State: netlink.NUD_PERMANENT,
				IP: e.address.AsSlice(), HardwareAddr: there.Attrs().HardwareAddr,
			}))
		}
	}
}

// deadFor fails the test unless a path that hears nothing says so, and still
// says so when the search for its gateway has lasted a while.
func deadFor(t testing.TB, r *robot, g *gateway, carrier string) {
	t.Helper()
	waitPath(t, r, g.Name, carrier, false)
	for range 30 {
		time.Sleep(100 * time.Millisecond)
		if stage := pathOf(t, status(t, r.Member), g.Name, carrier).Stage; stage != "no reply" {
			t.Fatalf("stage %q of a path whose gateway cannot be reached, expected no reply", stage)
		}
	}
}

// stayUp watches a path until the function that it returns is called, which
// fails the test if the path was down in between.
func stayUp(t testing.TB, r *robot, carrier string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	down := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			if s, err := r.Status(ctx); err == nil && !up(s, carrier) {
				n++
			}
			time.Sleep(50 * time.Millisecond)
		}
		down <- n
	}()
	return func() {
		t.Helper()
		cancel()
		if n := <-down; n > 0 {
			t.Errorf("the path by %s was down at %d looks; it loses packets, but it lives", carrier, n)
		}
	}
}

func up(s *tunnel.Status, carrier string) bool {
	for _, p := range s.Peers {
		for _, l := range p.Paths {
			if l.Carrier == carrier && !l.Up {
				return false
			}
		}
	}
	return true
}

// A path that is 300 ms behind at thousands of packets a second, while the
// other one loses a fifth: every number is accepted once and never taken for a
// copy of another.
func TestEachPacketOnceOverPathsFarApart(t *testing.T) {
	skewed(t, load{rate: 4000, count: 16_000, size: 64, linger: 1500 * time.Millisecond}, 300*time.Millisecond)
}

func skewed(t *testing.T, l load, delay time.Duration) {
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, Seed: 11, Carriers: []lab.CarrierOptions{
		{Up: lab.Params{Loss: 0.2}, Down: lab.Params{Loss: 0.2}},
		{Up: lab.Params{Delay: delay}, Down: lab.Params{Delay: delay}},
	}}})
	acquaint(t, w)
	r, g := w.robots[0], w.gateways[0]
	for _, ends := range [][2]end{{r.end(), g.end()}, {g.end(), r.end()}} {
		report := send(t.Context(), ends[0], ends[1], l).wait(t)
		t.Log(report)
		exactlyOnce(t, "paths far apart", report)
		if report.OutOfOrder < report.Sent/10 {
			t.Errorf("only %d packets came late: the paths were not far apart", report.OutOfOrder)
		}
	}
	for _, s := range []*tunnel.Status{status(t, r.Member), status(t, g.Member)} {
		if e := s.Peers[0].Elimination; e.Rogue > 0 || e.Lost > 0 {
			t.Errorf("%s counts %+v; every number was within the window", s.Name, e)
		}
	}
}
