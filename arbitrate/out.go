package arbitrate

import "github.com/fogplr/fogplr/rtps"

// Where the bitmap of a set begins, octets from the beginning of its submessage: of
// an ACKNACK (9.4.5.3), and of a NACK_FRAG (9.4.5.14).
const (
	ackNackBitmap  = 4 + 8 + 8 + 4
	nackFragBitmap = 4 + 8 + 8 + 4 + 4
)

// leave walks through a packet that leaves.
func (a *Arbiter) leave(packet []byte) {
	m := &a.message
	if !a.datagram.Read(packet) || !m.Read(a.datagram.Payload, a.datagram.Whole) {
		return
	}
	for m.Next(&a.sub) {
		switch a.sub.Kind {
		case rtps.KindData:
			d, ok := a.sub.Data()
			if !ok {
				return
			}
			a.written(&d, pieces{1, 1, 1})
		case rtps.KindDataFrag:
			f, ok := a.sub.DataFrag()
			if !ok {
				return
			}
			a.written(&f.Data, pieces{f.FragmentStart, rtps.FragmentNumber(f.FragmentsInSubmessage), f.Fragments()})
		case rtps.KindAckNack:
			n, ok := a.sub.AckNack()
			if !ok {
				return
			}
			a.acknowledged(&n, packet)
		case rtps.KindNackFrag:
			n, ok := a.sub.NackFrag()
			if !ok {
				return
			}
			a.wanted(&n, packet)
		}
	}
}

// written takes a sample that leaves, or pieces of one.
func (a *Arbiter) written(d *rtps.Data, k pieces) {
	if d.Writer.Builtin() {
		a.discovery(d, k, true)
		return
	}
	e := a.graph.endpoints.get(rtps.GUID{Prefix: a.message.Source, Entity: d.Writer})
	if e != nil && e.role == rtps.RoleRequest {
		e.owner.seen = a.now
		a.asked(e, d)
	}
}

// pairOf returns a writer of replies there, and what the reader that sent the
// submessage at hand has of it; nil if either is not known.
func (a *Arbiter) pairOf(reader, writer rtps.EntityID) (*stream, *pair) {
	e := a.graph.endpoints.get(rtps.GUID{Prefix: a.message.Destination, Entity: writer})
	if e == nil || e.stream == nil {
		return nil, nil
	}
	return e.stream, e.stream.pair(rtps.GUID{Prefix: a.message.Source, Entity: reader})
}

// acknowledged takes an ACKNACK that leaves.
func (a *Arbiter) acknowledged(k *rtps.AckNack, packet []byte) {
	s, p := a.pairOf(k.Reader, k.Writer)
	base := k.Missing.Base
	first, wants := k.Missing.Next(base)
	// Sent before any HEARTBEAT was heard, it only asks for one.
	unheard := base < 1 || base == 1 && !k.Final && !wants
	if p == nil || unheard {
		return
	}
	if !p.matched {
		p.match(base)
		a.graph.revision++
	}
	p.stuck = base <= p.early
	a.skip(s, p, base)
	for n, ok := first, wants; ok; n, ok = k.Missing.Next(n + 1) {
		a.doubt(s, p, n)
	}
	for _, q := range a.parking.kept {
		if q.isFor(s, p) && k.Missing.Contains(q.n) {
			a.unask(packet, ackNackBitmap, int(q.n-base))
		}
	}
}

// wanted takes a NACK_FRAG that leaves.
func (a *Arbiter) wanted(k *rtps.NackFrag, packet []byte) {
	s, p := a.pairOf(k.Reader, k.Writer)
	if p == nil || !p.matched {
		return
	}
	if _, wants := k.Missing.Next(k.Missing.Base); !wants {
		return
	}
	a.doubt(s, p, k.Seq)
	left := 0
	for i, ok := k.Missing.Next(k.Missing.Base); ok; i, ok = k.Missing.Next(i + 1) {
		if a.parking.holds(s, p, k.Seq, i) {
			a.unask(packet, nackFragBitmap, int(i-k.Missing.Base))
		} else {
			left++
		}
	}
	if udp := a.changeable(packet); left == 0 && udp != nil {
		pad(udp, &a.sub) // it asks for nothing, which a writer might not expect
	}
}

// holds says that a fragment of n is kept for the reader.
func (q *parking) holds(s *stream, r *pair, n rtps.SequenceNumber, i rtps.FragmentNumber) bool {
	for _, p := range q.kept {
		if p.isFor(s, r) && p.n == n && i >= p.k.first && i < p.k.first+p.k.count {
			return true
		}
	}
	return false
}

// isFor says that the sample is that writer's, and will be delivered to that reader.
func (p *parked) isFor(s *stream, r *pair) bool { return p.stream == s && p.to.has(r.reader) }

// unask takes a number out of the set in the submessage at hand, whose bitmap begins
// at that offset of it; index is the number less the set's base.
func (a *Arbiter) unask(packet []byte, bitmap, index int) {
	udp := a.changeable(packet)
	if udp == nil {
		return
	}
	octet := index % 32 / 8
	if a.sub.Flags&1 != 0 { // little endian
		octet = 3 - octet
	}
	at := a.sub.Start + bitmap + index/32*4 + octet
	put(udp, at, udp[udpHeader+at]&^(0x80>>(index%8)))
	a.counters.Unasked++
}

// doubt takes it that a reader asks for n. If it should have had it for long, it was
// lost in the host, and what seemed to be delivered since was not.
func (a *Arbiter) doubt(s *stream, p *pair, n rtps.SequenceNumber) {
	if n >= p.next && (n-p.next >= window || !p.done.has(n)) {
		return
	}
	record := s.known(n)
	if record == nil || record.passed == 0 || a.now-record.passed <= doubtAfter {
		return
	}
	p.lost(n)
	a.counters.Doubted++
	for i := range s.records {
		k := &s.records[i]
		if k.n < n {
			continue
		}
		if r := k.answers(); r != nil && r.won && r.writer == s.writer.guid && r.n == k.n {
			r.won = false
		}
	}
}
