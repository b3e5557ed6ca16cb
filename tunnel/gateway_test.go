package tunnel

import (
	"testing"
	"time"

	"github.com/fogplr/fogplr/path"
)

// The WireGuard device is up, and may bring probes, before NewGateway knows it.
func TestGatewayAnswersBeforeItKnowsItsDevice(t *testing.T) {
	w := newWorld(t, 1, 1)
	g := w.gateways[0]
	early := &Gateway{node: g.node, cfg: g.cfg, queue: g.queue}
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	early.probed(g.peers[0].links[0], path.Probe{ID: 1}, time.Now())
}
