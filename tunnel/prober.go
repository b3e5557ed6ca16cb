package tunnel

import (
	"context"
	"net/netip"
	"slices"
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
		for _, c := range r.present() {
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
	r.noteSessions(c)
	r.mu.Lock()
	links := slices.Clone(c.links)
	c.own.note(c.ownBytes(), c.start, time.Now())
	if refused := c.wg.bind.stats.txTooBig.Load(); refused != c.tooBig {
		c.tooBig = refused
		for _, l := range links {
			l.machine.Doubt()
		}
	}
	r.mu.Unlock()
	for _, l := range links {
		do := r.poll(l)
		if do.next.Before(next) {
			next = do.next
		}
		r.act(c, l, &do)
	}
	return next
}

// deed is what a path's machine and its candidates want done.
type deed struct {
	path.Action
	now      time.Time
	next     time.Time     // when to ask again
	interval time.Duration // that a probe announces
	lossIn   float64       // and the other things that it tells
	largest  int
	// to is where a handshake goes, not valid if to where the peer last was.
	to     netip.AddrPort
	move   netip.AddrPort   // where the path goes on, if valid
	turned bool             // to is another address than before: a handshake at once
	ask    []netip.AddrPort // where STUN requests go
	hello  []byte           // asks the gateway for a handshake
	greet  netip.AddrPort   // where that goes
}

// poll asks a path what to do.
func (r *Robot) poll(l *link) deed {
	r.arrived(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now() // the handshakes of the links before took their time
	if t := r.start.Add(time.Duration(l.peer.traffic.Load())); now.Sub(t) < time.Second && t.After(r.start) {
		l.machine.Traffic(t)
	}
	if heard := l.heard.Load(); heard != 0 {
		l.machine.Heard(r.start.Add(time.Duration(heard)))
	}
	do := deed{now: now, lossIn: l.machine.LossIn(now)}
	l.machine.Full(l.txFull.Load())
	do.Action, do.next = l.machine.Poll(now)
	do.interval = l.machine.Interval(now)
	up := l.machine.Up()
	r.settle(l, now)
	do.largest = int(l.largest.Load())
	if do.Handshake && !up {
		l.ways.tries++
		l.caller.Handshake(now)
	}
	called := r.pollCaller(l, &do)
	if up {
		r.improve(l, &do)
	}
	if up || called {
		return do
	}
	do.ask = l.ways.ask(do.Stun, now)
	turned, again := l.ways.choose(now)
	if !again.IsZero() && again.Before(do.next) {
		do.next = again
	}
	if do.turned = turned; turned && !do.Expire {
		do.Probe, do.Size, do.ProbeID = true, 0, l.machine.Turned(now)
	}
	do.to = l.ways.used
	return do
}

// improve moves a path that is up but bad to another address of its gateway.
func (r *Robot) improve(l *link, do *deed) {
	if len(l.ways.all) < 2 {
		return
	}
	snap := l.machine.Snapshot(do.now)
	to, again := l.ways.better(snap.Stage != path.StageUp, snap.LastProof, do.now)
	if !again.IsZero() && again.Before(do.next) {
		do.next = again
	}
	if !to.IsValid() {
		return
	}
	do.move = to
	l.machine.Kick(do.now)
	do.next = do.now // to be asked for the probe
	r.cfg.Log.Info("The path tries another address of its gateway.", "carrier", l.carrier, "gateway", l.peer.name, "endpoint", to, "stage", snap.Name())
}

// pollCaller asks whether to ask the gateway for a handshake. It reports whether
// the gateway is about to start one.
func (r *Robot) pollCaller(l *link, do *deed) (called bool) {
	var again time.Time
	do.hello, again = l.caller.Poll(do.now)
	do.greet = l.ways.greet()
	if called = !l.caller.Called(do.now).IsZero(); called {
		again = do.now.Add(calledPoll)
	}
	if !again.IsZero() && again.Before(do.next) {
		do.next = again
	}
	return called
}

// act does it.
func (r *Robot) act(c *carrier, l *link, do *deed) {
	if do.Expire || do.turned { // the path may have been up, and its handshake not noted, for long
		l.expired = c.wg.sessions()[l.key].handshake
	}
	if do.Handshake || do.turned {
		c.wg.handshake(l.key, do.to, do.Expire || do.turned)
	}
	if do.move.IsValid() {
		r.mu.Lock()
		c.listen()
		r.mu.Unlock()
		c.wg.move(l.key, do.move)
	}
	if do.Probe {
		m := make([]byte, max(path.ProbeLen, do.Size-replicate.TagLen))
		path.Probe{ID: do.ProbeID, Interval: do.interval, LossIn: do.lossIn, ReplySize: uint16(do.Size), Largest: uint16(do.largest)}.Put(m)
		r.sendControl(c.wg.queue, l, replicate.Probe, m, do.now)
	}
	for _, at := range do.ask {
		c.wg.bind.transmit(r.plain, newEndpoint(at))
	}
	if do.hello != nil && do.greet.IsValid() {
		c.wg.bind.transmit(do.hello, newEndpoint(do.greet))
	}
}

// arrived tells a path's machine what came by the path. Under both locks, since
// totals from before a reply are old once that is taken.
func (r *Robot) arrived(l *link) {
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	received, expected := l.loss.Totals()
	l.machine.Arrived(received, expected, now)
	if l.rxLargest > 0 {
		l.machine.Seen(l.rxLargest, now)
		l.rxLargest = 0
	}
}

// noteSessions tells the machines and callers of paths whether the device has keys
// to send with: from a handshake later than the last Expire. That is urgent where
// a path is not up or a gateway is calling.
func (r *Robot) noteSessions(c *carrier) {
	r.mu.Lock()
	now := time.Now()
	urgent := slices.ContainsFunc(c.links, func(l *link) bool { return !l.machine.Up() || !l.caller.Called(now).IsZero() })
	recent := !c.looked.IsZero() && now.Sub(c.looked) < lookInterval
	r.mu.Unlock()
	if !urgent && recent {
		return
	}
	sessions := c.wg.sessions()
	r.mu.Lock()
	defer r.mu.Unlock()
	now = time.Now()
	c.looked = now
	for _, l := range c.links {
		stamp := sessions[l.key].handshake
		if stamp == l.expired {
			stamp = 0
		} else if urgent {
			l.machine.Session(now)
		}
		r.noteSession(l, stamp, now)
	}
}
