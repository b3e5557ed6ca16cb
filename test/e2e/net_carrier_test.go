package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// A carrier comes and goes, in every way that an uplink does, and is used again
// within seconds without anybody's help. The other carrier brings every packet
// meanwhile, and plr0 stays the interface that it was.
func TestCarrierComesAndGoes(t *testing.T) {
	t.Parallel()
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	carrier := r.lab.Carriers[0]
	index := ifindex(t, r.lab.Node, "plr0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	flow := sendBoth(ctx, r.end(), g.end(), load{rate: 200, count: 200 * 120, size: 200, linger: 500 * time.Millisecond})

	onlyCarrierSockets(t, r)
	for _, c := range []struct {
		name       string
		hit, mend  func() error
		newAddress string
	}{
		{name: "unplugged and plugged in again",
			hit: func() error { return w.Remove(carrier.Link) },
			mend: func() (err error) {
				carrier.Link, err = w.Link(r.lab.Node, carrier.Interface, w.Inet, "up-a", lab.LinkParams{})
				return errors.Join(err,
					r.lab.AddAddress(carrier.Interface, carrier.Address.String()),
					w.Inet.AddAddress("up-a", carrier.Router.String()+"/24"),
					r.lab.AddRoute("default", carrier.Router.String(), carrier.Interface, metric(r, carrier)))
			}},
		{name: "down and up",
			hit:  func() error { return r.lab.Down(carrier.Interface) },
			mend: func() error { return linkUp(r, carrier) }},
		{name: "without a cable",
			hit:  func() error { return carrier.Link.Plug(false) },
			mend: func() error { return carrier.Link.Plug(true) }},
		{name: "with another address",
			hit: func() error {
				return r.lab.Command(ctx, "ip", "addr", "flush", "dev", carrier.Interface).Run()
			},
			mend: func() error {
				return errors.Join(
					r.lab.AddAddress(carrier.Interface, "10.1.0.77/24"),
					r.lab.AddRoute("default", carrier.Router.String(), carrier.Interface, metric(r, carrier)))
			},
			newAddress: "10.1.0.77:"},
	} {
		must(t, c.hit())
		down := waitPath(t, r, g.Name, carrier.Interface, false)
		time.Sleep(300 * time.Millisecond)
		must(t, c.mend())
		up := waitPath(t, r, g.Name, carrier.Interface, true)
		t.Logf("%s: path given up after %v, back after %v", c.name, down, up)
		if up > 5*time.Second {
			t.Errorf("%s: it took %v until the path was back", c.name, up)
		}
		seenFrom(t, r, g, 0, c.newAddress)
	}
	// Another address without a moment between: the path need not even go down.
	must(t, r.lab.AddAddress(carrier.Interface, "10.1.0.99/24"))
	must(t, r.lab.Command(ctx, "sh", "-c", "sysctl -w net.ipv4.conf.cell-a.promote_secondaries=1 && ip addr del 10.1.0.77/24 dev cell-a").Run())
	seenFrom(t, r, g, 0, "10.1.0.99:")
	cancel()
	flow.wait(t).complete(t, "a carrier comes and goes")
	onlyCarrierSockets(t, r)
	if now := ifindex(t, r.lab.Node, "plr0"); now != index {
		t.Errorf("plr0 had index %d and has %d now", index, now)
	}
}

// seenFrom waits until the gateway knows the path of a carrier slot, at a source
// that begins with prefix.
func seenFrom(t testing.TB, r *robot, g *gateway, slot int, prefix string) {
	t.Helper()
	eventually(t, "the gateway's view", func() error {
		p := pathOf(t, status(t, g.Member), r.Name, slotName(slot))
		if !p.Up || !p.Carries || !strings.HasPrefix(p.Endpoint, prefix) {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
}

func ifindex(t testing.TB, n *lab.Node, name string) int {
	t.Helper()
	k, err := n.Netlink().LinkByName(name)
	must(t, err)
	return k.Attrs().Index
}

// onlyCarrierSockets fails the test unless each UDP socket of a robot is bound
// to one of its carriers: datagrams leave there directly, not through a proxy on
// loopback.
func onlyCarrierSockets(t testing.TB, r *robot) {
	t.Helper()
	seen := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(output(t, r.lab.Node, "ss", "-Huanp")), "\n") {
		if !strings.Contains(line, fmt.Sprintf("pid=%d,", r.Pid())) {
			continue
		}
		found := false
		for _, c := range r.lab.Carriers {
			if strings.Contains(line, "%"+c.Interface+":") {
				seen[c.Interface]++
				found = true
			}
		}
		if !found || strings.Contains(line, "127.0.0.1") || strings.Contains(line, "[::1]") {
			t.Errorf("a UDP socket that is not bound to a carrier: %s", line)
		}
	}
	for _, c := range r.lab.Carriers {
		if seen[c.Interface] == 0 {
			t.Errorf("no UDP socket on %s: %v", c.Interface, seen)
		}
	}
}

// Both carriers lead to one address and port of the gateway, which tells them
// apart, and each keeps its source address and port.
func TestEachPathKeepsItsSource(t *testing.T) {
	t.Parallel()
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	keepsSource(t, w, 8*time.Second)
}

// keepsSource watches the sources that a gateway sees while packets flow.
func keepsSource(t *testing.T, w *world, d time.Duration) {
	r, g := w.robots[0], w.gateways[0]
	seen := map[string]map[string]bool{}
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			s, err := g.Status(ctx)
			if err == nil {
				for _, p := range s.Peers[0].Paths[:2] {
					if seen[p.Carrier] == nil {
						seen[p.Carrier] = map[string]bool{}
					}
					seen[p.Carrier][p.Endpoint] = true
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	sendBoth(t.Context(), r.end(), g.end(), steady(d)).wait(t).complete(t, "two carriers to one port")
	cancel()
	watching.Wait()
	t.Log(seen)
	for slot, c := range r.lab.Carriers {
		sources := seen[slotName(slot)]
		if len(sources) != 1 {
			t.Errorf("%s came from %d sources: %v", slotName(slot), len(sources), sources)
		}
		for s := range sources {
			if !strings.HasPrefix(s, c.Address.Addr().String()+":") {
				t.Errorf("%s came from %s, but %s has %v", slotName(slot), s, c.Interface, c.Address)
			}
		}
	}
}
