package tunnel

import (
	"testing"
	"time"
)

// twinFrame is one that arrives: of a machine's run, sent at a time of its clock.
type twinFrame struct {
	epoch uint32
	ms    int
}

func TestTwinWatch(t *testing.T) {
	talks := func(epoch uint32, ms, delay int) []twinFrame { return []twinFrame{{epoch, ms - delay}} }
	// late are the frames of a run that died at 10 s and comes, delayed by as much, from
	// 10 s to twice as late; the next run has another path.
	late := func(ms, delay int) (f []twinFrame) {
		if ms < 10000+delay {
			f = append(f, twinFrame{1, ms - delay})
		}
		if ms < 10000 {
			f = append(f, twinFrame{1, ms})
		} else {
			f = append(f, twinFrame{2, ms})
		}
		return f
	}
	for name, c := range map[string]struct {
		frames func(ms int) []twinFrame
		within time.Duration // until it is noticed, 0 for never
	}{
		"one machine": {func(ms int) []twinFrame { return talks(1, ms, 0) }, 0},
		"late by 1 s": {func(ms int) []twinFrame { return late(ms, 1000) }, 0},
		"late by 9 s": {func(ms int) []twinFrame { return late(ms, 9000) }, 0},
		"late by 9 s, one path": {func(ms int) []twinFrame {
			f := talks(1, ms, 9000)
			if ms >= 10000 {
				f = talks(2, ms, 0)
			}
			if ms >= 10000 && ms < 19000 {
				f = append(f, talks(1, ms, 9000)...)
			}
			return f
		}, 0},
		"late by 9 s, heard second": {func(ms int) []twinFrame {
			f := talks(2, 10000+ms, 0)
			if ms > 0 && ms < 9000 {
				f = append(f, talks(1, 10000+ms, 9000)...)
			}
			return f
		}, 0},
		"restart by 20 s":  {func(ms int) []twinFrame { return talks(uint32(ms/20000), ms, 0) }, 0},
		"restart by 300ms": {func(ms int) []twinFrame { return talks(uint32(ms/300), ms, 0) }, 0},
		"restart by 2 s, two paths": {func(ms int) []twinFrame {
			return append(talks(uint32(ms/2000), ms, 0), talks(uint32((ms-1500)/2000), ms, 1500)...)
		}, 0},
		"restart by 5 s, two paths": {func(ms int) []twinFrame {
			return append(talks(uint32(ms/5000), ms, 0), talks(uint32((ms-2500)/5000), ms, 2500)...)
		}, 0},
		"a frame of the run before is heard first": {func(ms int) []twinFrame {
			if ms == 0 {
				return []twinFrame{{2, 500}, {1, 60000}, {2, 501}}
			}
			return talks(2, 500+ms, 0)
		}, 0},
		"two machines": {func(ms int) []twinFrame { return talks(uint32(ms/10%2), ms, 0) }, 9 * time.Second},
		"two, one without traffic": {func(ms int) []twinFrame {
			if ms%5000 < 700 && ms%200 == 0 {
				return []twinFrame{{1, ms}, {2, ms + 1<<20}}
			}
			return talks(2, ms+1<<20, 0)
		}, 6 * time.Second},
		"two, one talks seldom": {func(ms int) []twinFrame {
			if ms%5000 == 0 {
				return talks(1, ms, 0)
			}
			return talks(2, ms, 0)
		}, 16 * time.Second},
		"three machines": {func(ms int) []twinFrame { return talks(uint32(ms/10%3), ms, 0) }, 9 * time.Second},
		"two, the time stamps wrap": {func(ms int) []twinFrame {
			return talks(uint32(ms/10%2), ms+4292967, 0)
		}, 9 * time.Second},
	} {
		var w twinWatch
		start := time.Unix(1000, 0)
		now, told := start, time.Duration(0)
		for ms := 0; ms < 60000; ms += 10 {
			now = start.Add(time.Duration(ms) * time.Millisecond)
			for _, f := range c.frames(ms) {
				w.see(f.epoch, uint32(f.ms)*1000, now)
			}
			if w.begun(now) {
				if told != 0 {
					t.Errorf("%s: told twice", name)
				}
				told = now.Sub(start)
			}
		}
		if (told != 0) != (c.within != 0) || told > c.within || w.twins(now) != (told != 0) {
			t.Errorf("%s: noticed after %v, want within %v", name, told, c.within)
		}
		if w.twins(now.Add(2 * twinMemory)) {
			t.Errorf("%s: never forgotten", name)
		}
	}
}

// Stamps wrap after 71 minutes, so after a silence of most of that the newer of two
// seems the older one; and two that met long ago are still two.
func TestTwinsAfterAWhile(t *testing.T) {
	for name, silent := range map[string]time.Duration{"silent": 50 * time.Minute, "met": 0} {
		var w twinWatch
		start := time.Unix(1000, 0)
		at := func(epoch uint32, since time.Duration) {
			w.see(epoch, uint32(since.Microseconds()), start.Add(since))
		}
		at(1, 0)
		since, told := silent, time.Duration(0)
		for ; since < silent+80*time.Minute; since += 100 * time.Millisecond {
			at(1, since)
			at(2, since+20*time.Millisecond)
			if twins := w.twins(start.Add(since)); twins && told == 0 {
				told = since - silent
			} else if !twins && told != 0 {
				t.Fatalf("%s: forgotten after %v", name, since)
			}
		}
		if told == 0 || told > 9*time.Second {
			t.Errorf("%s: noticed after %v", name, told)
		}
	}
}
