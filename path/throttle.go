package path

import (
	"slices"
	"time"
)

// Load is what went over a path one way in an interval, as the receiver counted
// it.
type Load struct {
	Duration time.Duration
	// Sent and Received are frames, Bytes what the received ones took up on the
	// carrier, all headers included.
	Sent, Received int
	Bytes          int
	// Full is how many of those sent were as large as any that passes.
	Full int
}

// Throttle finds out that a carrier delivers only up to a rate, and which: as
// mobile networks that throttle UDP do, and as any bottleneck does. It goes by
// this, that loss comes with load: what is delivered in intervals of heavy load is
// the same however much was sent, and intervals of light load lose next to nothing.
// Loss that does not depend on load is never taken for a limit, nor is a carrier
// that was not seen under light load, or that was under the same heavy load all
// the time. The zero value is ready. One goroutine at a time; the caller locks.
// Nothing allocates.
type Throttle struct {
	ring  [throttleLoads]rates
	count uint64 // loads so far

	rate    float64   // bytes/s, 0 when there is no limit that is known
	seen    time.Time // when there last was evidence for it
	against int       // loads that it would not have let through, since then
}

// rates is a Load as it is remembered, in bytes/s and frames.
type rates struct {
	offered, delivered float64
	sent, lost         int
}

func (r rates) lossy() bool {
	return r.sent >= throttleFrames && float64(r.lost) >= throttleLoss*float64(r.sent)
}

// Rate returns the rate in bytes per second, all headers included, that the
// carrier delivers at most; 0 when no limit is known.
func (t *Throttle) Rate() float64 { return t.rate }

// Add takes the next interval. Intervals of half a second to half a minute are of
// use, others and those in which nothing arrived are ignored.
func (t *Throttle) Add(l Load, now time.Time) {
	if l.Duration < throttleShortest || l.Duration > throttleLongest || l.Received <= 0 || l.Bytes <= 0 {
		return
	}
	sent := max(l.Sent, l.Received)
	delivered := float64(l.Bytes) / l.Duration.Seconds()
	r := rates{delivered * float64(sent) / float64(l.Received), delivered, sent, sent - l.Received}
	t.ring[t.count%throttleLoads] = r
	t.count++

	if r.lossy() {
		if rate, ok := t.estimate(); ok {
			t.rate, t.seen, t.against = rate, now, 0
		}
	} else if r.delivered > throttleOver*t.rate {
		t.against++
	}
	if t.against >= throttleAgainst || now.Sub(t.seen) > throttleFor {
		t.rate = 0
	}
}

// estimate returns the limit that the loads show, if they do.
func (t *Throttle) estimate() (rate float64, ok bool) {
	n := int(min(t.count, throttleLoads))
	at := func(i int) rates { return t.ring[(t.count-1-uint64(i))%throttleLoads] } // the newest is 0

	var store [throttleRecent]float64
	delivered := store[:0]
	for i := 0; i < n && len(delivered) < throttleRecent; i++ {
		if r := at(i); r.lossy() {
			delivered = append(delivered, r.delivered)
		}
	}
	if len(delivered) < throttleLeast {
		return 0, false
	}
	slices.Sort(delivered)
	rate = delivered[len(delivered)/2]

	var heavy, light side
	var heavies [throttleRecent]rates
	edges, before := 0, 0
	for i := 0; i < n && (heavy.n < throttleRecent || light.n < throttleRecent); i++ {
		r, is := at(i), 0
		switch {
		case r.offered > rate*(1+throttleMargin) && heavy.n < throttleRecent:
			heavies[heavy.n] = r
			heavy.add(r)
			is = 1
		case r.lossy() && (i > 0 && at(i-1).offered > rate || i+1 < n && at(i+1).offered > rate):
			continue // the load changed within it
		case r.offered < rate*(1-throttleMargin) && light.n < throttleRecent:
			light.add(r)
			is = -1
		default:
			continue
		}
		if is == -before {
			edges++
		}
		before = is
	}
	switch {
	case heavy.n < throttleLeast || light.n < throttleLeast || light.sent < throttleLight:
	case float64(heavy.lossy) < throttleMost*float64(heavy.n) || float64(light.lossy) > (1-throttleMost)*float64(light.n):
	case heavy.share() < throttleLoss+3*light.share():
	case edges < throttleEdges && !saturates(heavies[:heavy.n]):
	case spread(heavies[:heavy.n]) > throttleSpread*rate:
	default:
		return rate, true
	}
	return 0, false
}

// side sums up loads above or below a rate.
type side struct{ n, lossy, sent, lost int }

func (s *side) add(r rates) {
	s.n++
	s.sent += r.sent
	s.lost += r.lost
	if r.lossy() {
		s.lossy++
	}
}

func (s *side) share() float64 { return float64(s.lost) / float64(max(s.sent, 1)) }

// spread returns how far apart the quartiles of what was delivered are.
func spread(loads []rates) float64 {
	var store [throttleRecent]float64
	d := store[:0]
	for _, r := range loads {
		d = append(d, r.delivered)
	}
	slices.Sort(d)
	return d[len(d)*3/4] - d[len(d)/4]
}

// saturates reports whether in the half of loads with more offered no more was
// delivered. It sorts loads.
func saturates(loads []rates) bool {
	slices.SortFunc(loads, func(a, b rates) int {
		switch {
		case a.offered < b.offered:
			return -1
		case a.offered > b.offered:
			return 1
		}
		return 0
	})
	var less, more rates
	half := len(loads) / 2
	for i := range half {
		less.offered += loads[i].offered
		less.delivered += loads[i].delivered
		more.offered += loads[len(loads)-1-i].offered
		more.delivered += loads[len(loads)-1-i].delivered
	}
	return more.offered >= throttleVaried*less.offered && more.delivered <= throttleFlat*less.delivered
}

// meter makes Loads of the totals in replies.
type meter struct {
	known                     bool
	received, expected, bytes uint32
	excused, full             uint32
	at                        time.Time
}

// load returns what happened since the last one, once that is a second ago.
// excused is how many frames were lost, ever, that do not count, and full how many of
// the largest size were sent.
func (m *meter) load(r Reply, excused, full uint32, now time.Time) (l Load, ok bool) {
	if r.Expected == 0 || m.known && now.Sub(m.at) < loadInterval {
		return l, false
	}
	received, expected, bytes := since24(r.Received, m.received), since24(r.Expected, m.expected), int32(r.Bytes-m.bytes)
	sent := max(expected-int32(excused-m.excused), received)
	l = Load{
		Duration: now.Sub(m.at), Sent: int(sent), Received: int(received),
		Bytes: int(bytes) + int(received)*surroundings(false), Full: int(full - m.full),
	}
	// After a restart of the gateway the totals are smaller.
	ok = m.known && expected > 0 && received >= 0 && bytes >= 0 && received <= expected
	*m = meter{true, r.Received, r.Expected, r.Bytes, excused, full, now}
	return l, ok
}
