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
