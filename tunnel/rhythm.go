package tunnel

import (
	"context"
	"sync/atomic"
	"time"
)

// rhythm calls something at intervals: short ones while there is traffic, long ones
// while there is none, since each call wakes the machine. Both are counted from the
// same start, so that several rhythms wake it together.
type rhythm struct {
	busy, idle time.Duration
	slow       atomic.Bool
	stirred    chan struct{} // has room for one
}

func newRhythm(busy, idle time.Duration) *rhythm {
	return &rhythm{busy: busy, idle: idle, stirred: make(chan struct{}, 1)}
}

// run calls f until ctx ends; quiet says whether long intervals will do.
func (r *rhythm) run(ctx context.Context, start time.Time, quiet func(now time.Time) bool, f func()) error {
	t := time.NewTimer(r.busy)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.stirred:
		case <-t.C:
		}
		f()
		now := time.Now()
		interval := r.busy
		if r.slow.Store(quiet(now)); r.slow.Load() {
			interval = r.idle
		}
		t.Reset(interval - now.Sub(start)%interval)
	}
}

// stir ends a long interval now, since there is traffic again. Any goroutine may
// call it, for every packet.
func (r *rhythm) stir() {
	if !r.slow.Load() {
		return
	}
	select {
	case r.stirred <- struct{}{}:
	default:
	}
}

// quiet says that there was no traffic with anybody for a while.
func (n *node) quiet(now time.Time) bool {
	at := int64(now.Sub(n.start) - quietAfter)
	for _, p := range n.out.roster.Load().peers {
		if p.traffic.Load() > at {
			return false
		}
	}
	return true
}

// stir has beats and upkeep go on at the pace of traffic.
func (n *node) stir() {
	n.beats.stir()
	n.keeps.stir()
}
