package path

import (
	"testing"
	"time"
)

func TestHearing(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var never Hearing
	if never.Live(start) || never.Recent(start) || !never.Last().IsZero() {
		t.Error("heard what was never said")
	}
	for _, c := range []struct {
		announced, live time.Duration
	}{
		{0, 3 * time.Second},
		{200 * time.Millisecond, 3 * time.Second},
		{time.Second, 3 * time.Second},
		{5 * time.Second, 15 * time.Second},
		{40 * time.Second, 120 * time.Second},
		{65 * time.Second, 120 * time.Second},
	} {
		var h Hearing
		h.Announced(c.announced, start.Add(-time.Second))
		h.Heard(start)
		if !h.Last().Equal(start) {
			t.Errorf("last %v", h.Last())
		}
		for _, p := range []struct {
			after        time.Duration
			live, recent bool
		}{
			{0, true, true},
			{c.live, true, true},
			{c.live + 1, false, true},
			{150 * time.Second, false, true},
			{150*time.Second + 1, false, false},
		} {
			at := start.Add(p.after)
			if h.Live(at) != p.live || h.Recent(at) != p.recent {
				t.Errorf("announced %v, %v later: live %v, recent %v", c.announced, p.after, h.Live(at), h.Recent(at))
			}
		}
	}
}

// A carrier that took its leave is not sent to, until it is heard again.
func TestFarewell(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var h Hearing
	h.Announced(5*time.Second, now)
	h.Announced(0, now.Add(time.Second))
	if now = now.Add(time.Second); h.Live(now) || h.Recent(now) || !h.Left() || !h.Last().Equal(now) {
		t.Errorf("after its farewell: live %v, recent %v, last %v", h.Live(now), h.Recent(now), h.Last())
	}
	if h.Heard(now); h.Left() || !h.Live(now) || !h.Recent(now) {
		t.Error("it came back and is not heard")
	}
}
