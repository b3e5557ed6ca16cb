package replicate

import "time"

// AgeFilter tells what waited in a sender that stood still, by the time stamps of
// frames: what ends a long silence of a path, and comes much later than the quickest
// frame of late, is old. A path that merely is slow, or queues, does not fall silent.
// The clocks at both ends need not agree, only run at one speed: the least difference
// stands for both what they differ and the delay of the path, as the base delay of
// RFC 6817 does (section 3.4.2).
//
//	arrived - sent
//	   ^                         xx    old: dropped
//	   |  - - - - - - - - - - - - - - - - limit
//	   |   x   x
//	   |  x  x   x   x             x  x  x
//	   +---------------------------------> base: the least of the last minute or two
//	                  | silence |
//
// It fails open: when frames go on being old for agePatience, a clock was set or the
// path became that slow, and what comes is the measure from then on. The zero value
// is ready; the caller serialises all calls for one path.
type AgeFilter struct {
	epoch uint32
	least [2]uint32 // of arrived - sent, microseconds, in this span and in the last
	began time.Time // of this span, zero for none
	last  time.Time // frame
	old   time.Time // the first of a run of old frames, zero for none
}

// Old takes the epoch and the time stamp of a frame (Tag.SentAt) that arrived at
// that time of the receiver's clock, both in microseconds that wrap, and reports
// whether it waited for more than limit (at most half an hour). It does not allocate.
func (f *AgeFilter) Old(epoch, sent, arrived uint32, limit time.Duration, now time.Time) bool {
	took := arrived - sent
	silent := now.Sub(f.last) > limit
	if f.began.IsZero() || epoch != f.epoch || now.Sub(f.last) > ageMemory {
		*f = AgeFilter{epoch: epoch, least: [2]uint32{took, took}, began: now}
	}
	f.last = now
	if now.Sub(f.began) >= ageSpan {
		f.least[1], f.least[0], f.began = f.least[0], took, now
	}
	if int32(took-f.least[0]) < 0 {
		f.least[0] = took
	}
	base := f.least[0]
	if int32(f.least[1]-base) < 0 {
		base = f.least[1]
	}
	switch {
	case int64(int32(took-base)) <= limit.Microseconds():
		f.old = time.Time{}
		return false
	case f.old.IsZero() && !silent:
		return false
	case f.old.IsZero():
		f.old = now
		return true
	case now.Sub(f.old) < agePatience:
		return true
	}
	*f = AgeFilter{epoch: epoch, least: [2]uint32{took, took}, began: now, last: now}
	return false
}
