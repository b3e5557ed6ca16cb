package tunnel

import (
	"testing"
	"time"
)

func TestWindowBounds(t *testing.T) {
	w := newWindow(10)
	w.admit()
	w.enter(12)
	admitted := make(chan time.Time, 1)
	go func() {
		w.admit()
		admitted <- time.Now()
	}()
	for range 3 { // three times 4 frames leave, each well within the patience
		select {
		case <-admitted:
			if n := w.inside.Load(); n >= 10 {
				t.Fatalf("admitted with %d frames inside", n)
			}
			return
		case <-time.After(windowPatience / 4):
			w.leave(4)
		}
	}
	<-admitted
}

// What the device swallowed must not keep the others out for ever.
func TestWindowForgetsWhatNeverLeaves(t *testing.T) {
	w := newWindow(10)
	w.enter(1000)
	done := make(chan struct{})
	go func() {
		w.admit()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(within):
		t.Fatal("the window stayed closed")
	}
	w.leave(50) // and what leaves late must not open it wider
	if n := w.inside.Load(); n != 0 {
		t.Errorf("%d frames inside", n)
	}
}

func TestWindowAllocatesNothingWhileOpen(t *testing.T) {
	w := newWindow(10)
	if n := testing.AllocsPerRun(100, func() { w.admit(); w.enter(5); w.leave(5) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Replayed messages never leave, but other frames do: the window must not close
// bit by bit.
func TestWindowFades(t *testing.T) {
	w := newWindow(1000)
	now := w.start
	for range 3600 {
		now = now.Add(time.Second)
		w.fade(now)
		w.enter(600) // of which 100 are swallowed
		w.leave(500)
	}
	if n := w.inside.Load(); n > 900 {
		t.Errorf("%d frames are thought to be inside", n)
	}
}

// A flood of forged messages, which the device leaves in their buffers, must
// not fill the window.
func TestForgedMessagesLeaveTheWindow(t *testing.T) {
	w := newWindow(1000)
	var g givenFrames
	bufs, sizes := fillBufs()
	kept := make([]byte, 1<<16)
	for i := range bufs {
		bufs[i][0], sizes[i] = 4, 100
	}
	for range 100 {
		w.back(g.unused(bufs))
		w.enter(g.note(bufs, sizes))
		bufs[7], kept = kept, bufs[7] // one is genuine
		bufs[7][0] = 4
	}
	w.back(g.unused(bufs))
	if n := w.inside.Load(); n != 100 {
		t.Errorf("%d frames inside, want the 100 genuine ones", n)
	}
	sizes[3] = 32 // a keepalive
	bufs[4][0] = 1
	if n := g.note(bufs, sizes); n != batchPackets-2 {
		t.Errorf("%d of %d messages count as frames, with a keepalive and a handshake among them", n, batchPackets)
	}
}
