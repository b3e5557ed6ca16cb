package tunnel

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// standstill notices that this program or machine stood still: SIGSTOP, a suspend,
// a busy machine that did not run us. What waited meanwhile in sockets, in the TUN
// device's queue and inside here is stale, and those who read or send it ask
// before they go on. A heart beats every beatInterval; a gap in it is a standstill.
// CLOCK_MONOTONIC, which now's distances go by, does not run during a suspend: there
// the gap is in how far CLOCK_BOOTTIME is ahead of it. What was just entering the
// kernel by a carrier leaves nevertheless; the other end tells it by its stamp. stale
// and stamp may be called by any goroutine, tick by one.
//
//	   last beat          first beat after it
//	-----|..................|-----------------|----------->
//	     stood still         settling          woke
//	            stale: yes   stale: yes        stale: no
type standstill struct {
	start time.Time
	awake time.Duration // CLOCK_MONOTONIC at start
	// asleep returns how far CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC.
	asleep func() time.Duration
	limit  atomic.Int64 // a longer gap is a standstill, nanoseconds

	// As of the last beat, in nanoseconds.
	beat  atomic.Int64 // when it was, since start
	slept atomic.Int64 // what asleep returned
	wall  atomic.Int64 // the wall clock less beat
	until atomic.Int64 // since start: until then all is stale

	// What was dropped: datagrams and frames on the way in, inner packets and
	// datagrams on the way out.
	in, out atomic.Uint64

	pending woken // tick only: a standstill that is not over yet
}

// woken tells of a standstill that is over.
type woken struct {
	since time.Time     // the last beat before it
	stood time.Duration // for how long, 0 for no standstill
}

// unbeaten is the time of the last beat before there was any: nothing is stale.
const unbeaten = 1 << 62

// newStandstill returns one whose heart does not beat yet.
func newStandstill(deadline time.Duration, now time.Time, asleep func() time.Duration) *standstill {
	s := &standstill{start: now, awake: awake(), asleep: asleep}
	s.setDeadline(deadline)
	s.beat.Store(unbeaten)
	s.slept.Store(int64(asleep()))
	s.wall.Store(now.UnixNano())
	return s
}

// setDeadline says how old a packet may be.
func (s *standstill) setDeadline(d time.Duration) { s.limit.Store(int64(max(d, leastStandstill))) }

// tolerance is how much later than others a frame may come and not be taken for one
// that waited in a sender that stood still.
func (s *standstill) tolerance() time.Duration {
	return max(time.Duration(s.limit.Load()), leastAged)
}

// stale reports whether what is read now may have waited in a standstill. A nil
// standstill never was.
func (s *standstill) stale(now time.Time) bool {
	return s != nil && s.staleAt(int64(now.Sub(s.start)), now.UnixNano())
}

// staleAt is stale at that time since start, by that wall clock, in nanoseconds.
func (s *standstill) staleAt(at, wall int64) bool {
	limit := s.limit.Load()
	if at-s.beat.Load() > limit || at < s.until.Load() {
		return true
	}
	// During a suspend the wall clock ran ahead, too, and it costs nothing to see
	// that. But it may have been set as well.
	return wall-at-s.wall.Load() > limit && int64(s.asleep())-s.slept.Load() > limit
}

// tick is the heartbeat. It returns a standstill once what waited in it is gone.
func (s *standstill) tick(now time.Time) woken {
	return s.tickAt(int64(now.Sub(s.start)), now.UnixNano())
}

func (s *standstill) tickAt(at, wall int64) (w woken) {
	last, asleep := s.beat.Load(), int64(s.asleep())
	gap := at - last + asleep - s.slept.Load()
	if gap > s.limit.Load() {
		s.until.Store(at + int64(settling)) // before the beat, which ends the gap
		if s.pending.stood == 0 {
			s.pending.since = s.start.Add(time.Duration(last))
		}
		s.pending.stood += time.Duration(gap)
	}
	s.slept.Store(asleep)
	s.wall.Store(wall - at)
	s.beat.Store(at)
	if s.pending.stood > 0 && at >= s.until.Load() {
		w, s.pending = s.pending, woken{}
	}
	return w
}

// stamp is the clock of Tag.SentAt: microseconds of CLOCK_BOOTTIME, which nobody
// sets, which all runs on one machine share, and which runs during a suspend, though
// that shows only from the next beat on.
func (s *standstill) stamp(now time.Time) uint32 {
	return uint32((s.awake + now.Sub(s.start) + time.Duration(s.slept.Load())).Microseconds())
}

// awake returns for how long the machine ran since it booted, and asleep for how long
// it was suspended.
func awake() time.Duration { return clock(unix.CLOCK_MONOTONIC) }

func asleep() time.Duration {
	mono := awake()
	return clock(unix.CLOCK_BOOTTIME) - mono
}

func clock(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t) // cannot fail for those that Linux has
	return time.Duration(t.Nano())
}
