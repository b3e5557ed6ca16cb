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
