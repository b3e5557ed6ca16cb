package path

import (
	"strings"
	"testing"
	"time"
)

func TestStageNames(t *testing.T) {
	for s, want := range map[Stage]string{
		StageUp: "", StageNoRoute: "no route", StageNoReply: "no reply",
		StageHandshakeRefused: "handshake refused", StageAddressNotAllowed: "address not allowed",
		StageStarting: "starting", StageNoWayOut: "no way out", StageResting: "resting",
		StageLargeLost: "large packets lost", StageThrottled: "throttled", StageLossOut: "loss on the way out",
		StageLossIn: "loss on the way in", StageLossy: "lossy", 99: "unknown",
	} {
		if s.String() != want {
			t.Errorf("stage %d is %q, want %q", s, s, want)
		}
		if up := s == StageUp || s >= StageLargeLost && s < 99; s.Up() != up {
			t.Errorf("stage %q: up %v", s, s.Up())
		}
		hint := s.Hint()
		if (hint == "") != (s == StageUp || s == 99) || hint != "" && !strings.HasSuffix(hint, ".") {
			t.Errorf("stage %q: hint %q", s, hint)
		}
	}
}

func TestStages(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*world)
		want Stage
	}{
		{"gateway down", func(w *world) { w.dead = true }, StageNoReply},
		{"way back blocked", func(w *world) { w.blackDn = true }, StageNoReply},
		{"wrong key", func(w *world) { w.refuses = true }, StageHandshakeRefused},
		{"wrong address", func(w *world) { w.disallows = true }, StageAddressNotAllowed},
	} {
		for _, loss := range []float64{0, 0.1} {
			for _, rtt := range []int{1, 5, 40, 300, 900, 2500} {
				t.Run(c.name, func(t *testing.T) {
					w := newWorld(t, ms(rtt))
					w.lossUp, w.lossDown = loss, loss
					c.set(w)
					w.m.Route(true, w.now)
					w.run(2 * time.Second)
					settled := 10 * time.Second
					if rtt > 1000 { // attempts are that much longer
						settled *= 2
					}
					for w.at() < settled {
						w.run(ms(10))
						if s := w.stage(); loss == 0 && rtt < 500 && s != StageStarting && s != c.want {
							w.check(false, "RTT %d ms: stage %q on the way to %q", rtt, s, c.want)
						}
					}
					for w.at() < 10*time.Minute {
						w.check(w.stage() == c.want, "RTT %d ms, loss %v: stage %q, want %q", rtt, loss, w.stage(), c.want)
						w.run(ms(50))
					}
					w.check(len(w.ups) == 0, "up")
					// In the end a handshake and a STUN request each 5 s, or, where
					// sessions form, one to five probes and no STUN.
					begin := w.at()
					w.run(time.Minute)
					n, stun := w.number(begin, isHandshake), w.number(begin, isStun)
					w.check(n <= 12 && stun <= 12, "%d handshakes, %d STUN requests a minute", n, stun)
					w.check(c.want != StageAddressNotAllowed || stun == 0, "%d STUN requests", stun)
					w.check(w.number(begin, isProbe) <= 72, "%d probes a minute", w.number(begin, isProbe))
				})
			}
		}
	}
}

// The stage follows what happens to the gateway.
func TestStageChanges(t *testing.T) {
	w := upWorld(t, ms(40), ms(10))
	steps := []struct {
		set  func()
		want Stage
	}{
		{func() { w.dead = true; w.restart() }, StageNoReply},
		{func() { w.dead, w.refuses = false, true }, StageHandshakeRefused},
		{func() { w.refuses, w.disallows = false, true }, StageAddressNotAllowed},
		{func() { w.disallows = false }, StageUp},
		{func() { w.disallows = true }, StageAddressNotAllowed},
		{func() { w.dead = true }, StageNoReply},
		{func() { w.m.Route(false, w.now) }, StageNoRoute},
		{func() { w.m.Route(true, w.now) }, StageNoReply},
		{func() { w.dead, w.disallows = false, false }, StageUp},
	}
	for i, s := range steps {
		s.set()
		w.run(45 * time.Second)
		w.check(w.stage() == s.want, "step %d: stage %q, want %q", i, w.stage(), s.want)
	}
}

// A verdict goes with what it was based on.
func TestVerdictsEnd(t *testing.T) {
	for name, set := range map[string]func(*world){
		"address": func(w *world) { w.disallows = true },
		"key":     func(w *world) { w.refuses = true },
	} {
		fresh := func() *world {
			w := newWorld(t, ms(40))
			set(w)
			w.m.Route(true, w.now)
			w.run(8 * time.Second)
			w.check(w.stage() > StageNoReply, "%s: stage %q", name, w.stage())
			return w
		}
		w := fresh()
		w.refuses, w.disallows = false, false
		w.untilUp(10 * time.Second)
		w.flow(ms(10))
		w.run(time.Second)
		w.dead = true
		for w.run(ms(3500)); w.at() < 25*time.Second; w.run(ms(100)) {
			w.check(w.stage() == StageNoReply, "%s: stage %q after a death", name, w.stage())
		}

		w = fresh()
		w.m.Route(false, w.now)
		w.dead = true
		w.m.Route(true, w.now)
		for w.run(3 * time.Second); w.at() < 25*time.Second; w.run(ms(100)) {
			w.check(w.stage() == StageNoReply, "%s: stage %q after a change of route", name, w.stage())
		}
	}
}

// A session that forms ends the count of refused handshakes, and one reply ends
// the suspicion that the address is not allowed.
func TestEvidence(t *testing.T) {
	w := newWorld(t, ms(40))
	w.refuses = true
	w.m.Route(true, w.now)
	w.run(20 * time.Second)
	w.check(w.stage() == StageHandshakeRefused, "stage %q", w.stage())
	w.refuses, w.disallows = false, true
	for !w.m.HasSession(w.now) {
		w.run(time.Millisecond)
	}
	w.check(w.stage() == StageNoReply, "stage %q with a session", w.stage())
}

// Keys left over from before the route went, or before a death, are no fresh
// session: without an answer the stage is "no reply".
func TestOldKeysAreNotFresh(t *testing.T) {
	w := upWorld(t, ms(40), ms(10))
	w.dead = true
	w.run(time.Second)
	w.m.Route(false, w.now)
	w.run(4 * time.Minute)
	w.m.Route(true, w.now)
	w.check(!w.m.HasSession(w.now), "a session with keys from four minutes ago")
	for range 300 {
		w.run(ms(100))
		if w.wg.current != 0 && !w.wg.dead {
			w.m.Session(w.now) // the caller goes by the last handshake
		}
		w.check(w.stage() == StageStarting || w.stage() == StageNoReply, "stage %q", w.stage())
	}
}
