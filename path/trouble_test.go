package path

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// busyWorld is a path with data both ways, one frame of 1,308 bytes each 20 ms.
func busyWorld(t tester) *world {
	w := newWorld(t, ms(40))
	w.duplex, w.data, w.dataIn = true, 1308, 1308
	w.m.Route(true, w.now)
	w.untilUp(time.Minute)
	w.flow(ms(20))
	w.run(20 * time.Second)
	return w
}

func (w *world) snapshot() Snapshot { return w.m.Snapshot(w.now) }

// untilStage runs until the path has that stage and returns how long it took.
func (w *world) untilStage(s Stage, limit time.Duration) time.Duration {
	w.t.Helper()
	begin := w.now
	for w.stage() != s {
		if w.now.Sub(begin) > limit {
			w.t.Fatalf("stage %q after %v, want %q: %+v", w.stage(), limit, s, w.snapshot())
		}
		w.run(ms(50))
	}
	return w.now.Sub(begin)
}

// The largest frame is known soon after a path is up, idle or not, and the gateway
// is told.
func TestMachineFindsTheLargest(t *testing.T) {
	for _, c := range []struct {
		mtu    int
		within time.Duration
	}{{1500, ms(300)}, {1280, 6 * sec}, {1124, 7 * sec}, {576, 9 * sec}} {
		for _, ipv6 := range []bool{false, true} {
			for _, traffic := range []time.Duration{0, ms(20)} {
				w := newWorld(t, ms(40))
				w.mtu, w.ipv6 = c.mtu, ipv6
				w.m.Route(true, w.now)
				w.untilUp(time.Minute)
				if traffic > 0 {
					w.flow(traffic)
				}
				w.run(c.within)
				want := FrameFor(c.mtu, 1308, ipv6)
				s := w.snapshot()
				w.check(s.Largest == want && s.Search == SearchComplete && s.Stage == StageUp, "MTU %d, IPv6 %v: %+v", c.mtu, ipv6, s)
				w.check(w.number(0, isSize) <= searchProbes, "MTU %d, IPv6 %v: %d probes", c.mtu, ipv6, w.number(0, isSize))
				w.run(11 * sec)
				w.check(int(w.largest) == want, "the gateway knows of %d", w.largest)
			}
		}
	}
}

// The gateway, which sends in parts until it is told, is told at once.
func TestGatewayIsToldTheLargest(t *testing.T) {
	for _, traffic := range []time.Duration{0, ms(20)} {
		w := newWorld(t, ms(300))
		w.m.Route(true, w.now)
		w.untilUp(time.Minute)
		if traffic > 0 {
			w.flow(traffic)
		}
		for begin := w.now; w.m.Largest() == 0; w.run(ms(1)) {
			w.check(w.now.Sub(begin) < sec, "not found")
		}
		w.run(ms(150) + minSpacing + ms(1))
		w.check(w.largest == 1308, "the gateway knows of %d", w.largest)
	}
}

// A carrier that drops large packets, and only one way perhaps, keeps its path up
// and is named for it within seconds; when it takes them again, that is noticed.
func TestLargePacketsLost(t *testing.T) {
	for name, set := range map[string]func(w *world, mtu int){
		"both ways": func(w *world, mtu int) { w.mtu = mtu },
		"down":      func(w *world, mtu int) { w.mtuDown = mtu },
	} {
		w := busyWorld(t)
		w.check(w.m.Largest() == 1308, "largest %d", w.m.Largest())
		set(w, 328)
		begin := w.now
		for w.m.Largest() > BaseFrame {
			w.run(ms(50))
			w.check(w.now.Sub(begin) < 5*sec, "%s: not noticed", name)
		}
		t.Logf("%s: noticed after %v", name, w.now.Sub(begin))
		took := w.untilStage(StageLargeLost, 5*sec)
		t.Logf("%s: named after %v more", name, took)
		w.run(10 * sec)
		s := w.snapshot()
		w.check(s.Up && s.Largest == FrameFor(328, 1308, false) && s.Holes == 1 && s.Name() == "large packets lost", "%s: %+v", name, s)
		w.run(10 * time.Minute)
		w.check(w.stage() == StageLargeLost && len(w.ups) == 1, "%s: stage %q, flips %v", name, w.stage(), w.ups)
		mid := w.at()
		w.run(10 * time.Minute)
		w.check(w.number(mid, isSize) < 250, "%s: %d probes for sizes in ten minutes", name, w.number(mid, isSize))

		set(w, 0)
		w.m.Kick(w.now)
		w.untilStage(StageUp, 62*sec)
		w.run(5 * sec)
		w.check(w.m.Largest() == 1308, "%s: largest %d", name, w.m.Largest())
	}
}

// A filter is noticed whenever it begins, though what passed just before is told a
// moment later, and though data that is just small enough goes on to pass.
func TestFilterAtAnyMoment(t *testing.T) {
	for phase := time.Duration(0); phase < 1300*time.Millisecond; phase += ms(90) {
		w := busyWorld(t)
		w.run(phase)
		w.mtu = 316
		begin := w.now
		for w.stage() != StageLargeLost {
			if key := w.wg.current; w.known[key] {
				w.sendOut(key, 256)
				w.sendIn(key, 256)
			}
			w.run(ms(20))
			w.check(w.now.Sub(begin) < 9*sec, "begun %v later: not named: %+v", phase, w.snapshot())
		}
	}
}

// That a carrier takes less than before is noticed soon, too, where data passes that
// is just small enough, however little of it there is.
func TestLessIsNoticedInMixedTraffic(t *testing.T) {
	for _, every := range []int{1, 3, 10} {
		for _, fulls := range []time.Duration{ms(20), ms(100)} {
			w := busyWorld(t)
			w.traffic = fulls
			w.run(2 * sec)
			w.mtu = 1280
			begin := w.now
			for i := 0; w.m.Largest() == 1308; i++ {
				if key := w.wg.current; w.known[key] && i%every == 0 {
					w.sendOut(key, 1100)
					w.sendIn(key, 1100)
				}
				w.run(fulls)
				w.check(w.now.Sub(begin) < 9*sec, "one of 1100 bytes for %d of 1308: %+v", every, w.snapshot())
			}
			t.Logf("one of 1100 bytes for %d of 1308, each %v: noticed after %v", every, fulls, w.now.Sub(begin))
			w.run(10 * sec)
			w.check(w.m.Largest() == 1216, "largest %d", w.m.Largest())
		}
	}
}

// Where a carrier throttles, such a mix does not make the search take a rate for a size.
func TestThrottleOfMixedTraffic(t *testing.T) {
	holes := 0
	for seed := range uint64(4) {
		for _, rate := range []float64{100 * kbit, 400 * kbit} {
			w := busyWorld(t)
			w.rnd = rand.New(rand.NewPCG(seed, 2))
			w.policer = &pipe{rnd: w.rnd, rate: rate, burst: 6_000, at: w.now}
			for i := range 60 * 50 {
				if key := w.wg.current; w.known[key] && i%2 == 0 {
					w.sendOut(key, 1100)
				}
				w.run(ms(20))
				w.check(w.stage() != StageLargeLost, "seed %d: %+v", seed, w.snapshot())
			}
			holes += w.snapshot().Holes
		}
	}
	t.Logf("%d black holes in eight minutes", holes)
	if holes > 0 {
		t.Errorf("%d black holes", holes)
	}
}

// Loss is not taken for a limit of size, and is named by the way that it goes.
func TestLossIsNamed(t *testing.T) {
	for _, c := range []struct {
		out, in float64
		want    Stage
		lossy   bool
	}{
		{0, 0, StageUp, false},
		{0.02, 0, StageUp, false},
		{0.1, 0.1, StageUp, false},
		{0.2, 0, StageLossOut, false},
		{0, 0.2, StageLossIn, false},
		{0.6, 0, StageLossOut, true},
		{0, 0.6, StageLossIn, true},
		{0.5, 0.5, StageLossy, true},
	} {
		w := busyWorld(t)
		w.rnd = rand.New(rand.NewPCG(4, 6))
		w.run(20 * sec)
		w.check(w.stage() == StageUp, "stage %q", w.stage())
		w.lossUp, w.lossDown = c.out, c.in
		w.run(15 * sec)
		wrong, all := 0, 0
		for range 150 {
			w.run(sec)
			s := w.snapshot()
			if !s.Up { // half of everything can do that
				continue
			}
			all++
			if s.Stage != c.want || s.Lossy != c.lossy {
				wrong++
			}
			if s.Stage == StageLargeLost || s.Stage == StageThrottled || s.Largest != 1308 && max(c.out, c.in) < 0.5 {
				w.check(false, "out %v, in %v: %+v", c.out, c.in, s)
			}
		}
		if wrong > all/50 {
			t.Errorf("out %v, in %v: wrong for %d of %d s, now %+v", c.out, c.in, wrong, all, w.snapshot())
		}
		name := w.snapshot().Name()
		for stage, part := range map[Stage]string{StageLossOut: "on the way out", StageLossIn: "on the way in", StageLossy: "lossy, loses"} {
			if c.want == stage && w.stage() == stage && (!strings.Contains(name, part) || !strings.Contains(name, " %")) {
				t.Errorf("named %q", name)
			}
		}
		w.lossUp, w.lossDown = 0, 0
		w.untilStage(StageUp, 20*sec)
	}
}

// On an idle path there are only probes to go by.
func TestIdleLossIsNamed(t *testing.T) {
	w := upWorld(t, ms(40), 0)
	w.lossUp, w.lossDown = 0.5, 0.5
	named := 0
	for range 120 {
		w.run(time.Minute)
		if s := w.snapshot(); s.Lossy && s.Stage == StageLossy && s.Name() == "lossy" {
			named++
		}
	}
	w.check(named > 90, "lossy for %d of 120 minutes", named)
	w.lossUp, w.lossDown = 0, 0
	w.run(20 * time.Minute)
	w.check(w.stage() == StageUp, "stage %q", w.stage())
}

// A carrier that throttles is named with its rate, by what the gateway counts. It
// drops large frames rather than small ones, and is not blamed for that.
func TestThrottleIsNamed(t *testing.T) {
	for _, in := range []int{1308, 100} {
		w := busyWorld(t)
		w.dataIn = in
		w.policer = &pipe{rnd: w.rnd, rate: 200 * kbit, burst: 15_000, at: w.now}
		named := 0
		for i := range 30 {
			w.traffic = ms(10) // 1.1 Mbit/s
			for range 50 {
				w.run(ms(100))
				s := w.snapshot()
				w.check(s.Up && s.Largest == 1308 && s.Stage != StageLargeLost, "%+v", s)
			}
			w.traffic = ms(400)
			w.run(5 * sec)
			if w.stage() == StageThrottled {
				named++
			} else if named > 0 || i > 6 {
				w.check(false, "not named: %+v", w.snapshot())
			}
		}
		s := w.snapshot()
		t.Logf("%s, %.0f bytes/s, %d probes for sizes", s.Name(), s.Throttle, w.number(0, isSize))
		w.check(s.Throttle > 170*kbit && s.Throttle < 230*kbit, "%.0f bytes/s", s.Throttle)
		w.check(strings.HasPrefix(s.Name(), "throttled to about ") && strings.HasSuffix(s.Name(), "0 kbit/s"), "named %q", s.Name())
		w.check(s.Holes == 0, "%d black holes", s.Holes)
		w.m.Moved(w.now)
		w.check(w.stage() == StageUp, "stage %q in another network", w.stage())
	}
}

// Nor is it when it throttles from the beginning, five times as hard as it is used,
// with hardly any room for a burst: then large frames pass almost never. Once they
// could, that is found out.
func TestThrottledFromTheStart(t *testing.T) {
	for seed := range 4 {
		w := newWorld(t, ms(40))
		w.rnd = rand.New(rand.NewPCG(1, 2))
		w.duplex, w.data = true, 1308
		w.policer = &pipe{rnd: w.rnd, rate: 200 * kbit, burst: 3_000, at: w.now}
		w.m.Route(true, w.now)
		w.flow(ms(8 + seed))
		for range 120 {
			w.run(sec)
			w.check(w.stage() != StageLargeLost && w.snapshot().Holes == 0, "seed %d: %+v", seed, w.snapshot())
		}
		before := w.m.Largest()
		w.traffic = ms(120)
		begin := w.now
		for w.m.Largest() != 1308 {
			w.run(ms(100))
			w.check(w.stage() != StageLargeLost && w.now.Sub(begin) < 2*time.Minute, "seed %d: %+v", seed, w.snapshot())
		}
		t.Logf("%d, then the largest after %v", before, w.now.Sub(begin))
	}
}

// Frames that pass by themselves need no probes.
func TestLargeDataIsProof(t *testing.T) {
	w := busyWorld(t)
	begin := w.at()
	w.run(10 * time.Minute)
	w.check(w.number(begin, isSize) == 0, "%d probes for sizes", w.number(begin, isSize))
	w.dataIn = 1000
	begin = w.at()
	w.run(10 * time.Minute)
	n := w.number(begin, isSize)
	w.check(n > 110 && n < 125, "%d probes for sizes", n)
}

// When what is sent does not get out, but frames come in until the end, that is
// what is said for a while.
func TestNoWayOut(t *testing.T) {
	w := busyWorld(t)
	w.blackUp = true
	for w.m.Up() {
		w.run(ms(50))
	}
	w.check(w.stage() == StageNoWayOut, "stage %q", w.stage())
	w.run(time.Minute)
	w.check(w.stage() == StageNoReply, "stage %q", w.stage())

	w = busyWorld(t)
	w.blackUp, w.blackDn = true, true
	for w.m.Up() {
		w.run(ms(50))
	}
	w.check(w.stage() == StageNoReply, "stage %q", w.stage())
}

// A gateway of an earlier version is served as before.
func TestPlainGateway(t *testing.T) {
	w := newWorld(t, ms(40))
	w.plain = true
	w.m.Route(true, w.now)
	w.untilUp(time.Minute)
	w.flow(ms(20))
	w.run(10 * time.Minute)
	s := w.snapshot()
	w.check(s.Up && s.Stage == StageUp && s.Search == SearchOff && s.Largest == 0 && s.LossOut == -1 && s.Throttle == 0, "%+v", s)
	w.check(w.number(0, isSize) == 1, "%d probes for sizes", w.number(0, isSize))
}

// A death and a return cost the largest frame a probe or two, another network a search.
func TestLargestOverDeaths(t *testing.T) {
	w := busyWorld(t)
	w.mtu = 1280
	w.run(20 * sec)
	w.check(w.m.Largest() == 1216, "largest %d", w.m.Largest())
	w.blackUp, w.blackDn = true, true
	w.run(20 * sec)
	w.check(!w.m.Up() && w.m.Largest() == 1216, "largest %d", w.m.Largest())
	w.blackUp, w.blackDn = false, false
	begin := w.at()
	w.untilUp(10 * sec)
	w.run(2 * sec)
	w.check(w.m.Largest() == 1216 && w.number(begin, isSize) <= 2, "%d probes", w.number(begin, isSize))
	w.mtu = 0
	w.m.Route(false, w.now)
	w.check(w.m.Largest() == 0, "largest %d without a route", w.m.Largest())
	w.m.Route(true, w.now)
	w.untilUp(10 * sec)
	w.run(sec)
	w.check(w.m.Largest() == 1308, "largest %d in another network", w.m.Largest())
}

// A frame that the kernel refuses as too big brings the next look at it forward.
func TestDoubt(t *testing.T) {
	w := busyWorld(t)
	w.run(sec)
	w.mtu = 1280
	w.m.Doubt()
	begin := w.now
	for w.m.Largest() == 1308 {
		w.run(ms(10))
	}
	w.check(w.now.Sub(begin) < 2700*time.Millisecond, "noticed after %v", w.now.Sub(begin))
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		s    Snapshot
		want string
	}{
		{Snapshot{Stage: StageUp}, ""},
		{Snapshot{Stage: StageThrottled, Throttle: 24_870}, "throttled to about 200 kbit/s"},
		{Snapshot{Stage: StageThrottled, Throttle: 1_543_000}, "throttled to about 12000 kbit/s"},
		{Snapshot{Stage: StageThrottled, Throttle: 1000}, "throttled to about 8 kbit/s"},
		{Snapshot{Stage: StageLossOut, LossOut: 0.204, LossIn: 0}, "loses 20 % on the way out"},
		{Snapshot{Stage: StageLossIn, LossOut: -1, LossIn: 0.4}, "loses 40 % on the way in"},
		{Snapshot{Stage: StageLossy, LossOut: -1, LossIn: -1}, "lossy"},
		{Snapshot{Stage: StageLossy, LossOut: 0.5, LossIn: 0.6}, "lossy, loses 60 %"},
		{Snapshot{Stage: StageLossOut, LossOut: -1}, "loss on the way out"},
		{Snapshot{Stage: StageLossIn, LossOut: -1, LossIn: 0}, "loss on the way in"},
		{Snapshot{Stage: StageNoReply}, "no reply"},
	} {
		if got := c.s.Name(); got != c.want {
			t.Errorf("%+v is named %q, want %q", c.s, got, c.want)
		}
	}
}
