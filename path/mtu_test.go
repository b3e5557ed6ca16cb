package path

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sizeWorld is a Search, and a path that takes frames up to a size and loses
// some.
type sizeWorld struct {
	t    tester
	rnd  *rand.Rand
	s    Search
	now  time.Time
	next time.Time

	rtt      time.Duration
	ipv6     bool
	takes    int     // frames up to this size pass both ways
	loss     float64 // each way
	lost     float64 // of data, each way
	silent   bool    // nothing passes
	idle     bool
	unpadded bool // the gateway answers short
	peer     int  // the largest frame that the gateway sends, 0 for any
	period   time.Duration

	coming  []arrival
	small   time.Time
	control time.Time
	ratio   ratio
	sent    []sizeProbe
}

type arrival struct {
	at   time.Time
	id   uint32
	size int
	sent time.Time
}

func newSizeWorld(t tester, largest, takes int) *sizeWorld {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return &sizeWorld{
		t: t, rnd: rand.New(rand.NewPCG(7, 7)), s: NewSearch(largest, 5*time.Second), now: now,
		rtt: 40 * time.Millisecond, takes: takes, ratio: 1, period: 200 * time.Millisecond,
	}
}

func (w *sizeWorld) passes(size int) bool {
	return !w.silent && size <= w.takes && w.rnd.Float64() >= w.loss && w.rnd.Float64() >= w.loss
}

// run lets d pass; small probes go out as a Machine sends them.
func (w *sizeWorld) run(d time.Duration) {
	end := w.now.Add(d)
	for {
		w.poll()
		at := earliest(w.small.Add(w.period), end)
		if !w.next.IsZero() {
			at = earliest(at, w.next)
		}
		for _, a := range w.coming {
			at = earliest(at, a.at)
		}
		if !at.Before(end) {
			w.now = end
			return
		}
		w.now = latest(w.now, at)
		w.arrive()
		if w.now.Sub(w.small) >= w.period {
			w.small = w.now
			switch {
			case w.passes(smallestFrame):
				w.coming = append(w.coming, arrival{at: w.now.Add(w.rtt), sent: w.now})
				w.ratio.hit()
			case !w.silent:
				w.ratio.miss()
			}
		}
	}
}

func (w *sizeWorld) arrive() {
	rest := w.coming[:0]
	for _, a := range w.coming {
		switch {
		case a.at.After(w.now):
			rest = append(rest, a)
		case a.id == 0:
			w.control = latest(w.control, a.sent)
		default:
			w.s.Answer(a.id, a.size, w.now)
		}
	}
	w.coming = rest
}

func (w *sizeWorld) poll() {
	id, size, next := w.s.Poll(w.now, Signals{
		Timeout: w.rtt + 10*time.Millisecond, Answered: float64(w.ratio), Control: w.control, Active: !w.idle,
		Out: 1 - w.lost, In: 1 - w.lost, IPv6: w.ipv6,
	})
	w.next = next
	if size == 0 {
		if !next.IsZero() && !next.After(w.now) {
			w.t.Fatalf("next is %v: %+v", next.Sub(w.now), w.s)
		}
		return
	}
	if !next.After(w.now) || id&sizeProbeID == 0 || size > w.s.ceiling {
		w.t.Fatalf("probe %x of %d bytes, next %v", id, size, next.Sub(w.now))
	}
	if n := len(w.sent); n > 0 && w.now.Sub(w.sent[n-1].sent) < sizeSpacing {
		w.t.Fatalf("two probes %v apart", w.now.Sub(w.sent[n-1].sent))
	}
	w.sent = append(w.sent, sizeProbe{id: id, size: size, sent: w.now})
	if w.passes(size) {
		if w.unpadded {
			size = smallestFrame
		} else if w.peer > 0 {
			size = min(size, w.peer)
		}
		w.coming = append(w.coming, arrival{at: w.now.Add(w.rtt), id: id, size: size})
	}
}

// complete runs until the search is at its end and returns how many probes it
// took and how long.
func (w *sizeWorld) complete() (probes int, took time.Duration) {
	w.t.Helper()
	n, begin := len(w.sent), w.now
	for w.s.running {
		if w.run(5 * time.Millisecond); w.now.Sub(begin) > time.Minute {
			w.t.Fatalf("no end: %+v", w.s)
		}
	}
	return len(w.sent) - n, w.now.Sub(begin)
}

// The largest frame is found to the byte, whatever a carrier's MTU and the
// largest frame sent.
func TestSearchFindsTheLargest(t *testing.T) {
	most, sum, count := 0, 0, 0
	for _, largest := range []int{328, 496, 500, 1000, 1228, 1308, 1428, 1448, 1528, 2028} {
		for _, ipv6 := range []bool{false, true} {
			for mtu := 140; mtu <= 2120; mtu += 5 {
				want := max(FrameFor(mtu, largest, ipv6), smallestFrame)
				w := newSizeWorld(t, largest, want)
				w.s.Start(w.now)
				probes, _ := w.complete()
				if w.s.Largest() != want || probes > searchProbes {
					t.Fatalf("MTU %d, IPv6 %v, frames up to %d: %d after %d probes, want %d", mtu, ipv6, largest, w.s.Largest(), probes, want)
				}
				if mtu >= 576 || largest < BaseFrame {
					most = max(most, probes)
				}
				sum, count = sum+probes, count+1
				state := SearchComplete
				if want < min(BaseFrame, largest) {
					state = SearchError
				}
				if w.s.State() != state || !w.s.settled {
					t.Fatalf("MTU %d, IPv6 %v, frames up to %d: state %v, settled %v", mtu, ipv6, largest, w.s.State(), w.s.settled)
				}
			}
		}
	}
	t.Logf("at most %d probes, %.1f on average", most, float64(sum)/float64(count))
}

// The carriers that the design promises.
func TestSearchOfCommonCarriers(t *testing.T) {
	for _, c := range []struct {
		mtu    int
		v4, v6 int // probes, at most
	}{{1500, 1, 1}, {1492, 1, 1}, {1400, 1, 1}, {1280, 7, 7}, {1124, 10, 10}, {576, 12, 10}} {
		for i, limit := range []int{c.v4, c.v6} {
			ipv6 := i == 1
			want := FrameFor(c.mtu, 1308, ipv6)
			w := newSizeWorld(t, 1308, want)
			w.ipv6 = ipv6
			w.s.Start(w.now)
			probes, took := w.complete()
			t.Logf("MTU %d, IPv6 %v: frames up to %d (%d bytes of carrier) with %d probes in %v",
				c.mtu, ipv6, w.s.Largest(), CarrierBytes(w.s.Largest(), 1308, ipv6), probes, took)
			if got := w.s.Largest(); got > want || got < want-8 {
				t.Errorf("MTU %d, IPv6 %v: %d, want %d", c.mtu, ipv6, got, want)
			}
			if probes > limit || took > 6*time.Second {
				t.Errorf("MTU %d, IPv6 %v: %d probes in %v", c.mtu, ipv6, probes, took)
			}
		}
	}
}

// Under traffic a carrier whose MTU falls is noticed within seconds, and one
// whose MTU rises in ten minutes, or at once after a link event.
func TestSearchFollowsChanges(t *testing.T) {
	w := newSizeWorld(t, 1308, 1308)
	w.s.Start(w.now)
	w.run(30 * time.Second)
	for _, mtu := range []int{1280, 1124, 576} {
		w.takes = FrameFor(mtu, 1308, false)
		w.run(7 * time.Second)
		if got := w.s.Largest(); got > w.takes {
			t.Errorf("MTU %d: %d seven seconds later", mtu, got)
		}
		w.run(7 * time.Second)
		if got := w.s.Largest(); got != w.takes || w.s.State() != SearchComplete {
			t.Errorf("MTU %d: %d, %v, want %d", mtu, got, w.s.State(), w.takes)
		}
	}
	if w.s.Holes() != 3 {
		t.Errorf("%d black holes", w.s.Holes())
	}
	w.takes = 1308
	w.run(9 * time.Minute)
	if got := w.s.Largest(); got != 512 {
		t.Errorf("%d before the time", got)
	}
	w.run(75 * time.Second)
	if got := w.s.Largest(); got != 1308 {
		t.Errorf("%d after ten minutes", got)
	}

	w.takes = 1216
	w.run(2 * time.Minute)
	w.takes = 1308
	w.s.Event(w.now)
	w.run(2 * time.Second)
	if got := w.s.Largest(); got != 1308 {
		t.Errorf("%d after a link event", got)
	}
}

// An idle path costs nothing once its size is known, and ten minutes of traffic
// on a small carrier cost three probes more than those that watch.
func TestSearchCost(t *testing.T) {
	w := newSizeWorld(t, 1308, 1216)
	w.s.Start(w.now)
	w.idle = true
	w.run(10 * time.Second)
	n := len(w.sent)
	w.run(time.Hour)
	if len(w.sent) != n {
		t.Errorf("%d probes in an idle hour", len(w.sent)-n)
	}
	w.idle = false
	w.run(10 * time.Minute)
	if got := len(w.sent) - n; got < 110 || got > 126 {
		t.Errorf("%d probes in ten minutes of traffic", got)
	}
	for range 10_000 { // a storm of link events
		w.s.Event(w.now)
		w.run(5 * time.Millisecond)
	}
	if got := len(w.sent) - n; got > 126+50*20+searchProbes {
		t.Errorf("%d probes in a storm", got)
	}
}

// Loss is not taken for a limit, and the size is found in the end.
func TestSearchUnderLoss(t *testing.T) {
	for _, c := range []struct {
		loss float64
		soon time.Duration
	}{{0.01, 20 * sec}, {0.1, 4 * time.Minute}, {0.3, 10 * time.Minute}, {0.5, 20 * time.Minute}} {
		holes := 0
		for seed := range uint64(20) {
			for _, takes := range []int{1308, 1216} {
				w := newSizeWorld(t, 1308, takes)
				w.rnd = rand.New(rand.NewPCG(seed, 1))
				w.loss = c.loss
				w.ratio = ratio((1 - c.loss) * (1 - c.loss))
				w.s.Start(w.now)
				for start := w.now; w.now.Sub(start) < c.soon && w.s.Largest() != takes; {
					w.run(time.Second)
				}
				if got := w.s.Largest(); got != takes {
					t.Errorf("loss %v, seed %d: %d, want %d (%v)", c.loss, seed, got, takes, w.s.State())
				}
				for range 10 {
					w.run(time.Minute)
					if w.s.State() == SearchError {
						t.Errorf("loss %v, seed %d: large packets called lost", c.loss, seed)
					}
				}
				holes += w.s.Holes()
			}
		}
		t.Logf("loss %v each way: %d false alarms in %d minutes", c.loss, holes, 20*2*10)
		if holes > 8 {
			t.Errorf("loss %v each way: %d false alarms", c.loss, holes)
		}
	}
}

// A filter that drops datagrams above 300 bytes while small ones pass.
func TestSearchOfScrubbedCarrier(t *testing.T) {
	w := newSizeWorld(t, 1308, 1308)
	w.s.Start(w.now)
	w.run(10 * time.Second)
	w.takes = FrameFor(300, 1308, false)
	w.run(10 * time.Second)
	if w.s.State() != SearchError || w.s.Largest() > w.takes {
		t.Fatalf("state %v, largest %d", w.s.State(), w.s.Largest())
	}
	w.run(20 * time.Second)
	if w.s.State() != SearchError || w.s.Largest() != w.takes {
		t.Errorf("state %v, largest %d, want %d", w.s.State(), w.s.Largest(), w.takes)
	}
	n := len(w.sent)
	w.run(5 * time.Minute)
	if got := len(w.sent) - n; got > 5*(12+12) {
		t.Errorf("%d probes in five minutes", got)
	}
	w.takes = 1308
	w.run(75 * time.Second)
	if w.s.State() != SearchComplete || w.s.Largest() != 1308 {
		t.Errorf("state %v, largest %d after the filter went", w.s.State(), w.s.Largest())
	}
}

// A path that is silent says nothing about sizes.
func TestSearchOnSilentPath(t *testing.T) {
	w := newSizeWorld(t, 1308, 1308)
	w.s.Start(w.now)
	w.run(10 * time.Second)
	n := len(w.sent)
	w.silent = true
	w.run(time.Minute)
	if w.s.Largest() != 1308 || w.s.Holes() != 0 {
		t.Errorf("largest %d, %d holes", w.s.Largest(), w.s.Holes())
	}
	if got := len(w.sent) - n; got > 35 {
		t.Errorf("%d probes in a silent minute", got)
	}
	w.silent = false
	w.takes = 1200
	w.s.Resume(w.now)
	w.run(10 * time.Second)
	if w.s.Largest() != 1200 {
		t.Errorf("largest %d after the path came back", w.s.Largest())
	}
}

// A peer that answers short does not know of sizes; one whose frames are smaller
// sets the ceiling.
func TestSearchOfOtherPeers(t *testing.T) {
	w := newSizeWorld(t, 1308, 1308)
	w.unpadded = true
	w.s.Start(w.now)
	w.run(time.Minute)
	if w.s.State() != SearchOff || w.s.Largest() != 0 || len(w.sent) != 1 {
		t.Errorf("state %v, largest %d, %d probes", w.s.State(), w.s.Largest(), len(w.sent))
	}
	w.unpadded, w.peer = false, 1228
	w.s.Resume(w.now)
	w.run(time.Minute)
	if w.s.State() != SearchComplete || w.s.Largest() != 1228 {
		t.Errorf("state %v, largest %d", w.s.State(), w.s.Largest())
	}
	w.peer = 0
	w.s.Start(w.now)
	w.run(time.Minute)
	if w.s.Largest() != 1308 {
		t.Errorf("largest %d by another peer", w.s.Largest())
	}
}

// A sign of loss brings the watching forward, but not oftener than once a second.
func TestSearchDoubt(t *testing.T) {
	w := newSizeWorld(t, 1308, 1308)
	w.s.Start(w.now)
	w.run(6 * time.Second)
	n := len(w.sent)
	for range 200 {
		w.s.Doubt()
		w.run(10 * time.Millisecond)
	}
	if got := len(w.sent) - n; got != 2 {
		t.Errorf("%d probes in two seconds of doubt", got)
	}
	w.takes = 1216
	begin := w.now
	for w.s.Largest() == 1308 && w.now.Sub(begin) < time.Minute {
		w.s.Doubt()
		w.run(10 * time.Millisecond)
	}
	if took := w.now.Sub(begin); took > 2600*time.Millisecond {
		t.Errorf("noticed after %v", took)
	}
}

// What passed right before a filter began is told when a probe is out already. It
// must not make what is lost from then on look like chance.
func TestSearchOfWhatPassedBefore(t *testing.T) {
	w := newSizeWorld(t, 1308, 1308)
	w.s.Start(w.now)
	w.run(6 * time.Second)
	w.takes, w.lost = 256, 0.7
	begin := w.now
	for n := len(w.sent); len(w.sent) == n; w.run(10 * time.Millisecond) {
		w.s.Doubt()
	}
	w.s.Passed(true, 1308, w.now)
	for w.s.Largest() == 1308 {
		w.s.Passed(true, 256, w.now)
		w.s.Passed(false, 256, w.now)
		if w.run(10 * time.Millisecond); w.now.Sub(begin) > 4*time.Second {
			t.Fatalf("not noticed: %+v", w.s)
		}
	}
	for w.s.State() != SearchError {
		w.s.Passed(true, 256, w.now)
		w.s.Passed(false, 256, w.now)
		if w.run(10 * time.Millisecond); w.now.Sub(begin) > 8*time.Second {
			t.Fatalf("not named: %+v", w.s)
		}
	}
}

// Whatever happens to the path, what is found passes, in the end, and every
// search keeps to its probes.
func TestSearchProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		largest := rapid.IntRange(100, 1528).Draw(t, "largest")
		w := newSizeWorld(t, largest, largest)
		w.rnd = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		takes := rapid.Custom(func(t *rapid.T) int {
			return max(smallestFrame, FrameFor(rapid.IntRange(110, 1700).Draw(t, "mtu"), largest, false))
		})
		w.s.Start(w.now)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				w.s.Event(w.now)
			case 1:
				w.s.Resume(w.now)
			case 2:
				w.s.Start(w.now)
			case 3:
				w.s.Doubt()
			case 4:
				w.s.Answer(rapid.Uint32().Draw(t, "id"), rapid.IntRange(0, 2000).Draw(t, "size"), w.now)
			}
			w.takes = takes.Draw(t, "takes")
			w.loss = float64(rapid.IntRange(0, 4).Draw(t, "loss")) / 10
			w.silent = rapid.IntRange(0, 4).Draw(t, "silent") == 0
			w.idle = rapid.Bool().Draw(t, "idle")
			w.run(time.Duration(rapid.IntRange(0, 40_000).Draw(t, "ms")) * time.Millisecond)
			if w.s.probes > searchProbes || w.s.limit > w.s.ceiling && w.s.limit > smallestFrame {
				t.Fatalf("%+v", w.s)
			}
		}
		w.loss, w.silent, w.idle, w.ratio = 0, false, false, 1
		w.s.Event(w.now)
		w.run(3 * time.Minute)
		if got := w.s.Largest(); got != w.takes {
			t.Fatalf("%d, want %d: %+v", got, w.takes, w.s)
		}
	})
}
