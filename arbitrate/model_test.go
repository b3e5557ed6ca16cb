package arbitrate

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fogplr/fogplr/rtps"
)

// verdict returns how many requests have no reply, and how many have several.
func (w *world) verdict() (none, several int) {
	for _, p := range w.procs {
		for _, c := range p.clients {
			for n := int64(1); n <= c.number; n++ {
				switch c.got[n] {
				case 0:
					none++
				case 1:
				default:
					several++
				}
			}
		}
	}
	return none, several
}

func drawSetup(t *rapid.T) setup {
	s := setup{
		seed:      rapid.Uint64().Draw(t, "seed"),
		vendor:    rapid.SampledFrom([]rtps.Vendor{rtps.VendorCyclone, rtps.VendorFast}).Draw(t, "vendor"),
		servers:   rapid.IntRange(1, 3).Draw(t, "servers"),
		paths:     rapid.IntRange(1, 2).Draw(t, "paths"),
		procs:     rapid.IntRange(1, 2).Draw(t, "processes"),
		clients:   rapid.IntRange(1, 2).Draw(t, "clients"),
		requests:  rapid.IntRange(1, 30).Draw(t, "requests"),
		interval:  rapid.SampledFrom([]time.Duration{2 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond}).Draw(t, "interval"),
		loss:      rapid.SampledFrom([]float64{0, 0.02, 0.1, 0.2}).Draw(t, "loss"),
		delay:     20 * time.Millisecond,
		jitter:    rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond, 40 * time.Millisecond}).Draw(t, "jitter"),
		work:      rapid.SampledFrom([]time.Duration{0, 20 * time.Millisecond}).Draw(t, "work"),
		nackDelay: rapid.SampledFrom([]time.Duration{time.Millisecond, 60 * time.Millisecond}).Draw(t, "nack delay"),
		size:      200, fragment: 1100, packet: 1280,
	}
	switch rapid.IntRange(0, 3).Draw(t, "large") {
	case 1: // DATA_FRAG
		s.size = rapid.IntRange(1000, 8000).Draw(t, "size")
	case 2: // IP fragments
		s.size, s.fragment = rapid.IntRange(1000, 8000).Draw(t, "size"), 60000
	case 3: // both
		s.size, s.fragment = rapid.IntRange(1000, 20000).Draw(t, "size"), 4000
	}
	return s
}

// Whatever happens, each request has a reply, as long as one server lives.
func TestModelNoneIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		s.early = rapid.Bool().Draw(t, "early")
		s.rude = rapid.Bool().Draw(t, "rude")
		s.kill = rapid.Bool().Draw(t, "kill")
		s.restart = rapid.Bool().Draw(t, "restart")
		s.late = rapid.Bool().Draw(t, "late")
		w := newWorld(s, true)
		w.run()
		if none, _ := w.verdict(); none > 0 || w.wrong != "" {
			t.Fatalf("%d requests without a reply; %s; %+v", none, w.wrong, w.arbiter.Counters())
		}
	})
}

// Where all is known, each request has exactly one.
func TestModelExactlyOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		s.kill = rapid.Bool().Draw(t, "kill")
		w := newWorld(s, true)
		w.run()
		none, several := w.verdict()
		c := w.arbiter.Counters()
		excused := c.Expired+c.Overflow+c.Full > 0
		if none > 0 || several > 0 && !excused || w.wrong != "" {
			t.Fatalf("%d requests without a reply, %d with several; %s; %+v", none, several, w.wrong, c)
		}
	})
}

// Packets that are lost behind fogplr, in the host, cost no reply.
func TestModelLossInTheHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		s.hostLoss = 0.05
		w := newWorld(s, true)
		w.run()
		if none, _ := w.verdict(); none > 0 || w.wrong != "" {
			t.Fatalf("%d requests without a reply; %s; %+v", none, w.wrong, w.arbiter.Counters())
		}
	})
}

// Without arbitration the model's clients do get several replies.
func TestModelWithout(t *testing.T) {
	w := newWorld(usual(1, rtps.VendorCyclone, 2), false)
	w.run()
	if none, several := w.verdict(); none > 0 || several < 2*w.requests*9/10 {
		t.Errorf("%d without a reply, %d with several, of %d", none, several, 2*w.requests)
	}
}

func usual(seed uint64, vendor rtps.Vendor, servers int) setup {
	return setup{
		seed: seed, vendor: vendor, servers: servers, paths: 1, procs: 1, clients: 2, requests: 400,
		interval: 10 * time.Millisecond, loss: 0.02, delay: 20 * time.Millisecond, jitter: 8 * time.Millisecond,
		work: 5 * time.Millisecond, nackDelay: 60 * time.Millisecond, size: 200, fragment: 1100, packet: 1280,
	}
}

// At 100 Hz over links that lose 2 % and reorder, arbitration hardly costs
// retransmissions.
func TestModelRetransmissions(t *testing.T) {
	for _, vendor := range []rtps.Vendor{rtps.VendorCyclone, rtps.VendorFast} {
		for _, servers := range []int{2, 3} {
			for size, worlds := range map[int]uint64{200: 12, 6000: 1} {
				t.Run(fmt.Sprint(vendor, servers, size), func(t *testing.T) {
					with, without := 0, 0
					for seed := range worlds {
						s := usual(seed, vendor, servers)
						s.size = size
						a, b := newWorld(s, true), newWorld(s, false)
						a.run()
						b.run()
						none, several := a.verdict()
						if none > 0 || several > 0 || a.wrong+b.wrong != "" {
							t.Errorf("%d without a reply, %d with several; %s%s; %+v", none, several, a.wrong, b.wrong, a.arbiter.Counters())
						}
						with, without = with+a.resent, without+b.resent
					}
					t.Logf("%d with, %d without", with, without)
					if with > without*105/100 {
						t.Errorf("%d retransmissions, and %d without arbitration", with, without)
					}
				})
			}
		}
	}
}
