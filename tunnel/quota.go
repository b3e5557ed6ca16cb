package tunnel

import (
	"sync/atomic"
	"time"

	"golang.zx2c4.com/wireguard/device"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// quota watches what a carrier moves, in bytes of socketStats.wire; 0 is no mark
// and no limit. The zero value watches nothing.
type quota struct {
	mark, limit atomic.Uint64
	reached     func() // called once for each mark, by whoever sends or receives
}

// move counts bytes on the carrier.
func (s *socketStats) move(bytes uint64) {
	total := s.wire.Add(bytes)
	if mark := s.quota.mark.Load(); mark != 0 && total >= mark && s.quota.mark.CompareAndSwap(mark, 0) {
		s.quota.reached()
	}
}

// within returns the messages of bufs that may be sent: beyond the limit only the
// smallest ones, which probes and handshakes are.
func (s *socketStats) within(bufs [][]byte, headers int) [][]byte {
	limit := s.quota.limit.Load()
	if limit == 0 || s.wire.Load() < limit {
		return bufs
	}
	var small [][]byte
	for i, b := range bufs {
		if len(b) <= device.MessageInitiationSize {
			small = append(small, b)
		} else {
			s.lost(bufs[i:i+1], headers)
		}
	}
	s.txDropped.Add(uint64(len(bufs) - len(small)))
	return small
}

// lost counts messages, each with headers, that are not sent.
func (s *socketStats) lost(bufs [][]byte, headers int) {
	if len(bufs) == 0 || !isTransport(bufs[0]) {
		return
	}
	bytes := len(bufs) * headers
	for _, b := range bufs {
		bytes += len(b)
	}
	s.unsent.Add(uint64(bytes))
}

// headersTo is the length in bytes of the headers of UDP and IP.
func headersTo(to *endpoint) int {
	if to.addr.Addr().Is4() {
		return headers4
	}
	return headers6
}

// Meter has Metered told when the carrier in that slot has moved mark bytes, in
// terms of Moved, and lets it send nothing but the smallest messages once it has
// moved limit. Both hold until the next call; 0 is none.
func (r *Robot) Meter(slot int, mark, limit uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.carriers {
		if c.Slot != slot {
			continue
		}
		q := &c.wg.bind.stats.quota
		q.limit.Store(limit)
		q.mark.Store(mark)
		if mark != 0 && c.wg.bind.stats.wire.Load() >= mark && q.mark.CompareAndSwap(mark, 0) {
			q.reached()
		}
	}
}

// Metered has a value after a carrier has reached its mark.
func (r *Robot) Metered() <-chan struct{} { return r.metered }

func (r *Robot) reachedMark() {
	select {
	case r.metered <- struct{}{}:
	default:
	}
}

// Spend counts bytes that this program moved by the carrier in that slot beside the
// tunnel, such as by asking for a name.
func (r *Robot) Spend(slot int, bytes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.carriers {
		if c.Slot == slot {
			c.wg.bind.stats.move(bytes)
		}
	}
}

// Moved returns the bytes that the carrier in that slot has moved, both ways, with
// all headers, since it was configured.
func (r *Robot) Moved(slot int) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.carriers {
		if c.Slot == slot {
			return c.wg.bind.stats.wire.Load()
		}
	}
	return 0
}

// Rest stops to use the carrier in that slot at once, for the reason that problem
// says, until SetUplink says that it has none. Its gateways are told, since they
// would go on sending by it for some seconds.
func (r *Robot) Rest(slot int, problem string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.carriers {
		if c.Slot == slot && c.uplink.Problem == "" && c.bound != 0 {
			u := c.uplink
			u.Problem = problem
			r.setUplink(c, u, now)
		}
	}
	r.wake()
}

// leave tells the gateways by a carrier that still has its sockets, but is not used
// any more. The caller holds node.mu.
func (r *Robot) leave(c *carrier, now time.Time) {
	for _, l := range c.links {
		if l.machine.HasSession(now) {
			r.farewell(l, now)
			l.farewells.Store(mostFarewells)
		}
	}
}

// again says a farewell again, since something still came by the path. The caller
// holds inward.mu.
func (r *Robot) again(l *link, now time.Time) {
	if now.Sub(l.farewellAt) < farewellEvery {
		return
	}
	l.farewellAt = now
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.farewells.Load() > 0 { // or else the path is in use again
		l.farewells.Add(-1)
		r.farewell(l, now)
	}
}

func (r *Robot) farewell(l *link, now time.Time) {
	m := make([]byte, path.ProbeLen)
	path.Probe{}.Put(m)
	r.sendControl(l.queue, l, replicate.Probe, m, now)
}
