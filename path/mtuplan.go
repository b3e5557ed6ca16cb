package path

import (
	"math/bits"
	"time"
)

// likelyMTUs are those of carriers that are smaller than the usual ones, the most
// common first: the least for IPv6 and many a tunnel; IPsec and other tunnels in
// 1500 and 1492; mobile networks; one that a user met; the least for IPv4; and,
// where larger frames are sent, Ethernet, PPPoE and tunnels in them.
var likelyMTUs = [...]int{1280, 1340, 1300, 1360, 1358, 1124, 576, 1500, 1492, 1420, 1400, 1450, 1440, 1380, 1430, 1460}

// begin begins a search, with what is known to be missed.
func (s *Search) begin(now time.Time) {
	s.running, s.began, s.probes, s.unanswered, s.blocked = true, now, 0, 0, 0
}

// finish ends it. need is how often a size must be missed to be given up.
func (s *Search) finish(now time.Time, need int) {
	s.running = false
	hi, n := s.bound()
	s.settled = s.best == s.ceiling || hi != 0 && s.between(s.low(), hi) == 0 && n >= need
	pause := raiseSoon
	if s.settled && !s.baseLost && need <= 2*sizeTries { // more is a guess
		pause = raiseAfter
	}
	s.again = now.Add(pause)
	if s.event {
		s.again = latest(now, s.began.Add(searchSpacing))
	}
}

// raise searches for more than best. After a search that came to its end the size
// next above best is tried first: mostly nothing has changed, and that is all
// there is to do. In the state error it is the base, and that size is tried once.
func (s *Search) raise(now time.Time, need int) {
	if s.settled || s.event {
		clear(s.missed[:])
		next, n := s.above(s.low()), 0
		if next < s.base() {
			n = need - 1
		}
		s.miss(next, n)
	}
	for i := range s.missed { // a search before may have had more loss to contend with
		s.missed[i].n = min(s.missed[i].n, need-1)
	}
	s.event = false
	s.begin(now)
}

// hole begins anew from the base: best does not pass any more.
func (s *Search) hole(now time.Time) {
	s.holes++
	clear(s.missed[:])
	s.miss(s.best, s.unanswered)
	s.limit = smallestFrame
	if s.best > s.base() {
		s.limit = s.base()
	}
	s.best = 0
	s.begin(now)
}

// plan returns the size to try next in a search, 0 when that is at its end.
func (s *Search) plan(need int) int {
	if s.best == s.ceiling || s.probes >= searchProbes {
		return 0
	}
	lo := s.low()
	hi, n := s.bound()
	switch {
	case hi == 0, hi == s.ceiling && s.probes == 1 && n == 1: // one frame may get lost
		return s.ceiling
	case s.best < s.base() && s.misses(s.base()) < need:
		return s.base()
	case s.between(lo, hi) > 0:
		return s.pick(lo, hi, need)
	case n < need:
		return hi
	}
	return 0
}

// pick returns a size between lo, which passes, and hi, which does not seem to: a
// likely one of its family, or after one that passed the size above it, if what is
// left can still be halved to the end; else the middle. The other family's come
// last, since a translator may be on the way.
func (s *Search) pick(lo, hi, need int) int {
	left := searchProbes - s.probes - (need - 1)
	for _, ipv6 := range [...]bool{s.ipv6, !s.ipv6} {
		for _, mtu := range likelyMTUs {
			size := FrameFor(mtu, s.ceiling, ipv6)
			if size == lo {
				size = s.above(lo)
			}
			if size <= lo || size >= hi {
				continue
			}
			if 1+max(s.halvings(lo, size), s.halvings(size, hi)) <= left {
				return size
			}
		}
	}
	return s.sizeAt((index(lo) + index(hi)) / 2)
}

// Sizes have indexes: WireGuard's multiples of 16 below the ceiling, and the
// ceiling.
func index(size int) int { return (size + wireguardPadding - 1) / wireguardPadding }

func (s *Search) sizeAt(i int) int { return min(i*wireguardPadding, s.ceiling) }

func (s *Search) above(size int) int { return s.sizeAt(index(size) + 1) }

// between returns how many sizes there are between lo and hi.
func (s *Search) between(lo, hi int) int { return index(hi) - index(lo) - 1 }

// halvings returns how many tries at most tell which of the sizes from lo up to,
// not including, hi is the largest that passes.
func (s *Search) halvings(lo, hi int) int { return bits.Len(uint(s.between(lo, hi))) }

// bound returns the smallest of the missed sizes that are larger than what passes
// and how often it was missed, zeros when there is none.
func (s *Search) bound() (size, n int) {
	for _, m := range s.missed {
		if m.size > s.low() && (size == 0 || m.size < size) {
			size, n = m.size, m.n
		}
	}
	return size, n
}

// misses returns how often size was missed.
func (s *Search) misses(size int) int {
	for _, m := range s.missed {
		if m.size == size {
			return m.n
		}
	}
	return 0
}

// miss counts n misses of size. When too many sizes were missed, the largest is
// forgotten, as it bounds nothing.
func (s *Search) miss(size, n int) {
	at := 0
	for i, m := range s.missed {
		if m.size == size {
			s.missed[i].n += n
			return
		}
		if m.size == 0 || s.missed[at].size != 0 && m.size > s.missed[at].size {
			at = i
		}
	}
	s.missed[at] = sizeMiss{size, n}
}
