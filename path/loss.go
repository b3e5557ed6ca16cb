package path

import "time"

// Loss measures the loss of one direction of one path at its receiver, by the
// path's own sequence numbers: a packet that took another path is no loss here.
// The zero value is ready. One goroutine at a time; the caller locks. Nothing
// allocates.
type Loss struct {
	started     bool
	epoch, old  uint32 // of the sender, and the one before
	lowest, top uint32 // numbers seen in this epoch
	// curSeen and oldSeen say which of them came in the bucket at hand; oldAlone is in
	// how many buckets in a row only the old one did, silent ones left out.
	curSeen, oldSeen bool
	oldAlone         int

	received, expected uint32 // since the beginning, wrapping
	anew               bool   // the next frame begins the window of Share

	buckets [lossBuckets]lossCount // ring; the current one is at pos
	pos     int
	mark    lossCount // totals when the current bucket began
	began   time.Time // of the current bucket
}

type lossCount struct{ received, expected uint32 }

// Seen counts an authenticated frame with the epoch of its sender and its
// sequence number on this path. Numbers may wrap and come out of order; a
// number must not come twice (WireGuard's replay filter sees to it). Late
// frames of the epoch before the current one are ignored, but for seconds only: one
// that goes on alone is the current one again, as after two machines had one key. It
// reports whether the epoch is another than before on this path; Share begins anew
// with it.
func (l *Loss) Seen(epoch, seq uint32) (fresh bool) {
	before := l.received
	fresh = l.seen(epoch, seq)
	if l.received != before && (fresh || l.anew) {
		l.anew = false
		clear(l.buckets[:])
		l.mark = lossCount{l.received - 1, l.expected - 1}
	}
	return fresh
}

func (l *Loss) seen(epoch, seq uint32) (fresh bool) {
	switch {
	case !l.started:
		l.started = true
		l.old = epoch
		l.start(epoch, seq)
		return true
	case epoch != l.epoch:
		if epoch == l.old && l.oldAlone < oldReturns {
			l.oldSeen = true
			return false
		}
		l.old = l.epoch
		l.start(epoch, seq)
		return true
	}
	l.curSeen, l.oldAlone = true, 0
	ahead := int32(seq - l.top)
	switch {
	case ahead > 0:
		l.expected += uint32(ahead)
		l.top = seq
	case ahead < -lossResync:
		l.start(epoch, seq)
		return false
	case int32(seq-l.lowest) < 0: // sent before the first that came
		l.expected += l.lowest - seq
		l.lowest = seq
	}
	l.received++
	return false
}

func (l *Loss) start(epoch, seq uint32) {
	l.epoch, l.lowest, l.top = epoch, seq, seq
	l.curSeen, l.oldSeen, l.oldAlone = true, false, 0
	l.expected++
	l.received++
}

// Renew has the next frame begin the window of Share: what got lost in an outage says
// nothing of the path after it. Totals go on.
func (l *Loss) Renew() { l.anew = true }

// Roll moves the window of Share; call it about once a second. Time is counted by it.
func (l *Loss) Roll(now time.Time) {
	if l.began.IsZero() {
		l.began = now
	}
	steps := int(min(now.Sub(l.began)/lossBucket, lossBuckets+1))
	for range steps {
		l.buckets[l.pos] = lossCount{l.received - l.mark.received, l.expected - l.mark.expected}
		l.mark = lossCount{l.received, l.expected}
		l.pos = (l.pos + 1) % lossBuckets
		l.began = l.began.Add(lossBucket)
		if l.oldSeen && !l.curSeen {
			l.oldAlone++
		}
		l.curSeen, l.oldSeen = false, false
	}
	if now.Sub(l.began) >= lossBucket { // slept
		l.began = now
	}
}

// Share returns the share (0 to 1) of frames lost over about the last 10 s, -1
// when none was expected in that time.
func (l *Loss) Share() float64 {
	received := int32(l.received - l.mark.received)
	expected := int32(l.expected - l.mark.expected)
	for _, b := range l.buckets {
		received += int32(b.received)
		expected += int32(b.expected)
	}
	if expected <= 0 {
		return -1
	}
	return max(0, float64(expected-received)/float64(expected))
}

// Epoch returns the sender's current epoch on this path, 0 before the first frame.
func (l *Loss) Epoch() uint32 { return l.epoch }

// Totals returns the frames received and those expected since the beginning;
// both wrap.
func (l *Loss) Totals() (received, expected uint32) { return l.received, l.expected }
