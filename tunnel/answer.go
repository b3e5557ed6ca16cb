package tunnel

import (
	"context"
	"net/netip"
	"time"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// answer is a reply to a probe on a path, in a frame of size bytes.
type answer struct {
	link  *link
	reply path.Reply
	size  int
}

// probed answers a robot's probe, which came in a frame of size bytes, on the path
// that it came by. The caller holds inward.mu.
func (g *Gateway) probed(l *link, m path.Probe, size int, now time.Time) {
	g.mu.Lock()
	l.hearing.Announced(m.Interval, now)
	if m.Interval <= 0 {
		g.choose(l.peer, now)
		g.mu.Unlock()
		return
	}
	l.lossOut = m.LossIn
	idle := m.Interval >= mappingInterval && len(g.byPeer) <= mappingPeers
	g.mu.Unlock()
	l.largest.Store(int32(m.Largest))
	a := answer{link: l, reply: path.Reply{ID: m.ID, LossOut: l.loss.Share(), Bytes: l.rxBytes, Seen: uint16(l.rxLargest)}}
	l.rxLargest = 0
	a.reply.Received, a.reply.Expected = l.loss.Totals()
	a.size = m.ReplyFrame(size, replicate.TagLen+path.ReplyLen, g.cfg.frameMTU())
	if idle {
		select {
		case g.later <- a:
			return
		default:
		}
	}
	g.reply(&a, now)
}

func (g *Gateway) reply(a *answer, now time.Time) {
	m := make([]byte, a.size-replicate.TagLen)
	a.reply.Put(m)
	g.sendControl(g.queue, a.link, replicate.Reply, m, now)
}

// answerLater answers the probes of idle paths, and tells each robot at which
// address it is seen. WireGuard must be asked for that, which In may not wait for,
// and which is done for all that wait together, since it takes a while.
func (g *Gateway) answerLater(ctx context.Context) error {
	for {
		var waiting []answer
		select {
		case <-ctx.Done():
			return nil
		case a := <-g.later:
			waiting = append(waiting, a)
		}
		for len(g.later) > 0 {
			waiting = append(waiting, <-g.later)
		}
		sessions := g.wg.sessions()
		now := time.Now()
		for i := range waiting {
			a := &waiting[i]
			if at, err := netip.ParseAddrPort(sessions[a.link.key].endpoint); err == nil {
				a.reply.Mapping = path.MappingOf(at)
			}
			g.reply(a, now)
		}
	}
}
