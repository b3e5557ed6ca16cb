package path

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// feed sends n frames a second for d, each lost with probability p, and rolls
// once a second.
func feed(l *Loss, rnd *rand.Rand, seq *uint32, now *time.Time, d time.Duration, n int, p float64) {
	for range int(d / time.Second) {
		for range n {
			if rnd.Float64() >= p {
				l.Seen(1, *seq)
			}
			*seq++
		}
		*now = now.Add(time.Second)
		l.Roll(*now)
	}
}

func TestLossShare(t *testing.T) {
	for _, p := range []float64{0, 0.01, 0.1, 0.5} {
		var l Loss
		rnd := rand.New(rand.NewPCG(3, 4))
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		if l.Share() != -1 {
			t.Errorf("share %v before the first frame", l.Share())
		}
		seq := uint32(math.MaxUint32 - 5000) // wraps on the way
		l.Roll(now)
		feed(&l, rnd, &seq, &now, time.Minute, 2000, p)
		if got := l.Share(); math.Abs(got-p) > 0.01 {
			t.Errorf("loss %v is measured as %v", p, got)
		}
		received, expected := l.Totals()
		if got := 1 - float64(received)/float64(expected); math.Abs(got-p) > 0.01 {
			t.Errorf("loss %v by the totals: %v", p, got)
		}
		// The window forgets.
		feed(&l, rnd, &seq, &now, 11*time.Second, 1000, 0)
		if got := l.Share(); got > 0.0001 {
			t.Errorf("share %v after 11 s without loss", got)
		}
		l.Roll(now.Add(11 * time.Second))
		if got := l.Share(); got != -1 {
			t.Errorf("share %v after 11 s without frames", got)
		}
	}
}

// Two healthy paths that carry every second packet lose nothing, because each
// has numbers of its own.
func TestLossOfTwoPaths(t *testing.T) {
	var paths [2]Loss
	var next [2]uint32
	for i := range 10000 {
		paths[i%2].Seen(1, next[i%2])
		next[i%2]++
	}
	for i := range paths {
		if got := paths[i].Share(); got != 0 {
			t.Errorf("path %d: share %v", i, got)
		}
	}
}

func TestLossReorderAndEpochs(t *testing.T) {
	type frame struct{ epoch, seq uint32 }
	for name, c := range map[string]struct {
		frames             []frame
		received, expected uint32
	}{
		"in order":            {[]frame{{1, 1}, {1, 2}, {1, 3}}, 3, 3},
		"hole":                {[]frame{{1, 1}, {1, 4}}, 2, 4},
		"late":                {[]frame{{1, 1}, {1, 4}, {1, 2}, {1, 3}}, 4, 4},
		"before the first":    {[]frame{{1, 5}, {1, 3}, {1, 4}}, 3, 3},
		"wrap":                {[]frame{{1, math.MaxUint32}, {1, 1}, {1, 0}}, 3, 3},
		"epoch 0":             {[]frame{{0, 0}, {0, 1}}, 2, 2},
		"new epoch":           {[]frame{{1, 1000}, {2, 1}, {2, 2}}, 3, 3},
		"late of old epoch":   {[]frame{{1, 10}, {2, 1}, {1, 11}, {2, 2}}, 3, 3},
		"two epochs later":    {[]frame{{1, 10}, {2, 1}, {3, 7}, {2, 2}, {3, 8}}, 4, 4},
		"numbers start again": {[]frame{{1, 1 << 20}, {1, 1}, {1, 2}}, 3, 3},
	} {
		var l Loss
		for _, f := range c.frames {
			l.Seen(f.epoch, f.seq)
		}
		if r, e := l.Totals(); r != c.received || e != c.expected {
			t.Errorf("%s: received %d of %d, want %d of %d", name, r, e, c.received, c.expected)
		}
	}
}

// An epoch that goes on alone after another one came is the current one again within
// seconds, also on an idle path; late frames of a restart are not, and two epochs that
// take turns do not make the totals jump.
func TestLossEpochReturns(t *testing.T) {
	for name, c := range map[string]struct {
		every  time.Duration // between two frames of the epoch that goes on
		frames int           // of it until it counts
	}{
		"busy": {100 * time.Millisecond, 30},
		"idle": {5 * time.Second, 3},
	} {
		var l Loss
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		seq, anew := uint32(0), 0
		step := func(epoch uint32) (fresh bool) {
			seq++
			fresh = l.Seen(epoch, seq)
			for end := now.Add(c.every); now.Before(end); {
				now = now.Add(100 * time.Millisecond)
				l.Roll(now)
			}
			return fresh
		}
		l.Roll(now)
		for range 50 {
			step(1)
			l.Seen(2, seq) // the clone, at the same time
			seq++
		}
		before, _ := l.Totals()
		for n := 1; ; n++ {
			if step(1) {
				anew = n
				break
			}
			if n > 10*c.frames {
				t.Fatalf("%s: never counted again", name)
			}
		}
		if anew > c.frames+1 {
			t.Errorf("%s: counted again from frame %d on, want %d", name, anew, c.frames+1)
		}
		for range 20 {
			if step(1) {
				t.Errorf("%s: begins anew once more", name)
			}
		}
		if r, e := l.Totals(); r-before < 20 || e-r > 60 || l.Share() != 0 {
			t.Errorf("%s: %d frames more, %d of %d, share %v", name, r-before, r, e, l.Share())
		}
	}
}

// Late frames of the run before a restart, for as long as one path may hold them
// back beside those of the new run, count for nothing.
func TestLossLateFrames(t *testing.T) {
	var l Loss
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l.Roll(now)
	l.Seen(1, 500)
	for i := range uint32(80) {
		if i%8 == 0 && l.Seen(2, i/8) != (i == 0) {
			t.Fatalf("frame %d of the new run", i)
		}
		if l.Seen(1, 501+i) {
			t.Fatalf("late frame %d begins the old run anew", i)
		}
		now = now.Add(100 * time.Millisecond)
		l.Roll(now)
	}
	if r, e := l.Totals(); r != 11 || e != 11 {
		t.Errorf("received %d of %d", r, e)
	}
}

// A bucket in which the new run came is none of the old run's, whichever came last.
func TestLossOldRunAlone(t *testing.T) {
	for _, c := range []struct {
		buckets [][]uint32 // epochs
		want    uint32     // the current one in the end
	}{
		{[][]uint32{{1}, {2, 1}, {1}, {1}}, 2},
		{[][]uint32{{1}, {1, 2}, {1}, {1}}, 2},
		{[][]uint32{{1}, {2, 1}, {1}, {1}, {1}}, 1},
		{[][]uint32{{1}, {2}, {1}, {1, 2}, {1}, {1}}, 2},
		{[][]uint32{{1}, {2}, {1}, {2, 1}, {1}, {1}}, 2},
		{[][]uint32{{1}, {2}, {1}, {}, {1}, {1}}, 1},
	} {
		var l Loss
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		seq := uint32(0)
		for _, epochs := range c.buckets {
			l.Roll(now)
			for _, e := range epochs {
				seq++
				l.Seen(e, seq)
			}
			now = now.Add(lossBucket)
		}
		if l.Epoch() != c.want {
			t.Errorf("%v: %d is the current one, want %d", c.buckets, l.Epoch(), c.want)
		}
	}
}

// The meter agrees with one that remembers every number.
func TestLossAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Loss
		epoch := rapid.Uint32().Draw(t, "epoch")
		start := rapid.Uint32().Draw(t, "start")
		seen := map[int]bool{}
		lo, hi := 0, 0
		n := rapid.IntRange(1, 300).Draw(t, "n")
		for i := range n {
			at := i + rapid.IntRange(-20, 20).Draw(t, "shift")
			if seen[at] {
				continue
			}
			if len(seen) == 0 {
				lo, hi = at, at
			}
			seen[at] = true
			lo, hi = min(lo, at), max(hi, at)
			l.Seen(epoch, start+uint32(at))
		}
		r, e := l.Totals()
		if int(r) != len(seen) || int(e) != hi-lo+1 {
			t.Fatalf("received %d of %d, want %d of %d", r, e, len(seen), hi-lo+1)
		}
		want := 1 - float64(len(seen))/float64(hi-lo+1)
		if got := l.Share(); math.Abs(got-want) > 1e-9 {
			t.Fatalf("share %v, want %v", got, want)
		}
	})
}

// Roll may come too early, late, or after a sleep.
func TestLossRoll(t *testing.T) {
	var l Loss
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l.Roll(now)
	l.Seen(1, 1)
	l.Seen(1, 3)
	for range 99 {
		now = now.Add(100 * time.Millisecond)
		l.Roll(now)
	}
	if got := l.Share(); math.Abs(got-1.0/3) > 1e-9 {
		t.Errorf("share %v after 9.9 s", got)
	}
	now = now.Add(time.Hour)
	l.Roll(now)
	if got := l.Share(); got != -1 {
		t.Errorf("share %v after an hour", got)
	}
	l.Seen(1, 4)
	now = now.Add(1500 * time.Millisecond)
	l.Roll(now)
	if got := l.Share(); got != 0 {
		t.Errorf("share %v", got)
	}
}

func BenchmarkLossSeen(b *testing.B) {
	var l Loss
	for i := range b.N {
		l.Seen(1, uint32(i))
	}
}
