package tunnel

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"golang.org/x/crypto/curve25519"
)

// Carriers, gateways and robots come and go while a thousand packets a second go
// both ways between those that stay: each arrives once.
func TestMembersComeAndGoUnderTraffic(t *testing.T) {
	w := newWorld(t, 2, 2)
	w.settle()
	r, robots := w.robots[0], w.gwCfg[0].Robots
	full := w.robotCfg[0]
	third, public := newKey(t)
	wide := full
	wide.Carriers = append(slices.Clone(full.Carriers), Carrier{Interface: "lo", Slot: 2, Key: third})
	one := full
	one.Carriers = full.Carriers[1:]
	alone := full
	alone.Gateways = full.Gateways[:1]
	knows := func(robots ...RobotPeer) func() error {
		return func() error {
			c := GatewayConfig{Robots: robots}
			return errors.Join(w.gateways[0].Configure(c), w.gateways[1].Configure(c))
		}
	}
	has := func(c RobotConfig) func() error {
		return func() error {
			err := r.Configure(c)
			for _, carrier := range c.Carriers {
				r.SetUplink(carrier.Slot, loopback())
			}
			return err
		}
	}
	more := robots[0]
	more.Keys = append(slices.Clone(more.Keys), public)
	const pause = time.Millisecond
	stop, sent := make(chan struct{}), make(chan int)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				sent <- i
				return
			case <-time.After(pause):
			}
			payload := []byte(fmt.Sprint(i))
			w.hosts["robot0"].out <- inner(t, "10.77.0.101", "10.77.0.11", layers.IPProtocolUDP, 7400, payload)
			w.hosts["gateway0"].out <- inner(t, "10.77.0.11", "10.77.0.101", layers.IPProtocolUDP, 7400, payload)
		}
	}()
	for _, change := range []struct {
		name string
		do   func() error
		up   int // paths of the robot's first gateway in the end
	}{
		{"a robot goes", knows(robots[0]), 2},
		{"and comes back", knows(robots...), 2},
		{"a key comes", knows(more, robots[1]), 2},
		{"a carrier comes", has(wide), 3},
		{"a carrier goes", has(one), 1},
		{"all come back", has(wide), 3},
		{"a gateway goes", has(alone), 2},
		{"and comes back", has(full), 2},
		{"nothing changes", has(full), 2},
		{"a key goes", knows(robots...), 2},
	} {
		if err := change.do(); err != nil {
			t.Fatalf("%s: %v", change.name, err)
		}
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			s := r.Status()
			if allUp(s) && len(s.Peers[0].Paths) == change.up {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %+v", change.name, s.Peers)
			}
		}
	}
	close(stop)
	total := <-sent
	for _, host := range []string{"robot0", "gateway0"} {
		got := map[string]int{}
		for end := time.Now().Add(within); len(got) < total && time.Now().Before(end); {
			select {
			case p := <-w.hosts[host].in:
				got[string(p[28:])]++
			case <-time.After(100 * time.Millisecond):
			}
		}
		w.hosts[host].receivesNothing(t, 50*time.Millisecond)
		for i := range total {
			if n := got[fmt.Sprint(i)]; n != 1 {
				t.Errorf("%s got packet %d of %d %d times", host, i, total, n)
			}
		}
	}
}

// A robot learns that its gateway has a new key, and the gateway that a carrier
// has.
func TestKeysChange(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	w.stop["gateway0"]()
	w.gwCfg[0].Key, _ = newKey(t)
	fresh, public := newKey(t)
	w.gwCfg[0].Robots[0].Keys[1] = public
	w.startGateway(0)
	c := w.robotCfg[0]
	curve25519.ScalarBaseMult(&c.Gateways[0].Key, &w.gwCfg[0].Key)
	c.Carriers[1].Key = fresh
	if err := w.robots[0].Configure(c); err != nil {
		t.Fatal(err)
	}
	w.robots[0].SetUplink(1, loopback())
	w.settle()
	w.hosts["robot0"].out <- inner(t, "10.77.0.101", "10.77.0.11", layers.IPProtocolUDP, 7400, []byte("fresh"))
	w.hosts["gateway0"].receive(t, within)
}

func TestWrongMembersChangeNothing(t *testing.T) {
	w := newWorld(t, 2, 2)
	w.settle()
	for name, spoil := range map[string]func(*RobotConfig){
		"10.77.0.11": func(c *RobotConfig) { c.Gateways[1].Addresses = c.Gateways[0].Addresses },
		"one key":    func(c *RobotConfig) { c.Gateways[1].Key = c.Gateways[0].Key },
		"slot 9":     func(c *RobotConfig) { c.Carriers[1].Slot = 9 },
		"one slot":   func(c *RobotConfig) { c.Carriers[1].Slot = 0 },
		"none of":    func(c *RobotConfig) { c.Gateways[1].Addresses = []netip.Addr{netip.MustParseAddr("192.0.2.1")} },
	} {
		c := w.robotCfg[0]
		c.Carriers, c.Gateways = slices.Clone(c.Carriers), slices.Clone(c.Gateways)
		spoil(&c)
		if err := w.robots[0].Configure(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not say %q", err, name)
		}
	}
	for name, robots := range map[string][]RobotPeer{
		"have one overlay address": {w.gwCfg[0].Robots[0], {Name: "x", Addresses: w.gwCfg[0].Robots[0].Addresses}},
		"have one carrier key":     {w.gwCfg[0].Robots[0], {Name: "x", Addresses: w.gwCfg[0].Robots[1].Addresses, Keys: w.gwCfg[0].Robots[0].Keys}},
		"9 carrier keys":           {{Name: "x", Addresses: w.gwCfg[0].Robots[1].Addresses, Keys: make([]Key, 9)}},
	} {
		if err := w.gateways[0].Configure(GatewayConfig{Robots: robots}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not say %q", err, name)
		}
	}
	if len(w.robots[0].Status().Peers) != 2 || !allUp(w.robots[0].Status()) || len(w.gateways[0].Status().Peers) != 2 {
		t.Errorf("something has changed: %+v", w.robots[0].Status().Peers)
	}
	w.stop["robot0"]()
	w.stop["gateway0"]()
	if w.robots[0].Configure(w.robotCfg[0]) == nil || w.gateways[0].Configure(w.gwCfg[0]) == nil {
		t.Error("a node that has ended takes a configuration")
	}
}

// A robot may be taken away while it says hello and its packets come in: WireGuard
// waits for In then, and so In must never wait for somebody who asks WireGuard.
func TestARobotGoesWhileItSaysHello(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	g, key := w.gateways[0], w.gwCfg[0].Robots[0].Keys[0]
	const queued = 50 * time.Millisecond // until a goroutine waits for the lock
	done := make(chan struct{}, 2)
	g.mu.Lock()
	go func() { g.call(guest{key: key}, time.Now()); done <- struct{}{} }()
	time.Sleep(queued)
	w.hosts["robot0"].out <- inner(t, "10.77.0.101", "10.77.0.11", layers.IPProtocolUDP, 7400, []byte("x"))
	time.Sleep(queued)
	go func() { g.wg.remove(key); done <- struct{}{} }()
	time.Sleep(queued)
	g.mu.Unlock()
	for range 2 {
		select {
		case <-done:
		case <-time.After(within):
			buf := make([]byte, 1<<20)
			fmt.Printf("WireGuard, In and the call wait for each other:\n%s", buf[:runtime.Stack(buf, true)])
			os.Exit(1) // nothing can be stopped any more
		}
	}
}

// A gateway or a robot that is taken out and comes back, on either side, or gets
// another name, is not taken for what it was: what is sent then arrives.
func TestPeersMadeAnewAreHeard(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	r, g := w.robots[0], w.gateways[0]
	full, robots := w.robotCfg[0], w.gwCfg[0].Robots
	n := 0
	both := func(what string) {
		t.Helper()
		for range 100 {
			n++
			payload := []byte(fmt.Sprint(n))
			for _, c := range [][4]string{{"robot0", "10.77.0.101", "10.77.0.11", "gateway0"}, {"gateway0", "10.77.0.11", "10.77.0.101", "robot0"}} {
				w.hosts[c[0]].out <- inner(t, c[1], c[2], layers.IPProtocolUDP, 7400, payload)
				if got := w.hosts[c[3]].receive(t, within); string(got[28:]) != string(payload) {
					t.Fatalf("%s: %s got %q, want %q", what, c[3], got[28:], payload)
				}
			}
		}
	}
	both("at first")
	none, renamed := full, full
	none.Gateways = nil
	renamed.Gateways = slices.Clone(full.Gateways)
	renamed.Gateways[0].Name = "another"
	other := slices.Clone(robots)
	other[0].Name = "another"
	for _, c := range []struct {
		name  string
		steps []func() error
	}{
		{"a gateway", []func() error{func() error { return r.Configure(none) }, func() error { return r.Configure(full) }}},
		{"a robot", []func() error{func() error { return g.Configure(GatewayConfig{}) }, func() error { return g.Configure(GatewayConfig{Robots: robots}) }}},
		{"a gateway's name", []func() error{func() error { return r.Configure(renamed) }}},
		{"a robot's name", []func() error{func() error { return g.Configure(GatewayConfig{Robots: other}) }}},
	} {
		for _, step := range c.steps {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		for slot := range full.Carriers {
			r.SetUplink(slot, loopback())
		}
		for end := time.Now().Add(20 * time.Second); !allUp(r.Status()) || !allUp(g.Status()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: robot %+v, gateway %+v", c.name, r.Status().Peers, g.Status().Peers)
			}
		}
		both(c.name)
		if s := r.Status(); s.Peers[0].Paths[0].LossIn > 0.5 {
			t.Errorf("%s: a path that is made anew loses %v", c.name, s.Peers[0].Paths[0].LossIn)
		}
	}
}
