package path

import (
	"math"
	"time"
)

// rtt is the estimator of RFC 6298.
type rtt struct {
	known       bool
	smooth, dev time.Duration
}

func (r *rtt) sample(d time.Duration) {
	if !r.known {
		r.known, r.smooth, r.dev = true, d, d/2
		return
	}
	r.dev += ((r.smooth - d).Abs() - r.dev) / 4
	r.smooth += (d - r.smooth) / 8
}

// timeout is how long a reply is waited for.
func (r *rtt) timeout() time.Duration {
	if !r.known {
		return initialRTO
	}
	return min(r.smooth+max(4*r.dev, clockGranularity), maxRTO)
}

// ratio is the share of probes that are answered, smoothed.
type ratio float64

func (r *ratio) hit()  { r.turn(1, ratioGain) }
func (r *ratio) miss() { r.turn(0, ratioGain) }

// late takes a miss back.
func (r *ratio) late() { *r = min(*r+ratioGain, 1) }

func (r *ratio) turn(to, gain ratio) { *r += (to - *r) * gain }

// silence returns for how long the answers to probes sent every interval stay
// away with probability chance though nothing has changed.
func (r ratio) silence(interval time.Duration, chance float64) time.Duration {
	p := min(max(float64(r), 0.01), 0.99)
	return time.Duration(math.Log(chance) / math.Log(1-p) * float64(interval))
}
