package tunnel

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
)

// standStill makes it look as if the node's heart had not beaten for d.
func standStill(n *node, d time.Duration) {
	for n.still.beat.Load() == unbeaten {
		time.Sleep(time.Millisecond)
	}
	n.still.beat.Add(-int64(d))
}

// What waits while a node stands still goes nowhere, in either direction; then all
// is as before.
func TestStalePacketsAreDropped(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	robot, gateway := w.robots[0].node, w.gateways[0].node
	up := inner(t, "10.77.0.101", "10.77.0.11", layers.IPProtocolUDP, 7400, []byte("up"))
	down := inner(t, "10.77.0.11", "10.77.0.101", layers.IPProtocolUDP, 7400, []byte("down"))
	for _, c := range []struct {
		name     string
		still    *node
		from, to string
		packet   []byte
		counted  func() uint64
	}{
		{"out of a robot", robot, "robot0", "gateway0", up, func() uint64 { return w.robots[0].Status().Out.Stale }},
		{"into a robot", robot, "gateway0", "robot0", down, func() uint64 { return w.robots[0].Status().In.Stale }},
		{"out of a gateway", gateway, "gateway0", "robot0", down, func() uint64 { return w.gateways[0].Status().Out.Stale }},
		{"into a gateway", gateway, "robot0", "gateway0", up, func() uint64 { return w.gateways[0].Status().In.Stale }},
	} {
		before := c.counted()
		standStill(c.still, 10*time.Second)
		w.hosts[c.from].out <- c.packet
		w.hosts[c.to].receivesNothing(t, 20*time.Millisecond)
		if c.counted() == before {
			t.Errorf("%s: not counted", c.name)
		}
		began := time.Now()
		for came := false; !came; {
			w.hosts[c.from].out <- c.packet
			select {
			case got := <-w.hosts[c.to].in:
				came = bytes.Equal(got, c.packet)
			case <-time.After(10 * time.Millisecond):
			}
			if time.Since(began) > 3*time.Second {
				t.Fatalf("%s: nothing passes any more", c.name)
			}
		}
		for drained := false; !drained; { // what was sent meanwhile
			select {
			case <-w.hosts[c.to].in:
			case <-time.After(100 * time.Millisecond):
				drained = true
			}
		}
	}
}

// A gateway that stood still for long calls the robots that it had heard.
func TestGatewayCallsAfterAStandstill(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.settle()
	time.Sleep(5 * time.Second) // WireGuard's least distance between two handshakes
	g := w.gateways[0]
	before := g.wg.sessions()
	standStill(g.node, time.Minute)
	deadline := time.Now().Add(within)
	for fresh := 0; fresh < 4; {
		fresh = 0
		for key, s := range g.wg.sessions() {
			if s.handshake != before[key].handshake {
				fresh++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of 4 carriers have a new session", fresh)
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.settle()
}

// A robot that was suspended for longer than keys live does not wait for its
// gateways to say so.
func TestRobotRenewsItsKeysAfterASuspend(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	before := w.gateways[0].wg.sessions()
	began := time.Now()
	w.robots[0].woke(woken{stood: time.Hour})
	for fresh := 0; fresh < 2; {
		fresh = 0
		for key, s := range w.gateways[0].wg.sessions() {
			if s.handshake != before[key].handshake {
				fresh++
			}
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Fatalf("%d of 2 carriers have new keys after %v", fresh, took)
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.settle()
}
