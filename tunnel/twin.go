package tunnel

import (
	"fmt"
	"time"
)

// twinWatch notices that two machines use one node's key, as after a disk was
// cloned: their epochs take turns, and both have sent for longer than twinOverlap
// since they met. After a restart the late frames of the run before may come between
// those of the new one for as long as they like, but their time stamps end where the
// new run begins. The zero value is ready.
type twinWatch struct {
	runs    [twinRuns]twinRun // the first known, that was heard last in front
	known   int
	returns int       // times that such epochs took turns
	last    time.Time // the last of them
	told    bool      // and in the log
}

// twinRun is an epoch of the node. Stamps are those of Tag.SentAt, in microseconds of
// the sender's clock, which wrap.
type twinRun struct {
	epoch uint32
	sent  uint32 // the newest stamp
	met   uint32 // the newest when another run was last heard for the first time
}

// lasts reports whether the run went on after it met another.
func (r *twinRun) lasts() bool { return r.sent-r.met >= uint32(twinOverlap.Microseconds()) }

// see takes epoch and time stamp of an authenticated frame.
func (w *twinWatch) see(epoch, sent uint32, now time.Time) {
	if w.known > 0 && w.runs[0].epoch == epoch {
		w.runs[0].note(sent)
		return
	}
	for i := 1; i < w.known; i++ {
		r := w.runs[i]
		if r.epoch != epoch {
			continue
		}
		r.note(sent)
		if r.lasts() && w.runs[0].lasts() && now.Sub(w.last) >= twinSpacing {
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
	for i := range w.runs {
		w.runs[i].met = w.runs[i].sent
	}
	copy(w.runs[1:], w.runs[:])
	w.runs[0] = twinRun{epoch, sent, sent}
	w.known = min(w.known+1, twinRuns)
}

func (r *twinRun) note(sent uint32) {
	if int32(sent-r.sent) > 0 {
		r.sent = sent
	}
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
