package tunnel

import (
	"fmt"
	"time"
)

// twinWatch notices that two machines use one node's key, as after a disk was
// cloned: their epochs take turns for longer than the late frames of a restart
// do. The zero value is ready.
type twinWatch struct {
	epoch, before uint32
	returns       int       // seconds in which an earlier epoch came back
	last          time.Time // the last of them
}

// see takes the epoch of an authenticated frame.
func (w *twinWatch) see(epoch uint32, now time.Time) {
	if epoch == w.epoch {
		return
	}
	if epoch == w.before && now.Sub(w.last) >= time.Second {
		if now.Sub(w.last) > twinMemory {
			w.returns = 0
		}
		w.returns++
		w.last = now
	}
	w.epoch, w.before = epoch, w.epoch
}

// twins reports whether two machines seem to be at work.
func (w *twinWatch) twins(now time.Time) bool {
	return w.returns >= twinReturns && now.Sub(w.last) <= twinMemory
}

func twinWarning(name string) string {
	return fmt.Sprintf("Two machines seem to use the key of %s at once; each takes the other's sessions away. Give one of them a key of its own (fogplr keygen).", name)
}
