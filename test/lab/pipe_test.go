package lab

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var epoch = time.Unix(1_000_000, 0)

// frameOf makes a frame of the given size that carries its number.
func frameOf(number, size int) []byte {
	b := make([]byte, max(size, 8))
	binary.BigEndian.PutUint64(b, uint64(number))
	return b
}

// flight is one packet that came out of a pipe.
type flight struct {
	number int
	due    time.Duration // after epoch
}

// drain takes out all that is due at now.
func drain(p *pipe, now time.Time) (out []flight) {
	for k := p.pop(now); k != nil; k = p.pop(now) {
		out = append(out, flight{int(binary.BigEndian.Uint64(k.frame)), k.due.Sub(epoch)})
		p.delivered(k)
	}
	return out
}

func TestPipe(t *testing.T) {
	const ms = time.Millisecond
	type sent struct {
		at   time.Duration
		size int
	}
	for _, c := range []struct {
		name   string
		params Params
		sent   []sent
		want   []flight
	}{
		{"nothing to do", Params{}, []sent{{0, 100}, {5 * ms, 100}}, []flight{{0, 0}, {1, 5 * ms}}},
		{"delay", Params{Delay: 20 * ms}, []sent{{0, 100}, {1 * ms, 100}}, []flight{{0, 20 * ms}, {1, 21 * ms}}},
		// 1000 bytes at 1 Mbit/s take 8 ms.
		{"rate", Params{Rate: 1e6, Delay: ms}, []sent{{0, 1000}, {0, 1000}, {30 * ms, 1000}},
			[]flight{{0, 9 * ms}, {1, 17 * ms}, {2, 39 * ms}}},
		// The third would wait 16 ms.
		{"queue", Params{Rate: 1e6, Queue: 10 * ms}, []sent{{0, 1000}, {0, 1000}, {0, 1000}, {9 * ms, 1000}},
			[]flight{{0, 8 * ms}, {1, 16 * ms}, {3, 24 * ms}}},
		{"MTU", Params{MTU: 1000}, []sent{{0, 1000 + ethernetHeader}, {0, 1001 + ethernetHeader}}, []flight{{0, 0}}},
		{"all lost", Params{Loss: 1}, []sent{{0, 100}}, nil},
		{"black hole", Params{BlackHole: true}, []sent{{0, 100}}, nil},
		{"duplicate", Params{Duplicate: 1}, []sent{{0, 100}, {ms, 100}}, []flight{{0, 0}, {0, 0}, {1, ms}, {1, ms}}},
		{"reorder", Params{Reorder: 1, ReorderDelay: 3 * ms}, []sent{{0, 100}}, []flight{{0, 3 * ms}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPipe(1, c.params)
			for i, s := range c.sent {
				p.offer(epoch.Add(s.at), frameOf(i, s.size))
			}
			if got := drain(p, epoch.Add(time.Hour)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			checkBalance(t, p)
		})
	}
}

// checkBalance checks that every packet is accounted for.
func checkBalance(t rapid.TB, p *pipe) {
	t.Helper()
	c := p.counters()
	in := c.Received + c.Duplicated
	out := c.Delivered + c.Lost + c.Overflowed + c.Swallowed + c.TooBig + c.Refused + c.InFlight
	if in != out {
		t.Fatalf("%d packets went in, %d are accounted for: %+v", in, out, c)
	}
}

func drawParams(t *rapid.T) Params {
	share := rapid.Float64Range(0, 1)
	few := rapid.Custom(func(t *rapid.T) float64 { return share.Draw(t, "share") * share.Draw(t, "share") })
	span := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "span"))
	})
	p := Params{
		Delay: span.Draw(t, "delay"), Jitter: span.Draw(t, "jitter"),
		Distribution: rapid.SampledFrom([]Distribution{Uniform, Normal}).Draw(t, "distribution"),
		Loss:         few.Draw(t, "loss"), Duplicate: few.Draw(t, "duplicate"), Reorder: few.Draw(t, "reorder"),
		Rate:  rapid.SampledFrom([]float64{0, 1e5, 1e7}).Draw(t, "rate"),
		Queue: span.Draw(t, "queue"), MTU: rapid.SampledFrom([]int{0, 500}).Draw(t, "MTU"),
		BlackHole: rapid.IntRange(0, 9).Draw(t, "black hole") == 0,
	}
	if rapid.Bool().Draw(t, "bursts") {
		p.Burst = &GilbertElliott{few.Draw(t, "to bad"), share.Draw(t, "to good"), few.Draw(t, "loss good"), share.Draw(t, "loss bad")}
	}
	return p
}

// Whatever the parameters and however they change: every packet is accounted
// for, none leaves early, equal due times keep their order, and without
// duplicates and reordering everything keeps its order.
func TestPipeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPipe(rapid.Uint64().Draw(t, "seed"), drawParams(t))
		now, last, ordered := epoch, flight{-1, -1}, p.params.Reorder == 0
		entered := map[int]time.Duration{}
		for i := range rapid.IntRange(1, 200).Draw(t, "packets") {
			if rapid.IntRange(0, 19).Draw(t, "change") == 0 {
				p.params = drawParams(t)
				ordered = ordered && p.params.Reorder == 0
			}
			entered[i] = now.Sub(epoch)
			p.offer(now, frameOf(i, rapid.IntRange(8, 1500).Draw(t, "size")))
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Millisecond)).Draw(t, "pause")))
			for _, f := range drain(p, now) {
				if f.due < entered[f.number] || f.due > now.Sub(epoch) {
					t.Fatalf("packet %d entered at %v and was due at %v, out at %v", f.number, entered[f.number], f.due, now.Sub(epoch))
				}
				if f.due < last.due || ordered && f.number < last.number {
					t.Fatalf("%v came out after %v", f, last)
				}
				last = f
			}
			checkBalance(t, p)
		}
	})
}

// naivePipe keeps its packets in a list and sorts it.
type naivePipe struct{ list []flight }

func (n *naivePipe) drain(now time.Time) (out []flight) {
	slices.SortStableFunc(n.list, func(a, b flight) int { return cmp.Compare(a.due, b.due) })
	for len(n.list) > 0 && n.list[0].due <= now.Sub(epoch) {
		out, n.list = append(out, n.list[0]), n.list[1:]
	}
	return out
}

func TestHeapAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, n, now := newPipe(1, Params{}), &naivePipe{}, epoch
		for i := range rapid.IntRange(1, 300).Draw(t, "steps") {
			due := time.Duration(rapid.IntRange(0, 40).Draw(t, "due")) + now.Sub(epoch)
			p.push(epoch.Add(due), frameOf(i, 8))
			n.list = append(n.list, flight{i, due})
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "pause")))
			if got, want := drain(p, now), n.drain(now); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}

// play sends packets 1 ms apart and returns what comes out.
func play(seed uint64, params Params, packets int) []flight {
	p := newPipe(seed, params)
	var out []flight
	for i := range packets {
		now := epoch.Add(time.Duration(i) * time.Millisecond)
		p.offer(now, frameOf(i, 100))
		out = append(out, drain(p, now)...)
	}
	return append(out, drain(p, epoch.Add(24*time.Hour))...)
}

func TestSameSeedSameLuck(t *testing.T) {
	params := Params{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1, Duplicate: 0.05, Reorder: 0.05,
		Burst: &GilbertElliott{0.01, 0.2, 0, 0.5}}
	first := play(7, params, 2000)
	if !slices.Equal(first, play(7, params, 2000)) {
		t.Error("two runs with the same seed differ")
	}
	if slices.Equal(first, play(8, params, 2000)) {
		t.Error("two seeds give the same luck")
	}
}

// More loss must not change the delays of those that get through.
func TestLuckIsPerDecision(t *testing.T) {
	params := Params{Delay: 200 * time.Millisecond, Jitter: 100 * time.Microsecond} // no packet catches up
	all := play(3, params, 1000)
	params.Loss = 0.5
	for _, f := range play(3, params, 1000) {
		if f != all[f.number] {
			t.Fatalf("packet %d: due at %v with loss, %v without", f.number, f.due, all[f.number].due)
		}
	}
}

func TestShares(t *testing.T) {
	const packets = 100_000
	for _, c := range []struct {
		name   string
		params Params
		want   float64 // of packets that get through
	}{
		{"loss", Params{Loss: 0.03}, 0.97},
		{"duplicate", Params{Duplicate: 0.2}, 1.2},
		// A sixth of the time in the bad state.
		{"bursts", Params{Burst: &GilbertElliott{0.02, 0.1, 0, 0.6}}, 0.9},
	} {
		got := float64(len(play(5, c.params, packets))) / packets
		if math.Abs(got-c.want) > 0.006 {
			t.Errorf("%s: a share of %.4f got through, want about %.4f", c.name, got, c.want)
		}
	}
}

func TestBurstsAreBursts(t *testing.T) {
	out := play(5, Params{Burst: &GilbertElliott{ToBad: 0.01, ToGood: 0.1, LossBad: 1}}, 100_000)
	lost, bursts := 0, 0
	for i := 1; i < len(out); i++ {
		if gap := out[i].number - out[i-1].number - 1; gap > 0 {
			lost += gap
			bursts++
		}
	}
	if mean := float64(lost) / float64(bursts); mean < 8 || mean > 12 {
		t.Errorf("%d packets lost in %d bursts, mean length %.1f, want about 10", lost, bursts, mean)
	}
}

func TestJitterShape(t *testing.T) {
	const packets, delay, jitter = 50_000, 100 * time.Millisecond, 10 * time.Millisecond
	for _, c := range []struct {
		shape         Distribution
		deviation     float64 // in units of jitter
		width         time.Duration
		wantBeyondOne float64 // share outside +-jitter
	}{{Uniform, 1 / math.Sqrt(3), jitter, 0}, {Normal, 1, 4 * jitter, 0.317}} {
		p := newPipe(9, Params{Delay: delay, Jitter: jitter, Distribution: c.shape})
		var sum, squares, beyond float64
		for n := range uint64(packets) {
			d := p.delay(n) - delay
			if d < -c.width || d > c.width {
				t.Fatalf("shape %d: jitter of %v", c.shape, d)
			}
			if d < -jitter || d > jitter {
				beyond++
			}
			x := float64(d) / float64(jitter)
			sum, squares = sum+x, squares+x*x
		}
		mean, deviation := sum/packets, math.Sqrt(squares/packets)
		if math.Abs(mean) > 0.02 || math.Abs(deviation-c.deviation) > 0.02 || math.Abs(beyond/packets-c.wantBeyondOne) > 0.01 {
			t.Errorf("shape %d: mean %.3f, deviation %.3f, %.3f beyond", c.shape, mean, deviation, beyond/packets)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	p := RoundTrip(40*time.Millisecond, 8*time.Millisecond, 0.02)
	if through := (1 - p.Loss) * (1 - p.Loss); p.Delay != 20*time.Millisecond || p.Jitter != 4*time.Millisecond || math.Abs(through-0.98) > 1e-9 {
		t.Errorf("got %+v", p)
	}
}

func TestParamsOutOfRange(t *testing.T) {
	for _, p := range []Params{
		{Loss: -0.1}, {Loss: 1.1}, {Loss: math.NaN()}, {Duplicate: 2}, {Reorder: -1}, {Delay: -1}, {Jitter: -1},
		{Rate: -1}, {Rate: math.NaN()}, {Queue: -1}, {MTU: -1}, {ReorderDelay: -1}, {Burst: &GilbertElliott{ToBad: 3}},
	} {
		if p.check() == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}

// A black hole swallows what is in flight too.
func TestBlackHoleInFlight(t *testing.T) {
	p := newPipe(1, Params{Delay: 10 * time.Millisecond})
	p.offer(epoch, frameOf(0, 100))
	p.params.BlackHole = true
	if out := drain(p, epoch.Add(20*time.Millisecond)); out != nil {
		t.Errorf("%v came out of a black hole", out)
	}
	p.params.BlackHole = false
	p.offer(epoch.Add(30*time.Millisecond), frameOf(1, 100))
	if out := drain(p, epoch.Add(time.Second)); len(out) != 1 || p.counters().Swallowed != 1 {
		t.Errorf("%v came out, counters %+v", out, p.counters())
	}
}

func TestPipeDoesNotAllocate(t *testing.T) {
	p := newPipe(1, Params{Delay: 5 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.1, Duplicate: 0.1, Rate: 1e9})
	now, frame := epoch, frameOf(0, 1500)
	step := func() {
		now = now.Add(time.Millisecond)
		p.offer(now, frame)
		for k := p.pop(now); k != nil; k = p.pop(now) {
			p.delivered(k)
		}
	}
	for range 1000 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations per packet", n)
	}
}
