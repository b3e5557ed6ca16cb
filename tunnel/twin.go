package tunnel

import (
	"fmt"
	"time"
)

// twinWatch notices that two machines use one node's key, as after a disk was
// cloned: their epochs take turns, and both have sent for longer than twinOverlap
// since they met. After a restart the late frames of the run before may come between
// those of the new one for as long as they like, but their time stamps end where the
// new run begins: both have the clock of one machine. The zero value is ready.
type twinWatch struct {
	runs    [twinRuns]twinRun // the first known, that was heard last in front
	known   int
	returns int       // times that such epochs took turns
	last    time.Time // the last of them
	told    bool      // and in the log
}

// twinRun is an epoch of the node. Stamps are those of Tag.SentAt, in microseconds
// since the sender's machine was booted, which wrap.
type twinRun struct {
	epoch uint32
	sent  uint32    // the newest stamp
	heard time.Time // when a frame last came
	met   uint32    // when another run was last heard for the first time, by both stamps
	lasts bool      // it went on after that
}

// see takes epoch and time stamp of an authenticated frame.
func (w *twinWatch) see(epoch, sent uint32, now time.Time) {
	if w.known > 0 && w.runs[0].epoch == epoch {
		w.runs[0].note(sent, now)
		return
	}
	for i := 1; i < w.known; i++ {
		r := w.runs[i]
		if r.epoch != epoch {
			continue
		}
		r.note(sent, now)
		if r.lasts && w.runs[0].lasts && now.Sub(w.last) >= twinSpacing {
			if now.Sub(w.last) > twinMemory {
				w.returns = 0
			}
			w.returns++
			w.last = now
		}
		copy(w.runs[1:i+1], w.runs[:i])
		w.runs[0] = r
		return
	}
	fresh := twinRun{epoch: epoch, sent: sent, heard: now, met: sent}
	for i := range w.known {
		w.runs[i].meet(&fresh)
	}
	copy(w.runs[1:], w.runs[:])
	w.runs[0] = fresh
	w.known = min(w.known+1, twinRuns)
}

// meet notes that two runs met at the newer of their stamps, if those may be of one
// clock: whichever is heard first, the frames of an ended one are older than that.
func (r *twinRun) meet(fresh *twinRun) {
	r.met, r.lasts = r.sent, false
	limit := int32(twinLate.Microseconds())
	switch later := int32(fresh.sent - r.sent); {
	case later > 0 && later < limit:
		r.met = fresh.sent
	case later < 0 && later > -limit && int32(r.sent-fresh.met) > 0:
		fresh.met = r.sent
	}
}

// note takes the stamp of a frame. After a long silence it may seem older than the last.
func (r *twinRun) note(sent uint32, now time.Time) {
	switch {
	case now.Sub(r.heard) > twinWraps:
		r.sent, r.met = sent, sent
	case int32(sent-r.sent) > 0:
		r.sent = sent
	}
	r.heard = now
	r.lasts = r.lasts || int32(r.sent-r.met) >= int32(twinOverlap.Microseconds())
}

// twins reports whether two machines seem to be at work.
func (w *twinWatch) twins(now time.Time) bool {
	return w.returns >= twinReturns && now.Sub(w.last) <= twinMemory
}

// begun reports, once each time, that two machines seem to be at work.
func (w *twinWatch) begun(now time.Time) bool {
	was := w.told
	w.told = w.twins(now)
	return w.told && !was
}

func twinWarning(name string) string {
	return fmt.Sprintf("Two machines seem to use the key of %s at once; each takes the other's sessions away. Give one of them a key of its own (fogplr keygen).", name)
}
