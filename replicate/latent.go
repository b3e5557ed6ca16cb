package replicate

import "time"

// SlotSet is a set of carrier slots: bit n stands for slot n.
type SlotSet uint8

// Has reports whether slot (0 to MaxSlot) is in the set.
func (s SlotSet) Has(slot int) bool { return s>>slot&1 != 0 }

// LatentDetector is the latent error detection of IEEE 802.1CB-2017, 7.4.4, for
// what one sender node sends to this node over up to eight paths. Elimination
// hides a path that no longer carries: not a packet is lost, until the other
// path fails too. The detector tells of it. The zero value is ready; the caller
// serialises all calls.
//
//	          proofFrames                a twin brings a long run of
//	          on the path                frames, and the path none
//	unknown ---------------> carrying -------------------------------> latent
//	                             ^        proofFrames on the path        |
//	                             +------- and proofTime, no such run ----+
//
// From any state, a path that is not expected to carry is unknown again.
//
// A run is how many frames the best of the other paths brought, from quietFor
// after the path's own last one: what came earlier may be copies that the path,
// being the faster one, had brought before. Where a run starts after a pause,
// the path has quietFor, being the slower one, to bring its copies. The run must
// be of minRun frames, and be three times as long as the runs that the path
// showed lately and that ended by themselves: a lossy path on a slow stream
// often misses several frames in a row and is not accused for it. Streams of
// less than 40 packets/s, and very lossy paths on streams below 500 packets/s,
// can therefore take longer than a second; a path that loses more than nine in
// ten is accused now and then.
type LatentDetector struct {
	observed time.Time // last call of Observe
	paths    [MaxSlot + 1]pathRecord
}

// pathRecord is what a LatentDetector knows of one path.
type pathRecord struct {
	proven bool // it carried at least proofFrames
	latent bool
	errors uint64

	frames  int       // its own, towards proofFrames
	heardAt time.Time // end of the last interval that had some
	since   time.Time // end of the first interval that had some, while latent

	run     int
	longest [2]int // runs that ended by themselves: now, and in the memory before
	heard   int    // intervals with frames in the memory now

	anew      time.Time // end of the first interval with a twin's frames after one without
	twinSpoke bool      // in the interval before
}

// Observe takes the numbers of data frames, copies included, that came over
// each path since the call before, and the paths over which the sender is
// expected to copy everything. Call it every 250 ms, whether frames came or
// not: then an error is told within a second, with 500 ms within one and a half.
// It returns the paths on which a latent error began, and those on
// which one ended: because they carry again, or because they are not expected
// to any more. It does not allocate.
func (d *LatentDetector) Observe(now time.Time, frames *[MaxSlot + 1]int, expected SlotSet) (began, ended SlotSet) {
	for slot := range d.paths {
		p := &d.paths[slot]
		was := p.latent
		if !expected.Has(slot) {
			*p = pathRecord{errors: p.errors}
		} else {
			twin := 0
			for other, n := range frames {
				if other != slot && expected.Has(other) {
					twin = max(twin, n)
				}
			}
			if n := frames[slot]; n > 0 {
				p.hear(now, n)
			} else {
				p.miss(d.observed, now, twin)
			}
			p.twinSpoke = twin > 0
		}
		switch {
		case p.latent && !was:
			p.errors++
			began |= 1 << slot
		case was && !p.latent:
			ended |= 1 << slot
		}
	}
	d.observed = now
	return began, ended
}

// Latent returns the paths that have a latent error now.
func (d *LatentDetector) Latent() (s SlotSet) {
	for slot := range d.paths {
		if d.paths[slot].latent {
			s |= 1 << slot
		}
	}
	return s
}

// Errors returns how many latent errors began on slot (0 to MaxSlot) so far.
func (d *LatentDetector) Errors(slot int) uint64 { return d.paths[slot].errors }

// Forget drops what is known of slot (0 to MaxSlot), its errors too: another path has
// it from now on.
func (d *LatentDetector) Forget(slot int) { d.paths[slot] = pathRecord{} }

// hear takes an interval that ended now, with own frames on the path.
func (p *pathRecord) hear(now time.Time, own int) {
	again := p.latent && p.frames == 0
	switch {
	case p.heardAt.IsZero(): // what a path misses before its first frame tells nothing
	case !again:
		p.learn(p.run)
	case p.run < 4*p.need(): // rather bad luck than an error
		p.learn(p.need() / 2)
	}
	if again {
		p.since = now
	}
	p.run, p.heardAt = 0, now
	p.frames = min(p.frames+own, proofFrames)
	if p.frames == proofFrames && (!p.latent || now.Sub(p.since) >= proofTime) {
		p.proven, p.latent = true, false
	}
}

// miss takes an interval from began to now without frames on the path.
func (p *pathRecord) miss(began, now time.Time, twin int) {
	p.judge(now)
	if twin > 0 && !p.twinSpoke {
		p.anew = now
	}
	if began.Sub(p.heardAt) >= quietFor {
		p.run += twin
	}
	p.judge(now)
}

// judge makes an error of the run when it is long enough.
func (p *pathRecord) judge(now time.Time) {
	if p.proven && p.run >= p.need() && now.Sub(p.anew) >= quietFor {
		p.latent = true
		p.frames = 0
	}
}

// learn remembers a run that was no error.
func (p *pathRecord) learn(run int) {
	p.longest[0] = max(p.longest[0], run)
	if p.heard++; p.heard >= runMemory {
		p.heard = 0
		p.longest = [2]int{0, p.longest[0]}
	}
}

// need returns how long a run must be to be an error.
func (p *pathRecord) need() int {
	return max(minRun, min(runFactor*max(p.longest[0], p.longest[1]), maxRun))
}
