package arbitrate

import (
	"slices"

	"github.com/fogplr/fogplr/rtps"
)

// parked is a datagram of which only one sample is left, and that is kept.
type parked struct {
	stream  *stream // nil if the writer has gone
	request *request
	uses    uint32 // of the request's memory
	to      audience
	n       rtps.SequenceNumber
	k       pieces
	since   moment
	start   int // of the sample in the message
	data    []byte
	ends    []int // of the packets in data
}

// answers returns the request, nil if it is not known any more.
func (p *parked) answers() *request {
	if p.request.uses != p.uses {
		return nil
	}
	return p.request
}

// parking is what is kept.
type parking struct {
	kept  []*parked // oldest first
	bytes int       // in kept
	ready []*parked // to be delivered at once
	given []*parked // delivered; their memory is the caller's until the next call
	spare []*parked
	out   [][]byte

	datagram rtps.Datagram
	message  rtps.Message
	sub      rtps.Submessage
}

// handOver adds what is ready to the packets.
func (q *parking) handOver(packets [][]byte) [][]byte {
	q.spare = append(q.spare, q.given...)
	q.given = q.given[:0]
	if len(q.ready) == 0 {
		return packets
	}
	q.out = append(q.out[:0], packets...)
	for _, p := range q.ready {
		at := 0
		for _, end := range p.ends {
			q.out = append(q.out, p.data[at:end:end])
			at = end
		}
	}
	q.given, q.ready = append(q.given, q.ready...), q.ready[:0]
	return q.out
}

// keep takes the sample at hand out of its datagram and keeps it, if the reader that
// waits for it would not hand it out yet, and another replica may be faster. The
// rest of the datagram goes on: a HEARTBEAT in it makes the reader ask for what it
// lacks.
func (a *Arbiter) keep(s *stream, r *request, to audience, n rtps.SequenceNumber, k pieces) bool {
	if a.tail || a.sub.Start%4 != 0 || !a.waits(s, r, to, n, k) {
		return false
	}
	udp := a.changeable(a.packets[0])
	if udp == nil || !sized(udp, &a.sub) {
		return false
	}
	if !a.parking.has(s, to, n, k) && !a.copied(s, r, to, n, k) {
		return false
	}
	pad(udp, &a.sub)
	a.padded = true
	return true
}

// waits says that the sample is complete with these pieces, and the client's reader,
// whichever it is, would not hand it out before it has got something else.
func (a *Arbiter) waits(s *stream, r *request, to audience, n rtps.SequenceNumber, k pieces) bool {
	client := false
	for _, reader := range s.writer.service.readers {
		if !to.has(reader.guid) || !r.isFor(reader.guid) {
			continue
		}
		p := s.pair(reader.guid)
		if p == nil || !p.matched || p.stuck || !p.blocked(n) || !p.completes(n, k) {
			return false
		}
		client = true
	}
	return client && s.writer.service.replicated(s.writer, a.now)
}

// has says that the same is kept already for those readers.
func (q *parking) has(s *stream, to audience, n rtps.SequenceNumber, k pieces) bool {
	if s.parked == 0 {
		return false
	}
	for _, p := range q.kept {
		if p.stream != s || p.n != n || p.k != k {
			continue
		}
		if !slices.ContainsFunc(s.pairs, func(r *pair) bool { return to.has(r.reader) && !p.to.has(r.reader) }) {
			return true
		}
	}
	return false
}

// copied keeps a copy of the datagram at hand, with nothing but the sample in it.
// False means that it cannot be, or that there is no room.
func (a *Arbiter) copied(s *stream, r *request, to audience, n rtps.SequenceNumber, k pieces) bool {
	q, size := &a.parking, 0
	for _, p := range a.packets {
		size += len(p)
	}
	if s.parked == parkedEach || s.parkedBytes+size > parkedEachBytes ||
		len(q.kept) == parkedAll || q.bytes+size > parkedAllBytes {
		a.counters.Overflow++
		return false
	}
	p := q.take()
	*p = parked{
		stream: s, request: r, uses: r.uses, to: to, n: n, k: k, since: a.now, start: a.sub.Start,
		data: p.data[:0], ends: p.ends[:0],
	}
	for _, packet := range a.packets {
		p.data = append(p.data, packet...)
		p.ends = append(p.ends, len(p.data))
	}
	if !q.strip(p) {
		q.spare = append(q.spare, p)
		return false
	}
	q.kept = append(q.kept, p)
	q.bytes += size
	s.parked++
	s.parkedBytes += size
	s.writer.service.counters.Parked++
	a.counters.Parked++
	return true
}

func (q *parking) take() *parked {
	if n := len(q.spare); n > 0 {
		p := q.spare[n-1]
		q.spare = q.spare[:n-1]
		return p
	}
	return &parked{}
}

// strip leaves nothing in the copy but the sample.
func (q *parking) strip(p *parked) bool {
	first := p.data[:p.ends[0]]
	if !q.datagram.Read(first) || !q.message.Read(q.datagram.Payload, q.datagram.Whole) {
		return false
	}
	udp := udpOf(first, q.datagram.Payload)
	for q.message.Next(&q.sub) {
		if q.sub.Start != p.start && talks(q.sub.Kind) && !pad(udp, &q.sub) {
			return false
		}
	}
	return true
}

// settle lets go of what need not be kept any longer.
func (a *Arbiter) settle() {
	for q := &a.parking; a.moved; {
		a.moved = false
		for i := 0; i < len(q.kept); {
			p := q.kept[i]
			r := p.answers()
			switch {
			case p.stream != nil && r != nil && r.won && r.writer != p.stream.writer.guid && a.gapParked(p):
			case p.stream != nil && r != nil && !r.won && p.waiting():
				i++
				continue
			default:
				a.release(p)
			}
			a.leaves(i)
		}
	}
}

// waiting says that the client's reader still lacks what comes before the sample.
func (p *parked) waiting() bool {
	for _, r := range p.stream.pairs {
		if p.to.has(r.reader) && p.request.isFor(r.reader) && r.matched && r.blocked(p.n) {
			return true
		}
	}
	return false
}

// leaves moves number i from what is kept to what is ready.
func (a *Arbiter) leaves(i int) {
	q := &a.parking
	p := q.kept[i]
	q.kept = slices.Delete(q.kept, i, i+1)
	q.bytes -= len(p.data)
	if p.stream != nil {
		p.stream.parked--
		p.stream.parkedBytes -= len(p.data)
	}
	q.ready = append(q.ready, p)
}

// release notes that the sample is delivered as it is.
func (a *Arbiter) release(p *parked) {
	a.counters.Released++
	if p.stream != nil {
		p.stream.writer.service.counters.Released++
		a.passed(p.stream, p.to, p.n, p.k)
	}
}

// gapParked turns the sample into a GAP. False means that it stays as it is.
func (a *Arbiter) gapParked(p *parked) bool {
	q := &a.parking
	if !q.datagram.Read(p.data[:p.ends[0]]) || !q.message.Read(q.datagram.Payload, q.datagram.Whole) {
		return false
	}
	for q.message.Next(&q.sub) {
		if q.sub.Start != p.start {
			continue
		}
		if !q.datagram.Gap(&q.message, &q.sub) {
			break
		}
		a.withheld(p.stream, p.stream.known(p.n), p.to, p.n)
		return true
	}
	a.counters.Refused++
	return false
}

// expire lets go of what was kept for too long. The readers concerned may have more
// than is known here.
func (a *Arbiter) expire() {
	q := &a.parking
	for len(q.kept) > 0 && a.now-q.kept[0].since >= parkAge {
		p := q.kept[0]
		if p.stream != nil {
			for _, r := range p.stream.pairs {
				if p.to.has(r.reader) {
					r.stuck = true
				}
			}
		}
		a.counters.Expired++
		a.release(p)
		a.leaves(0)
	}
}

// orphan notes that a stream ends: what is kept of it is delivered as it is.
func (a *Arbiter) orphan(s *stream) {
	for _, p := range a.parking.kept {
		if p.stream == s {
			p.stream = nil
			a.moved = true
		}
	}
}
