package tunnel

import (
	"context"
	"time"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// prober asks every path's machine what to do and does it. It sleeps until the
// earliest of them wants to be asked again.
func (r *Robot) prober(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-r.kick:
		}
		next := time.Now().Add(latestPoll)
		for _, c := range r.carriers {
			if at := r.probe(c); at.Before(next) {
				next = at
			}
		}
		r.mu.Lock()
		r.choose(time.Now())
		r.mu.Unlock()
		timer.Reset(time.Until(next))
	}
}

// probe polls the paths of one carrier and returns when to do it again.
func (r *Robot) probe(c *carrier) time.Time {
	next := time.Now().Add(latestPoll)
	losses := r.lossesIn(c)
	r.noteSessions(c)
	for i, l := range c.links {
		r.mu.Lock()
		now := time.Now() // the handshakes of the links before took their time
		if t := r.start.Add(time.Duration(l.peer.traffic.Load())); now.Sub(t) < time.Second && t.After(r.start) {
			l.machine.Traffic(t)
		}
		if heard := l.heard.Load(); heard != 0 {
			l.machine.Heard(r.start.Add(time.Duration(heard)))
		}
		was := l.machine.Up()
		do, at := l.machine.Poll(now)
		interval := l.machine.Interval(now)
		if was && !l.machine.Up() {
			r.cfg.Log.Warn("Path down.", "carrier", l.carrier, "gateway", l.peer.name, "stage", l.machine.Snapshot(now).Stage.String())
		}
		r.mu.Unlock()
		if at.Before(next) {
			next = at
		}
		if do.Expire { // the path may have been up, and its handshake not noted, for long
			l.expired = c.wg.sessions()[r.cfg.Gateways[i].Key].handshake
		}
		if do.Handshake {
			c.wg.handshake(r.cfg.Gateways[i].Key, r.cfg.Gateways[i].Endpoint, do.Expire)
		}
		if do.Probe {
			var m [path.ProbeLen]byte
			path.Probe{ID: do.ProbeID, Interval: interval, LossIn: losses[i]}.Put(m[:])
			r.sendControl(c.wg.queue, l, replicate.Probe, m[:], now)
		}
		if do.Stun {
			to := newEndpoint(r.cfg.Gateways[i].Endpoint)
			if s := c.wg.bind.socketFor(to); s != nil {
				s.transmit([][]byte{r.hello}, to)
			}
		}
	}
	return next
}

// lossesIn returns what the carrier's paths lose on the way in.
func (r *Robot) lossesIn(c *carrier) []float64 {
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	losses := make([]float64, len(c.links))
	for i, l := range c.links {
		losses[i] = l.loss.Share()
	}
	return losses
}

// noteSessions tells the machines of paths that are not up whether the device
// has keys to send with: from a handshake later than the last Expire.
func (r *Robot) noteSessions(c *carrier) {
	r.mu.Lock()
	down := false
	for _, l := range c.links {
		down = down || !l.machine.Up()
	}
	r.mu.Unlock()
	if !down {
		return
	}
	sessions := c.wg.sessions()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for i, l := range c.links {
		if sessions[r.cfg.Gateways[i].Key].handshake != l.expired {
			l.machine.Session(now)
		}
	}
}
