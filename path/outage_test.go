package path

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// What got lost in an outage is no loss of the path that is up after it.
func TestOutageIsNoLoss(t *testing.T) {
	black := func(out, in bool) func(*world) { return func(w *world) { w.blackUp, w.blackDn = out, in } }
	for name, c := range map[string]struct {
		begin  func(*world)
		lasts  time.Duration
		end    func(*world)
		always bool // whether the path stays up
	}{
		"both ways":     {begin: black(true, true), lasts: 8 * sec},
		"out":           {begin: black(true, false), lasts: 8 * sec},
		"in":            {begin: black(false, true), lasts: 15 * sec},
		"long":          {begin: black(true, true), lasts: time.Hour},
		"half, then in": {begin: func(w *world) { w.lossUp, w.lossDown = 0.5, 0.5; w.run(4 * sec); w.blackDn = true }, lasts: 8 * sec},
		"route": {
			begin: func(w *world) { w.blackUp, w.blackDn = true, true; w.run(ms(500)); w.m.Route(false, w.now) },
			lasts: 5 * sec,
			end:   func(w *world) { w.m.Route(true, w.now) },
		},
		"gateway stopped": {begin: func(w *world) { w.dead = true }, lasts: 6 * sec, end: (*world).anew},
		"gateway anew":    {begin: (*world).anew, lasts: ms(1)},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				w := busyWorld(t)
				w.rnd = rand.New(rand.NewPCG(seed, 7))
				c.begin(w)
				w.run(c.lasts)
				w.blackUp, w.blackDn, w.dead, w.lossUp, w.lossDown = false, false, false, 0, 0
				if c.end != nil {
					c.end(w)
				}
				w.untilUp(time.Minute)
				for range 12 * 20 {
					w.run(ms(50))
					s := w.snapshot()
					w.check(!s.Up || s.Stage == StageUp && !s.Lossy && s.LossOut < 0.05 && s.LossIn < 0.05, "seed %d: %+v", seed, s)
				}
				w.check(w.m.Up() && w.snapshot().LossOut == 0 && w.snapshot().LossIn == 0, "seed %d: %+v", seed, w.snapshot())
				// A frame may still get lost as the keys change; of an outage, nearly all did.
				w.check(slices.Max(w.told) < 0.5 && w.told[len(w.told)-1] == 0, "seed %d: probes told of %v", seed, w.told)
			}
		})
	}
}

// What gets lost after an outage is named as soon as on any other path.
func TestLossAfterAnOutage(t *testing.T) {
	for _, c := range []struct {
		out, in float64
		want    Stage
	}{{0.6, 0, StageLossOut}, {0, 0.6, StageLossIn}} {
		w := busyWorld(t)
		w.blackUp, w.blackDn = true, true
		w.run(8 * sec)
		w.blackUp, w.blackDn = false, false
		w.untilUp(time.Minute)
		w.lossUp, w.lossDown = c.out, c.in
		if took := w.untilStage(c.want, 20*sec); took > 5*sec {
			t.Errorf("%q only after %v", c.want, took)
		}
	}
}

// A verdict that stood before an outage stands after it, until there is evidence.
func TestVerdictOutlivesAnOutage(t *testing.T) {
	w := busyWorld(t)
	w.lossUp = 0.5
	w.untilStage(StageLossOut, 20*sec)
	w.run(20 * sec)
	w.blackDn = true
	w.run(15 * sec)
	w.blackDn = false
	w.untilUp(time.Minute)
	w.check(w.stage() == StageLossOut, "%+v", w.snapshot())
	w.lossUp = 0
	w.untilStage(StageUp, 2*sec)
}

// What the gateway sent while this node stood still was lost here alone.
func TestStandstillIsNoLoss(t *testing.T) {
	w := busyWorld(t)
	w.seqDown += 500
	w.m.Slept(10*sec, w.now)
	w.run(ms(50))
	w.check(w.m.Up(), "down")
	for range 12 * 20 {
		w.run(ms(50))
		s := w.snapshot()
		w.check(s.Up && s.Stage == StageUp && s.LossIn <= 0, "%+v", s)
	}
}

func TestLossIn(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := New(DefaultConfig(), now)
	told := func(want float64) {
		t.Helper()
		if got := m.LossIn(now); got != want {
			t.Errorf("%v of the frames lost, want %v", got, want)
		}
	}
	told(-1)
	m.Arrived(1, 1, now)
	told(-1)
	m.Arrived(2, 3, now)
	told(0.5) // few frames will do
	now = now.Add(11 * sec)
	m.Arrived(2, 3, now)
	told(-1)
	m.Arrived(2, 9, now)
	told(1)
	m.Restarted()
	told(-1)
	m.Arrived(3, 99, now)
	m.Arrived(4, 100, now)
	told(0)
}

func TestLossRenew(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var l Loss
	share := func(want float64) {
		t.Helper()
		if got := l.Share(); got != want {
			t.Errorf("share %v, want %v", got, want)
		}
	}
	l.Roll(now)
	l.Seen(1, 0)
	l.Seen(1, 3)
	share(0.5)
	l.Roll(now.Add(2 * sec))
	l.Renew()
	share(0.5) // nothing came
	l.Seen(1, 1003)
	share(0)
	l.Seen(1, 1007)
	l.Roll(now.Add(4 * sec))
	share(0.6)
	if received, expected := l.Totals(); received != 4 || expected != 1008 {
		t.Errorf("received %d of %d", received, expected)
	}
	l.Seen(2, 5) // a new run
	share(0)
	l.Seen(2, 9)
	l.Renew()
	l.Seen(1, 1008) // late, of the old one
	share(0.6)
	l.Seen(2, 10)
	share(0)
}
