package path

import (
	"testing"
	"time"
)

// After a sleep the path is probed before it is judged.
func TestSleep(t *testing.T) {
	for _, d := range []time.Duration{3 * time.Second, 20 * time.Second, 100 * time.Second} {
		w := upWorld(t, ms(40), ms(10))
		w.traffic = 0
		w.run(time.Second)
		w.queue = nil
		w.now = w.now.Add(d)
		begin := w.at()
		w.poll()
		w.check(w.m.Up() && w.log[len(w.log)-1].Probe, "%v: no probe first", d)
		w.run(10 * time.Second)
		w.check(len(w.ups) == 1 && w.number(begin, isHandshake) == 0, "%v: flips %v", d, w.ups)

		w.queue = nil
		w.now = w.now.Add(d)
		w.dead = true
		w.run(4 * time.Second)
		w.check(!w.m.Up(), "%v: a peer that died meanwhile is not noticed", d)

		// A fresh session that slept is not called unanswered.
		for !w.m.HasSession(w.now) {
			w.dead = false
			w.run(time.Millisecond)
		}
		w.queue = nil
		w.dead = true
		w.now = w.now.Add(d)
		w.run(ms(500))
		w.check(w.stage() == StageNoReply, "%v: stage %q", d, w.stage())
	}
}

// After a suspend, which the clock does not show, keys that may be dead at the
// gateway are renewed, and those that must be are given up.
func TestSuspend(t *testing.T) {
	for _, c := range []struct {
		slept          time.Duration
		renews, expire bool
	}{{10 * time.Second, false, false}, {time.Minute, true, false}, {10 * time.Minute, true, true}} {
		w := upWorld(t, ms(40), 0)
		w.run(time.Minute) // traffic has long paused
		if c.expire {
			clear(w.known)
		}
		begin := w.at()
		w.m.Slept(c.slept, w.now)
		w.poll()
		last := w.log[len(w.log)-1]
		w.check(last.at == begin && last.Probe && last.Handshake == c.renews && last.Expire == c.expire, "%v: %+v", c.slept, last)
		w.check(w.m.Up() != c.expire, "%v: up %v", c.slept, w.m.Up())
		w.run(ms(500))
		w.check(w.m.Up(), "%v: not up after half a second", c.slept)
		w.check(w.number(begin, isHandshake) <= 1, "%v: %d handshakes", c.slept, w.number(begin, isHandshake))
	}
}

// While the gateway is about to start the handshake, the robot starts none.
func TestHold(t *testing.T) {
	w := newWorld(t, ms(40))
	w.refuses = true
	w.m.Route(true, w.now)
	w.run(5 * time.Second)
	begin := w.at()
	w.m.Hold(w.now.Add(2 * time.Second))
	w.run(ms(1999))
	w.check(w.number(begin, isHandshake) == 0, "%d handshakes while held", w.number(begin, isHandshake))
	w.run(ms(2))
	w.check(w.number(begin, isHandshake) == 1, "%d handshakes afterwards", w.number(begin, isHandshake))
}

func TestTrafficAfterIdle(t *testing.T) {
	w := upWorld(t, ms(40), 0)
	w.run(ms(1234))
	begin := w.at()
	if !w.m.Traffic(w.now) {
		t.Error("Traffic on an idle path does not ask for Poll")
	}
	w.poll()
	w.check(w.log[len(w.log)-1].at == begin, "no probe at once")
	if w.m.Traffic(w.now) {
		t.Error("Traffic on an active path asks for Poll")
	}
	w.run(10 * time.Second)
	n := w.number(begin, isProbe)
	w.check(n >= 6 && n <= 7, "%d probes: one second at 200 ms, then idle, and then one in 10 s", n)
}

// The gateway holds a healthy carrier for live all the time, also when the robot
// goes from active to idle.
func TestHearingOfHealthyRobot(t *testing.T) {
	w := upWorld(t, ms(40), 0)
	for i := range 200 {
		if i%7 == 0 {
			w.m.Traffic(w.now)
		}
		for range 10 {
			w.run(ms(97))
			w.check(w.hearing.Live(w.now), "not live, last heard %v", w.hearing.Last().Sub(w.start))
		}
	}
}

func TestIdleCost(t *testing.T) {
	w := upWorld(t, ms(40), 0)
	begin := w.at()
	w.run(10 * time.Minute)
	n := w.number(begin, isProbe)
	w.check(n <= 121, "%d probes in 10 idle minutes", n)
	w.check(len(w.ups) == 1 && w.number(begin, isHandshake) == 0, "flips %v", w.ups)
}

func TestKick(t *testing.T) {
	w := upWorld(t, ms(40), 0)
	w.run(ms(500))
	begin := w.at()
	w.m.Kick(w.now)
	w.poll()
	w.check(w.number(begin, isProbe) == 1, "no probe at once")
	for range 1000 { // a storm
		w.m.Kick(w.now)
		w.run(time.Millisecond)
	}
	w.check(w.number(begin, isProbe) <= 21, "%d probes in a second of link events", w.number(begin, isProbe))

	w.dead = true
	w.run(5 * time.Minute)
	w.run(ms(2500)) // between two handshakes
	w.dead = false
	w.m.Kick(w.now)
	took := w.untilUp(time.Minute)
	w.check(took < ms(1300), "up %v after a kick", took)
}

func TestRouteFlap(t *testing.T) {
	w := upWorld(t, ms(40), ms(10))
	w.m.Route(false, w.now)
	w.poll()
	w.check(!w.m.Up() && !w.m.HasSession(w.now) && w.stage() == StageNoRoute, "uses a path without a route")
	w.run(10 * time.Second)
	begin := w.at()
	w.check(w.number(begin-10*time.Second, func(Action) bool { return true }) == 0, "acts without a route")
	w.m.Route(true, w.now)
	took := w.untilUp(time.Second)
	w.check(took == ms(40), "up after %v, want one round trip with the keys at hand", took)
	w.check(w.number(begin, isExpire) == 0, "Expire of good keys")

	// A reply that was on its way when the route went is no proof of the new one.
	id := w.m.nextID - 1
	w.m.ring[id%ringSize].answered = false
	w.m.Route(false, w.now)
	w.m.Route(true, w.now)
	w.m.Reply(id, w.now)
	w.check(!w.m.Up(), "up by an old reply")
}

// A gateway that restarted while the route was away is met with a handshake at
// once, and keys that the end of a route left unanswered are not thrown away.
func TestRouteFlapAndKeys(t *testing.T) {
	w := upWorld(t, ms(40), ms(10))
	w.m.Route(false, w.now)
	w.restart()
	w.run(10 * time.Second)
	w.m.Route(true, w.now)
	begin := w.at()
	took := w.untilUp(time.Second)
	w.check(took <= ms(300) && w.number(begin, isExpire) == 0, "up after %v", took)

	w.quiet = true
	w.run(10 * time.Second)
	w.blackUp, w.blackDn = true, true
	w.run(ms(2200))
	w.m.Route(false, w.now)
	w.run(time.Second)
	w.blackUp, w.blackDn = false, false
	w.m.Route(true, w.now)
	took = w.untilUp(time.Second)
	w.check(took == ms(40) && w.number(0, isExpire) == 0, "up after %v", took)
}

// Nothing that was encrypted before Expire makes the path carry after it.
func TestLateAfterExpire(t *testing.T) {
	w := upWorld(t, ms(40), ms(10))
	w.traffic = 0
	w.dead = true
	for w.m.Up() {
		w.run(time.Millisecond)
	}
	w.m.Session(w.now.Add(time.Millisecond))
	w.check(!w.m.HasSession(w.now.Add(time.Millisecond)), "session by a frame that was still being sent")
	old := w.m.nextID - 2
	w.m.Reply(old, w.now.Add(ms(2)))
	w.check(!w.m.Up() && !w.m.HasSession(w.now.Add(ms(2))), "proof by an old reply")
	w.m.Session(w.now.Add(ms(50)))
	w.check(w.m.HasSession(w.now.Add(ms(50))) && !w.m.Up(), "a session alone must not carry")
	w.check(w.stage() == StageNoReply, "stage %q", w.stage())
}

// A probe that is never encrypted shows that the key pair is gone.
func TestStagedProbeEndsSession(t *testing.T) {
	w := upWorld(t, ms(40), 0)
	w.check(w.m.HasSession(w.now), "no session")
	w.wg.dead, w.blackUp = true, true
	w.run(7 * time.Second)
	w.check(!w.m.HasSession(w.now), "session though nothing is encrypted")
}

func TestRepliesCountOnce(t *testing.T) {
	w := upWorld(t, ms(40), 0)
	s := w.m.Snapshot(w.now)
	for id := range uint32(200) {
		w.m.Reply(id+1<<20, w.now)
	}
	w.m.Reply(0, w.now)
	w.m.Reply(w.m.nextID-1, w.now)
	if got := w.m.Snapshot(w.now); got != s {
		t.Errorf("unknown or repeated replies changed %+v into %+v", s, got)
	}
}

// A caller that does not report sessions still gets a first RTT soon.
func TestFirstRTTWithoutSession(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := New(DefaultConfig(), now)
	m.Route(true, now)
	a, _ := m.Poll(now)
	now = now.Add(ms(80))
	m.Reply(a.ProbeID, now)
	if a, _ = m.Poll(now); !a.Probe {
		t.Fatal("no probe for a first RTT")
	}
	now = now.Add(ms(40))
	m.Reply(a.ProbeID, now)
	if s := m.Snapshot(now); s.RTT != ms(40) || s.RTTVar != ms(20) || !s.LastProof.Equal(now) || s.Probes != 2 || s.Replies != 2 {
		t.Errorf("%+v", s)
	}
}

// A path turns to another address while a session with the last one is unproven:
// the next handshake comes as soon as any, and nothing of before proves anything.
func TestTurned(t *testing.T) {
	now := time.Now()
	m := New(DefaultConfig(), now)
	m.Route(true, now)
	first, _ := m.Poll(now)
	now = now.Add(100 * time.Millisecond)
	m.Session(now)
	now = now.Add(100 * time.Millisecond)
	id := m.Turned(now)
	if !first.Probe || id == first.ProbeID || m.HasSession(now) {
		t.Errorf("probe %d after %+v", id, first)
	}
	m.Reply(first.ProbeID, now.Add(time.Millisecond))
	if m.Up() {
		t.Error("a reply to a probe of before made the path up")
	}
	a, next := m.Poll(now.Add(2 * time.Millisecond))
	for !a.Handshake {
		a, next = m.Poll(next)
	}
	if wait := next.Sub(now); wait > 3*DefaultConfig().Retry {
		t.Errorf("the next handshake came %v after the turn", wait)
	}
	m = New(DefaultConfig(), now)
	m.Route(true, now)
	m.Poll(now)
	id = m.Turned(now.Add(time.Millisecond))
	m.Session(now.Add(50 * time.Millisecond))
	m.Reply(id, now.Add(100*time.Millisecond))
	if !m.Up() {
		t.Error("its reply does not make the path up")
	}
}
