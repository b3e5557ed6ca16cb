package path

import "time"

// Hearing is the gateway's view of one robot carrier: whether it was heard
// lately. A gateway never probes; robots do, and announce how often. The zero
// value has heard nothing. One goroutine at a time; the caller locks.
type Hearing struct {
	last     time.Time
	interval time.Duration
	left     bool
}

// Heard says that an authenticated frame of any type arrived.
func (h *Hearing) Heard(now time.Time) { h.last, h.left = now, false }

// Announced says that a probe arrived which announced interval; it implies
// Heard. An interval of 0 is a farewell: until the carrier is heard again, it is
// neither live nor recent.
func (h *Hearing) Announced(interval time.Duration, now time.Time) {
	h.last = now
	h.interval = interval
	h.left = interval <= 0
}

// Live reports whether copies should go to this carrier: it was heard within
// three announced intervals, but within 3 s at least and two minutes at most.
func (h *Hearing) Live(now time.Time) bool {
	limit := min(max(hearingFactor*h.interval, hearingMin), hearingMax)
	return !h.last.IsZero() && !h.left && now.Sub(h.last) <= limit
}

// Recent reports whether the carrier was heard within 150 s, so that its key
// pair and its address may still be good: the ones to use when none of a
// robot's carriers is live.
func (h *Hearing) Recent(now time.Time) bool {
	return !h.last.IsZero() && !h.left && now.Sub(h.last) <= hearingRecent
}

// Left reports whether the last thing heard was a farewell.
func (h *Hearing) Left() bool { return h.left }

// Last returns when the carrier was last heard, zero for never.
func (h *Hearing) Last() time.Time { return h.last }
