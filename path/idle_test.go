package path

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	day    = 24 * time.Hour
	budget = 10_000_000 // bytes of own traffic per carrier and day
)

// idleWorld is a path of a configuration.
func idleWorld(t tester, cfg Config, rtt time.Duration) *world {
	w := newWorld(t, rtt)
	w.m = New(cfg, w.now)
	w.quiet = true
	return w
}

// A carrier with two idle paths costs less than 10 MB a day, with everything that
// fogplr and WireGuard send, both ways, in IP packets, whatever the network.
// Worked out by hand, by IPv4, at the interval of 10 s:
//
//	probe     48 in WireGuard + 32 + 8 + 20 = 108 bytes, and as much for the reply
//	a day     8,640 x 2 x 108                              = 1.87 MB
//	handshake 148 + 92 + 32 + 3 x 28 = 356 bytes, each 120 s = 0.26 MB
//	two paths                                              = 4.25 MB
//
// By IPv6 it is 0.16 more of it. At 5 s it was 8.0 and 9.5 MB: no room for loss.
func TestIdleDay(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   Config
		ipv6  bool
		set   func(*world)
		least float64 // MB
		most  float64
	}{
		{"IPv4", DefaultConfig(), false, func(*world) {}, 4.1, 4.4},
		{"IPv6", DefaultConfig(), true, func(*world) {}, 4.8, 5.1},
		{"5 % lost", DefaultConfig(), true, func(w *world) { w.lossUp, w.lossDown = 0.05, 0.05 }, 4.8, 6.5},
		{"20 % lost", DefaultConfig(), true, func(w *world) { w.lossUp, w.lossDown = 0.2, 0.2 }, 4.8, 9.9},
		{"2 s of RTT", DefaultConfig(), true, func(w *world) { w.rtt = 2 * time.Second }, 4.8, 5.3},
		{"small MTU", DefaultConfig(), true, func(w *world) { w.mtu = 1280 }, 4.8, 5.1},
		{"mappings of 30 s", DefaultConfig(), true, func(w *world) { w.nat = 30 * time.Second }, 4.8, 5.1},
		{"mappings of 8 s", DefaultConfig(), true, func(w *world) { w.nat = 8 * time.Second }, 9, 9.7},
		{"by volume", DefaultConfig().LowData(), true, func(*world) {}, 1.5, 2.2},
		{"by volume, mappings of 20 s", DefaultConfig().LowData(), true, func(w *world) { w.nat = 20 * time.Second }, 1.5, 4.6},
		{"gateways dead", DefaultConfig(), true, func(w *world) { w.dead = true }, 3, 9.9},
		{"nothing comes back", DefaultConfig(), true, func(w *world) { w.blackDn = true }, 3, 9.9},
		{"keys refused", DefaultConfig(), true, func(w *world) { w.refuses = true }, 3, 9.9},
		{"addresses differ", DefaultConfig(), true, func(w *world) { w.disallows = true }, 3, 9.9},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := idleWorld(t, c.cfg, ms(60))
			w.rnd = rand.New(rand.NewPCG(4, 8))
			w.ipv6 = c.ipv6
			c.set(w)
			w.m.Route(true, w.now)
			w.run(day)
			total := 2 * w.own // two gateways
			mb := float64(total) / 1e6
			t.Logf("%.2f MB a day", mb)
			if mb < c.least || mb > c.most || total > budget {
				t.Errorf("%.2f MB a day, want %v to %v", mb, c.least, c.most)
			}
		})
	}
}

// The cost of an idle path does not depend on its RTT, and is small; an active one
// costs less than 2 kB/s.
func TestCostIsConstantInRTT(t *testing.T) {
	rates := func(traffic time.Duration, cfg Config) (all []float64) {
		for _, rtt := range []int{1, 20, 100, 600, 1500} {
			w := idleWorld(t, cfg, ms(rtt))
			w.ipv6 = true
			w.m.Route(true, w.now)
			w.untilUp(time.Minute)
			if traffic > 0 {
				w.flow(traffic)
			}
			w.run(time.Minute)
			before := w.own
			w.run(10 * time.Minute)
			all = append(all, float64(w.own-before)/600)
		}
		return all
	}
	check := func(name string, got []float64, most, differ float64) {
		t.Logf("%s: %.0f bytes/s at RTTs of 1 to 1500 ms", name, got)
		for _, r := range got {
			if r > most || r < got[0]*(1-differ) || r > got[0]*(1+differ) {
				t.Errorf("%s: %.0f bytes/s", name, got)
			}
		}
	}
	check("idle", rates(0, DefaultConfig()), 40, 0.05)
	check("active", rates(ms(20), DefaultConfig()), 2000, 0.1)
	check("active, by volume", rates(ms(20), DefaultConfig().LowData()), 900, 0.05)
}

// An idle path that dies without a sign is down within three probe intervals, and
// within two unless it lost much before.
func TestIdleDeathIsNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		if rapid.Bool().Draw(t, "by volume") {
			cfg = cfg.LowData()
		}
		w := idleWorld(t, cfg, ms(rapid.IntRange(1, 1500).Draw(t, "rtt")))
		w.rnd = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		lossy := rapid.IntRange(0, 2).Draw(t, "lossy") == 0
		if lossy {
			w.lossUp, w.lossDown = 0.1, 0.1
		}
		w.m.Route(true, w.now)
		w.untilUp(time.Minute)
		w.run(time.Duration(rapid.IntRange(60_000, 400_000).Draw(t, "idle ms")) * time.Millisecond)
		if !w.m.Up() { // loss can do that
			return
		}
		interval := w.m.keepalive.Interval()
		begin, n := w.now, len(w.ups)
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			w.dead = true
		case 1:
			w.blackUp = true
		case 2:
			w.blackDn = true
		case 3:
			w.blackUp, w.blackDn = true, true
		}
		limit := 2 * interval
		if lossy {
			limit = 3 * interval
		}
		w.run(limit)
		if w.m.Up() || len(w.ups) != n+1 {
			t.Fatalf("up %v after %v of silence at an interval of %v", w.m.Up(), w.now.Sub(begin), interval)
		}
	})
}

// What is still idle is probed at once when there is traffic, or a link event,
// and a path that died is searched at once, however slow the search had become.
func TestIdleWakes(t *testing.T) {
	for _, how := range []string{"traffic", "kick"} {
		for _, dead := range []bool{false, true} {
			t.Run(fmt.Sprint(how, dead), func(t *testing.T) {
				w := idleWorld(t, DefaultConfig().LowData(), ms(40))
				w.m.Route(true, w.now)
				w.run(10 * time.Minute)
				if dead {
					w.dead = true
					w.run(time.Hour)
					w.check(w.m.slow && !w.m.Up(), "not slow")
					mid := w.at()
					w.run(30 * time.Minute)
					w.check(w.number(mid, isHandshake) <= 121, "%d handshakes", w.number(mid, isHandshake))
					for n := len(w.log); n == len(w.log); {
						w.run(ms(10))
					}
					w.run(sec)
					w.dead = false
				} else {
					w.run(sec)
				}
				begin := w.at()
				if how == "kick" {
					w.m.Kick(w.now)
				} else if !w.m.Traffic(w.now) {
					t.Error("traffic does not ask for Poll")
				}
				w.poll()
				w.check(w.number(begin, isProbe) == 1, "no probe at once")
				if dead {
					took := w.untilUp(10 * time.Second)
					w.check(took < ms(500), "up after %v", took)
				}
			})
		}
	}
}

// The machine learns how long mappings live from what the gateway sees.
func TestMachineLearnsTheMapping(t *testing.T) {
	cfg := DefaultConfig().LowData()
	for _, c := range []struct{ lifetime, want time.Duration }{
		{0, 40 * sec}, {2 * time.Minute, 40 * sec}, {28 * sec, 25 * sec}, {20 * sec, 15 * sec},
		{12 * sec, 10 * sec}, {8 * sec, 10 * sec},
	} {
		w := idleWorld(t, cfg, ms(40))
		w.nat = c.lifetime
		w.m.Route(true, w.now)
		w.run(30 * time.Minute)
		s := w.m.Snapshot(w.now)
		t.Logf("mappings of %v: probes each %v, %+v, %d moves", c.lifetime, s.Idle, s.Lifetime, s.Moves)
		if s.Idle != c.want || (s.Moves == 0) != (c.lifetime == 0 || c.lifetime > time.Minute) || s.Moves > 0 && s.Moves < 2 || !s.Up {
			t.Errorf("mappings of %v: %+v", c.lifetime, s)
		}

		// A restart goes on from there, another network begins anew.
		cfg.Learnt = s.Lifetime
		if got := New(cfg, w.now).Snapshot(w.now).Idle; got != c.want {
			t.Errorf("mappings of %v: %v after a restart", c.lifetime, got)
		}
		cfg.Learnt = Lifetime{}
		w.m.Moved(w.now)
		if got := w.m.Snapshot(w.now).Idle; got != cfg.Idle {
			t.Errorf("mappings of %v: %v in another network", c.lifetime, got)
		}
	}
}

// A path can become one that is paid by volume, and cease to be.
func TestConfigure(t *testing.T) {
	w := upWorld(t, ms(40), 0)
	w.run(5 * time.Minute)
	for _, cfg := range []Config{DefaultConfig().LowData(), DefaultConfig()} {
		w.m.Configure(cfg, w.now)
		w.run(10 * time.Minute)
		begin := w.at()
		w.run(10 * time.Minute)
		want := int(10 * time.Minute / cfg.MaxIdle)
		if n := w.number(begin, isProbe); n < want-1 || n > want+1 {
			t.Errorf("%d probes in ten minutes, want %d", n, want)
		}
	}
	w.check(len(w.ups) == 1, "flips %v", w.ups)
	cfg := DefaultConfig()
	cfg.Largest = 1028
	w.m.Configure(cfg, w.now)
	w.run(time.Minute)
	w.check(w.m.Largest() == 1028, "largest %d", w.m.Largest())
}
