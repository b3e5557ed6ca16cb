package tunnel

import (
	"context"
	"net/netip"
	"time"
)

// Contact is where one carrier of a robot was heard from.
type Contact struct {
	Key      Key // public, the carrier's
	Endpoint netip.AddrPort
}

// call is a carrier that is called after a start, and where.
type call struct {
	link *link
	at   netip.AddrPort
}

// Contacts returns the carriers that may still be where they were last heard, in
// the order of the configuration. Those that this gateway was started with are
// among them until they had the time to answer. ok is false when the gateway has
// ended, so that it does not know any more.
func (g *Gateway) Contacts() (all []Contact, ok bool) {
	sessions := g.wg.sessions()
	if len(sessions) == 0 && len(g.keys) > 0 {
		return nil, false
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.peers {
		for _, l := range p.links {
			if l == nil {
				continue
			}
			c := Contact{Key: g.keys[l]}
			if at, err := netip.ParseAddrPort(sessions[c.Key].endpoint); err == nil && l.hearing.Recent(now) {
				c.Endpoint = at
			} else if call := g.called[c.Key]; call != nil && now.Sub(g.start) < calledFor {
				c.Endpoint = call.at
			} else {
				continue
			}
			all = append(all, c)
		}
	}
	return all, true
}

// Moved says that a carrier was heard after a silence or a start of its robot, so
// that Contacts may have changed.
func (g *Gateway) Moved() <-chan struct{} { return g.moved }

func (g *Gateway) signal() {
	select {
	case g.moved <- struct{}{}:
	default:
	}
}

// recall starts a handshake with every carrier that the gateway's last run heard,
// since a robot takes a while to notice that its keys are of no use any more, and
// WireGuard lets it start one handshake in 5 s. It is repeated for those that did
// not answer: an initiation can be lost, or meet the robot's own, and then both
// come to nothing.
func (g *Gateway) recall(ctx context.Context) error {
	pace := time.NewTicker(time.Second / callsPerSecond)
	defer pace.Stop()
	for round, at := range callsAt {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(g.start.Add(at))):
		}
		var sessions map[Key]wgSession
		if round > 0 {
			sessions = g.wg.sessions()
		}
		for _, c := range g.cfg.Contacts {
			if call := g.called[c.Key]; call == nil || !g.missing(call.link, sessions[c.Key].handshake != 0) {
				continue
			}
			g.wg.handshake(c.Key, c.Endpoint, true)
			select {
			case <-ctx.Done():
				return nil
			case <-pace.C:
			}
		}
	}
	return nil
}

// missing reports whether a carrier that is to be called was not heard yet. The
// answer to a handshake was heard by WireGuard alone.
func (g *Gateway) missing(l *link, answered bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.hearing.Last().IsZero() && answered {
		now := time.Now()
		l.hearing.Heard(now)
		g.choose(l.peer, now)
	}
	return l.hearing.Last().IsZero()
}
