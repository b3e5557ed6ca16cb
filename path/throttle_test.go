package path

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// pipe is a carrier in one direction, frame by frame.
type pipe struct {
	rnd     *rand.Rand
	rate    float64 // bytes/s that a policer lets through, 0 for all
	burst   float64 // its bucket
	loss    float64 // of whatever
	bad     float64 // loss in bad times, which come by chance
	toBad   float64 // chance of each frame
	toGood  float64
	tokens  float64
	inBad   bool
	blocked time.Time // nothing passes until then
	at      time.Time
}

func (p *pipe) passes(size int, now time.Time) bool {
	if p.rate > 0 {
		p.tokens = min(p.burst, p.tokens+p.rate*now.Sub(p.at).Seconds())
	}
	p.at = now
	if p.inBad && p.rnd.Float64() < p.toGood {
		p.inBad = false
	} else if !p.inBad && p.rnd.Float64() < p.toBad {
		p.inBad = true
	}
	loss := p.loss
	if p.inBad {
		loss = p.bad
	}
	if now.Before(p.blocked) || p.rnd.Float64() < loss {
		return false
	}
	if p.rate > 0 {
		if p.tokens < float64(size) {
			return false
		}
		p.tokens -= float64(size)
	}
	return true
}

// sender says how many bytes/s are sent at a time, in frames of a size.
type sender func(at time.Duration, rnd *rand.Rand) (bytesPerSecond float64, size int)

// onOff sends at one rate by turns.
func onOff(on, off time.Duration, rate float64) sender {
	return func(at time.Duration, _ *rand.Rand) (float64, int) {
		if at%(on+off) < on {
			return rate, 1200
		}
		return 2000, 100
	}
}

// wandering sends at a rate that changes every few seconds.
func wandering(least, most float64) sender {
	var until time.Duration
	rate := least
	return func(at time.Duration, rnd *rand.Rand) (float64, int) {
		if at >= until {
			until = at + time.Duration(1+rnd.IntN(6))*time.Second
			rate = least * math.Pow(most/least, rnd.Float64())
		}
		return rate, 200 + rnd.IntN(1000)
	}
}

func steady(rate float64) sender {
	return func(time.Duration, *rand.Rand) (float64, int) { return rate, 1200 }
}

// through sends for d and tells f of the estimate every second.
func through(p *pipe, s sender, d time.Duration, f func(at time.Duration, t *Throttle)) {
	t := &Throttle{}
	var m meter
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var r Reply
	reply := time.Duration(0)
	for at := time.Duration(0); at < d; {
		rate, size := s(at, p.rnd)
		now := start.Add(at)
		r.Expected++
		if p.passes(size+60, now) {
			r.Received++
			r.Bytes += uint32(size)
		}
		if at >= reply {
			reply = at + 200*time.Millisecond
			if l, ok := m.load(r, 0, 0, now); ok {
				t.Add(l, now)
				f(at, t)
			}
		}
		at += time.Duration(float64(size+60) / rate * float64(time.Second) * (0.5 + p.rnd.Float64()))
	}
}

const kbit = 1000.0 / 8

func TestThrottleIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		p      pipe
		s      func() sender
		within time.Duration
	}{
		"by turns":       {pipe{rate: 200 * kbit, burst: 10_000}, func() sender { return onOff(5*sec, 5*sec, 1000*kbit) }, 40 * sec},
		"large bucket":   {pipe{rate: 200 * kbit, burst: 50_000}, func() sender { return onOff(8*sec, 12*sec, 1000*kbit) }, 2 * time.Minute},
		"wandering":      {pipe{rate: 200 * kbit, burst: 10_000}, func() sender { return wandering(30*kbit, 2000*kbit) }, 3 * time.Minute},
		"with some loss": {pipe{rate: 500 * kbit, burst: 20_000, loss: 0.02}, func() sender { return wandering(50*kbit, 3000*kbit) }, 3 * time.Minute},
		"fast":           {pipe{rate: 5000 * kbit, burst: 100_000}, func() sender { return onOff(5*sec, 5*sec, 20_000*kbit) }, 40 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				p := c.p
				p.rnd = rand.New(rand.NewPCG(seed, 5))
				var found time.Duration
				through(&p, c.s(), 5*time.Minute, func(at time.Duration, th *Throttle) {
					rate := th.Rate()
					if rate == 0 {
						if found > 0 && at > found {
							t.Errorf("seed %d: forgotten after %v", seed, at)
							found = time.Hour
						}
						return
					}
					if found == 0 {
						found = at
					}
					if rate < 0.8*p.rate || rate > 1.2*p.rate {
						t.Errorf("seed %d: %.0f kbit/s after %v", seed, rate/kbit, at)
					}
				})
				if found == 0 || found > c.within {
					t.Errorf("seed %d: found after %v", seed, found)
				}
				t.Logf("seed %d: found after %v", seed, found)
			}
		})
	}
}

// Loss that has nothing to do with load is never called a limit.
func TestLossIsNoThrottle(t *testing.T) {
	loads := map[string]func() sender{
		"steady":      func() sender { return steady(500 * kbit) },
		"by turns":    func() sender { return onOff(5*sec, 5*sec, 1000*kbit) },
		"long turns":  func() sender { return onOff(20*sec, 20*sec, 1000*kbit) },
		"wandering":   func() sender { return wandering(30*kbit, 1000*kbit) },
		"in a little": func() sender { return wandering(400*kbit, 700*kbit) },
	}
	for name, p := range map[string]pipe{
		"nothing lost": {},
		"1 %":          {loss: 0.01},
		"5 %":          {loss: 0.05},
		"10 %":         {loss: 0.1},
		"30 %":         {loss: 0.3},
		"60 %":         {loss: 0.6},
		"bursts":       {bad: 0.9, toBad: 0.002, toGood: 0.05},
		"long bursts":  {bad: 0.5, toBad: 0.001, toGood: 0.002},
		"bad places":   {bad: 0.3, toBad: 0.0001, toGood: 0.0003, loss: 0.01},
		"not reached":  {rate: 3000 * kbit, burst: 50_000, loss: 0.05},
	} {
		for load, make := range loads {
			for seed := range uint64(3) {
				p := p
				p.rnd = rand.New(rand.NewPCG(seed, 9))
				alarmed := false
				through(&p, make(), 20*time.Minute, func(at time.Duration, th *Throttle) {
					if th.Rate() > 0 && !alarmed {
						alarmed = true
						t.Errorf("%s, %s, seed %d: %.0f kbit/s after %v", name, load, seed, th.Rate()/kbit, at)
					}
				})
			}
		}
	}
}

// Fades in which nothing passes, whatever the load.
func TestFadesAreNoThrottle(t *testing.T) {
	for seed := range uint64(10) {
		p := pipe{rnd: rand.New(rand.NewPCG(seed, 9)), loss: 0.01}
		w := wandering(30*kbit, 1000*kbit)
		next := time.Duration(0)
		s := func(at time.Duration, rnd *rand.Rand) (float64, int) {
			if at >= next {
				next = at + time.Duration(rnd.IntN(20_000))*time.Millisecond
				p.blocked = p.at.Add(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			}
			return w(at, rnd)
		}
		through(&p, s, 30*time.Minute, func(at time.Duration, th *Throttle) {
			if th.Rate() > 0 {
				t.Fatalf("seed %d: %.0f kbit/s after %v", seed, th.Rate()/kbit, at)
			}
		})
	}
}

// The estimate follows the limit, and goes with it.
func TestThrottleFollows(t *testing.T) {
	p := pipe{rnd: rand.New(rand.NewPCG(1, 9)), rate: 200 * kbit, burst: 10_000}
	w := wandering(30*kbit, 2000*kbit)
	s := func(at time.Duration, rnd *rand.Rand) (float64, int) {
		switch {
		case at > 8*time.Minute:
			p.rate = 0
		case at > 4*time.Minute:
			p.rate = 600 * kbit
		}
		return w(at, rnd)
	}
	var at4, at8, gone time.Duration
	through(&p, s, 12*time.Minute, func(at time.Duration, th *Throttle) {
		rate := th.Rate() / kbit
		switch {
		case rate > 170 && rate < 230 && at < 4*time.Minute:
			at4 = at
		case rate > 510 && rate < 690 && at > 4*time.Minute && at8 == 0:
			at8 = at
		case rate == 0 && at > 8*time.Minute && gone == 0:
			gone = at
		}
	})
	t.Logf("200 kbit/s until %v, 600 kbit/s from %v, none from %v", at4, at8, gone)
	if at4 == 0 || at8 == 0 || at8 > 7*time.Minute || gone == 0 || gone > 9*time.Minute {
		t.Errorf("200 kbit/s until %v, 600 kbit/s from %v, none from %v", at4, at8, gone)
	}
}

// A limit that nothing speaks for any more is forgotten.
func TestThrottleEnds(t *testing.T) {
	p := pipe{rnd: rand.New(rand.NewPCG(1, 9)), rate: 200 * kbit, burst: 10_000}
	on := onOff(5*sec, 5*sec, 1000*kbit)
	s := func(at time.Duration, rnd *rand.Rand) (float64, int) {
		if at > time.Minute {
			return 2000, 100
		}
		return on(at, rnd)
	}
	var last time.Duration
	through(&p, s, 15*time.Minute, func(at time.Duration, th *Throttle) {
		if th.Rate() > 0 {
			last = at
		}
	})
	if last < 10*time.Minute || last > 11*time.Minute+5*sec {
		t.Errorf("a limit until %v", last)
	}
}

// Totals wrap, and begin anew with a gateway.
func TestMeter(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var m meter
	excused, full := uint32(0), uint32(math.MaxUint32)
	step := func(received, expected, bytes uint32) (Load, bool) {
		now = now.Add(sec)
		return m.load(Reply{Received: received, Expected: expected, Bytes: bytes}, excused, full, now)
	}
	if _, ok := step(0, 0, 0); ok || m.known {
		t.Error("a load from a gateway that does not tell")
	}
	if _, ok := step(low24-9, low24-4, math.MaxUint32-999); ok {
		t.Error("a load from nothing")
	}
	full += 7
	if l, ok := step(90, 195, 9000); !ok || l != (Load{sec, 200, 100, 10_000 + 6000, 7}) {
		t.Errorf("%+v, %v", l, ok)
	}
	if _, ok := m.load(Reply{Received: 91, Expected: 196, Bytes: 9100}, 0, 0, now.Add(loadInterval-1)); ok {
		t.Error("a load too soon")
	}
	if _, ok := step(3, 3, 300); ok {
		t.Error("a load over a restart")
	}
	if l, ok := step(13, 13, 1300); !ok || l != (Load{sec, 10, 10, 1600, 0}) {
		t.Errorf("%+v, %v", l, ok)
	}
	excused = 3
	if l, ok := step(20, 25, 2000); !ok || l != (Load{sec, 9, 7, 1120, 0}) {
		t.Errorf("%+v, %v", l, ok)
	}
	excused = 9
	if l, ok := step(22, 30, 2200); !ok || l != (Load{sec, 2, 2, 320, 0}) {
		t.Errorf("%+v, %v", l, ok)
	}
}

func TestThrottleDoesNotAllocate(t *testing.T) {
	var th Throttle
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		i++
		now = now.Add(sec)
		sent := 30 + 170*(i/5%2)
		th.Add(Load{sec, sent, min(sent, 50), min(sent, 50) * 500, 0}, now)
	}); n != 0 || th.Rate() == 0 {
		t.Errorf("%v allocations, %v bytes/s", n, th.Rate())
	}
}
