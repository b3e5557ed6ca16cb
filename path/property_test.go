package path

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// watcher drives a Machine with any events and checks what always holds.
type watcher struct {
	t         *rapid.T
	m         *Machine
	now, next time.Time
	lastHS    time.Time
	lastAct   time.Time // last probe, or when the route came
	probes    []time.Time
	expireID  uint32    // first probe after the last Expire
	proven    bool      // since then
	lastSize  time.Time // last probe for a size
	sizeID    uint32
	handshook bool
}

func (w *watcher) poll() {
	m, now := w.m, w.now
	wasUp, session, proof, standing := m.Up(), m.HasSession(now), m.lastProof, m.standing
	slept := !m.promised.IsZero() && now.Sub(m.promised) > pollGap
	a, next := m.Poll(now)
	if !next.After(now) {
		w.t.Fatalf("next is %v", next.Sub(now))
	}
	if next.Sub(now) > m.cfg.IdleRetry {
		w.t.Fatalf("next is %v away", next.Sub(now))
	}
	w.next = next
	if !m.route && a != (Action{}) {
		w.t.Fatalf("%+v without a route", a)
	}
	if a.Handshake {
		if w.handshook && now.Sub(w.lastHS) < m.cfg.Retry {
			w.t.Fatalf("handshakes %v apart", now.Sub(w.lastHS))
		}
		w.lastHS = now
	}
	if a.Expire {
		switch {
		case !a.Handshake || !a.Probe || !w.handshook:
			w.t.Fatalf("Expire alone or first: %+v", a)
		case m.Up() || m.HasSession(now):
			w.t.Fatal("in use after Expire")
		case wasUp && (slept || now.Sub(proof) < m.cfg.Trust):
			w.t.Fatalf("Expire %v after a proof", now.Sub(proof))
		case session && !wasUp && now.Sub(standing) < m.cfg.Trust:
			w.t.Fatalf("Expire of a session %v old", now.Sub(standing))
		}
		w.expireID, w.proven = a.ProbeID, false
	}
	w.handshook = w.handshook || a.Handshake
	if a.Size != 0 {
		if !a.Probe || !m.up || a.ProbeID&sizeProbeID == 0 || a.Size > m.cfg.Largest || now.Before(w.lastSize.Add(sizeSpacing)) {
			w.t.Fatalf("%+v, the last one %v ago", a, now.Sub(w.lastSize))
		}
		w.lastSize, w.sizeID = now, a.ProbeID
	} else if a.Probe {
		if a.ProbeID != uint32(m.probes) {
			w.t.Fatalf("probe %d is number %d", a.ProbeID, m.probes)
		}
		w.lastAct = now
		w.probes = append(w.probes, now)
		if n := len(w.probes); n > 25 && w.probes[n-1].Sub(w.probes[n-26]) < time.Second {
			w.t.Fatal("more than 25 probes in a second")
		}
	}
	w.check()
}

func (w *watcher) check() {
	m, now := w.m, w.now
	s := m.Snapshot(now)
	if s.Up != m.Up() || s.Up != s.Stage.Up() || (s.Name() == "") != (s.Stage == StageUp) ||
		(s.Stage.String() == "") != (s.Stage == StageUp) || (s.Stage.Hint() == "") != (s.Stage == StageUp) {
		w.t.Fatalf("contradiction in %+v", s)
	}
	if (s.Up || m.HasSession(now)) && !m.route {
		w.t.Fatal("carries without a route")
	}
	if s.Up && !w.proven {
		w.t.Fatal("carries without a proof since Expire")
	}
	if s.Replies > s.Probes || m.answer < 0 || m.answer > 1 {
		w.t.Fatalf("%+v, ratio %v", s, m.answer)
	}
	if i := m.Interval(now); i < m.cfg.Active || i > m.cfg.IdleRetry {
		w.t.Fatalf("interval %v", i)
	}
}

// pass lets time go by and polls as promised.
func (w *watcher) pass(d time.Duration) {
	end := w.now.Add(d)
	for !w.next.After(end) {
		w.now = w.next
		w.poll()
		if w.m.route && w.now.Sub(w.lastAct) > w.m.cfg.IdleRetry {
			w.t.Fatalf("silent for %v", w.now.Sub(w.lastAct))
		}
	}
	w.now = end
}

func TestMachineProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		w := &watcher{t: t, m: New(DefaultConfig(), now), now: now}
		w.poll()
		short := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond
		})
		reply := func(t *rapid.T, back int) {
			id := w.m.nextID - uint32(back)
			p := w.m.ring[id%ringSize]
			if p.id == id && !p.answered && w.m.route && int32(id-w.expireID) >= 0 {
				w.proven = true
			}
			w.m.Reply(id, w.now)
			w.check()
			w.poll()
		}
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) { w.pass(short.Draw(t, "d")) },
			"long": func(t *rapid.T) { w.pass(10 * short.Draw(t, "d")) },
			"sleep": func(t *rapid.T) {
				w.now = w.now.Add(10 * short.Draw(t, "d"))
				w.lastAct = w.now
				w.poll()
			},
			"route": func(t *rapid.T) {
				ok := rapid.IntRange(0, 3).Draw(t, "ok") > 0
				if ok && !w.m.route {
					w.lastAct = w.now
				}
				w.m.Route(ok, w.now)
				w.check()
				w.poll()
			},
			"kick": func(t *rapid.T) { w.m.Kick(w.now); w.poll() },
			"traffic": func(t *rapid.T) {
				if w.m.Traffic(w.now) {
					w.poll()
				}
			},
			"session": func(t *rapid.T) {
				if w.m.Session(w.now) {
					w.poll()
				}
			},
			"sized": func(t *rapid.T) {
				id := w.sizeID + uint32(rapid.IntRange(-5, 1).Draw(t, "back"))
				size := rapid.SampledFrom([]int{0, 48, 496, 1228, 1308}).Draw(t, "size")
				w.m.Answered(Reply{ID: id | sizeProbeID, Expected: id, Received: id / 2}, size, w.now)
				w.check()
				w.poll()
			},
			"moved":     func(t *rapid.T) { w.m.Moved(w.now); w.check(); w.poll() },
			"doubt":     func(t *rapid.T) { w.m.Doubt(); w.poll() },
			"heard":     func(t *rapid.T) { w.m.Heard(w.now); w.poll() },
			"reachable": func(t *rapid.T) { w.m.Reachable(w.now); w.poll() },
			"reply": func(t *rapid.T) {
				reply(t, rapid.IntRange(1, 5).Draw(t, "back"))
			},
			"any reply": func(t *rapid.T) {
				reply(t, rapid.IntRange(-2, 3*ringSize).Draw(t, "back"))
			},
			"good path": func(t *rapid.T) {
				for range 20 {
					w.pass(40 * time.Millisecond)
					w.m.Session(w.now)
					reply(t, 1)
				}
			},
		})
	})
}

// Whatever happened to network and gateway, the path is up soon after both work
// again, and it stays up.
func TestAlwaysRecovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rtt := rapid.IntRange(0, 800).Draw(t, "rtt")
		w := newWorld(t, time.Duration(rtt)*time.Millisecond)
		w.rnd = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		w.m.Route(true, w.now)
		pick := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			if pick("restart") {
				w.restart()
			}
			w.dead, w.refuses, w.disallows = pick("dead"), pick("refuses"), pick("disallows")
			w.blackUp, w.blackDn = pick("up"), pick("down")
			w.lossUp = rapid.Float64Range(0, 0.5).Draw(t, "loss")
			w.duplex = pick("duplex")
			if pick("traffic") {
				w.flow(20 * time.Millisecond)
			} else {
				w.traffic = 0
			}
			w.m.Route(!pick("route"), w.now)
			w.run(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms")) * time.Millisecond)
		}
		w.dead, w.refuses, w.disallows, w.blackUp, w.blackDn, w.lossUp = false, false, false, false, false, 0
		w.m.Route(true, w.now)
		w.run(15 * time.Second)
		if !w.m.Up() || !w.known[w.wg.current] {
			t.Fatalf("not up 15 s after everything works, stage %q", w.stage())
		}
		n := len(w.ups)
		w.run(time.Minute)
		if len(w.ups) != n {
			t.Fatalf("flips %v", w.ups[n:])
		}
	})
}

func TestNoAllocations(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := New(DefaultConfig(), now)
	m.Route(true, now)
	var h Hearing
	var l Loss
	var b [ProbeLen]byte
	seq := uint32(0)
	n := testing.AllocsPerRun(1000, func() {
		now = now.Add(100 * time.Millisecond)
		a, _ := m.Poll(now)
		m.Traffic(now)
		m.Session(now)
		m.Arrived(seq, seq, now)
		m.Answered(Reply{ID: a.ProbeID, Received: seq, Expected: seq, Bytes: 100 * seq, Mapping: 1}, max(a.Size, 48), now)
		m.Snapshot(now)
		h.Announced(m.Interval(now), now)
		h.Live(now)
		seq++
		l.Seen(1, seq)
		l.Roll(now)
		Probe{ID: a.ProbeID, LossIn: m.LossIn(now)}.Put(b[:])
		if _, err := DecodeProbe(b[:]); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
