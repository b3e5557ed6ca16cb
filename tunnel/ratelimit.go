package tunnel

import (
	"sync"
	"time"
)

// rateLimit allows n events in any one second, counted from its first.
type rateLimit struct {
	mu    sync.Mutex
	since time.Time
	used  int
}

func (r *rateLimit) allow(n int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= time.Second {
		r.since, r.used = now, 0
	}
	r.used++
	return r.used <= n
}
