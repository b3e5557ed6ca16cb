package tunnel

import (
	"testing"
	"time"

	"github.com/google/gopacket/layers"
)

// What a gateway sends into an outage is no loss of the path after it, at either end.
func TestOutageIsNoLoss(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	r, g := w.robots[0], w.gateways[0]
	robot, gateway := w.hosts["robot0"].out, w.hosts["gateway0"].out
	out := inner(t, "10.77.0.101", "10.77.0.11", layers.IPProtocolUDP, 7400, []byte("out"))
	back := inner(t, "10.77.0.11", "10.77.0.101", layers.IPProtocolUDP, 7400, []byte("back"))
	exchange := func() {
		robot <- out
		gateway <- back
		time.Sleep(5 * time.Millisecond)
	}
	for range 200 {
		exchange()
	}
	r.SetUplink(0, Uplink{Interface: "lo"})
	sent := g.Status().Peers[0].Paths[0].TxFrames
	for began := time.Now(); time.Since(began) < within && g.Status().Peers[0].Paths[0].Up; {
		exchange()
	}
	if lost := g.Status().Peers[0].Paths[0].TxFrames - sent; lost < 100 {
		t.Fatalf("only %d frames went into the outage", lost)
	}
	r.SetUplink(0, loopback())
	w.settle()
	for range 200 {
		exchange()
	}
	// A busy machine may drop a few of these; of the outage it would be a third or more.
	const most = 0.2
	for name, s := range map[string]Status{"robot": r.Status(), "gateway": g.Status()} {
		if p := s.Peers[0].Paths[0]; !p.Up || p.LossIn < 0 || p.LossIn > most || p.LossOut < 0 || p.LossOut > most {
			t.Errorf("the %s says %+v", name, p)
		}
	}

	// What gets lost now is told to the gateway.
	l, from := r.peers[0].links[0].Load(), g.peers[0]
	ahead := uint32(g.Status().Peers[0].Paths[0].TxFrames) + 5000
	r.in.mu.Lock()
	l.loss.Seen(from.epoch, ahead)
	r.in.mu.Unlock()
	for began := time.Now(); g.Status().Peers[0].Paths[0].LossOut < 0.5; exchange() {
		if time.Since(began) > within {
			t.Fatalf("the gateway says %+v", g.Status().Peers[0].Paths[0])
		}
	}
}
