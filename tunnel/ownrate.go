package tunnel

import "time"

// ownRate tells what a carrier's own traffic makes in a day: what it was in the
// last 24 hours, or before that what it would come to. The handshakes and searches
// of a start are no measure and left out. The zero value is ready. The caller locks.
type ownRate struct {
	marks [ownMarks]ownMark // ring
	count int               // marks so far
}

// ownMark is how many bytes it was at a time.
type ownMark struct {
	at    time.Time
	total uint64
}

// note takes the bytes so far, since the carrier began at start. It should be
// called more often than every ownEvery.
func (r *ownRate) note(total uint64, start, now time.Time) {
	due := start.Add(ownSettles)
	if r.count > 0 {
		due = r.marks[(r.count-1)%ownMarks].at.Add(ownEvery)
	}
	if !now.Before(due) {
		r.marks[r.count%ownMarks] = ownMark{now, total}
		r.count++
	}
}

// perDay returns bytes, 0 when it is too early to tell.
func (r *ownRate) perDay(total uint64, now time.Time) uint64 {
	for i := min(r.count, ownMarks); i > 0; i-- {
		oldest := r.marks[(r.count-i)%ownMarks]
		since := now.Sub(oldest.at)
		if i > 1 && since > day {
			continue
		}
		if since < ownRateAfter {
			break
		}
		return uint64(float64(max(total, oldest.total)-oldest.total) * float64(day) / float64(since))
	}
	return 0
}

const day = 24 * time.Hour
