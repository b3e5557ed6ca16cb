package tunnel

import (
	"testing"
	"time"
)

func TestOwnRate(t *testing.T) {
	start := time.Now()
	var r ownRate
	total := uint64(66_000) // of the start
	for now := start; now.Sub(start) < 40*time.Hour; now = now.Add(10 * time.Second) {
		up := now.Sub(start)
		r.note(total, start, now)
		got := r.perDay(total, now)
		switch {
		case up < ownSettles+ownRateAfter && got != 0:
			t.Fatalf("%v after the start it says %d", up, got)
		case up >= ownSettles+ownRateAfter && up <= 10*time.Hour && got != 864_000: // 100 bytes in 10 s
			t.Fatalf("%v after the start it says %d", up, got)
		case up >= 35*time.Hour && (got < 8_600_000 || got > 8_700_000): // ten times as much since hour 10
			t.Fatalf("%v after the start it says %d", up, got)
		}
		if total += 100; up >= 10*time.Hour {
			total += 900
		}
	}
	// A machine that slept for days.
	now := start.Add(100 * time.Hour)
	if got := r.perDay(total, now); got == 0 || got > 1_000_000 {
		t.Errorf("%d after a sleep", got)
	}
}
