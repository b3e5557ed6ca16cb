package path

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const sec = time.Second

// translator is a NAT that forgets a mapping after a time without a packet from
// inside.
type translator struct {
	lifetime time.Duration
	silent   bool // forgets without giving another port, but lets nothing in at first
	mapping  uint16
}

// idle plays n probes of a path that is idle, each after the interval that k
// asks for, and returns how many mappings ended.
func (x *translator) idle(k *Keepalive, now *time.Time, n int) (ended int) {
	for range n {
		d := k.Interval()
		*now = now.Add(d)
		if d < x.lifetime {
			k.Answered(d, x.mapping, *now)
			continue
		}
		ended++
		if x.silent {
			k.Missed(d, 0.9, *now)
			k.Answered(200*time.Millisecond, x.mapping, *now)
			continue
		}
		x.mapping++
		k.Answered(d, x.mapping, *now)
	}
	return ended
}

func TestKeepaliveLearns(t *testing.T) {
	for _, c := range []struct {
		lifetime    time.Duration
		silent      bool
		least, most time.Duration
		want        time.Duration
		ended       int
	}{
		{time.Hour, false, 5 * sec, 55 * sec, 55 * sec, 0},
		{time.Hour, false, 5 * sec, 10 * sec, 10 * sec, 0},
		{time.Hour, false, 5 * sec, 30 * sec, 30 * sec, 0},
		{time.Hour, false, 7 * sec, 12 * sec, 12 * sec, 0},
		{time.Hour, false, 8 * sec, 8 * sec, 8 * sec, 0},
		{30 * sec, false, 5 * sec, 55 * sec, 25 * sec, 1},
		{20 * sec, false, 5 * sec, 55 * sec, 15 * sec, 1},
		{20 * sec, true, 5 * sec, 55 * sec, 15 * sec, 6},
		{3 * sec, false, 5 * sec, 55 * sec, 5 * sec, 100},  // what can be done is done
		{41 * sec, false, 10 * sec, 42 * sec, 25 * sec, 1}, // 40 s would be too close
	} {
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		k := NewKeepalive(c.least, c.most, Lifetime{}, now)
		if k.Interval() != c.least {
			t.Errorf("%+v: begins with %v", c, k.Interval())
		}
		x := &translator{lifetime: c.lifetime, silent: c.silent, mapping: 1}
		if ended := x.idle(&k, &now, 100); ended != c.ended || k.Interval() != c.want {
			t.Errorf("%+v: %v, %d mappings ended", c, k.Interval(), ended)
		}

		// What was learnt is kept over a restart.
		again := NewKeepalive(c.least, c.most, k.Lifetime(), now)
		if again.Interval() != c.want {
			t.Errorf("%+v: %v after a restart with %+v", c, again.Interval(), k.Lifetime())
		}
		// Another network's translators are learnt anew.
		k.Moved(now)
		if k.Interval() != c.least || k.Lifetime() != (Lifetime{}) {
			t.Errorf("%+v: %v in another network", c, k.Interval())
		}
	}
}

// What ended a mapping once is tried again after six hours.
func TestKeepaliveForgetsTheBad(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	k := NewKeepalive(5*sec, 40*sec, Lifetime{}, now)
	x := &translator{lifetime: 20 * sec, mapping: 1}
	x.idle(&k, &now, 20)
	begin := now
	x.lifetime = time.Hour
	for k.Interval() == 15*sec {
		x.idle(&k, &now, 1)
	}
	if d := now.Sub(begin); d < badMemory-time.Minute*10 || d > badMemory+time.Minute {
		t.Errorf("tried again after %v", d)
	}
	x.idle(&k, &now, 10)
	if k.Interval() != 40*sec {
		t.Errorf("%v in the end", k.Interval())
	}
}

// Changes and losses that no silence went before teach nothing.
func TestKeepaliveIgnoresTheRest(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	k := NewKeepalive(5*sec, 25*sec, Lifetime{Good: 25 * sec}, now)
	for i := range 100 {
		now = now.Add(200 * time.Millisecond)
		if moved := k.Answered(200*time.Millisecond, uint16(i), now); moved != (i > 1) {
			t.Errorf("mapping %d: moved %v", i, moved)
		}
		k.Missed(200*time.Millisecond, 0.9, now)
	}
	if k.Interval() != 25*sec || k.Lifetime() != (Lifetime{Good: 25 * sec}) {
		t.Errorf("%v, %+v", k.Interval(), k.Lifetime())
	}
	// One lost probe in three, after as many silences, is loss; the interval stays.
	for range 50 {
		k.Answered(25*sec, 99, now)
		k.Missed(25*sec, 0.6, now)
		k.Answered(25*sec, 0, now)
	}
	if k.Interval() != 25*sec {
		t.Errorf("%v by loss", k.Interval())
	}
}

// Whatever is reported, the interval is in its bounds, and below what ended a
// mapping unless nothing is.
func TestKeepaliveProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, 90_000).Draw(t, "ms")) * time.Millisecond
		})
		least, most := seconds.Draw(t, "least")+sec, seconds.Draw(t, "most")+sec
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		k := NewKeepalive(least, most, Lifetime{seconds.Draw(t, "good"), seconds.Draw(t, "bad")}, now)
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			now = now.Add(seconds.Draw(t, "later"))
			silence := seconds.Draw(t, "silence")
			if rapid.Bool().Draw(t, "as asked") {
				silence = k.Interval()
			}
			if rapid.IntRange(0, 3).Draw(t, "missed") == 0 {
				k.Missed(silence, 0.9, now)
			} else {
				k.Answered(silence, uint16(rapid.IntRange(0, 2).Draw(t, "mapping")), now)
			}
			i, l := k.Interval(), k.Lifetime()
			if i < least || i > max(least, most) || l.Bad != 0 && i >= l.Bad && i > least {
				t.Fatalf("interval %v of %v to %v, %+v", i, least, most, l)
			}
		}
	})
}
