package replicate

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// road is one path of a simulated stream.
type road struct {
	delay time.Duration
	loss  float64
	from  time.Duration // silent in [from, to)
	to    time.Duration
}

// event is a transition that Observe told.
type event struct {
	at    time.Duration
	slot  int
	began bool
}

// traffic simulates a stream and calls Observe at every interval.
type traffic struct {
	interval time.Duration
	gap      time.Duration // between packets
	burst    int           // packets at once, 1 if 0
	length   time.Duration
	roads    []road
	expected func(at time.Duration) SlotSet // all roads if nil
	seed     uint64
}

// run returns the events and the detector as it ended.
func (tr traffic) run() (events []event, d *LatentDetector) {
	d = new(LatentDetector)
	r := rand.New(rand.NewPCG(tr.seed, 7))
	intervals := int(tr.length / tr.interval)
	frames := make([][MaxSlot + 1]int, intervals)
	for sent := time.Duration(0); sent < tr.length; sent += tr.gap {
		for range max(tr.burst, 1) {
			for slot, p := range tr.roads {
				at := sent + p.delay
				i := int(at / tr.interval)
				if r.Float64() >= p.loss && i < intervals && (at < p.from || at >= p.to) {
					frames[i][slot]++
				}
			}
		}
	}
	all := SlotSet(1<<len(tr.roads) - 1)
	for i := range frames {
		at := time.Duration(i+1) * tr.interval
		expected := all
		if tr.expected != nil {
			expected = tr.expected(at)
		}
		began, ended := d.Observe(t0.Add(at), &frames[i], expected)
		for slot := range MaxSlot + 1 {
			if began.Has(slot) {
				events = append(events, event{at, slot, true})
			}
			if ended.Has(slot) {
				events = append(events, event{at, slot, false})
			}
		}
	}
	return events, d
}

// A path that stops while its twin goes on is told within a second, at any
// moment of the interval, and its return within a few.
func TestLatentWithinASecond(t *testing.T) {
	limits := map[time.Duration]time.Duration{
		250 * time.Millisecond: time.Second,
		500 * time.Millisecond: 1500 * time.Millisecond,
	}
	for interval, limit := range limits {
		for _, gap := range []time.Duration{50 * time.Microsecond, 10 * time.Millisecond, 20 * time.Millisecond} {
			for _, late := range []time.Duration{0, 20 * time.Millisecond, 300 * time.Millisecond} {
				for phase := time.Duration(0); phase < interval; phase += interval / 3 {
					from, to := 5*time.Second+phase, 9*time.Second+phase
					events, d := traffic{
						interval: interval, gap: gap, length: 15 * time.Second,
						roads: []road{{}, {delay: late, from: from, to: to}},
					}.run()
					if len(events) != 2 || !events[0].began || events[0].slot != 1 || events[1].began || events[1].slot != 1 {
						t.Fatalf("interval %v, gap %v, late %v: %+v", interval, gap, late, events)
					}
					if took := events[0].at - from; took <= 0 || took > limit {
						t.Errorf("interval %v, gap %v, late %v, phase %v: told after %v", interval, gap, late, phase, took)
					}
					if took := events[1].at - to; took < proofTime || took > 3*time.Second {
						t.Errorf("interval %v, gap %v, late %v: its end told after %v", interval, gap, late, took)
					}
					if d.Errors(1) != 1 || d.Errors(0) != 0 || d.Latent() != 0 {
						t.Errorf("errors %d and %d, latent %b", d.Errors(0), d.Errors(1), d.Latent())
					}
				}
			}
		}
	}
}

// Streams and paths on which nothing must be told: each over ten minutes, with
// several seeds.
func TestNoFalseLatentErrors(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name  string
		gap   time.Duration
		burst int
		roads []road
	}{
		{"1 packet/s", time.Second, 1, []road{{}, {delay: 40 * ms}}},
		{"1 packet/s, straddling the interval", time.Second, 1, []road{{delay: 249 * ms}, {delay: 251 * ms}}},
		{"1 packet/s, 20 % loss", time.Second, 1, []road{{loss: 0.2}, {loss: 0.2, delay: 40 * ms}}},
		{"4 packets/s, 30 % loss on one", 250 * ms, 1, []road{{}, {loss: 0.3, delay: 40 * ms}}},
		{"one packet in 10 s", 10 * time.Second, 1, []road{{}, {delay: 300 * ms}}},
		{"100 packets/s, 80 % loss on one", 10 * ms, 1, []road{{}, {loss: 0.8, delay: 300 * ms}}},
		{"1000 packets/s, 95 % and 20 % loss", ms, 1, []road{{loss: 0.2}, {loss: 0.95, delay: 100 * ms}}},
		{"bursts of 30 every 3 s, one 300 ms later", 3 * time.Second, 30, []road{{}, {delay: 300 * ms}}},
		{"bursts of 200 every 700 ms, one 400 ms later", 700 * ms, 200, []road{{}, {delay: 400 * ms, loss: 0.3}}},
		{"one path alone", 10 * ms, 1, []road{{}}},
		{"one of two never carried", 10 * ms, 1, []road{{}, {loss: 1}}},
		{"three paths", 20 * ms, 1, []road{{loss: 0.1}, {loss: 0.3, delay: 60 * ms}, {loss: 0.6, delay: 250 * ms}}},
	}
	for _, tt := range tests {
		for _, interval := range []time.Duration{250 * ms, 500 * ms} {
			for seed := range uint64(4) {
				events, _ := traffic{
					interval: interval, gap: tt.gap, burst: tt.burst, length: 10 * time.Minute, roads: tt.roads, seed: seed,
				}.run()
				if len(events) != 0 {
					t.Errorf("%s, interval %v, seed %d: %+v", tt.name, interval, seed, events)
				}
			}
		}
	}
}

// A path that loses most of a slow stream may be accused a few times, until the
// detector knows it; then no more.
func TestLatentLearnsALossyPath(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name  string
		gap   time.Duration
		burst int
		roads []road
	}{
		{"1 packet/s, 80 % loss", time.Second, 1, []road{{}, {loss: 0.8}}},
		{"4 packets/s, 50 % loss", 250 * ms, 1, []road{{}, {loss: 0.5}}},
		{"10 packets/s, 80 % loss", 100 * ms, 1, []road{{}, {loss: 0.8}}},
		{"2 packets/s, both lossy", 500 * ms, 1, []road{{loss: 0.8}, {loss: 0.5}}},
		{"bursts of 20 every 2 s, one 700 ms later", 2 * time.Second, 20, []road{{}, {delay: 700 * ms}}},
	}
	for _, tt := range tests {
		for seed := range uint64(10) {
			events, d := traffic{
				interval: 250 * ms, gap: tt.gap, burst: tt.burst, length: time.Hour, roads: tt.roads, seed: seed,
			}.run()
			if n := d.Errors(0) + d.Errors(1); n > 4 {
				t.Errorf("%s, seed %d: %d errors in an hour: %+v", tt.name, seed, n, events)
			}
		}
	}
}

// A slow stream's path that stops is found too, only later.
func TestLatentOnASlowStream(t *testing.T) {
	for _, gap := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 3 * time.Second} {
		from, to := 30*gap, 80*gap
		events, d := traffic{
			interval: 250 * time.Millisecond, gap: gap, length: 150 * gap,
			roads: []road{{}, {delay: 50 * time.Millisecond, from: from, to: to}},
		}.run()
		if len(events) != 2 || !events[0].began || events[0].at-from > (minRun+2)*gap+time.Second || events[1].at < to {
			t.Errorf("gap %v, silent from %v to %v: %+v", gap, from, to, events)
		}
		if d.Errors(1) != 1 {
			t.Errorf("gap %v: %d errors", gap, d.Errors(1))
		}
	}
}

// A trickle is not the end of an error.
func TestLatentStaysWithATrickle(t *testing.T) {
	var d LatentDetector
	now := t0
	observe := func(own int) (began, ended SlotSet) {
		now = now.Add(250 * time.Millisecond)
		return d.Observe(now, &[MaxSlot + 1]int{3: 250, 5: own}, 1<<3|1<<5)
	}
	for range 10 {
		observe(240)
	}
	var all SlotSet
	for range 4 {
		began, _ := observe(0)
		all |= began
	}
	if all != 1<<5 || d.Latent() != 1<<5 {
		t.Fatalf("began %b, latent %b", all, d.Latent())
	}
	for i := range 400 {
		own := 0
		if i%4 == 3 {
			own = 1 // one frame a second
		}
		if began, ended := observe(own); began|ended != 0 {
			t.Fatalf("interval %d: began %b, ended %b", i, began, ended)
		}
	}
	if d.Errors(5) != 1 {
		t.Errorf("%d errors", d.Errors(5))
	}
	if d.Forget(5); d.Errors(5) != 0 || d.Latent() != 0 {
		t.Errorf("%d errors, latent %b once the path is another", d.Errors(5), d.Latent())
	}
}

func TestLatentFollowsExpectation(t *testing.T) {
	var d LatentDetector
	now := t0
	observe := func(a, b int, expected SlotSet) (began, ended SlotSet) {
		now = now.Add(250 * time.Millisecond)
		return d.Observe(now, &[MaxSlot + 1]int{a, b}, expected)
	}
	quiet := func(times, a, b int, expected SlotSet) {
		t.Helper()
		for range times {
			if began, ended := observe(a, b, expected); began|ended != 0 {
				t.Fatalf("began %b, ended %b", began, ended)
			}
		}
	}
	quiet(20, 30, 30, 3)
	quiet(20, 30, 0, 1)  // the sender stopped using path 1
	quiet(20, 30, 0, 3)  // expected again, but it has not carried yet
	quiet(20, 30, 30, 3) // now it has
	quiet(20, 0, 0, 3)   // no traffic is no error
	quiet(20, 0, 30, 2)  // nor is a path that has no twin
	quiet(20, 0, 30, 3)  // path 0 has not carried since
	quiet(20, 30, 30, 3)
	quiet(2, 30, 0, 3)
	if began, ended := observe(30, 0, 3); began != 2 || ended != 0 {
		t.Fatalf("began %b, ended %b, want 1 began", began, ended)
	}
	if began, ended := observe(30, 0, 1); began != 0 || ended != 2 {
		t.Fatalf("began %b, ended %b, want 1 ended", began, ended)
	}
	if d.Latent() != 0 || d.Errors(1) != 1 {
		t.Errorf("latent %b, errors %d", d.Latent(), d.Errors(1))
	}
}

// Whatever comes: an error begins only where none is, on an expected path that
// brought nothing while another did, and ends only where one is.
func TestLatentTransitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d LatentDetector
		var counts [MaxSlot + 1]uint64
		now, was := t0, SlotSet(0)
		count := rapid.SampledFrom([]int{0, 0, 0, 1, 5, 30, 5000})
		for range rapid.IntRange(1, 80).Draw(t, "intervals") {
			now = now.Add(rapid.SampledFrom([]time.Duration{1, 250 * time.Millisecond, 500 * time.Millisecond, time.Hour}).Draw(t, "interval"))
			var frames [MaxSlot + 1]int
			for slot := range 3 {
				frames[slot] = count.Draw(t, "frames")
			}
			expected := SlotSet(rapid.SampledFrom([]uint8{7, 7, 7, 7, 3, 5, 1, 0}).Draw(t, "expected"))
			began, ended := d.Observe(now, &frames, expected)
			if began&was != 0 || ended&^was != 0 || d.Latent() != (was|began)&^ended {
				t.Fatalf("was %b, began %b, ended %b, is %b", was, began, ended, d.Latent())
			}
			if began&^expected != 0 || d.Latent()&^expected != 0 {
				t.Fatalf("expected %b, began %b, latent %b", expected, began, d.Latent())
			}
			for slot := range frames {
				if began.Has(slot) {
					counts[slot]++
					if frames[slot] != 0 {
						t.Fatalf("slot %d brought %d frames", slot, frames[slot])
					}
				}
				if d.Errors(slot) != counts[slot] {
					t.Fatalf("slot %d: %d errors, %d told", slot, d.Errors(slot), counts[slot])
				}
			}
			was = d.Latent()
		}
	})
}
