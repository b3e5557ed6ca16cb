package path

import "time"

// Machine is the robot's view of one path. It must be used by one goroutine at
// a time; the caller locks. Times passed in must have a monotonic reading and
// must not go back. The caller reports events and does what Poll says; it calls
// Poll at the time that the last Poll asked for and after Route, Kick, Reply and
// a Traffic or Session that returns true.
//
//	           +----------+   Route(true)    +--------+
//	 from      | no route | ---------------> | search | no proof: handshake, probe and STUN,
//	 anywhere: +----------+   handshake,     +--------+ 1 s apart; growing to 5 s without traffic
//	 Route(false)   ^         probe, STUN     |      ^  or where the gateway refuses, to 20 s after
//	                |                         |      |  10 idle minutes; with Expire but for the first
//	 ---------------+                         |      |
//	                              a reply;    |      | silent for Trust (3 s, up to 10 s
//	                              after a     |      | where few probes are answered):
//	                              death, two  v      | Expire, handshake, probe
//	+--------+  no traffic for 1 s          +----------+
//	|  idle  | <--------------------------- |  active  |
//	| 5-10 s | ---------------------------> |  200 ms  |
//	+--------+  traffic, or a probe overdue +----------+
//	                                         |      ^
//	           silent for Suspect (600 ms    |      | a reply
//	           and 3 probes, more where      v      |
//	           few are answered):           +-----------+
//	           handshake without Expire     | suspected | goes on carrying; the handshake
//	                                        +-----------+ harms no live key; again after 5 s,
//	                                                      as WireGuard allows
//
// Idle, active and suspected paths are up and carry. Only a proof makes a path
// up, and only a proof ends a silence: a reply to a probe that was sent after
// the route came and after the last Expire, which killed the keys that older
// probes were sent with. A session (a key pair exists) without proof is probed
// for Trust before Expire ends it. While other frames come by a path that is up,
// its keys and its way back are good, so that a silence may last up to MaxTrust.
//
// A silence begins with the last proof or, on an idle path, with a probe. So an
// idle path is down within its probe interval and Trust. When Poll comes more than
// 2 s late, this program or machine slept: then silence counts from now on, and a
// probe goes out first.
//
// A path that is up is also searched for the largest frame that it takes (Search).
// Those probes have numbers of their own: only small ones tell life from death, so
// a path that drops large frames is up, and named for what it drops.
type Machine struct {
	cfg Config

	route bool // the carrier can send
	up    bool // proven
	died  bool // the search began with a death
	got   int  // proofs in this search, since the last Expire

	searchAt    time.Time // when the search began
	kickedAt    time.Time // last Kick
	slow        bool      // the search takes its time
	eager       bool      // or it does not, as traffic waits
	noWayOut    bool      // at the death frames still came in
	lastTraffic time.Time
	lastProof   time.Time
	lastHeard   time.Time
	promised    time.Time // when the next Poll is due

	// Probes.
	ring        [ringSize]probe
	nextID      uint32
	provenID    uint32        // replies to probes before it prove nothing
	silentID    uint32        // first probe that counts for the present silence
	silentSince time.Time     // when it was sent, zero when there is none
	lastProbe   time.Time     // when the last one was sent
	announced   time.Duration // the interval in it
	probeAt     time.Time     // probe at the latest then, zero for no such need
	lastSent    time.Time     // when the last one of any kind was sent
	control     time.Time     // when the latest one that was answered was sent
	probes      uint64
	replies     uint64

	// Handshakes.
	lastHS   time.Time
	attempts int           // in this search
	failed   int           // in a row without a session
	retry    time.Duration // distance to the next, before what RTT demands
	held     time.Time     // none before, in a search
	renew    bool          // one is due, whatever the state
	dead     bool          // and gives up the keys, in a search

	// Session: a key pair for sending.
	sealed    time.Time // last sign that there is one, zero after Expire
	unsealed  time.Time // first probe after it
	standing  time.Time // since when it has been unproven
	expiredAt time.Time // last Expire that killed a session

	// Evidence for the stage.
	formedAt    time.Time // when a session formed after Expire, zero when none or proven
	deafAt      time.Time
	reachableAt time.Time
	lastStun    time.Time
	firstStun   time.Time     // since the route came
	stunRTT     time.Duration // stands in for rtt until that is known

	rtt    rtt
	answer ratio
	quick  ratio // the same, of late

	keepalive Keepalive
	moves     uint64 // times that the gateway saw another address
	sizes     Search
	ipv6      bool
	full      uint32    // frames of the largest size that were sent
	told      time.Time // when the probe was sent whose reply last told totals
	meter     meter     // of what went out
	meterIn   meter
	throttle  Throttle
	quality   quality
	stood     bool // still, so that loss is measured anew from the next proof on
}

type probe struct {
	id       uint32
	sent     time.Time
	silence  time.Duration // before it
	staged   bool          // waited in WireGuard for a session: no RTT sample
	answered bool
}

// New returns a Machine without a route.
func New(cfg Config, now time.Time) *Machine {
	return &Machine{
		cfg:      cfg,
		searchAt: now,
		nextID:   1,
		provenID: 1,
		silentID: 1,
		retry:    cfg.Retry,
		answer:   1,
		quick:    1,

		keepalive: NewKeepalive(cfg.Idle, cfg.MaxIdle, cfg.Learnt, now),
		sizes:     NewSearch(cfg.Largest, cfg.Verify),
	}
}

// Configure changes what New was given, for a path in use. Learnt has no effect.
func (m *Machine) Configure(cfg Config, now time.Time) {
	if cfg.Largest != m.cfg.Largest {
		m.sizes = NewSearch(cfg.Largest, cfg.Verify)
		if m.up {
			m.sizes.Start(now)
		}
	}
	m.sizes.verify = cfg.Verify
	m.keepalive = NewKeepalive(cfg.Idle, cfg.MaxIdle, m.keepalive.Lifetime(), now)
	m.cfg = cfg
}

// Route says that the carrier has a socket and a route to the endpoint, or has
// lost one of them. Calls that change nothing do nothing.
func (m *Machine) Route(ok bool, now time.Time) {
	if ok == m.route {
		return
	}
	m.route = ok
	m.up = false
	m.search(now)
	m.died = false
	m.provenID = m.nextID
	m.unsealed = time.Time{}
	m.sizes.Stop()
	m.quality = quality{}
	m.deafAt, m.reachableAt, m.firstStun = time.Time{}, time.Time{}, time.Time{}
	m.stunRTT = 0
}

// search begins a search for a proof.
func (m *Machine) search(now time.Time) {
	m.searchAt = now
	m.got, m.attempts, m.failed = 0, 0, 0
	m.retry = m.cfg.Retry
	m.standing = now
	m.formedAt = time.Time{}
	m.noWayOut = false
	m.forgive(now)
}

// forgive drops the present silence and asks for a probe.
func (m *Machine) forgive(now time.Time) {
	m.silentID = m.nextID
	m.silentSince = time.Time{}
	m.probeAt = now
}

// Kick says that something changed at the carrier (an address, a route, a
// signal): probe at once, and do not wait long with the next handshake.
func (m *Machine) Kick(now time.Time) {
	m.probeAt = now
	m.retry = m.cfg.Retry
	m.kickedAt = now
	m.sizes.Event(now)
}

// Moved says that the carrier has another network than before, by its address or
// its gateway; it implies Kick. What was learnt of the last network is forgotten.
func (m *Machine) Moved(now time.Time) {
	m.Kick(now)
	m.keepalive.Moved(now)
	m.throttle, m.quality = Throttle{}, quality{}
	m.measure()
	m.sizes.Stop()
	if m.up {
		m.sizes.Start(now)
	}
}

// Doubt says that large packets may be getting lost, because the kernel refused
// one as too big: the largest frame is tried again.
func (m *Machine) Doubt() { m.sizes.Doubt() }

// Hold says that the gateway starts a handshake itself: start none until then in
// a search, since two that meet come to nothing.
func (m *Machine) Hold(until time.Time) { m.held = until }

// Turned says that the caller turns to another address of the gateway in a search:
// it gives up the keys and starts a handshake at once. It returns the ID of the
// probe to send with it; earlier ones prove nothing any more.
func (m *Machine) Turned(now time.Time) (probe uint32) {
	m.expire(now, m.HasSession(now))
	if !m.lastHS.Equal(now) {
		m.handshake(now)
	}
	return m.sendProbe(now)
}

// Slept says that this program or machine stood still for d, which the times
// passed in may not show (CLOCK_MONOTONIC stands still in a suspend). Keys die with
// their age: they are renewed if they may be dead at the other end by now, and
// given up if they must be. Poll should be called now.
func (m *Machine) Slept(d time.Duration, now time.Time) {
	m.forgive(now)
	m.formedAt = time.Time{}
	m.stood = true
	m.renew = d >= keysDoubtful
	m.dead = d >= rejectAfterTime
	if m.dead && m.up {
		m.up = false
		m.search(now)
		m.died = false
	}
}

// Traffic says that data was sent to or received from this path's gateway, on
// whatever path. The path is active for a second, and a search makes haste. It
// returns true when Poll should be called now, because there was no traffic before.
func (m *Machine) Traffic(now time.Time) (wake bool) {
	wake = m.route && !m.active(now)
	m.lastTraffic = now
	if m.slow {
		m.slow, m.retry = false, m.cfg.Retry
	}
	return wake
}

// Heard says that an authenticated frame of any kind arrived by this path. It is
// no proof, since it says nothing about the way out.
func (m *Machine) Heard(now time.Time) { m.lastHeard = now }

func (m *Machine) active(now time.Time) bool {
	return !m.lastTraffic.IsZero() && now.Sub(m.lastTraffic) < m.cfg.Linger
}

// Session says that our own WireGuard device has a key pair to send with to this
// peer: it encrypted transport data, or completed a handshake since the last
// Expire. Call it again while that is so, at least once after each probe of a
// path that is not up. It returns true when Poll should be called now, because
// the session is new.
func (m *Machine) Session(now time.Time) (wake bool) {
	if m.sealed.IsZero() {
		if !m.expiredAt.IsZero() && now.Sub(m.expiredAt) < expireGrace {
			return false
		}
		m.standing = now
		m.failed = 0
		if !m.up {
			m.formedAt = now
			m.probeAt = now
			wake = true
		}
	}
	m.sealed, m.unsealed = now, time.Time{}
	return wake
}

// Reachable says that the gateway's port answered a STUN binding request. This
// is not authenticated: it helps to name the stage and to guess a first RTT.
func (m *Machine) Reachable(now time.Time) {
	m.reachableAt = now
	if m.rtt.known || m.stunRTT != 0 || m.firstStun.IsZero() {
		return
	}
	// The first answer can belong to any request since the first one; the
	// longest of these times does no harm.
	m.stunRTT = now.Sub(m.firstStun)
	if m.stunRTT > m.cfg.MaxRetry {
		m.stunRTT = now.Sub(m.lastStun)
	}
	if m.stunRTT > m.retry {
		m.failed = 0 // those attempts were not given the time to succeed
	}
}

// Reply says that an authenticated probe reply arrived, of which nothing but the
// ID is known. See Answered.
func (m *Machine) Reply(id uint32, now time.Time) { m.Answered(Reply{ID: id}, 0, now) }

// Answered says that an authenticated probe reply arrived, in a frame of size
// bytes, tag included. Replies to probes that are unknown, forgotten or answered
// before are ignored. It returns true when Poll should be called now.
func (m *Machine) Answered(r Reply, size int, now time.Time) (wake bool) {
	if r.ID&sizeProbeID != 0 {
		before := m.sizes.Largest()
		sent := m.sizes.Answer(r.ID, size, now)
		if m.sizes.Largest() != before { // the gateway must know
			m.probeAt = now
		}
		if m.up {
			m.totals(r, sent, now)
		}
		return m.up
	}
	p := &m.ring[r.ID%ringSize]
	if p.id != r.ID || p.answered || r.ID == 0 {
		return false
	}
	p.answered = true
	m.replies++
	if !p.staged {
		m.rtt.sample(now.Sub(p.sent))
	}
	if !m.route || int32(r.ID-m.provenID) < 0 {
		return false
	}
	m.sealed, m.unsealed = now, time.Time{}
	m.standing = now
	m.lastProof = now
	m.control = latest(m.control, p.sent)
	m.formedAt = time.Time{}
	if m.up {
		if m.stood && int32(r.ID-m.silentID) >= 0 {
			m.measure()
		}
		m.totals(r, p.sent, now)
		m.proof(p, r.Mapping, now)
		return m.sizes.waiting()
	}
	if m.got++; m.died && m.got < returnProofs {
		return true
	}
	m.rise(r.ID, now)
	m.totals(r, p.sent, now)
	return true
}

// proof ends the silence up to probe p.
func (m *Machine) proof(p *probe, mapping uint16, now time.Time) {
	if int32(p.id-m.silentID) < 0 {
		m.answer.late()
		return
	}
	for id := p.id - min(p.id-m.silentID, ringSize-1); id != p.id; id++ {
		m.answer.miss()
		m.quick.turn(0, quickGain)
		if lost := &m.ring[id%ringSize]; lost.id == id {
			m.keepalive.Missed(lost.silence, float64(m.answer), now)
		}
	}
	m.answer.hit()
	m.quick.turn(1, quickGain)
	if m.keepalive.Answered(p.silence, mapping, now) {
		m.moves++
	}
	m.hush(p.id)
}

// hush makes the probe after id the first one that is waited for.
func (m *Machine) hush(id uint32) {
	m.silentID = id + 1
	m.silentSince = time.Time{}
	if m.silentID != m.nextID {
		m.silentSince = m.sentAt(m.silentID, m.lastProof)
	}
}

// sentAt returns when probe id was sent, or else if that is forgotten.
func (m *Machine) sentAt(id uint32, or time.Time) time.Time {
	if p := &m.ring[id%ringSize]; p.id == id {
		return p.sent
	}
	return or
}

func (m *Machine) rise(id uint32, now time.Time) {
	m.up = true
	m.died = false
	m.attempts, m.failed = 0, 0
	m.retry = m.cfg.Retry
	m.deafAt, m.reachableAt = time.Time{}, time.Time{}
	m.hush(id)
	m.measure()
	m.sizes.Resume(now)
	if !m.rtt.known {
		m.probeAt = now
	}
}

// Interval returns the time until the next probe at the latest, for the probe
// that is sent now.
func (m *Machine) Interval(now time.Time) time.Duration {
	switch {
	case m.up && !m.active(now):
		return m.keepalive.Interval()
	case m.up:
		return m.cfg.Active
	case m.HasSession(now):
		return m.pace()
	}
	return m.distance()
}

// Up reports whether the path is proven, so that copies should go to it.
func (m *Machine) Up() bool { return m.up }

// HasSession reports whether there is a key pair to send with, as far as one
// can tell, so that a frame would not be staged inside WireGuard. When no path
// to a gateway carries, the caller uses those that have a session.
func (m *Machine) HasSession(now time.Time) bool {
	return m.route && !m.sealed.IsZero() && now.Sub(m.sealed) < rejectAfterTime &&
		(m.unsealed.IsZero() || now.Sub(m.unsealed) < sealWait)
}
