package tunnel

import (
	"sync/atomic"
	"time"
)

// window bounds how many frames are inside a WireGuard device at once, in one
// direction. wireguard-go would take 1,024 batches of up to 128 for each peer
// before it pushes back: hundreds of megabytes, and frames that are stale when
// they come out. With a window, the rest waits where it can be dropped for its
// age: in the queue on the way out, in the kernel's socket on the way in.
//
// The count is an estimate, since the device swallows what it cannot use
// (replayed or staged messages). So it fades, and when nothing leaves for a
// while the device is taken to be empty.
type window struct {
	limit   int64
	inside  atomic.Int64
	left    atomic.Int64 // how many ever did
	start   time.Time
	faded   atomic.Int64 // when, nanoseconds since start: the wall clock may go back
	waiting atomic.Bool
	wake    chan struct{}
}

func newWindow(limit int64) *window {
	return &window{limit: limit, start: time.Now(), wake: make(chan struct{}, 1)}
}

// admit waits until there is room.
func (w *window) admit() {
	w.fade(time.Now())
	for w.inside.Load() >= w.limit {
		before := w.left.Load()
		w.waiting.Store(true)
		if w.inside.Load() < w.limit {
			return
		}
		select {
		case <-w.wake:
			w.waiting.Store(true) // the receiver of the other family may wait, too
		case <-time.After(windowPatience):
			if w.left.Load() == before {
				w.inside.Store(0)
			}
		}
	}
}

// fade lets the count forget an eighth a second.
func (w *window) fade(now time.Time) {
	at, since := w.faded.Load(), int64(now.Sub(w.start))
	if since-at >= int64(time.Second) && w.faded.CompareAndSwap(at, since) {
		w.inside.Add(-w.inside.Load() / 8)
	}
}

// back takes back n of those that entered: the device did not want them.
func (w *window) back(n int) {
	if n > 0 {
		w.inside.Add(int64(-n))
	}
}

// enter counts n frames that the device was given.
func (w *window) enter(n int) { w.inside.Add(int64(n)) }

// leave counts n frames that came out of it.
func (w *window) leave(n int) {
	w.left.Add(int64(n))
	if w.inside.Add(int64(-n)) < 0 {
		w.inside.Store(0)
	}
	if w.waiting.Swap(false) {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}
