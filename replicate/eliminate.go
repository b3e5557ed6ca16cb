package replicate

import "time"

// Verdict is what elimination says of one copy.
type Verdict uint8

// Verdicts. Only Pass is delivered.
const (
	Pass    Verdict = iota + 1 // the first copy of its number
	Discard                    // a copy of a number that was delivered
	Rogue                      // behind the window, or of a retired epoch
)

// Eliminator is the elimination function (PEF) for what one sender node sends
// to this node: it lets the first copy of each number pass. The caller
// serialises all calls; now must not go backwards.
//
// The epochs of a sender are random, so their order must be learnt. Two are
// live, each with its own bitmap; the one whose first number came later is the
// newer one.
//
//	  first number         it is silent for holdFor
//	  of an epoch          while the other delivers     refuseFor
//	-----------------> live ------------------------> retired ----> (unknown)
//	                        or: a third epoch
//
// A new epoch is live at once, beside the old one. An epoch is never retired by
// the clock alone, only when the other one has proved to be the sender's: a
// stray copy of an old epoch, which may come first after a restart of this
// node, cannot shut the true one out. The newer one is given refuseFor in place
// of holdFor. Where it is not clear whether a number was delivered, it passes:
// a rare duplicate is better than a false drop.
type Eliminator struct {
	counters Counters
	started  bool // an epoch has been seen
	live     [2]window
	newer    int // in live; used unless no epoch has been seen
	retired  [retiredEpochs]retirement
	oldest   int // in retired, overwritten next
}

// retirement is an epoch that is refused until the time given.
type retirement struct {
	epoch uint32
	until time.Time
}

// NewEliminator returns an Eliminator that has seen nothing. It holds 17 KiB
// and never grows.
func NewEliminator() *Eliminator { return new(Eliminator) }

// Accept judges one copy by the epoch and sequence number of its tag, and
// remembers the number as seen. The first number seen of an epoch passes
// whatever it is, and so do numbers before it, once each, as long as they are
// inside the Window. It does not allocate.
func (e *Eliminator) Accept(epoch uint32, seq Seq, now time.Time) Verdict {
	for i := range e.live {
		if w := &e.live[i]; w.used && w.epoch == epoch {
			return w.accept(seq, now, &e.counters)
		}
	}
	if e.refuses(epoch, now) {
		e.counters.Rogue++
		return Rogue
	}
	w := e.vacate(now)
	w.open(epoch, seq, now)
	if e.started {
		e.counters.Resets++
	}
	e.started = true
	e.counters.Passed++
	return Pass
}

// Settle counts as lost what has been missing for a second and retires the
// epoch that the sender has left. Call it about once a second.
func (e *Eliminator) Settle(now time.Time) {
	for i := range e.live {
		if w := &e.live[i]; w.used {
			e.counters.Lost += w.settle(now)
		}
	}
	older, newer := &e.live[1-e.newer], &e.live[e.newer]
	switch {
	case !older.used || !newer.used:
	case left(older, newer, holdFor):
		e.retire(older, now)
	case left(newer, older, refuseFor):
		e.retire(newer, now)
		e.newer = 1 - e.newer
	}
}

// Counters returns the counters as they are now. Lost follows a second or two
// behind, and falls again when a number that was given up comes after all.
func (e *Eliminator) Counters() Counters { return e.counters }

// left reports whether the sender has left the epoch of w for that of other:
// other still delivered after w had been silent for hold.
func left(w, other *window, hold time.Duration) bool {
	since := w.passedAt
	if other.opened.After(since) {
		since = other.opened
	}
	return other.passedAt.Sub(since) >= hold
}

// vacate returns the window for a new epoch. When both are in use, the epoch
// that delivered longest ago gives way.
func (e *Eliminator) vacate(now time.Time) *window {
	i := 1 - e.newer
	if e.live[i].used {
		if e.live[e.newer].passedAt.Before(e.live[i].passedAt) {
			i = e.newer
		}
		e.retire(&e.live[i], now)
	}
	e.newer = i
	return &e.live[i]
}

func (e *Eliminator) retire(w *window, now time.Time) {
	e.counters.Lost += w.close()
	e.retired[e.oldest] = retirement{epoch: w.epoch, until: now.Add(refuseFor)}
	e.oldest = (e.oldest + 1) % len(e.retired)
}

// refuses reports whether the epoch was retired less than refuseFor ago.
func (e *Eliminator) refuses(epoch uint32, now time.Time) bool {
	for i := range e.retired {
		if r := &e.retired[i]; r.epoch == epoch && now.Before(r.until) {
			return true
		}
	}
	return false
}
