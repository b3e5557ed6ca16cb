package path

import (
	"math"
	"testing"
	"time"
)

// RFC 6298, 2.2 and 2.3, by hand.
func TestRTT(t *testing.T) {
	var r rtt
	if r.timeout() != time.Second {
		t.Errorf("timeout %v before the first sample", r.timeout())
	}
	for _, c := range []struct{ sample, smooth, dev, timeout int }{
		{80, 80, 40, 240},
		{160, 90, 50, 290},
		{90, 90, 37, 240},
	} {
		r.sample(ms(c.sample))
		if r.smooth != ms(c.smooth) || r.dev.Round(ms(1)) != ms(c.dev).Round(ms(1)) && r.dev != 37500*time.Microsecond {
			t.Errorf("after %d ms: %v, %v", c.sample, r.smooth, r.dev)
		}
		if r.timeout() != ms(c.timeout) {
			t.Errorf("after %d ms: timeout %v", c.sample, r.timeout())
		}
	}
	for range 200 {
		r.sample(ms(90))
	}
	if r.timeout() != ms(100) {
		t.Errorf("timeout %v on a steady path", r.timeout())
	}
	r.sample(20 * time.Second)
	if r.timeout() != 3*time.Second {
		t.Errorf("timeout %v", r.timeout())
	}
}

func TestSilence(t *testing.T) {
	for _, c := range []struct {
		ratio  ratio
		chance float64
		probes float64
	}{{1, 1e-2, 1}, {0.5, 1.0 / 1024, 10}, {0.25, 1e-7, 56.03}, {0, 1e-2, 458.2}} {
		got := float64(c.ratio.silence(time.Second, c.chance)) / float64(time.Second)
		if math.Abs(got-c.probes) > 0.1 {
			t.Errorf("ratio %v, chance %v: %v probes, want %v", c.ratio, c.chance, got, c.probes)
		}
	}
}

// Replies out of order are no misses.
func TestRatioWithReorder(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := New(DefaultConfig(), now)
	m.Route(true, now)
	m.Poll(now)
	m.Reply(1, now)
	var last uint32
	for range 1000 {
		m.Traffic(now)
		now = now.Add(m.cfg.Active)
		a, _ := m.Poll(now)
		if !a.Probe {
			continue
		}
		if last == 0 {
			last = a.ProbeID
			continue
		}
		m.Reply(a.ProbeID, now)
		m.Reply(last, now)
		last = 0
	}
	if m.probes < 900 || m.answer < 0.97 {
		t.Errorf("answer ratio %v after %d probes", m.answer, m.probes)
	}
}
