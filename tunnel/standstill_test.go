package tunnel

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// clocks are what a standstill goes by, moved by hand.
type clocks struct {
	mono, wall, asleep time.Duration
	*standstill
}

func newClocks(deadline time.Duration) *clocks {
	c := new(clocks)
	start := time.Unix(1000, 0)
	c.standstill = newStandstill(deadline, start, func() time.Duration { return c.asleep })
	c.wall = time.Duration(start.UnixNano())
	return c
}

func (c *clocks) pass(d time.Duration) { c.mono += d; c.wall += d }
func (c *clocks) now() bool            { return c.staleAt(int64(c.mono), int64(c.wall)) }
func (c *clocks) beats() woken         { return c.tickAt(int64(c.mono), int64(c.wall)) }

func (c *clocks) run(beats int) (all []woken) {
	for range beats {
		c.pass(beatInterval)
		if w := c.beats(); w.stood != 0 {
			all = append(all, w)
		}
	}
	return all
}

func TestStandstill(t *testing.T) {
	const deadline = leastStandstill + 100*time.Millisecond
	for _, c := range []struct {
		name  string
		event func(*clocks)
		stale bool          // before the next beat
		stood time.Duration // what the beats report
	}{
		{"nothing", func(*clocks) {}, false, 0},
		{"a late beat", func(c *clocks) { c.pass(deadline) }, false, 0},
		{"stopped", func(c *clocks) { c.pass(time.Minute) }, true, time.Minute},
		{"stopped for little more than the deadline", func(c *clocks) { c.pass(deadline + 1) }, true, deadline + 1},
		{"suspended", func(c *clocks) { c.wall += time.Hour; c.asleep += time.Hour }, true, time.Hour},
		{"suspended, clock not set after it", func(c *clocks) { c.asleep += time.Hour }, false, time.Hour},
		{"stopped and suspended", func(c *clocks) { c.pass(time.Minute); c.wall += time.Hour; c.asleep += time.Hour }, true, time.Hour + time.Minute},
		{"clock set 50 years forward", func(c *clocks) { c.wall += 50 * 365 * 24 * time.Hour }, false, 0},
		{"clock set 50 years back", func(c *clocks) { c.wall -= 50 * 365 * 24 * time.Hour }, false, 0},
		{"stopped, clock set back", func(c *clocks) { c.pass(time.Minute); c.wall -= time.Hour }, true, time.Minute},
	} {
		w := newClocks(deadline)
		w.pass(time.Hour) // until the heart beats, nothing is stale
		if w.now() || w.beats().stood != 0 {
			t.Errorf("%s: stale before the heart beats", c.name)
		}
		if all := w.run(100); len(all) > 0 || w.now() {
			t.Errorf("%s: stale in peace: %v", c.name, all)
		}
		last := w.start.Add(w.mono)
		c.event(w)
		if w.now() != c.stale {
			t.Errorf("%s: stale %v", c.name, w.now())
		}
		told := w.beats()
		if told.stood != 0 {
			t.Errorf("%s: over at once", c.name)
		}
		if c.stood != 0 {
			w.pass(settling - 1)
			if !w.now() {
				t.Errorf("%s: not stale while it settles", c.name)
			}
			w.pass(1)
			told = w.beats()
		}
		if told.stood != c.stood || c.stood != 0 && !told.since.Equal(last) || w.now() {
			t.Errorf("%s: told of %v since %v, want %v since %v; stale %v", c.name, told.stood, told.since, c.stood, last, w.now())
		}
		if all := w.run(100); len(all) > 0 || w.now() {
			t.Errorf("%s: stale afterwards: %v", c.name, all)
		}
	}
	var none *standstill
	if none.stale(time.Now()) {
		t.Error("a node without a heart is stale")
	}
}

func TestStandstillHeedsTheDeadline(t *testing.T) {
	w := newClocks(time.Millisecond)
	w.beats()
	w.pass(leastStandstill)
	if w.now() {
		t.Error("a short deadline makes a busy machine drop packets")
	}
	w.setDeadline(2 * leastStandstill)
	w.pass(leastStandstill)
	if w.now() {
		t.Error("stale within the deadline")
	}
	w.pass(1)
	if !w.now() {
		t.Error("not stale beyond the deadline")
	}
}

// TestStandstillProperty: whatever is read while it is not stale did not wait
// longer than the deadline (or the least standstill), unless the machine was asleep
// and its wall clock does not show that.
func TestStandstillProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deadline := time.Duration(rapid.Int64Range(0, int64(2*leastStandstill)).Draw(t, "deadline"))
		w := newClocks(deadline)
		w.beats()
		limit := max(deadline, leastStandstill)
		stopped := time.Duration(-1) // when what may be waiting came at the earliest
		var total, told time.Duration
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0: // time passes with beats
				told += sum(w.run(rapid.IntRange(1, 10).Draw(t, "beats")))
				stopped = -1
			case 1, 2: // stopped or suspended; then something is read
				d := time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "for"))
				if stopped < 0 {
					stopped = w.mono + w.asleep
				}
				if rapid.Bool().Draw(t, "suspend") {
					w.asleep += d
					w.wall += d
				} else {
					w.pass(d)
				}
				if waited := w.mono + w.asleep - stopped; !w.now() && waited > 2*limit {
					t.Fatalf("what waited for %v is not stale", waited)
				}
				if d > limit {
					total += d
				}
			case 3:
				w.wall += time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "set"))
				told += sum(w.run(1)) // the next beat comes
				stopped = -1
			}
		}
		told += sum(w.run(5))
		if told < total {
			t.Fatalf("stood still for %v, told of %v", total, told)
		}
		if w.now() {
			t.Fatal("stale for ever")
		}
	})
}

func sum(all []woken) (d time.Duration) {
	for _, w := range all {
		d += w.stood
	}
	return d
}

func TestAsleep(t *testing.T) {
	before := asleep()
	if d := asleep() - before; before < 0 || d < -time.Millisecond || d > time.Millisecond {
		t.Errorf("asleep for %v, and %v more a moment later", before, d)
	}
}

// Two runs on one machine stamp with one clock, the machine's.
func TestStampsOfTwoRuns(t *testing.T) {
	const off = time.Second / 4 // a busy machine
	now := time.Now()
	first := newStandstill(time.Second, now.Add(-time.Millisecond), asleep).stamp(now)
	second := newStandstill(time.Second, now, asleep).stamp(now)
	boot := uint32(clock(unix.CLOCK_BOOTTIME).Microseconds())
	for _, d := range []int32{int32(second - first), int32(boot - second)} {
		if d := time.Duration(d) * time.Microsecond; d < -off || d > off {
			t.Errorf("stamps %d and %d at %d", first, second, boot)
		}
	}
}

func BenchmarkStale(b *testing.B) {
	s := newStandstill(time.Second, time.Now(), asleep)
	s.tick(time.Now())
	for range b.N {
		s.stale(time.Now())
	}
}
