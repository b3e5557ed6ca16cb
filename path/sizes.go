package path

import "time"

// Largest returns the size in bytes up to which frames pass in both directions,
// 0 when nothing is known: larger frames go in parts, or by another path. It
// belongs into each probe.
func (m *Machine) Largest() int { return m.sizes.Largest() }

// Family says whether the path goes by IPv6. Call it before Poll.
func (m *Machine) Family(ipv6 bool) { m.ipv6 = ipv6 }

// Seen says that a frame with data of size bytes, tag included, came by this path;
// of many, the largest will do. Call it before Poll.
func (m *Machine) Seen(size int, now time.Time) { m.sizes.Passed(false, size, now) }

// Full says how many frames with data were sent by this path, in all, that were as
// large as Largest; it wraps. Call it before Poll.
func (m *Machine) Full(n uint32) { m.full = n }

// Arrived says how many frames came by this path and how many were expected, by
// the totals of its Loss meter. Call it before Poll.
func (m *Machine) Arrived(received, expected uint32, now time.Time) {
	m.quality.in.total(received, expected, m.sizes.lost, now)
	if l, ok := m.meterIn.load(Reply{Received: received, Expected: expected}, m.sizes.lost, 0, now); ok {
		m.doubt(l, m.sizes.in.full, now)
	}
}

// LossIn returns the share (0 to 1) of the gateway's frames on this path that got
// lost over about the last ten seconds, -1 when none was expected in that time; probes
// lost for their size do not count. It belongs into each probe.
func (m *Machine) LossIn(now time.Time) float64 {
	in := m.quality.in.window(now)
	if in.n < 1 {
		return -1
	}
	return in.share
}

// measure begins the measure of loss anew: what got lost in an outage says nothing of
// the path that is up after it. The next totals are those to start from.
func (m *Machine) measure() {
	m.meter, m.meterIn = meter{}, meter{}
	m.quality.renew()
	m.stood = false
}

// Restarted says that the gateway has begun a new run, as frames of a new epoch tell:
// it counts anew.
func (m *Machine) Restarted() { m.measure() }

// totals takes what the reply to a probe sent at that time says of the frames that
// arrived at the gateway. What was overtaken is old.
func (m *Machine) totals(r Reply, sent, now time.Time) {
	if r.Expected == 0 || sent.Before(m.told) {
		return
	}
	m.told = sent
	m.quality.out.total(r.Received, r.Expected, m.sizes.lost, now)
	if r.Seen > 0 {
		m.sizes.Passed(true, int(r.Seen), now)
	}
	l, ok := m.meter.load(r, m.sizes.lost, m.full, now)
	if !ok {
		return
	}
	m.throttle.Add(l, now)
	m.doubt(l, m.sizes.out.full, now)
	m.sizes.Load(l, now)
}

// doubt looks at what was lost one way, where large data last passed at that time.
func (m *Machine) doubt(l Load, passed, now time.Time) {
	if !passed.After(now.Add(-l.Duration)) && l.Sent >= doubtFrames && float64(l.Sent-l.Received) >= doubtLoss*float64(l.Sent) {
		m.sizes.Doubt()
	}
}

// pollSizes lets the search for the largest frame send a probe, unless another
// one goes now. next is when Poll is due otherwise.
func (m *Machine) pollSizes(a *Action, next, now time.Time) time.Time {
	in := Signals{
		Timeout:  m.rtt.timeout(),
		Answered: float64(min(m.answer, m.quick)),
		Control:  m.control,
		Active:   m.active(now),
		IPv6:     m.ipv6,
		Out:      m.quality.out.window(now).arrived(),
		In:       m.quality.in.window(now).arrived(),
	}
	if a.Probe {
		if due := m.sizes.due(now, in); !due.IsZero() {
			next = earliest(next, latest(due, now.Add(time.Millisecond)))
		}
		return next
	}
	id, size, due := m.sizes.Poll(now, in)
	if size > 0 {
		a.Probe, a.ProbeID, a.Size = true, id, size
		m.lastSent = now
		// A small one follows, by which it is judged.
		if !in.Active && m.probeAt.IsZero() {
			m.probeAt = now.Add(minSpacing)
			next = earliest(next, m.forced(next))
		}
	}
	if !due.IsZero() {
		next = earliest(next, due)
	}
	return next
}
