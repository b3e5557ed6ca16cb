package path

import (
	"math"
	"time"
)

// BaseFrame is BASE_PLPMTU of RFC 8899 (5.1.2), as a frame size in bytes: the
// size that any path should take, and that is assumed when a larger one is found
// not to pass any more. With all headers it makes 576 bytes by IPv6 and 556 by
// IPv4; 576 is what every IPv4 host takes (RFC 791). A path that drops frames of
// this size is of no use but for the smallest packets.
const BaseFrame = 496

// SearchState is the state of a Search, named as in RFC 8899, 5.2.
type SearchState uint8

// States of a Search.
const (
	SearchOff      SearchState = iota // not begun, or the gateway does not answer at full length
	SearchBase                        // not known yet whether BaseFrame passes
	Searching                         // between what passes and what does not
	SearchComplete                    // nothing larger passes, or is ever sent
	SearchError                       // BaseFrame does not pass
)

// String returns the state in lower case.
func (s SearchState) String() string {
	switch s {
	case SearchOff:
		return "off"
	case SearchBase:
		return "base"
	case Searching:
		return "searching"
	case SearchComplete:
		return "complete"
	case SearchError:
		return "error"
	}
	return "unknown"
}

// Signals are what a Search must know of its path.
type Signals struct {
	// Timeout is how long the reply to a small probe is waited for, and Answered
	// the share (0 to 1) of small probes that are answered.
	Timeout  time.Duration
	Answered float64
	// Control is when the latest of the answered small probes was sent, zero for
	// never.
	Control time.Time
	// Active means that data is sent or received.
	Active bool
	// IPv6 means that the carrier's packets are of IPv6: the sizes to expect.
	IPv6 bool
	// Out and In are the shares (0 to 1) of all frames that arrive each way. They
	// count where large ones are among those that do, see Passed.
	Out, In float64
}

// Search finds the largest frame that a path takes in both directions, by
// probes padded to a size and answered at the same size (DPLPMTUD, RFC 8899). No
// ICMP message is needed or believed. Sizes are frame sizes in bytes, replication
// tag included: multiples of 16, as WireGuard pads to those, and the ceiling, the
// largest frame that is ever sent. One goroutine at a time; the caller locks.
// Nothing allocates.
//
//	+-----+  Start           +------+   base passes   +-----------+
//	| off | ---------------> | base | --------------> | searching |
//	+-----+ <--------------- +------+                 +-----------+
//	   the reply is short     |  ^ ^                    |       ^
//	           base is missed |  | | what was found     |       | 10 min of traffic,
//	                          v  | | is lost            v       | or a link event
//	                     +-------+ |                  +----------+
//	                     | error | +----------------- | complete |
//	                     +-------+                    +----------+
//	   base is tried again each minute     nothing larger passes, or 12 probes;
//	                                       from base at once if the top passes
//
// A probe is missed when it was not answered within twice the path's timeout
// (half a second at least) while a small one that was sent later was: otherwise
// it is the path that is silent, not the size. A size is given up after three
// misses (MAX_PROBES), more on a path that answers few probes, or that loses much
// though some data of that size passes, so that loss is not taken for a limit: a
// carrier that throttles drops large frames and has room for small ones.
//
// A search has 12 probes, one outstanding. The top is tried first, since most paths
// take it, then the base. What lies above a size that does not pass does not pass
// either, so a first miss bounds the search, and only the size next above the one
// that was found needs all its misses. In the state error the search goes on below
// the base. A search that ran out of probes goes on a minute later.
//
// What was found is tried again while traffic flows, unless data of that size passes
// by itself, after a link event, when the path was away, and when it loses much.
// When it is missed as often as a size is tried, the path is a black hole for it
// (RFC 8899, 4.3).
type Search struct {
	most    int // the largest frame that this node sends
	ceiling int // and the gateway
	verify  time.Duration
	ipv6    bool

	on       bool
	running  bool
	baseLost bool
	best     int // largest size that was answered, 0 for none
	limit    int // what Largest returns
	missed   [maxMissed]sizeMiss
	probes   int       // sent in this search
	began    time.Time // when it did
	settled  bool      // the last one ended for want of sizes, not of probes
	again    time.Time // when the next may begin
	event    bool      // which need not wait for traffic

	found      time.Time // when best, or what then was, last passed both ways
	out, in    passage
	urgent     bool // try it again now
	doubt      bool // or a second after the last probe
	unanswered int  // how often it was missed since
	blocked    int  // frames of that size that were lost in a row, while others passed
	holes      int
	lost       uint32 // probes that were missed, ever

	trial    sizeProbe                  // that is outstanding
	past     [sizesRemembered]sizeProbe // by ID, so that late answers count
	lastID   uint32
	lastSent time.Time
}

// passage says when data passed one way, of about the size that was found, and of
// that size.
type passage struct{ about, full time.Time }

type sizeProbe struct {
	id     uint32
	size   int
	sent   time.Time
	verify bool
}

// sizeMiss says that size was missed n times.
type sizeMiss struct{ size, n int }

// sizeProbeID is set in the IDs of probes for a size, which a Machine tells by
// it from those that it goes by.
const sizeProbeID = 1 << 31

// NewSearch returns a Search that is off. largest is the largest frame that this
// node ever sends, in bytes, and so the MTU of its WireGuard device. verify is how
// often a size is tried again under traffic.
func NewSearch(largest int, verify time.Duration) Search {
	return Search{most: largest, ceiling: largest, verify: verify}
}

// Start begins from nothing: the path is up, by a network that is not known.
func (s *Search) Start(now time.Time) {
	s.Stop()
	s.on = true
	s.begin(now)
}

// Stop forgets what was found, and sends nothing until Start.
func (s *Search) Stop() {
	*s = Search{most: s.most, ceiling: s.most, verify: s.verify, lastID: s.lastID, lastSent: s.lastSent, holes: s.holes, lost: s.lost}
}

// Resume goes on after the path was away: what was found is tried again.
func (s *Search) Resume(now time.Time) {
	if !s.on {
		s.Start(now)
		return
	}
	s.trial = sizeProbe{}
	s.urgent = true
}

// Event says that something changed at the link: what was found is tried again,
// and larger sizes are, but not within a minute of the last search.
func (s *Search) Event(now time.Time) {
	s.urgent = true
	s.event = true
	s.again = latest(now, s.began.Add(searchSpacing))
}

// Passed says that data arrived in a frame of size bytes, on the way out or in.
// Where frames of the size that was found pass by themselves both ways, it need not
// be tried; and where frames of about that size do, what is lost is lost by chance.
func (s *Search) Passed(out bool, size int, now time.Time) {
	if size < max(s.best, s.base())*3/4 {
		return
	}
	way := &s.in
	if out {
		way = &s.out
	}
	way.about = now
	if s.best == 0 || index(size) < index(s.best) {
		return
	}
	way.full = now
	if both := earliest(s.out.full, s.in.full); both.After(s.found) {
		s.found, s.unanswered = both, 0
	}
}

// Load says what became of data on the way out. Where all frames of the size that was
// found are lost, and hardly another one, it is no chance.
func (s *Search) Load(l Load, now time.Time) {
	lost, others := l.Sent-l.Received, l.Sent-l.Full
	switch {
	case l.Full == 0:
	case s.out.full.After(now.Add(-l.Duration)), 10*lost < 9*l.Full, 10*(lost-l.Full) > others+l.Full:
		s.blocked = 0
	default:
		s.blocked += l.Full
	}
}

// Doubt says that large frames may be getting lost: what was found is tried again,
// though not within a second of the last time.
func (s *Search) Doubt() { s.doubt = !s.baseLost }

// Largest returns the size in bytes up to which frames pass in both directions,
// as far as one knows, 0 when nothing is known. Larger frames are to be sent in
// parts, or not at all.
func (s *Search) Largest() int { return s.limit }

// State returns the state.
func (s *Search) State() SearchState {
	switch {
	case !s.on:
		return SearchOff
	case s.baseLost:
		return SearchError
	case s.best < s.base():
		return SearchBase
	case s.running:
		return Searching
	}
	return SearchComplete
}

// Holes returns how often a size that had been found was lost.
func (s *Search) Holes() int { return s.holes }

// Poll returns the probe to send now, if size is not 0: a Probe with that ID in a
// frame of that size, which asks for a reply of the same size. Call it again at
// next, unless that is zero, and after any change.
func (s *Search) Poll(now time.Time, in Signals) (id uint32, size int, next time.Time) {
	s.settle(now, in)
	size, next = s.want(in)
	if size == 0 || next.After(now) {
		return 0, 0, next
	}
	return s.send(size, now), size, now.Add(sizeTimeout(in))
}

// due returns when Poll has something to do, zero for never.
func (s *Search) due(now time.Time, in Signals) time.Time {
	s.settle(now, in)
	_, at := s.want(in)
	return at
}

// waiting reports whether a probe is outstanding, which a reply to a small one may
// decide on.
func (s *Search) waiting() bool { return s.trial.id != 0 }

// Answer says that an authenticated reply to the probe with that ID came, in a
// frame of size bytes, and returns when that probe was sent. Replies to unknown or
// forgotten probes are ignored.
func (s *Search) Answer(id uint32, size int, now time.Time) (sent time.Time) {
	p := s.past[id%sizesRemembered]
	if p.id != id || id == 0 || !s.on {
		return sent
	}
	s.past[id%sizesRemembered].id = 0
	if s.trial.id == id {
		s.trial = sizeProbe{}
	}
	if size < p.size {
		if size < min(p.size, s.base()) { // it does not know what was asked
			s.Stop()
			return p.sent
		}
		s.ceiling, p.size = size, size // more it never sends
	}
	if p.size >= s.best {
		s.best, s.limit = p.size, p.size
		s.found, s.unanswered, s.blocked = now, 0, 0
		s.baseLost = s.baseLost && s.best < s.base()
	}
	return p.sent
}

// base is BaseFrame, unless no node sends as much.
func (s *Search) base() int { return min(BaseFrame, s.ceiling) }

// low is the size that is known to pass: small probes do.
func (s *Search) low() int { return max(s.best, smallestFrame) }

// sizeTimeout is how long a probe is waited for.
func sizeTimeout(in Signals) time.Duration { return max(2*in.Timeout, sizeWait) }

// answered returns the share of probes of about the size that was found that must
// be expected to be answered, if it still passes.
func (s *Search) answered(in Signals) float64 {
	since := s.began
	if !s.running { // what passed before a filter began may be told after a probe
		since = s.past[(s.lastID-sizeTries+1)%sizesRemembered].sent
	}
	share := 1.0
	if s.out.about.After(since) {
		share *= in.Out
	}
	if s.in.about.After(since) {
		share *= in.In
	}
	return min(share, in.Answered)
}

// tries returns how many misses mean that a size does not pass: so many that a
// path which answers as usual misses them with probability chance only.
func tries(answered, chance float64) int {
	p := min(max(answered, 0.01), 0.99)
	return max(sizeTries, int(math.Ceil(math.Log(chance)/math.Log(1-p))))
}

// settle judges the probe that is outstanding, and ends or begins a search.
func (s *Search) settle(now time.Time, in Signals) {
	s.ipv6 = in.IPv6
	if !s.on {
		return
	}
	need := tries(s.answered(in), missChance)
	if s.trial.id != 0 {
		if now.Before(s.deadline(in)) {
			return
		}
		s.judge(now, in)
	}
	if !s.running && s.best < s.ceiling && (in.Active || s.event) && !now.Before(s.again) {
		s.raise(now, need)
	}
	if !s.running {
		return
	}
	if !s.baseLost && s.best < s.base() && s.misses(s.base()) >= need {
		s.baseLost = true
		s.limit = s.low()
	}
	if s.plan(need) == 0 {
		s.finish(now, need)
	}
}

// deadline is when the probe that is outstanding can be judged.
func (s *Search) deadline(in Signals) time.Time {
	wait := sizeTimeout(in)
	if in.Control.Before(s.trial.sent) {
		wait *= controlWait
	}
	return s.trial.sent.Add(wait)
}

// judge takes the probe that is outstanding for missed, unless no small probe was
// answered either.
func (s *Search) judge(now time.Time, in Signals) {
	p := s.trial
	s.trial = sizeProbe{}
	if in.Control.Before(p.sent) {
		s.urgent = s.urgent || p.verify
		return
	}
	s.lost++
	if !p.verify {
		s.miss(p.size, 1)
	} else {
		s.unanswered++
		if s.unanswered >= tries(s.answered(in), holeChance) || s.unanswered >= sizeTries && s.blocked >= blockedFrames {
			s.hole(now)
		}
	}
}

// want returns the size to try next and when; or none, and when to look again,
// zero for never.
func (s *Search) want(in Signals) (size int, at time.Time) {
	ready := s.lastSent.Add(sizeSpacing)
	switch {
	case !s.on:
		return 0, at
	case s.trial.id != 0:
		return 0, s.deadline(in)
	case s.running:
		return s.plan(tries(s.answered(in), missChance)), ready
	case s.best > 0 && (s.urgent || s.unanswered > 0 && s.unanswered < searchProbes):
		return s.best, ready
	}
	if s.best < s.ceiling && (in.Active || s.event) {
		at = s.again
	}
	if s.best > 0 && s.doubt {
		return s.best, latest(s.found, s.lastSent).Add(doubtSpacing)
	}
	if s.best > 0 && in.Active {
		if due := latest(s.found, s.lastSent).Add(s.verify); at.IsZero() || due.Before(at) {
			return s.best, due
		}
	}
	return 0, at
}

func (s *Search) send(size int, now time.Time) (id uint32) {
	s.lastID++
	id = s.lastID | sizeProbeID
	s.trial = sizeProbe{id: id, size: size, sent: now, verify: !s.running}
	s.past[id%sizesRemembered] = s.trial
	s.lastSent = now
	if s.running {
		s.probes++
	} else {
		s.urgent, s.doubt = false, false
	}
	return id
}
