package tunnel

import (
	"context"
	"net/netip"
	"time"
)

// heart beats until ctx ends, and calls woke after each standstill that was long
// enough to matter to others.
func (n *node) heart(ctx context.Context, woke func(woken)) error {
	settled := func(now time.Time) bool { return n.quiet(now) && n.still.pending.stood == 0 }
	return n.beats.run(ctx, n.start, settled, func() {
		w := n.still.tick(time.Now())
		if w.stood == 0 {
			return
		}
		n.cfg.Log.Warn("This program or machine stood still; what waited meanwhile was dropped.", "for", w.stood.Round(time.Millisecond))
		if w.stood >= wakeAfter {
			woke(w)
		}
	})
}

// woke makes every path of a robot prove itself anew, and renews keys that may be
// dead at the other end.
func (r *Robot) woke(w woken) {
	now := time.Now()
	r.mu.Lock()
	for _, c := range r.carriers {
		for _, l := range c.links {
			l.machine.Slept(w.stood, now)
		}
	}
	r.choose(now)
	r.mu.Unlock()
	r.wake()
}

// woke has the carriers called that were heard before a standstill: meanwhile
// their robots have given their paths and keys up, and search at a slow pace.
func (g *Gateway) woke(w woken) {
	select {
	case g.wakes <- w:
	default: // the last one is being dealt with: robots come back by themselves
	}
}

// recallAfterWake calls them.
func (g *Gateway) recallAfterWake(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case w := <-g.wakes:
			start := time.Now()
			before := g.wg.sessions()
			_ = g.callAll(ctx, start, true, func(round int) map[Key]netip.AddrPort {
				if round == 0 {
					return g.unheard(before, before, w.since, start)
				}
				return g.unheard(before, g.wg.sessions(), w.since, start)
			})
		}
	}
}

// unheard returns the carriers that were heard until since, but not after start,
// and have not answered a handshake meanwhile. They are called where they were.
func (g *Gateway) unheard(before, after map[Key]wgSession, since, start time.Time) map[Key]netip.AddrPort {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	missing := make(map[Key]netip.AddrPort)
	for _, l := range g.byPeer {
		if !l.hearing.Recent(since) || l.hearing.Last().After(start) {
			continue
		}
		if after[l.key].handshake != before[l.key].handshake {
			l.hearing.Heard(now)
			g.choose(l.peer, now)
			continue
		}
		missing[l.key] = netip.AddrPort{}
	}
	return missing
}
