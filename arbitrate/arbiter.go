package arbitrate

import (
	"encoding/binary"
	"time"

	"github.com/fogplr/fogplr/rtps"
)

// Arbiter arbitrates for the clients of one host. The caller serialises all calls;
// now must not go backwards, except between Arbiters.
type Arbiter struct {
	began     time.Time
	now       moment // of the call at hand
	nextSweep moment

	graph    graph
	requests requests
	streams  []*stream
	bitmaps  bitmaps
	parking  parking
	counters Counters

	// What is at hand: a packet that leaves, or a datagram that comes.
	packets  [][]byte
	datagram rtps.Datagram
	message  rtps.Message
	sub      rtps.Submessage
	padded   bool   // a sample was taken out of it
	joined   []byte // the message, where it is in several packets
	tail     bool   // what is read is not in the first packet
	moved    bool   // something was learnt that parked replies may wait for
}

// New returns an Arbiter that knows nothing.
func New(now time.Time) *Arbiter {
	return &Arbiter{
		began:     now.Add(-1), // so that no moment is 0
		bitmaps:   bitmaps{room: maxBitmaps},
		nextSweep: sweepEvery,
		graph:     newGraph(),
		requests:  requests{newTable[requestKey, request](maxRequests)},
	}
}

// In takes a datagram that came from a gateway for this host: its IP packet, or all
// of its fragments in order, whatever it is. It returns the packets that are to be
// delivered now, in that order: those of the datagram, maybe changed in place, or
// none of them if it is kept; and others that were kept before. All of them
// must be delivered before anything that a later call returns.
//
// packets are the caller's: what is kept is copied. What is returned stands until
// the next call of In or Tick.
func (a *Arbiter) In(now time.Time, packets [][]byte) [][]byte {
	a.begin(now)
	if len(packets) > 0 && !a.come(packets) {
		packets = nil
	}
	return a.finish(packets)
}

// Out takes an IP packet of this host that leaves for a gateway, before it is
// numbered. For a datagram in fragments the first is enough; the others do no harm.
// The packet is changed in place, and keeps its length, where a reader asks for a
// sample that is parked here: it must not be asked for again.
func (a *Arbiter) Out(now time.Time, packet []byte) {
	a.begin(now)
	a.leave(packet)
	a.settle()
}

// Tick does what time demands. It returns packets to be delivered as In does. It is
// to be called at Due, and may be called at any time.
func (a *Arbiter) Tick(now time.Time) [][]byte {
	a.begin(now)
	if a.now >= a.nextSweep {
		a.nextSweep = a.now + sweepEvery
		a.sweep()
	}
	return a.finish(nil)
}

// Due returns when Tick is wanted, which may be in the past. It changes with every
// call of In, Out and Tick.
func (a *Arbiter) Due() time.Time {
	due := a.nextSweep
	switch {
	case len(a.parking.ready) > 0:
		due = a.now
	case len(a.parking.kept) > 0:
		due = min(due, a.parking.kept[0].since+parkAge)
	}
	return a.began.Add(due)
}

func (a *Arbiter) begin(now time.Time) { a.now = max(a.now, now.Sub(a.began)) }

// finish adds to the packets at hand what was kept and is to be delivered now.
func (a *Arbiter) finish(packets [][]byte) [][]byte {
	a.settle()
	a.expire()
	a.settle()
	return a.parking.handOver(packets)
}

// come walks through a datagram. False means that all that matters of it is kept.
func (a *Arbiter) come(packets [][]byte) bool {
	m := &a.message
	if !a.datagram.Read(packets[0]) || !m.Read(a.datagram.Payload, a.datagram.Whole) {
		return true
	}
	a.packets, a.padded = packets, false
	for a.readable(m.Next(&a.sub)) {
	}
	if a.datagram.Fragmented && m.Unread() > 0 {
		a.beyond(m.Unread())
	}
	return !a.padded || a.says()
}

// readable takes the submessage at hand, if there is one. False means that the
// rest of the message cannot be read, or would not be by a reader.
func (a *Arbiter) readable(there bool) bool {
	if !there {
		return false
	}
	switch a.sub.Kind {
	case rtps.KindData:
		d, ok := a.sub.Data()
		if ok {
			a.sample(&d, pieces{1, 1, 1})
		}
		return ok
	case rtps.KindDataFrag:
		f, ok := a.sub.DataFrag()
		if ok {
			a.sample(&f.Data, pieces{f.FragmentStart, rtps.FragmentNumber(f.FragmentsInSubmessage), f.Fragments()})
		}
		return ok
	case rtps.KindHeartbeat:
		h, ok := a.sub.Heartbeat()
		if ok {
			a.heartbeat(&h)
		}
		return ok
	case rtps.KindGap:
		g, ok := a.sub.Gap()
		if ok {
			a.gapped(&g)
		}
		return ok
	}
	return true
}

// sample takes a sample that comes, or pieces of one.
func (a *Arbiter) sample(d *rtps.Data, k pieces) {
	if d.Writer.Builtin() {
		a.discovery(d, k, false)
		return
	}
	if e := a.replier(d.Writer); e != nil {
		a.reply(e, d, k)
	}
}

// discovery takes a sample of a built-in writer. One in fragments is not read; none
// that tells of a service is so large.
func (a *Arbiter) discovery(d *rtps.Data, k pieces, local bool) {
	if k.total > 1 {
		return
	}
	switch d.Writer {
	case rtps.EntityParticipantWriter:
		if p, ok := d.Participant(); ok {
			a.announced(p, local)
		}
	case rtps.EntityPublicationsWriter, rtps.EntitySubscriptionsWriter:
		if e, ok := d.Endpoint(); ok {
			a.discovered(&e, local)
		}
	}
}

// beyond reads those last octets of the message at hand, which are not in its first
// packet: a HEARTBEAT, as a rule. What is there cannot be changed.
func (a *Arbiter) beyond(unread int) {
	p := a.graph.participants.get(a.message.Source)
	if p == nil || p.local {
		return
	}
	follows := false
	for _, e := range p.endpoints {
		follows = follows || e.stream != nil
	}
	if !follows {
		return
	}
	m := &a.message
	if !a.join() || !m.Read(a.joined, len(a.joined)) {
		for _, e := range p.endpoints {
			e.stream.unsure()
		}
		return
	}
	a.tail = true
	for m.Next(&a.sub) {
		if a.sub.Start >= len(a.joined)-unread && !a.readable(true) {
			break
		}
	}
	a.tail = false
}

// join puts the message at hand together. False means that its packets are not its
// fragments, all and in order.
func (a *Arbiter) join() bool {
	a.joined = append(a.joined[:0], a.datagram.Payload...)
	for _, p := range a.packets[1:] {
		at, end := 0, len(p)
		switch {
		case len(p) > ipv4Header && p[0]>>4 == 4:
			at, end = int(p[0]&15)*4, int(binary.BigEndian.Uint16(p[2:]))
		case len(p) > ipv6Fragment && p[0]>>4 == 6 && p[6] == protocolFragment:
			at, end = ipv6Fragment, ipv6Header+int(binary.BigEndian.Uint16(p[4:]))
		}
		if at == 0 || at > end || end > len(p) || len(a.joined)+end-at > a.datagram.Whole {
			return false
		}
		a.joined = append(a.joined, p[at:end]...)
	}
	return len(a.joined) == a.datagram.Whole
}

// Of a later fragment: headers, octets, and the number of IPv6's fragment header
// (RFC 8200, section 4.5), which comes first where nothing else has been added.
const (
	ipv4Header       = 20
	ipv6Header       = 40
	ipv6Fragment     = ipv6Header + 8
	protocolFragment = 44
)

// unsure notes that readers may have got something that was not seen. s may be nil.
func (s *stream) unsure() {
	if s == nil {
		return
	}
	for _, p := range s.pairs {
		p.stuck = true
	}
}
