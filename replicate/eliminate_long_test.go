//go:build long

package replicate

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestLongNoFalseDrop sends 10^8 numbers, across the wrap, over three paths: one
// loses 30 %, one comes up to 300 ms later, loses 20 % and mixes up the order,
// one comes 2.5 s later and loses 10 %. A bitmap of everything that was
// delivered says whether each verdict is right.
func TestLongNoFalseDrop(t *testing.T) {
	const (
		count = 100_000_000
		rate  = 20_000
		lagB  = 6_000
		lagC  = 50_000
		block = 4096 // path B mixes up this many at a time
	)
	e := NewEliminator()
	r := rand.New(rand.NewPCG(20260102, 8))
	delivered := make([]uint64, count/64+1)
	var wantPassed, wantDiscarded uint64
	epoch := r.Uint32()
	stream := Numberer{last: 1<<32 - count/2}
	first := stream.last + 1
	now, settled := t0, t0
	arrive := func(n int) {
		word, bit := n/64, uint64(1)<<(n%64)
		want := Pass
		if delivered[word]&bit != 0 {
			want = Discard
			wantDiscarded++
		} else {
			wantPassed++
		}
		delivered[word] |= bit
		if got := e.Accept(epoch, first+Seq(n), now); got != want {
			t.Fatalf("number %d of %d: verdict %d, want %d", n, count, got, want)
		}
	}
	for n := range count + lagC {
		dice := r.Uint64()
		if n < count {
			if got := stream.Next(); got != first+Seq(n) {
				t.Fatalf("number %d is %d", n, got)
			}
			if dice&1023 >= 307 {
				arrive(n)
			}
		}
		b := n - lagB
		b = b&^(block-1) | b*1021&(block-1)
		if b >= 0 && b < count && dice>>10&1023 >= 205 {
			arrive(b)
		}
		if c := n - lagC; c >= 0 && dice>>20&1023 >= 102 {
			arrive(c)
		}
		if n%(rate/1000) == 0 {
			now = now.Add(time.Millisecond)
			if now.Sub(settled) >= time.Second {
				settled = now
				e.Settle(now)
			}
		}
	}
	for range 3 {
		now = now.Add(time.Second)
		e.Settle(now)
	}
	got := e.Counters()
	if got.Passed != wantPassed || got.Discarded != wantDiscarded || got.Rogue != 0 || got.Resets != 0 {
		t.Errorf("%+v, want %d passed, %d discarded", got, wantPassed, wantDiscarded)
	}
	// Of the numbers before the first one seen and after the last, a handful,
	// nobody knows that they are missing.
	if missing := count - wantPassed; got.Lost > missing || got.Lost < missing-1000 {
		t.Errorf("lost %d of %d missing", got.Lost, missing)
	}
	t.Logf("%+v after %v of traffic", got, now.Sub(t0))
}
