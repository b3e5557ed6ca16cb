package tunnel

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Calls come at short intervals while there is traffic, at long ones when there is
// none, and at once when it begins again.
func TestRhythm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var at []time.Duration
		quietFrom, quietTo := start.Add(400*time.Millisecond), start.Add(2500*time.Millisecond)
		r := newRhythm(100*time.Millisecond, time.Second)
		ended := make(chan error)
		go func() {
			ended <- r.run(ctx, start, func(now time.Time) bool { return now.After(quietFrom) && now.Before(quietTo) }, func() {
				at = append(at, time.Since(start))
			})
		}()
		time.Sleep(450 * time.Millisecond)
		r.stir() // does nothing: it is not slow yet
		time.Sleep(2100 * time.Millisecond)
		r.stir()
		time.Sleep(200 * time.Millisecond)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		var want []time.Duration
		for _, ms := range []int{100, 200, 300, 400, 500, 1000, 2000, 2550, 2600, 2700} {
			want = append(want, time.Duration(ms)*time.Millisecond)
		}
		if !slices.Equal(at, want) {
			t.Errorf("called at %v, want %v", at, want)
		}
	})
}

// A node without traffic beats at a slow pace, until a packet comes.
func TestQuietNode(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	r := w.robots[0]
	slow := func() bool { return r.beats.slow.Load() && r.keeps.slow.Load() }
	for end := time.Now().Add(quietAfter + within); !slow(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not slow down")
		}
	}
	p := inner(t, "10.77.0.101", "10.77.0.11", 17, 7400, []byte("first"))
	w.hosts["robot0"].out <- p
	w.hosts["gateway0"].receive(t, within)
	for end := time.Now().Add(within); r.beats.slow.Load() || r.keeps.slow.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it stays slow")
		}
	}
	if out, in := r.Status().Out.Stale, w.gateways[0].Status().In.Stale; out+in > 0 {
		t.Errorf("%d and %d taken for stale", out, in)
	}
}
