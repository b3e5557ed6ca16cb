package tunnel

import (
	"context"
	"net/netip"
	"time"

	"golang.zx2c4.com/wireguard/device"

	"github.com/fogplr/fogplr/hello"
)

// A robot asks each gateway's port with STUN outside of WireGuard, and the gateway
// answers anybody. A plain answer proves nothing: it helps a search to choose an
// address, and status to tell a gateway that cannot be reached from one that
// refuses the handshake. A hello is authenticated, and makes the gateway start
// the handshake (see package hello).

// greeted takes a STUN message on a carrier of the robot.
func (r *Robot) greeted(b *bind, msg []byte, sender *endpoint) {
	from := sender.addr
	id, ok := hello.Succeeded(msg)
	plain := ok && id == r.plainID
	now := time.Now()
	var replies [][]byte
	news := false
	r.mu.Lock()
	for _, c := range r.carriers {
		if c.wg.bind != b {
			continue
		}
		for _, l := range c.links {
			if !l.ways.has(from) {
				continue
			}
			if plain {
				l.ways.answer(from)
				l.machine.Reachable(now)
				l.caller.Reachable(now)
				news = true
				continue
			}
			before := l.caller.Called(now)
			if reply := l.caller.Answer(msg, now); reply != nil {
				replies = append(replies, reply)
			}
			if until := l.caller.Called(now); until != before {
				l.machine.Hold(until)
				l.ways.use(from)
				news = true
			}
		}
	}
	r.mu.Unlock()
	for _, reply := range replies {
		b.transmit(reply, sender)
	}
	// Anybody may have sent it, and often: the others are seen when the prober looks.
	if (news || replies != nil) && r.greetings.allow(greetingsPerSecond, now) {
		r.wake()
	}
}

// noteSession takes the stamp of the session that the device has on a path, 0 for
// none. The caller holds node.mu.
func (r *Robot) noteSession(l *link, stamp int64, now time.Time) {
	if l.caller.Session(stamp, now) {
		l.clockBehind++
		r.clock.behind(now)
		r.cfg.Log.Warn("The gateway refused this carrier's handshakes for their time and started one itself: the clock is behind what it was.",
			"carrier", l.carrier, "gateway", l.peer.name, "clock", now.UTC().Format(time.DateTime))
	}
}

// guest is a carrier that sent a hello, and where it did.
type guest struct {
	key         Key
	at          netip.AddrPort
	clockBehind bool
}

// greet takes a STUN message on the gateway's port.
func (g *Gateway) greet(b *bind, msg []byte, from *endpoint) {
	a := g.greeter.Answer(msg, from.addr, time.Now())
	if a.Reply != nil {
		b.transmit(a.Reply, from)
	}
	if a.Call {
		select {
		case g.guests <- guest{a.Carrier, from.addr, a.ClockBehind}:
		default: // it asks again
		}
	}
	if a.Unknown {
		select {
		case g.strangers <- struct{}{}:
		default:
		}
	}
}

// know tells the greeter which carriers there are.
func (g *Gateway) know(robots []RobotPeer) {
	var keys []Key
	for _, r := range robots {
		keys = append(keys, r.Keys...)
	}
	g.known.Set(keys)
	if len(keys) <= knowAtOnce {
		g.known.Work(len(keys))
	}
}

// welcome calls the carriers that said hello.
func (g *Gateway) welcome(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case h := <-g.guests:
			g.call(h, time.Now())
		}
	}
}

// call starts a handshake with a carrier. One that is heard keeps its keys until
// there are new ones, unless that came to nothing a moment ago.
func (g *Gateway) call(h guest, now time.Time) {
	p := g.wg.dev.LookupPeer(device.NoisePublicKey(h.key)) // it may wait for In, which takes mu
	g.mu.Lock()
	l := g.byPeer[p]
	if l == nil { // it has just gone
		g.mu.Unlock()
		return
	}
	expire := !l.hearing.Live(now) || now.Sub(l.called) < callAgain
	l.called = now
	if h.clockBehind {
		l.clockBehind++
		g.cfg.Log.Warn("A robot's clock is behind what it was, so that WireGuard refuses its handshakes. Starting one from here.",
			"robot", l.peer.name, "carrier", l.carrier)
	}
	g.mu.Unlock()
	g.wg.handshake(h.key, h.at, expire)
}

// getToKnow computes what it takes to verify the hellos of many robots, when one
// came from a carrier that is not known yet. It takes half of one CPU at most.
func (g *Gateway) getToKnow(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.strangers:
		}
		for left := 1; left > 0; {
			began := time.Now()
			left = g.known.Work(knowSlice)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Since(began)):
			}
		}
	}
}

// replayed takes note of a carrier whose handshake WireGuard refused for its time.
func (g *Gateway) replayed(from *device.Peer) {
	g.mu.Lock()
	l := g.byPeer[from]
	g.mu.Unlock()
	if l != nil {
		g.known.Refused(l.key, time.Now())
	}
}
