package path

import (
	"fmt"
	"math"
	"time"
)

// Snapshot is what a Machine knows, for status and for the choice of paths.
type Snapshot struct {
	Up    bool
	Stage Stage
	// RTT and RTTVar are smoothed as in RFC 6298, 0 when not known.
	RTT, RTTVar time.Duration
	// LastProof is when the last proof came, zero for never.
	LastProof       time.Time
	Probes, Replies uint64

	// Largest is the size in bytes up to which frames pass both ways, 0 when not
	// known, and Search how far the search for it is. Holes counts the times that
	// frames of a size that had passed were lost all of a sudden.
	Largest int
	Search  SearchState
	Holes   int
	// LossOut and LossIn are the shares (0 to 1) of frames lost each way over the
	// last ten seconds, -1 when too few were sent to tell.
	LossOut, LossIn float64
	// Lossy means that the path loses so much that it is of use only beside others.
	Lossy bool
	// Throttle is the rate in bytes per second, all headers included, that the
	// carrier delivers at most on the way out; 0 when no limit is known.
	Throttle float64
	// Idle is the probe interval when there is no traffic, and Lifetime what was
	// learnt of translators (NAT) on the way. Moves counts the times that the
	// gateway saw the path come from another address.
	Idle     time.Duration
	Lifetime Lifetime
	Moves    uint64
}

// Snapshot returns what the machine knows.
func (m *Machine) Snapshot(now time.Time) Snapshot {
	s := Snapshot{
		Up:        m.up,
		LastProof: m.lastProof,
		Probes:    m.probes,
		Replies:   m.replies,
		Largest:   m.sizes.Largest(),
		Search:    m.sizes.State(),
		Holes:     m.sizes.Holes(),
		LossOut:   -1,
		LossIn:    -1,
		Lossy:     m.quality.lossy,
		Throttle:  m.throttle.Rate(),
		Idle:      m.keepalive.Interval(),
		Lifetime:  m.keepalive.Lifetime(),
		Moves:     m.moves,
	}
	if m.rtt.known {
		s.RTT, s.RTTVar = m.rtt.smooth, m.rtt.dev
	}
	if out := m.quality.out.window(now); out.enough() {
		s.LossOut = out.share
	}
	if in := m.quality.in.window(now); in.enough() {
		s.LossIn = in.share
	}
	s.Stage = m.stage(now)
	return s
}

// Name returns the stage with the number that belongs to it, as `status` shows
// it, empty for StageUp.
func (s Snapshot) Name() string {
	switch {
	case s.Stage == StageThrottled:
		return fmt.Sprintf("throttled to about %.0f kbit/s", twoDigits(s.Throttle*8/1000))
	case s.Stage == StageLossOut && s.LossOut >= oneWayLeast:
		return fmt.Sprintf("loses %.0f %% on the way out", 100*s.LossOut)
	case s.Stage == StageLossIn && s.LossIn >= oneWayLeast:
		return fmt.Sprintf("loses %.0f %% on the way in", 100*s.LossIn)
	case s.Stage == StageLossy && max(s.LossOut, s.LossIn) >= 0:
		return fmt.Sprintf("lossy, loses %.0f %%", 100*max(s.LossOut, s.LossIn))
	}
	return s.Stage.String()
}

// twoDigits rounds f to two digits.
func twoDigits(f float64) float64 {
	if f <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(f))-1)
	return math.Round(f/unit) * unit
}
