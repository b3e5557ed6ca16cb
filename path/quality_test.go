package path

import (
	"math"
	"testing"
	"time"
)

func TestCourse(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var c course
	if w := c.window(now); w.n != 0 || w.share != 0 {
		t.Errorf("%+v of nothing", w)
	}
	received, expected := uint32(low24-700), uint32(low24-1000) // wraps on the way
	for i := range 1000 {
		now = now.Add(ms(100))
		expected += 10
		if received += 10; i >= 500 {
			received -= 4
		}
		c.total(received&low24, expected&low24, 0, now)
	}
	if w := c.window(now); math.Abs(w.share-0.4) > 0.01 || w.n < 900 || w.n > 1000 {
		t.Errorf("%+v", w)
	}
	if w := c.window(now.Add(11 * sec)); w.n != 0 {
		t.Errorf("%+v eleven seconds later", w)
	}
	c.total(5, 5, 0, now.Add(ms(100)))
	c.total(10, 20, 0, now.Add(1200*time.Millisecond))
	if w := c.window(now.Add(1200 * time.Millisecond)); w.n != 15 || math.Abs(w.share-10.0/15) > 0.001 {
		t.Errorf("%+v after a restart", w)
	}
	c.total(10, 20, 7, now.Add(1300*time.Millisecond))
	if w := c.window(now.Add(1300 * time.Millisecond)); w.n != 8 || math.Abs(w.share-3.0/8) > 0.001 {
		t.Errorf("%+v with seven excused", w)
	}
}

// Replies that overtake each other do not make the totals go back.
func TestTotalsOutOfOrder(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := New(DefaultConfig(), now)
	m.Route(true, now)
	a, _ := m.Poll(now)
	m.Answered(Reply{ID: a.ProbeID, Received: 1, Expected: 1, Bytes: 48}, 48, now)
	var held Reply
	frames := uint32(1)
	for range 400 {
		m.Traffic(now)
		now = now.Add(m.cfg.Active)
		a, _ := m.Poll(now)
		if !a.Probe {
			continue
		}
		frames += 10
		r := Reply{ID: a.ProbeID, Received: frames * 4 / 5, Expected: frames, Bytes: 100 * frames}
		if held.ID == 0 {
			held = r
			continue
		}
		m.Answered(r, max(a.Size, 48), now)
		m.Answered(held, 48, now)
		held = Reply{}
	}
	if s := m.Snapshot(now); s.LossOut < 0.18 || s.LossOut > 0.22 {
		t.Errorf("%+v", s)
	}
}

// A verdict on one direction ends by evidence of that one alone, and without any
// after a bounded time, whatever is known of the other.
func TestOneWayVerdictEnds(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		way     ways
		out, in float64 // lost from then on, -1 when nothing is known any more
		within  time.Duration
		stands  time.Duration
	}{
		"in recovers, nothing known of out": {wayIn, -1, 0, 12 * sec, 2 * sec},
		"out recovers, nothing known of in": {wayOut, 0, -1, 12 * sec, 2 * sec},
		"both recover":                      {wayIn, 0, 0, 12 * sec, 2 * sec},
		"nothing known of the accused":      {wayIn, 0, -1, verdictFor + 12*sec, verdictFor - sec},
		"nothing known at all":              {wayOut, -1, -1, verdictFor + 12*sec, verdictFor - sec},
	} {
		t.Run(name, func(t *testing.T) {
			var q quality
			var received, expected [2]float64
			now := start
			second := func(lost ...float64) {
				now = now.Add(sec)
				for i, of := range []*course{&q.out, &q.in} {
					if lost[i] < 0 {
						continue
					}
					expected[i] += 40
					received[i] += 40 * (1 - lost[i])
					of.total(uint32(received[i]), uint32(expected[i]), 0, now)
				}
				q.judge(1, now)
			}
			for range 20 {
				if c.way == wayIn {
					second(0, 0.5)
				} else {
					second(0.5, 0)
				}
			}
			if q.way != c.way {
				t.Fatalf("the verdict is %d", q.way)
			}
			began := now
			for q.way != neither && now.Sub(began) <= 2*c.within {
				second(c.out, c.in)
			}
			if took := now.Sub(began); took > c.within || took < c.stands {
				t.Errorf("it ended after %v", took)
			}
		})
	}
}
