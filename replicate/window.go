package replicate

import (
	"math/bits"
	"time"
)

// window remembers which of the last Window numbers of one epoch were seen.
//
// Inside, numbers are positions: 64 bits wide, the low 32 are the number, and
// they start above 2^32, so that they neither wrap nor go below zero and are
// compared with a plain <. The bit of a position stands at position mod Window.
//
//	      start        settled        mark             top
//	--------|-------------|-------------|---------------|
//	        never counted | lost unless | too young to
//	        before it     | seen        | be lost
//
// start <= settled, and settled >= top-Window: a missing number that leaves the
// window is lost at once.
type window struct {
	epoch    uint32
	used     bool
	opened   time.Time // when the first number came
	passedAt time.Time // when a number was last delivered
	top      uint64    // highest position seen
	start    uint64    // first position seen
	settled  uint64    // missing positions up to here have been counted as lost
	mark     uint64    // top as it was at markedAt
	markedAt time.Time
	seen     [Window / 64]uint64
}

// open starts the window with the first number seen of an epoch.
func (w *window) open(epoch uint32, seq Seq, now time.Time) {
	first := 1<<32 | uint64(seq)
	*w = window{
		epoch: epoch, used: true, opened: now, passedAt: now,
		top: first, start: first, settled: first, mark: first, markedAt: now,
	}
	w.set(first)
}

// accept judges one number and counts what became of it.
func (w *window) accept(seq Seq, now time.Time, c *Counters) Verdict {
	behind := uint64(uint32(w.top) - uint32(seq))
	switch {
	case behind < Window:
		at := w.top - behind
		if w.has(at) {
			c.Discarded++
			return Discard
		}
		w.set(at)
		c.OutOfOrder++
		if w.start < at && at <= w.settled {
			c.Lost--
		}
	case behind < farthestCopy:
		c.Rogue++
		return Rogue
	default:
		c.Lost += w.advance(w.top + uint64(uint32(seq)-uint32(w.top)))
	}
	w.passedAt = now
	c.Passed++
	return Pass
}

// advance moves the top to a later position, which is thereby seen, and returns
// how many numbers left the window unseen.
func (w *window) advance(to uint64) (lost uint64) {
	if floor := to - Window; w.settled < floor {
		inside := min(floor, w.top)
		lost = w.missing(w.settled, inside) + floor - inside
		w.settled = floor
	}
	if to-w.top >= Window {
		clear(w.seen[:])
	} else {
		w.forget(w.top, to)
	}
	w.top = to
	w.set(to)
	return lost
}

// settle counts the numbers that have been missing for lossAge.
func (w *window) settle(now time.Time) (lost uint64) {
	if now.Sub(w.markedAt) < lossAge {
		return 0
	}
	if w.settled < w.mark {
		lost = w.missing(w.settled, w.mark)
		w.settled = w.mark
	}
	w.mark, w.markedAt = w.top, now
	return lost
}

// close ends the epoch: what is missing now stays so.
func (w *window) close() (lost uint64) {
	w.used = false
	return w.missing(w.settled, w.top)
}

func (w *window) has(at uint64) bool {
	return w.seen[at/64%uint64(len(w.seen))]&(1<<(at%64)) != 0
}

func (w *window) set(at uint64) {
	w.seen[at/64%uint64(len(w.seen))] |= 1 << (at % 64)
}

// missing returns how many positions after `after` up to `last`, all inside
// the window, were not seen.
func (w *window) missing(after, last uint64) (n uint64) {
	for at := after + 1; at <= last; {
		word, mask, next := span(at, last)
		n += uint64(bits.OnesCount64(^w.seen[word] & mask))
		at = next
	}
	return n
}

// forget marks the positions after `after` up to `last` as not seen.
func (w *window) forget(after, last uint64) {
	for at := after + 1; at <= last; {
		word, mask, next := span(at, last)
		w.seen[word] &^= mask
		at = next
	}
}

// span returns the word that holds position at, the mask of the positions from
// at to last in it, and the first position behind it.
func span(at, last uint64) (word int, mask, next uint64) {
	n := min(64-at%64, last-at+1)
	return int(at / 64 % (Window / 64)), ^uint64(0) >> (64 - n) << (at % 64), at + n
}
