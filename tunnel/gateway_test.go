package tunnel

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/device"

	"github.com/fogplr/fogplr/path"
)

// The WireGuard device is up, and may bring probes, before NewGateway knows it.
func TestGatewayAnswersBeforeItKnowsItsDevice(t *testing.T) {
	w := newWorld(t, 1, 1)
	g := w.gateways[0]
	early := &Gateway{node: g.node, queue: g.queue}
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	early.probed(g.peers[0].links[0].Load(), path.Probe{ID: 1}, 36, time.Now())
}

// A robot with a valid session that claims another's address and its own by
// turns must not fill the gateway's log.
func TestTurningAddressesDoNotFloodTheLog(t *testing.T) {
	w := newWorld(t, 1, 1)
	g := w.gateways[0]
	g.mu.Lock()
	var log bytes.Buffer
	g.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	var from *device.Peer
	for from = range g.byPeer {
		break
	}
	l := g.byPeer[from]
	g.mu.Unlock()
	for range 1000 {
		g.refused(from)
		g.heard(l, time.Now())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := bytes.Count(log.Bytes(), []byte("\n")); n < 2 || n > 20 {
		t.Errorf("%d lines in the log, want a few", n)
	}
}
