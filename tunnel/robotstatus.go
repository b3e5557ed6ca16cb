package tunnel

import (
	"net/netip"
	"time"

	"github.com/fogplr/fogplr/path"
)

// StageNoAddress is the PathStatus.Stage of a path for whose gateway there is no
// address to try; the others are of path.Stage.
const StageNoAddress = "no address"

// settle takes what a path's machine now says of it. The caller holds node.mu.
func (r *Robot) settle(l *link, now time.Time) {
	snap := l.machine.Snapshot(now)
	up := snap.Up
	l.largest.Store(int32(largestOf(snap)))
	l.ways.up(up)
	l.headers.Store(headers4)
	ipv6 := l.ways.used.Addr().Is6()
	if ipv6 {
		l.headers.Store(headers6)
	}
	l.machine.Family(ipv6)
	if up == l.up {
		return
	}
	l.up, l.since, l.died = up, now, !up && snap.Stage != path.StageNoRoute
	for _, c := range r.carriers {
		if c.Slot == l.slot {
			c.listen()
		}
	}
	if up {
		r.cfg.Log.Info("Path up.", "carrier", l.carrier, "gateway", l.peer.name)
	} else {
		r.cfg.Log.Warn("Path down.", "carrier", l.carrier, "gateway", l.peer.name, "stage", snap.Name())
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// largestOf returns the largest frame in bytes that a path should get: what was
// found, or what any path takes while that is not known. It is 0, for no limit, where
// the gateway is too old to be asked.
func largestOf(s path.Snapshot) int {
	if s.Largest == 0 && !(s.Up && s.Search == path.SearchOff) {
		return path.BaseFrame
	}
	return s.Largest
}

// PathState is what has become of one path.
type PathState struct {
	Slot     int
	Gateway  string
	Endpoint netip.AddrPort // where the carrier looks for the gateway
	Up       bool
	Since    time.Time // when that began
	// Died says that it was up before, and that nothing came by it any more.
	Died bool
}

// Paths returns the state of every path whose carrier has a socket.
func (r *Robot) Paths() (all []PathState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.carriers {
		for _, l := range c.links {
			if c.bound != 0 {
				all = append(all, PathState{c.Slot, l.peer.name, l.ways.used, l.up, l.since, l.died})
			}
		}
	}
	return all
}

// Changed has a value after a path went up or down.
func (r *Robot) Changed() <-chan struct{} { return r.changed }

// Status tells how the robot is.
func (r *Robot) Status() Status {
	now := time.Now()
	s := r.status("robot", func(l *link, st *PathStatus) {
		snap := l.machine.Snapshot(now)
		st.Up, st.RTTms, st.LastProof = snap.Up, float64(snap.RTT)/float64(time.Millisecond), ago(snap.LastProof, now)
		if l.ways.used.IsValid() {
			st.Endpoint = l.ways.used.String()
		}
		st.LossIn, st.LossOut = snap.LossIn, snap.LossOut // without probes for sizes
		st.Stage, st.Hint = snap.Name(), snap.Stage.Hint()
		if len(l.ways.all) == 0 && !snap.Up {
			st.Stage, st.Hint = StageNoAddress, "No address of this gateway is known on this carrier: its endpoint is a name that was not found yet. "+
				"See what is said about DNS, or give an address."
		}
		st.Largest, st.Search = snap.Largest, snap.Search.String()
		st.IdleProbe = snap.Idle.Seconds()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.carriers {
		cs := CarrierStatus{
			Interface: c.Interface, Label: c.Label, Slot: c.Slot, Usable: c.bound != 0 && c.uplink.Problem == "",
			Problem: c.uplink.Problem, Socket: c.wg.bind.stats.status(),
		}
		cs.OwnBytes = c.ownBytes()
		cs.OwnPerDay = c.own.perDay(cs.OwnBytes, now)
		s.Carriers = append(s.Carriers, cs)
		if c.uplink.Warning != "" {
			s.Warnings = append(s.Warnings, c.uplink.Warning)
		}
	}
	for i := range s.Peers {
		s.Ready = s.Ready || s.Peers[i].Reached()
	}
	return s
}

// ownBytes are those that were no application's. What is counted between the two
// is on its way: no less than nothing.
func (c *carrier) ownBytes() uint64 {
	applied, s := c.applied.Load(), &c.wg.bind.stats
	return max(s.wire.Load()+s.unsent.Load(), applied) - applied
}
