//go:build long

package tunnel

import (
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
)

// A clone of a robot that runs, without traffic, for as long as it takes to be named.
// When it stops, what it made the robot and the gateway say goes with it.
func TestLongClone(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	robot, gateway := w.robots[0], w.gateways[0]
	ping := inner(t, "10.77.0.101", "10.77.0.11", layers.IPProtocolUDP, 7400, []byte("ping"))
	pong := inner(t, "10.77.0.11", "10.77.0.101", layers.IPProtocolUDP, 7400, []byte("pong"))
	until := func(what string, limit time.Duration, done func(robot, gateway Status) bool) {
		t.Helper()
		for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			w.hosts["robot0"].out <- ping
			w.hosts["gateway0"].out <- pong
			r, g := robot.Status(), gateway.Status()
			if done(r, g) {
				t.Logf("%s after %v", what, time.Since(began))
				return
			}
			if time.Since(began) > limit {
				t.Fatalf("not %s: robot %+v, gateway %+v, %q", what, r.Peers[0].Paths, g.Peers[0].Paths, g.Warnings)
			}
		}
	}
	clone, err := NewRobot(w.robotCfg[0], newFakeHost())
	if err != nil {
		t.Fatal(err)
	}
	w.start("clone", clone.Run)
	for _, c := range w.robotCfg[0].Carriers {
		clone.SetUplink(c.Slot, loopback())
	}
	until("named", 15*time.Second, func(_, g Status) bool {
		return len(g.Warnings) == 1 && strings.Contains(g.Warnings[0], "key of robot0")
	})
	until("blamed", 15*time.Second, func(r, _ Status) bool {
		p := r.Peers[0].Paths
		return p[0].Stage != "" && p[1].Stage != ""
	})
	w.stop["clone"]()
	until("well again", 30*time.Second, func(r, g Status) bool {
		for i, p := range r.Peers[0].Paths {
			q := g.Peers[0].Paths[i]
			if !p.Up || p.Stage != "" || p.LossIn != 0 || p.LossOut != 0 || q.LossIn != 0 || q.LossOut != 0 {
				return false
			}
		}
		return true
	})
}
