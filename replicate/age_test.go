package replicate

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// aging feeds an AgeFilter with frames of one sender.
type aging struct {
	AgeFilter
	now    time.Time
	sender uint32 // its clock less the receiver's
	epoch  uint32
}

const ageLimit = time.Second

// frame has one arrive now that was sent that long ago.
func (a *aging) frame(ago time.Duration) bool {
	at := uint32(a.now.UnixMicro())
	return a.Old(a.epoch, at-uint32(ago.Microseconds())+a.sender, at, ageLimit, a.now)
}

// runs passes d, with a frame that took delay every 10 ms, and returns how many
// were old.
func (a *aging) runs(d, delay time.Duration) (old int) {
	for range d / (10 * time.Millisecond) {
		a.now = a.now.Add(10 * time.Millisecond)
		if a.frame(delay) {
			old++
		}
	}
	return old
}

// stop has the sender stand still for d, and then what was on its way arrive; returns
// how many of those frames were old.
func (a *aging) stop(d time.Duration, frames int) (old int) {
	a.now = a.now.Add(d)
	for range frames {
		a.now = a.now.Add(time.Microsecond)
		if a.frame(40*time.Millisecond + d) {
			old++
		}
	}
	return old
}

func TestAgeFilter(t *testing.T) {
	const delay = 40 * time.Millisecond
	for _, c := range []struct {
		name  string
		event func(*aging) (old int)
		old   int
	}{
		{"nothing", func(a *aging) int { return 0 }, 0},
		{"a stop of 5 s", func(a *aging) int { return a.stop(5*time.Second, 1) }, 1},
		{"a stop of a minute, with some on the way", func(a *aging) int { return a.stop(time.Minute, 9) }, 9},
		{"a stop of the limit", func(a *aging) int { return a.stop(ageLimit, 1) }, 0},
		{"a stop just above the limit", func(a *aging) int { return a.stop(ageLimit+time.Microsecond, 1) }, 1},
		{"two stops", func(a *aging) int {
			return a.stop(5*time.Second, 1) + a.runs(10*time.Millisecond, delay) + a.stop(5*time.Second, 1)
		}, 2},
		{"one slow frame", func(a *aging) int { return a.runs(10*time.Millisecond, delay+5*time.Second) }, 0},
		{"every other frame slow", func(a *aging) (old int) {
			for range 1000 {
				old += a.runs(10*time.Millisecond, delay) + a.runs(10*time.Millisecond, delay+ageLimit+200*time.Millisecond)
			}
			return old
		}, 0},
		{"a queue that fills and empties", func(a *aging) (old int) {
			for range 10 {
				for d := time.Duration(0); d < 3*time.Second; d += 20 * time.Millisecond {
					old += a.runs(10*time.Millisecond, delay+d)
				}
			}
			return old
		}, 0},
		{"a path that became slow", func(a *aging) int { return a.runs(time.Minute, delay+3*time.Second) }, 0},
		{"a path that became slow after a silence", func(a *aging) int {
			a.now = a.now.Add(5 * time.Second)
			return a.runs(time.Minute, delay+3*time.Second)
		}, 25},
		{"a sender's clock that stood still with it", func(a *aging) int {
			a.now = a.now.Add(5 * time.Second)
			a.sender -= 5e6
			return a.runs(time.Minute, delay)
		}, 25},
		{"a sender's clock that jumped back", func(a *aging) int { a.sender -= 5e6; return a.runs(time.Minute, delay) }, 0},
		{"a sender's clock that jumped ahead", func(a *aging) int { a.sender += 1800e6; return a.runs(time.Minute, delay) }, 0},
		{"a new run of the sender", func(a *aging) int {
			a.now = a.now.Add(5 * time.Second)
			a.epoch++
			a.sender -= 50e6
			return a.runs(time.Minute, delay)
		}, 0},
		{"an hour's silence, clocks 1,000 ppm apart", func(a *aging) int {
			a.now = a.now.Add(time.Hour)
			a.sender -= 3.6e6
			return a.runs(time.Minute, delay)
		}, 0},
		{"two hours' silence, which wraps the stamps", func(a *aging) int { a.now = a.now.Add(2 * time.Hour); return a.runs(time.Minute, delay) }, 0},
		{"an hour of a frame every 2 s with one clock 1,000 ppm slow", func(a *aging) (old int) {
			for range 1800 {
				a.now = a.now.Add(2 * time.Second)
				a.sender -= 2000
				old += a.runs(10*time.Millisecond, delay)
			}
			return old
		}, 0},
	} {
		for _, sender := range []uint32{0, 1 << 31, 0xffffff00, 12345} {
			a := &aging{now: time.Unix(1_700_000_000, 0), sender: sender, epoch: 7}
			if old := a.runs(3*time.Minute, delay); old > 0 {
				t.Errorf("%s: %d old frames in peace", c.name, old)
			}
			if old := c.event(a); old != c.old {
				t.Errorf("%s: %d old frames, want %d", c.name, old, c.old)
			}
			if old := a.runs(3*time.Minute, delay); old > 0 {
				t.Errorf("%s: %d old frames after it", c.name, old)
			}
		}
	}
}

// Frames are old only if their delay is longer than the limit and they end a silence
// as long; and no run of old ones lasts.
func TestAgeFilterProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &aging{now: time.Unix(1_700_000_000, 0), sender: rapid.Uint32().Draw(t, "clock")}
		var since time.Time
		for range rapid.IntRange(1, 300).Draw(t, "frames") {
			pause := time.Duration(rapid.SampledFrom([]int64{0, 1e6, 2e7, 3e8, 4e10, 7e11, 6e12}).Draw(t, "pause"))
			a.now = a.now.Add(pause)
			delay := time.Duration(rapid.Int64Range(0, int64(5*ageLimit)).Draw(t, "delay"))
			switch old := a.frame(delay); {
			case !old:
				since = time.Time{}
			case delay <= ageLimit:
				t.Fatalf("old after %v", delay)
			case since.IsZero() && pause <= ageLimit:
				t.Fatalf("old after a pause of %v", pause)
			case since.IsZero():
				since = a.now
			case a.now.Sub(since) >= agePatience:
				t.Fatalf("old for %v", a.now.Sub(since))
			}
		}
	})
}

func TestAgeFilterAllocatesNothing(t *testing.T) {
	a := &aging{now: time.Unix(1_700_000_000, 0)}
	if n := testing.AllocsPerRun(100, func() { a.runs(100*time.Millisecond, time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
