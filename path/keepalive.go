package path

import "time"

// keepaliveSteps are the silences that a Keepalive tries in turn. The longest is
// what leaves room, in the interval that a probe announces (65 s), for its limits.
var keepaliveSteps = [...]time.Duration{
	5 * time.Second, 10 * time.Second, 15 * time.Second, 25 * time.Second, 40 * time.Second, 55 * time.Second,
}

// Lifetime is what a Keepalive has learnt of the translators (NAT) and firewalls
// on a path, to be kept over a restart. The zero value says nothing.
type Lifetime struct {
	// Good is the longest silence that a mapping outlived, Bad the shortest that
	// ended one; 0 when there was none.
	Good time.Duration `json:"good"`
	Bad  time.Duration `json:"bad"`
}

// Keepalive learns how long an idle path may be silent before the mapping of a
// translator (NAT) on its way ends, so that it is probed as seldom as is safe. It
// begins with the least interval and lengthens it step by step while what comes
// after the silence finds the mapping alive. When one has ended, the interval
// falls below the silence that ended it, and stays there for six hours. One goroutine
// at a time; the caller locks. Nothing allocates.
//
// That a mapping has ended shows in two ways: the gateway sees another address
// than before the silence; or the first probe after it is lost while the next one
// is not, again and again, more often than loss explains. A translator that forgets
// a mapping and then makes the same one again shows neither; such mappings last 30 s
// and more (RFC 4787, 4.3; Linux), and on a path that is idle for longer WireGuard
// itself sends a keepalive 10 s after each reply.
type Keepalive struct {
	least, most time.Duration
	interval    time.Duration
	learnt      Lifetime
	badAt       time.Time
	good        int // silences in a row that ended well, of the present interval
	missed      int // and that ended with a lost probe
	mapping     uint16
}

// NewKeepalive returns a Keepalive for intervals from least to most that knows
// what an earlier one had learnt.
func NewKeepalive(least, most time.Duration, learnt Lifetime, now time.Time) Keepalive {
	k := Keepalive{least: least, most: max(least, most), learnt: learnt, badAt: now}
	k.interval = k.rung(learnt.Good)
	return k
}

// Interval returns how long the path may be silent now.
func (k *Keepalive) Interval() time.Duration { return k.interval }

// Lifetime returns what was learnt.
func (k *Keepalive) Lifetime() Lifetime { return k.learnt }

// Answered says that a probe was answered which had been sent after silence, in
// which this node sent nothing on the path; mapping is Reply.Mapping, 0 if not
// known. It reports whether the gateway sees the path come from another address
// than before.
func (k *Keepalive) Answered(silence time.Duration, mapping uint16, now time.Time) (moved bool) {
	moved = mapping != 0 && k.mapping != 0 && mapping != k.mapping
	if mapping != 0 {
		k.mapping = mapping
	}
	switch {
	case !k.tests(silence):
	case moved:
		k.ended(silence, now)
	default:
		k.outlived(silence, now)
	}
	return moved
}

// Missed says that a probe which had been sent after silence was not answered,
// while a later one was. answered is the share (0 to 1) of probes that are.
func (k *Keepalive) Missed(silence time.Duration, answered float64, now time.Time) {
	if !k.tests(silence) {
		return
	}
	k.good = 0
	if k.missed++; k.missed >= tries(answered, endedChance) {
		k.ended(silence, now)
	}
}

// Moved says that the carrier has another network: what was learnt of the last
// one's translators says nothing of this one's.
func (k *Keepalive) Moved(now time.Time) {
	*k = NewKeepalive(k.least, k.most, Lifetime{}, now)
}

// tests reports whether a silence was as long as the present interval, give or
// take a timer.
func (k *Keepalive) tests(silence time.Duration) bool { return silence >= k.interval-k.interval/8 }

func (k *Keepalive) ended(silence time.Duration, now time.Time) {
	k.learnt.Bad, k.badAt = silence, now
	if k.learnt.Good >= silence {
		k.learnt.Good = 0
	}
	k.good, k.missed = 0, 0
	k.interval = k.rung(k.interval)
}

func (k *Keepalive) outlived(silence time.Duration, now time.Time) {
	k.missed = 0
	k.learnt.Good = max(k.learnt.Good, min(silence, k.interval))
	if k.learnt.Bad != 0 && now.Sub(k.badAt) >= badMemory {
		k.learnt.Bad = 0
	}
	if k.good++; k.good >= keepaliveProofs {
		k.good = 0
		k.interval = k.rung(k.longer())
	}
}

// longer returns the step after the present interval.
func (k *Keepalive) longer() time.Duration {
	for _, step := range keepaliveSteps {
		if step > k.interval {
			return step
		}
	}
	return k.most
}

// rung returns the longest interval up to d that is allowed: one of the steps, the
// least or the most, and shorter than what ended a mapping.
func (k *Keepalive) rung(d time.Duration) time.Duration {
	allowed := func(r time.Duration) bool {
		return r <= d && r <= k.most && (k.learnt.Bad == 0 || r < k.learnt.Bad-k.learnt.Bad/8)
	}
	if allowed(k.most) {
		return k.most
	}
	r := k.least
	for _, step := range keepaliveSteps {
		if step > r && allowed(step) {
			r = step
		}
	}
	return r
}
