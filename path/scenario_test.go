package path

import (
	"math/rand/v2"
	"testing"
	"time"
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// upWorld returns a world whose path has been up for 20 s, with a packet every
// traffic (0: idle).
func upWorld(t tester, rtt, traffic time.Duration) *world {
	w := newWorld(t, rtt)
	w.m.Route(true, w.now)
	w.untilUp(time.Minute)
	if traffic > 0 {
		w.flow(traffic)
	}
	w.run(20 * time.Second)
	return w
}

func (w *world) check(ok bool, format string, args ...any) {
	w.t.Helper()
	if !ok {
		w.t.Fatalf("%v: "+format, append([]any{w.at()}, args...)...)
	}
}

func TestStart(t *testing.T) {
	w := newWorld(t, ms(40))
	w.run(time.Second)
	w.check(len(w.log) == 0 && w.stage() == StageNoRoute, "actions %v, stage %q without a route", w.log, w.stage())
	w.m.Route(true, w.now)
	w.poll()
	first := w.log[0].Action
	w.check(first == Action{Handshake: true, Probe: true, ProbeID: 1, Stun: true}, "first action %+v", first)
	w.check(w.stage() == StageStarting, "stage %q", w.stage())
	took := w.untilUp(time.Second)
	w.check(took == ms(80), "up after %v, want two round trips: one reply suffices", took)
	w.run(10 * time.Second)
	s := w.m.Snapshot(w.now)
	w.check(s.RTT == ms(40), "RTT %v: a staged probe counted", s.RTT)
	w.check(s.Up && s.Stage == StageUp && s.Stage.Hint() == "", "%+v", s)
	w.check(w.number(0, isHandshake) == 1 && w.number(0, isStun) == 1, "%+v", w.log)
}

// A gateway that restarts in silence is back before a person notices, whatever
// the phase of the probes, and live keys are never touched.
func TestRestartUnderTraffic(t *testing.T) {
	for _, c := range []struct {
		rtt   int
		worst time.Duration
	}{{1, ms(720)}, {40, ms(800)}, {100, ms(960)}, {300, ms(1560)}} {
		worst := time.Duration(0)
		for phase := 0; phase < 200; phase += 3 {
			w := upWorld(t, ms(c.rtt), ms(10))
			w.run(ms(phase))
			begin := w.at()
			w.restart()
			// A reply that was on its way is not the new session's.
			w.run(ms(c.rtt))
			last := w.m.Snapshot(w.now).LastProof
			for w.m.Snapshot(w.now).LastProof.Equal(last) {
				w.run(time.Millisecond)
				w.check(w.at()-begin < 5*time.Second, "no proof after a restart")
			}
			worst = max(worst, w.at()-begin)
			w.run(5 * time.Second)
			w.check(len(w.ups) == 1, "flips %v", w.ups)
			w.check(w.number(0, isExpire) == 0, "Expire on a path that was up")
			w.check(w.number(begin, isHandshake) == 1, "%d handshakes", w.number(begin, isHandshake))
		}
		t.Logf("RTT %d ms: proof at the latest %v after the restart", c.rtt, worst)
		if worst > c.worst {
			t.Errorf("RTT %d ms: proof %v after the restart, want %v at most", c.rtt, worst, c.worst)
		}
	}
}

func TestRestartWhileIdle(t *testing.T) {
	w := upWorld(t, ms(40), 0)
	for range 20 {
		w.run(time.Duration(w.rnd.IntN(12000)) * time.Millisecond)
		w.restart()
		begin := w.now
		w.run(10*time.Second + ms(700))
		w.check(w.m.Snapshot(w.now).LastProof.After(begin) && w.usable() && w.known[w.wg.current],
			"no proof %v after a restart", w.now.Sub(begin))
		w.run(10 * time.Second)
	}
	w.check(len(w.ups) == 1 && w.number(0, isExpire) == 0, "flips %v", w.ups)
}

// A second restart within WireGuard's 5 s cannot be mended without Expire, so it
// costs Trust.
func TestRestartTwice(t *testing.T) {
	w := upWorld(t, ms(40), ms(10))
	w.restart()
	w.run(ms(1500))
	w.restart()
	begin := w.at()
	w.run(ms(4500))
	w.check(w.m.Up(), "not up again after %v", w.at()-begin)
	w.check(w.number(begin, isExpire) == 1, "%d with Expire", w.number(begin, isExpire))
	w.check(len(w.ups) == 3 && w.ups[1].at-begin <= ms(3200), "flips %v", w.ups)
}

func TestBlackHole(t *testing.T) {
	for _, dir := range []string{"both", "up", "down", "quiet"} {
		t.Run(dir, func(t *testing.T) {
			w := upWorld(t, ms(40), ms(10))
			w.quiet = dir == "quiet"
			begin := w.at()
			w.blackUp, w.blackDn = dir != "down", dir != "up"
			w.run(ms(2750))
			w.check(w.m.Up(), "stopped carrying early")
			w.check(w.number(begin, isHandshake) == 1 && w.number(begin, isExpire) == 0,
				"want one handshake without Expire: %v", w.log[len(w.log)-5:])
			w.run(ms(500))
			w.check(!w.m.Up() && !w.m.HasSession(w.now), "carries")
			w.check(w.number(begin, isExpire) == 1, "no Expire at death")
			w.check(w.stage() == StageNoReply, "stage %q", w.stage())
			w.run(9 * time.Second)
			n := w.number(begin, isHandshake)
			w.check(n >= 8 && n <= 11, "%d handshakes in 12 s", n)
			w.run(2 * time.Minute)
			mid := w.at()
			w.run(time.Minute)
			n = w.number(mid, isHandshake)
			w.check(n >= 59 && n <= 61, "%d handshakes a minute while traffic waits, after three", n)
			w.check(w.number(mid, isProbe) == n, "%d probes, %d handshakes", w.number(mid, isProbe), n)
			w.blackUp, w.blackDn = false, false
			had := w.m.Snapshot(w.now).Replies
			for w.m.Snapshot(w.now).Replies == had {
				w.run(time.Millisecond)
			}
			w.check(!w.m.Up(), "up by one reply after a death")
			took := w.untilUp(time.Second)
			w.check(took < ms(300), "second reply %v after the first", took)
			w.run(time.Minute)
			w.check(len(w.ups) == 3, "flips %v", w.ups)
		})
	}
}

// Under traffic an outage of any length ends for the data within a second, though
// nobody says that it is over; without traffic, and where the gateway refuses, the
// search is slower.
func TestAfterOutages(t *testing.T) {
	var worst, proven time.Duration
	for i := range 30 {
		w := upWorld(t, ms(40), ms(10))
		w.blackUp, w.blackDn = true, true
		w.run(5*time.Second + time.Duration(i*i)*ms(197))
		w.check(!w.m.Up(), "up in an outage")
		w.blackUp, w.blackDn = false, false
		begin := w.now
		for !w.m.HasSession(w.now) || !w.usable() {
			w.run(time.Millisecond)
		}
		worst = max(worst, w.now.Sub(begin))
		w.untilUp(time.Second)
		proven = max(proven, w.now.Sub(begin))
	}
	t.Logf("a session within %v, proven within %v", worst, proven)
	if worst > ms(1100) || proven > ms(1400) {
		t.Errorf("a session within %v, proven within %v", worst, proven)
	}

	for name, set := range map[string]func(*world){
		"idle":    func(w *world) { w.traffic, w.blackUp = 0, true },
		"refused": func(w *world) { w.refuses = true },
	} {
		w := upWorld(t, ms(40), ms(10))
		w.restart()
		set(w)
		w.run(3 * time.Minute)
		mid := w.at()
		w.run(time.Minute)
		n := w.number(mid, isHandshake)
		w.check(n >= 11 && n <= 13, "%s: %d handshakes a minute", name, n)
	}
}

// A fade shorter than Trust costs nothing but one harmless handshake.
func TestFade(t *testing.T) {
	w := upWorld(t, ms(40), ms(10))
	for range 20 {
		w.blackUp, w.blackDn = true, true
		w.run(2500 * time.Millisecond)
		w.blackUp, w.blackDn = false, false
		w.run(15 * time.Second)
	}
	w.check(len(w.ups) == 1 && w.number(0, isExpire) == 0, "flips %v", w.ups)
}

func (w *world) share() (up float64, flips int) {
	var sum, since time.Duration
	on := false
	for _, f := range w.ups {
		if on {
			sum += f.at - since
		}
		on, since = f.up, f.at
	}
	if on {
		sum += w.at() - since
	}
	return float64(sum) / float64(w.at()), len(w.ups)
}

func TestLossyPathStaysUp(t *testing.T) {
	for _, c := range []struct {
		loss, share float64
		flips       int
	}{{0.02, 0.999, 1}, {0.1, 0.999, 1}, {0.3, 0.999, 1}, {0.5, 0.995, 9}} {
		w := newWorld(t, ms(60))
		w.lossUp, w.lossDown = c.loss, c.loss
		w.flow(ms(20))
		w.m.Route(true, w.now)
		w.run(time.Hour)
		share, flips := w.share()
		t.Logf("loss %v each way: up %.4f of the time, %d changes, %d handshakes", c.loss, share, flips, w.number(0, isHandshake))
		if share < c.share || flips > c.flips {
			t.Errorf("loss %v each way: up %.4f of the time, %d changes", c.loss, share, flips)
		}
		if n := w.number(0, isHandshake); n > 240 {
			t.Errorf("loss %v each way: %d handshakes in an hour", c.loss, n)
		}
	}
}

// A path under traffic that begins to lose half of everything is never given up:
// too few probes are answered from one moment to the next, but data still comes.
func TestPathTurnsLossy(t *testing.T) {
	for seed := range uint64(100) {
		w := upWorld(t, ms(60), ms(20))
		w.duplex = true
		w.rnd = rand.New(rand.NewPCG(seed, 3))
		w.run(time.Second)
		w.lossUp, w.lossDown = 0.5, 0.5
		w.run(time.Minute)
		w.check(len(w.ups) == 1, "seed %d: flips %v", seed, w.ups)
	}
}

// Data that comes does not keep a path up for ever when nothing gets out.
func TestWayOutDies(t *testing.T) {
	for _, c := range []struct {
		up, down bool
		least    time.Duration
		most     time.Duration
	}{{true, false, 5 * time.Second, 7 * time.Second}, {false, true, ms(2700), ms(3300)}, {true, true, ms(2700), ms(3300)}} {
		w := upWorld(t, ms(40), ms(20))
		w.duplex = true
		w.run(time.Second)
		begin := w.at()
		w.blackUp, w.blackDn = c.up, c.down
		w.run(20 * time.Second)
		w.check(len(w.ups) == 2, "flips %v", w.ups)
		took := w.ups[1].at - begin
		w.check(took >= c.least && took <= c.most, "%+v: down after %v", c, took)
	}
}

func TestSlowPath(t *testing.T) {
	for _, rtt := range []int{600, 1500, 3000} {
		w := newWorld(t, ms(rtt))
		w.m.Route(true, w.now)
		for !w.m.Up() && w.at() < 15*time.Second {
			w.run(ms(10))
			s := w.stage()
			w.check(s == StageStarting || s == StageNoReply || s == StageUp, "RTT %d ms: stage %q", rtt, s)
		}
		t.Logf("RTT %d ms: up after %v", rtt, w.at())
		w.flow(ms(20))
		w.run(5 * time.Minute)
		w.check(len(w.ups) == 1, "RTT %d ms: flips %v", rtt, w.ups)
		if got := w.m.Snapshot(w.now).RTT; got != ms(rtt) {
			t.Errorf("RTT %v, want %d ms", got, rtt)
		}
	}
}

// A modem's buffer fills and empties: 40 ms, 4 s, 40 ms.
func TestRTTJump(t *testing.T) {
	w := upWorld(t, ms(40), ms(10))
	w.rtt = 4 * time.Second
	w.run(40 * time.Second)
	w.check(w.m.Up(), "not up at 4 s")
	w.run(time.Minute)
	share, flips := w.share()
	w.check(flips <= 3, "%d changes, up %v", flips, share)
	w.rtt = ms(40)
	w.run(10 * time.Second)
	w.check(w.m.Up() && len(w.ups) <= 3, "flips %v", w.ups)
}

// After a death one reply is not enough, but it earns the session time and fast
// probes; Expire takes it back.
func TestOneReplyAfterDeath(t *testing.T) {
	w := upWorld(t, ms(40), 0)
	w.dead = true
	w.run(5 * time.Minute)
	for n := len(w.log); len(w.log) == n; { // just after a handshake
		w.run(ms(10))
	}
	encrypt := func(d time.Duration) {
		for end := w.now.Add(d); w.now.Before(end); {
			w.m.Session(w.now)
			w.run(ms(100))
		}
	}
	w.run(ms(20))
	encrypt(ms(1800))
	begin := w.at()
	w.m.Reply(w.m.nextID-1, w.now)
	w.check(!w.m.Up() && w.m.HasSession(w.now), "up by one reply")
	encrypt(time.Second)
	w.check(w.number(begin, isProbe) >= 4, "%d probes in the second after a reply", w.number(begin, isProbe))
	encrypt(ms(3900))
	w.check(w.number(begin, isHandshake) == 0, "handshake too soon after a reply")
	w.check(w.stage() == StageNoReply, "stage %q after one reply", w.stage())
	for w.number(begin, isExpire) == 0 {
		w.run(ms(10))
	}
	w.m.Reply(w.m.nextID-1, w.now)
	w.check(!w.m.Up(), "replies before and after Expire counted together")
}

// The guess of a slow network's RTT ends with that network.
func TestGuessEndsWithRoute(t *testing.T) {
	w := newWorld(t, 3*time.Second)
	w.refuses = true
	w.m.Route(true, w.now)
	w.run(10 * time.Second)
	w.m.Route(false, w.now)
	w.dead = true
	w.run(5 * time.Second)
	w.m.Route(true, w.now)
	begin := w.at()
	w.run(4 * time.Second)
	w.check(w.number(begin, isHandshake) >= 4, "%d handshakes in 4 s", w.number(begin, isHandshake))
}
