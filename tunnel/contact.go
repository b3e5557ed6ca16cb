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
	// Local is the gateway's address and port that it sent to: the NAT or firewall
	// before it may let nothing else in. The address is unspecified if any will do,
	// all of it zero if it is not known.
	Local netip.AddrPort
}

// Contacts returns the carriers that may still be where they were last heard, in
// the order of the configuration. Those that this gateway was started with are
// among them until they had the time to answer. ok is false when the gateway has
// ended, so that it does not know any more.
func (g *Gateway) Contacts() (all []Contact, ok bool) {
	sessions := g.wg.sessions()
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(sessions) == 0 && len(g.byPeer) > 0 {
		return nil, false
	}
	for _, p := range g.peers {
		for l := range p.paths() {
			c := Contact{Key: l.key}
			if at, err := netip.ParseAddrPort(sessions[c.Key].endpoint); err == nil && l.hearing.Recent(now) {
				c.Endpoint = at
			} else if at := g.calls[c.Key]; at.IsValid() && now.Sub(g.start) < calledFor {
				c.Endpoint = at
			} else {
				continue
			}
			c.Local = g.wg.bind.peers.to(c.Endpoint).origin()
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
	return g.callAll(ctx, g.start, false, g.uncalled)
}

// callAll starts the handshakes that pick names for each round. If the keys may be
// good still, the first round leaves them.
func (g *Gateway) callAll(ctx context.Context, start time.Time, keysGood bool, pick func(round int) map[Key]netip.AddrPort) error {
	pace := time.NewTicker(time.Second / callsPerSecond)
	defer pace.Stop()
	for round, at := range callsAt {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(start.Add(at))):
		}
		for key, to := range pick(round) {
			g.wg.handshake(key, to, round > 0 || !keysGood)
			select {
			case <-ctx.Done():
				return nil
			case <-pace.C:
			}
		}
	}
	return nil
}

// uncalled returns the carriers that are to be called and were not heard yet, and
// where they are called. The answer to a handshake was heard by WireGuard alone.
func (g *Gateway) uncalled(round int) map[Key]netip.AddrPort {
	var sessions map[Key]wgSession
	if round > 0 {
		sessions = g.wg.sessions()
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	missing := make(map[Key]netip.AddrPort)
	for _, l := range g.byPeer {
		at := g.calls[l.key]
		if !at.IsValid() || !l.hearing.Last().IsZero() {
			continue
		}
		if sessions[l.key].handshake != 0 {
			l.hearing.Heard(now)
			g.choose(l.peer, now)
			continue
		}
		missing[l.key] = at
	}
	return missing
}
