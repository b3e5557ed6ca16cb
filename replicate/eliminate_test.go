package replicate

import (
	"testing"
	"time"
)

// t0 is when tests begin.
var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// step is one call of Accept and what it must return.
type step struct {
	after time.Duration // since the step before; Settle is called every second of it
	epoch uint32
	seq   Seq
	want  Verdict
}

const (
	last    = Seq(1<<32 - 1)
	epA     = uint32(0xa)
	epB     = uint32(0xb)
	epC     = uint32(0xc)
	million = Seq(1000000)
)

var sequences = []struct {
	name  string
	steps []step
	want  Counters
}{
	{
		name: "copies",
		steps: []step{
			{0, epA, 1, Pass}, {0, epA, 1, Discard}, {0, epA, 2, Pass}, {0, epA, 1, Discard}, {0, epA, 2, Discard},
		},
		want: Counters{Passed: 2, Discarded: 3},
	},
	{
		name: "10, 9, 12, 11",
		steps: []step{
			{0, epA, 10, Pass}, {0, epA, 9, Pass}, {0, epA, 12, Pass}, {0, epA, 11, Pass},
			{0, epA, 10, Discard}, {0, epA, 9, Discard}, {0, epA, 12, Discard}, {0, epA, 11, Discard},
		},
		want: Counters{Passed: 4, Discarded: 4, OutOfOrder: 2},
	},
	{
		name: "edges of the window",
		steps: []step{
			{0, epA, million, Pass},
			{0, epA, million - (Window - 1), Pass},
			{0, epA, million - (Window - 1), Discard},
			{0, epA, million - Window, Rogue},
			{0, epA, million + 1, Pass}, // its bit was that of million-(Window-1)
			{0, epA, million - (Window - 1), Rogue},
			{0, epA, million - (Window - 2), Pass},
			{0, epA, million, Discard},
		},
		want: Counters{Passed: 4, Discarded: 2, OutOfOrder: 2, Rogue: 2},
	},
	{
		name: "wrap",
		steps: []step{
			{0, epA, last - 1, Pass}, {0, epA, 1, Pass}, {0, epA, last, Pass}, {0, epA, 0, Pass},
			{0, epA, last - 1, Discard}, {0, epA, last, Discard}, {0, epA, 0, Discard}, {0, epA, 1, Discard},
			{0, epA, last - 65000, Pass}, {0, epA, last - (Window - 2), Rogue},
		},
		want: Counters{Passed: 5, Discarded: 4, OutOfOrder: 3, Rogue: 1},
	},
	{
		name: "first number is 0 and those before it come",
		steps: []step{
			{0, epA, 0, Pass}, {0, epA, last, Pass}, {0, epA, last, Discard}, {0, epA, last - (Window - 2), Pass},
			{0, epA, last - (Window - 1), Rogue},
		},
		want: Counters{Passed: 3, Discarded: 1, OutOfOrder: 2, Rogue: 1},
	},
	{
		name: "jump ahead of one window forgets all but the new number",
		steps: []step{
			{0, epA, 100, Pass}, {0, epA, 100 + Window, Pass}, {0, epA, 100, Rogue},
			{0, epA, 101, Pass}, {0, epA, 100 + Window, Discard},
		},
		want: Counters{Passed: 3, Discarded: 1, OutOfOrder: 1, Rogue: 1},
	},
	{
		name: "jump ahead of 2^31-1",
		steps: []step{
			{0, epA, 5, Pass}, {0, epA, 5 + 1<<31 - 1, Pass}, {0, epA, 5 + 1<<31 - 1, Discard},
			{0, epA, 4 + 1<<31 - 1, Pass}, {0, epA, 5, Pass}, // ahead again, round the circle
		},
		want: Counters{Passed: 4, Discarded: 1, OutOfOrder: 1, Lost: 1<<32 - 2 - Window},
	},
	{
		name: "the oldest that is rogue, and one more",
		steps: []step{
			{0, epA, 0, Pass}, {0, epA, 1<<32 - (farthestCopy - 1), Rogue},
			{0, epA, 1<<32 - farthestCopy, Pass}, {0, epA, 0, Pass}, {0, epA, 0, Discard},
		},
		want: Counters{Passed: 3, Discarded: 1, Rogue: 1, Lost: 1<<32 - 1 - Window},
	},
	{
		name: "10 minutes of silence reset nothing",
		steps: []step{
			{0, epA, 7, Pass}, {0, epA, 9, Pass},
			{10 * time.Minute, epA, 9, Discard}, {0, epA, 8, Pass}, {0, epA, 7, Discard}, {0, epA, 10, Pass},
			{10 * time.Minute, epA, 10 + Window, Pass}, {0, epA, 10, Rogue},
		},
		want: Counters{Passed: 5, Discarded: 2, OutOfOrder: 1, Rogue: 1},
	},
	{
		name: "10 minutes cut off while the sender goes on",
		steps: []step{
			{0, epA, 1, Pass}, {10 * time.Minute, epA, 12000001, Pass}, {0, epA, 12000000, Pass}, {0, epA, 1, Rogue},
		},
		want: Counters{Passed: 3, OutOfOrder: 1, Rogue: 1, Lost: 12000000 - Window},
	},
	{
		name: "restart: both epochs are eliminated for a while",
		steps: []step{
			{0, epA, 500, Pass}, {0, epA, 501, Pass},
			{0, epB, 1, Pass}, {0, epB, 1, Discard},
			{time.Second, epA, 501, Discard}, {0, epA, 502, Pass}, {0, epA, 500, Discard}, {0, epA, 499, Pass},
			{0, epB, 2, Pass}, {0, epA, 502, Discard}, {0, epB, 2, Discard},
		},
		want: Counters{Passed: 6, Discarded: 5, OutOfOrder: 1, Resets: 1},
	},
	{
		name: "restart: the old epoch is retired, refused for a minute, forgotten",
		steps: []step{
			{0, epA, 500, Pass}, {0, epB, 1, Pass},
			{5 * time.Second, epB, 2, Pass}, {0, epA, 501, Pass}, // in time
			{5 * time.Second, epB, 3, Pass},
			{time.Second, epA, 502, Rogue}, {0, epA, 500, Rogue},
			{58 * time.Second, epA, 503, Rogue}, {0, epB, 4, Pass},
			{2 * time.Second, epA, 504, Pass}, {0, epB, 5, Pass}, {0, epB, 4, Discard},
		},
		want: Counters{Passed: 8, Discarded: 1, Rogue: 3, Resets: 2},
	},
	{
		name: "a sender that says little is not shut out by a stray copy of its old epoch",
		steps: []step{
			{0, epB, 1, Pass}, {0, epA, 500, Pass},
			{30 * time.Second, epB, 2, Pass},
			{30 * time.Second, epB, 3, Pass}, {0, epB, 2, Discard},
			{time.Second, epA, 501, Rogue},
		},
		want: Counters{Passed: 4, Discarded: 1, Rogue: 1, Resets: 1},
	},
	{
		name: "the new epoch is not shut out by a modem that empties its queue of the old one",
		steps: []step{
			{0, epA, 500, Pass}, {0, epB, 1, Pass},
			{4 * time.Second, epA, 501, Pass}, {4 * time.Second, epA, 502, Pass}, {4 * time.Second, epA, 503, Pass},
			{time.Second, epB, 2, Pass}, {0, epB, 1, Discard},
		},
		want: Counters{Passed: 6, Discarded: 1, Resets: 1},
	},
	{
		name: "a newer epoch that was a stray is retired after a minute",
		steps: []step{
			{0, epB, 1, Pass}, {0, epA, 500, Pass},
			{59 * time.Second, epB, 2, Pass}, {time.Second, epA, 500, Discard},
			{0, epB, 3, Pass}, {time.Second, epA, 500, Rogue},
			{0, epC, 1, Pass}, {0, epB, 3, Discard}, // C took the free place
			{0, epC, 1, Discard},
		},
		want: Counters{Passed: 5, Discarded: 3, Rogue: 1, Resets: 2},
	},
	{
		name: "a third epoch takes the place of the one that delivered longest ago",
		steps: []step{
			{0, epA, 1, Pass}, {0, epB, 1, Pass}, {time.Second, epA, 2, Pass},
			{0, epC, 1, Pass}, {0, epB, 2, Rogue}, {0, epA, 2, Discard}, {0, epA, 3, Pass}, {0, epC, 1, Discard},
		},
		want: Counters{Passed: 5, Discarded: 2, Rogue: 1, Resets: 2},
	},
	{
		name: "epoch 0 is an epoch",
		steps: []step{
			{0, 0, 0, Pass}, {0, 0, 0, Discard}, {0, epA, 1, Pass}, {0, 0, 1, Pass},
		},
		want: Counters{Passed: 3, Discarded: 1, Resets: 1},
	},
}

// clock calls Settle every second, as a node does.
type clock struct {
	now, settled time.Time
}

func (c *clock) advance(e *Eliminator, by time.Duration) {
	to := c.now.Add(by)
	for !c.settled.Add(time.Second).After(to) {
		c.settled = c.settled.Add(time.Second)
		e.Settle(c.settled)
	}
	c.now = to
}

func TestAcceptSequences(t *testing.T) {
	for _, tt := range sequences {
		t.Run(tt.name, func(t *testing.T) {
			e := NewEliminator()
			c := clock{now: t0, settled: t0}
			for i, s := range tt.steps {
				c.advance(e, s.after)
				if got := e.Accept(s.epoch, s.seq, c.now); got != s.want {
					t.Fatalf("step %d: Accept(%#x, %d) = %d, want %d", i, s.epoch, s.seq, got, s.want)
				}
			}
			if got := e.Counters(); got != tt.want {
				t.Errorf("counters %+v,\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestLost(t *testing.T) {
	e := NewEliminator()
	c := clock{now: t0, settled: t0}
	accept := func(seqs ...Seq) {
		for _, s := range seqs {
			e.Accept(epA, s, c.now)
		}
	}
	expect := func(when string, lost uint64) {
		t.Helper()
		if got := e.Counters().Lost; got != lost {
			t.Fatalf("%s: lost %d, want %d", when, got, lost)
		}
	}
	accept(100)
	c.advance(e, 3*time.Second)
	expect("numbers before the first are not counted", 0)
	c.advance(e, 500*time.Millisecond)
	accept(104, 90)
	c.advance(e, 600*time.Millisecond)
	expect("too young", 0)
	c.advance(e, 900*time.Millisecond)
	expect("a second or two later", 3)
	c.advance(e, time.Minute)
	expect("counted once", 3)
	accept(102, 102, 95)
	expect("102 came after all", 2)
	accept(104 + Window)
	expect("101 and 103 left the window, 105 to 104+Window are in it", 2)
	accept(101)
	expect("rogue numbers stay lost", 2)
	c.advance(e, 3*time.Second)
	expect("none of the window came", 2+Window-1)
	accept(106)
	expect("but 106 did", 2+Window-2)
	accept(200 + Window)
	c.advance(e, 3*time.Second)
	expect("95 more", 2+Window-2+95)
	e.Accept(epB, 1, c.now)
	accept(203 + Window)
	e.Accept(epB, 1, c.now)
	c.advance(e, 6*time.Second)
	e.Accept(epB, 2, c.now)
	accept(206 + Window)
	c.advance(e, 6*time.Second)
	e.Accept(epB, 4, c.now)
	c.advance(e, time.Second) // retires A
	if v := e.Accept(epA, 207+Window, c.now); v != Rogue {
		t.Fatalf("the old epoch is not retired: %d", v)
	}
	expect("the old epoch's and none of the new one's yet", 2+Window-2+95+2+2)
	c.advance(e, 3*time.Second)
	expect("3 of the new one", 2+Window-2+95+2+2+1)
}

func TestLostWhenRetiredEarly(t *testing.T) {
	e := NewEliminator()
	e.Accept(epA, 1, t0)
	e.Accept(epA, 4, t0)
	e.Accept(epB, 1, t0.Add(time.Millisecond))
	e.Accept(epC, 1, t0.Add(2*time.Millisecond))
	if got := e.Counters(); got.Lost != 2 || got.Resets != 2 {
		t.Errorf("%+v", got)
	}
}

// At 200,000 packets/s the window passes before Settle comes.
func TestLostAtFullSpeed(t *testing.T) {
	e := NewEliminator()
	c := clock{now: t0, settled: t0}
	const n = 500_000
	var want uint64
	for i := range n {
		if i%10 == 3 {
			want++
		} else if v := e.Accept(epA, Seq(i), c.now); v != Pass {
			t.Fatalf("%d: %d", i, v)
		}
		c.advance(e, 5*time.Microsecond)
	}
	c.advance(e, 3*time.Second)
	if got := e.Counters(); got.Lost != want || got.Passed != n-want {
		t.Errorf("%+v, want %d lost", got, want)
	}
}

func TestTenRestarts(t *testing.T) {
	for _, gap := range []time.Duration{0, time.Millisecond, time.Second, 10 * time.Second} {
		e := NewEliminator()
		c := clock{now: t0, settled: t0}
		for epoch := uint32(1); epoch <= 10; epoch++ {
			for s := Seq(1); s <= 100; s++ {
				if v := e.Accept(epoch, s, c.now); v != Pass {
					t.Fatalf("gap %v: epoch %d, number %d: %d", gap, epoch, s, v)
				}
				if v := e.Accept(epoch, s, c.now); v != Discard {
					t.Fatalf("gap %v: copy in epoch %d, number %d: %d", gap, epoch, s, v)
				}
			}
			for old := uint32(1); old+1 < epoch; old++ {
				if time.Duration(epoch-2-old)*gap >= refuseFor {
					continue // forgotten
				}
				if v := e.Accept(old, 101, c.now); v != Rogue {
					t.Fatalf("gap %v: epoch %d in epoch %d: %d", gap, old, epoch, v)
				}
			}
			if epoch > 1 && gap < holdFor {
				if v := e.Accept(epoch-1, 50, c.now); v != Discard {
					t.Fatalf("gap %v: late copy of epoch %d in %d: %d", gap, epoch-1, epoch, v)
				}
			}
			c.advance(e, gap)
		}
		if got := e.Counters(); got.Passed != 1000 || got.Resets != 9 || got.Lost != 0 {
			t.Errorf("gap %v: %+v", gap, got)
		}
	}
}

func TestRetiredListForgetsTheOldest(t *testing.T) {
	e := NewEliminator()
	for epoch := uint32(1); epoch <= retiredEpochs+3; epoch++ {
		e.Accept(epoch, 1, t0)
	}
	if v := e.Accept(2, 1, t0); v != Rogue {
		t.Errorf("epoch 2 is retired: %d", v)
	}
	if v := e.Accept(1, 1, t0); v != Pass {
		t.Errorf("epoch 1 is forgotten: %d", v)
	}
}

func TestNoAllocations(t *testing.T) {
	frame := make([]byte, 1300)
	tag := Tag{Type: Data, Epoch: 1, Src: MakeAddress(2, 1), Dst: MakeAddress(11, 1)}
	e := NewEliminator()
	var d LatentDetector
	frames := [MaxSlot + 1]int{20, 0, 20}
	var seq Seq
	now := t0
	got := testing.AllocsPerRun(1000, func() {
		now = now.Add(time.Second)
		seq += 3
		tag.Seq = seq
		PutTag(frame, &tag)
		decoded, _, err := DecodeTag(frame)
		if err != nil || e.Accept(decoded.Epoch, decoded.Seq, now) != Pass || e.Accept(decoded.Epoch, seq, now) != Discard {
			t.Fatal("not accepted once")
		}
		e.Accept(uint32(seq), 1, now) // a new epoch each time
		e.Settle(now)
		d.Observe(now, &frames, 7)
	})
	if got != 0 {
		t.Errorf("%v allocations per packet", got)
	}
}
