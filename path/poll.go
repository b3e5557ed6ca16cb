package path

import "time"

// Action is what a caller of Poll does now, in this order: Expire, Handshake,
// Probe, Stun.
type Action struct {
	// Handshake: call SendHandshakeInitiation.
	Handshake bool
	// Expire comes only with Handshake: call ExpireCurrentKeypairs first, and
	// FlushStagedPackets, since what is staged would come out stale.
	Expire bool
	// Probe: send a frame of type Probe with ProbeID, Interval, Largest and
	// LossIn. If Size is not 0, pad the frame with zeros to that many bytes, tag
	// included, and ask for a reply of the same size.
	Probe   bool
	ProbeID uint32
	Size    int
	// Stun: send a STUN binding request from the carrier's socket to the
	// gateway's endpoint.
	Stun bool
}

// Poll returns what to do now and when to call again at the latest, which is
// after now. Calling earlier is harmless; what it returns must be done once.
func (m *Machine) Poll(now time.Time) (a Action, next time.Time) {
	if !m.promised.IsZero() && now.Sub(m.promised) > pollGap {
		m.forgive(now)
		m.formedAt = time.Time{}
	}
	switch {
	case !m.route:
		next = now.Add(m.cfg.Idle)
	case m.up:
		m.quality.judge(float64(m.answer), now)
		a, next = m.pollUp(now)
		if m.up {
			next = m.pollSizes(&a, next, now)
			break
		}
		fallthrough
	default:
		a, next = m.pollSearch(now)
	}
	if !next.After(now) {
		next = now.Add(time.Millisecond)
	}
	m.promised = next
	return a, next
}

func (m *Machine) pollUp(now time.Time) (a Action, next time.Time) {
	rto := m.rtt.timeout()
	if m.renew {
		a.Handshake = true
		m.handshake(now)
	}
	due := m.lastProbe.Add(m.announced)
	if m.active(now) {
		due = m.lastProbe.Add(m.cfg.Active)
	}
	next = now.Add(m.cfg.MaxIdle)
	first, waits := m.overdueAt(1, rto)
	overdue := waits && !first.After(now)
	if overdue {
		due = earliest(due, m.lastProbe.Add(m.haste(now, rto)))
	} else if waits {
		next = earliest(next, first)
	}
	if third, ok := m.overdueAt(minOverdue, rto); ok {
		since := latest(m.lastProof, m.silentSince.Add(-m.cfg.Active))
		death := latest(third, m.trustEnds(since))
		if !death.After(now) {
			m.die(now)
			return a, next
		}
		next = earliest(next, death)
		suspect := latest(third, since.Add(m.suspect()))
		if !m.lastHS.IsZero() {
			suspect = latest(suspect, m.lastHS.Add(rekeyTimeout))
		}
		if !suspect.After(now) {
			a.Handshake = true
			m.handshake(now)
			m.probeAt = now.Add(rto) // in the new session, if there is one
		} else {
			next = earliest(next, suspect)
		}
	}
	due = m.forced(due)
	if !due.After(now) {
		a.Probe, a.ProbeID = true, m.sendProbe(now)
		due = now.Add(m.announced)
		if overdue {
			due = earliest(due, now.Add(m.haste(now, rto)))
		} else if first, ok := m.overdueAt(1, rto); ok && first.After(now) {
			next = earliest(next, first)
		}
	}
	return a, earliest(next, due)
}

// haste is the probe interval once a probe is overdue. Idle paths with a long RTT
// take more time, or each lost probe would cost them many.
func (m *Machine) haste(now time.Time, rto time.Duration) time.Duration {
	if m.active(now) {
		return m.cfg.Active
	}
	return max(m.cfg.Active, rto/2)
}

// overdueAt returns when n probes will be overdue in the present silence, if as
// many were sent.
func (m *Machine) overdueAt(n uint32, rto time.Duration) (time.Time, bool) {
	id := m.silentID + n - 1
	if m.silentSince.IsZero() || int32(id-m.nextID) >= 0 {
		return time.Time{}, false
	}
	return m.sentAt(id, m.silentSince).Add(rto), true
}

// forced returns when to send the next probe, which is due anyway at due.
func (m *Machine) forced(due time.Time) time.Time {
	if !m.probeAt.IsZero() {
		due = earliest(due, latest(m.probeAt, m.lastProbe.Add(minSpacing)))
	}
	return due
}

// suspect is the silence after which a path is suspected.
func (m *Machine) suspect() time.Duration {
	d := max(m.cfg.Suspect, m.answer.silence(m.cfg.Active, suspectChance))
	return min(d, m.cfg.MaxTrust/2)
}

// trust is the silence after which it is down.
func (m *Machine) trust() time.Duration {
	d := max(m.cfg.Trust, m.answer.silence(m.cfg.Active, deathChance))
	return min(d, m.cfg.MaxTrust)
}

// trustEnds is when a silence that began at since makes the path die.
func (m *Machine) trustEnds(since time.Time) time.Time {
	alive := earliest(m.lastHeard.Add(m.cfg.Trust), since.Add(m.cfg.MaxTrust))
	return latest(since.Add(m.trust()), alive)
}

func (m *Machine) die(now time.Time) {
	m.up = false
	m.search(now)
	m.died = true
	m.standing = m.lastProof
	m.noWayOut = m.lastHeard.Sub(m.lastProof) >= m.cfg.Trust*2/3 // the gateway sends for 3 s more
}

func (m *Machine) pollSearch(now time.Time) (a Action, next time.Time) {
	live := m.HasSession(now)
	m.judgeDeaf(now, live)
	m.slow = now.Sub(latest(m.searchAt, latest(m.kickedAt, m.lastTraffic))) >= slowAfter
	m.eager = m.active(now) && !m.refused(now) && !m.deaf(now)

	hs := latest(m.handshakeAt(live), m.held)
	if m.renew || !hs.After(now) {
		a.Handshake = true
		a.Expire = m.dead || !m.lastHS.IsZero() && (!live || now.Sub(m.standing) >= m.patience())
		if a.Expire {
			m.expire(now, live)
			live = false
		}
		m.handshake(now)
		hs = latest(m.handshakeAt(live), m.held)
	}
	due := hs
	if live {
		due = m.forced(m.lastProbe.Add(m.pace()))
	}
	if a.Handshake || !due.After(now) {
		a.Probe, a.ProbeID = true, m.sendProbe(now)
		due = hs
		if live {
			due = now.Add(m.pace())
		}
	}
	next = earliest(hs, due)
	if live || m.deaf(now) {
		return a, next
	}
	pace := stunSlow
	switch {
	case m.slow:
		pace = m.cfg.IdleRetry
	case now.Sub(m.searchAt) < stunFastFor:
		pace = stunFast
	}
	stun := m.lastStun.Add(pace)
	if m.lastStun.IsZero() || !stun.After(now) {
		a.Stun = true
		m.lastStun = now
		if m.firstStun.IsZero() {
			m.firstStun = now
		}
		stun = now.Add(pace)
	}
	return a, earliest(next, stun)
}

// handshakeAt returns when the next handshake of a search is due.
func (m *Machine) handshakeAt(live bool) time.Time {
	switch {
	case m.lastHS.IsZero():
		return m.searchAt
	case !live:
		return m.lastHS.Add(m.distance())
	case m.attempts == 0 && !m.died:
		// Keys that a lost route left behind: WireGuard's limit holds.
		return earliest(m.lastHS.Add(rekeyTimeout), m.standing.Add(m.patience()))
	}
	return latest(m.lastHS.Add(m.distance()), m.standing.Add(m.patience()))
}

// distance of two handshakes without a session.
func (m *Machine) distance() time.Duration {
	if m.slow {
		return m.cfg.IdleRetry
	}
	d := max(m.retry, 2*m.rtt.smooth)
	if m.eager {
		d = max(m.cfg.Retry, 2*m.rtt.smooth)
	}
	if !m.rtt.known {
		d = max(d, m.stunRTT*5/4)
	}
	return max(min(d, m.cfg.MaxRetry), m.cfg.Retry)
}

// patience with a session that gets no reply.
func (m *Machine) patience() time.Duration { return max(m.cfg.Trust, m.distance()) }

// pace of probes in a session without enough proof.
func (m *Machine) pace() time.Duration {
	switch {
	case m.got > 0:
		return m.cfg.Active
	case m.slow:
		return m.cfg.IdleRetry
	}
	return min(max(m.retry/5, m.cfg.Active), time.Second)
}

// judgeDeaf notes that a fresh session gets no reply.
func (m *Machine) judgeDeaf(now time.Time, live bool) {
	if !live || m.formedAt.IsZero() {
		return
	}
	rtt := max(m.rtt.smooth, m.stunRTT)
	if now.Sub(m.formedAt) >= min(max(deafFor, rtt*5/4), m.patience()) {
		m.deafAt = now
	}
}

func (m *Machine) handshake(now time.Time) {
	m.lastHS = now
	m.renew, m.dead = false, false
	if m.up {
		return
	}
	m.attempts++
	m.failed++
	if m.attempts > 1 {
		m.retry = min(m.retry+m.retry/retryGrowth, m.cfg.MaxRetry)
	}
}

func (m *Machine) expire(now time.Time, live bool) {
	if live {
		m.expiredAt = now
	}
	m.sealed, m.unsealed = time.Time{}, time.Time{}
	m.provenID = m.nextID
	m.got = 0
}

func (m *Machine) sendProbe(now time.Time) uint32 {
	id := m.nextID
	m.nextID++
	m.ring[id%ringSize] = probe{
		id: id, sent: now, staged: !m.HasSession(now), silence: now.Sub(latest(m.lastSent, m.lastTraffic)),
	}
	m.announced = m.Interval(now)
	m.lastProbe, m.lastSent = now, now
	if !m.probeAt.After(now) {
		m.probeAt = time.Time{}
	}
	m.probes++
	if m.unsealed.IsZero() {
		m.unsealed = now
	}
	if m.silentSince.IsZero() {
		m.silentID, m.silentSince = id, now
	}
	return id
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
