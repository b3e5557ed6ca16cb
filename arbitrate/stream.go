package arbitrate

import (
	"slices"

	"github.com/fogplr/fogplr/rtps"
)

// stream is a writer of replies behind a gateway, and what the readers of this host
// have of it.
type stream struct {
	writer  *endpoint
	used    moment
	pairs   []*pair
	records [maxRecords]record

	parked, parkedBytes int
}

// record is about the last sample whose number is the same modulo maxRecords.
type record struct {
	n       rtps.SequenceNumber
	request *request
	uses    uint32 // of the request's memory, when this was written
	passed  moment // when the last of it was
	gap     bool   // it was withheld, or the writer took it back: no reader may have it
	unknown bool   // it names a request that is not known
}

// answers returns the request, nil if that is not known.
func (r *record) answers() *request {
	if r.request == nil || r.request.uses != r.uses {
		return nil
	}
	return r.request
}

// record returns the one of n, nil if that is too old.
func (s *stream) record(n rtps.SequenceNumber) *record {
	r := &s.records[n%maxRecords]
	if n < r.n {
		return nil
	}
	if n > r.n {
		*r = record{n: n}
	}
	return r
}

// known returns the record of n, nil if there is none.
func (s *stream) known(n rtps.SequenceNumber) *record {
	if r := &s.records[n%maxRecords]; r.n == n {
		return r
	}
	return nil
}

// pair returns what the reader has, nil if it was not told of the writer.
func (s *stream) pair(reader rtps.GUID) *pair {
	for _, p := range s.pairs {
		if p.reader == reader {
			return p
		}
	}
	return nil
}

// unpair forgets a reader.
func (s *stream) unpair(reader rtps.GUID) {
	s.pairs = slices.DeleteFunc(s.pairs, func(p *pair) bool {
		if p.reader == reader {
			p.free()
		}
		return p.reader == reader
	})
}

// reached says that n was handed out by whichever reader waits for the reply: each
// that may be it has n, and all before it.
func (s *stream) reached(r *request, n rtps.SequenceNumber) bool {
	found := false
	for _, reader := range s.writer.service.readers {
		if !r.isFor(reader.guid) {
			continue
		}
		p := s.pair(reader.guid)
		if p == nil || !p.matched || n < p.start || n >= p.next {
			return false
		}
		found = true
	}
	return found
}

// streamOf returns what is known of a writer of replies, after it has begun with
// nothing. It is nil if no reader here wants them.
func (a *Arbiter) streamOf(e *endpoint) *stream {
	if e.stream == nil && len(e.service.readers) > 0 {
		if len(a.streams) == maxStreams {
			a.closeStream(slices.MinFunc(a.streams, func(x, y *stream) int { return int(x.used - y.used) }))
		}
		e.stream = &stream{writer: e}
		a.streams = append(a.streams, e.stream)
	}
	if e.stream != nil {
		e.stream.used = a.now
	}
	return e.stream
}

// closeStream forgets all that is known of a writer of replies.
func (a *Arbiter) closeStream(s *stream) {
	a.orphan(s)
	for _, p := range s.pairs {
		p.free()
	}
	s.writer.stream = nil
	a.streams = slices.DeleteFunc(a.streams, func(o *stream) bool { return o == s })
}

// audience says which readers of this host a submessage reaches.
type audience struct {
	prefix rtps.Prefix   // zero: of every participant
	reader rtps.EntityID // 0: every reader
	nobody bool          // it cannot be told
}

func (t audience) has(reader rtps.GUID) bool {
	return !t.nobody && (t.prefix == rtps.Prefix{} || reader.Prefix == t.prefix) &&
		(t.reader == rtps.EntityUnknown || reader.Entity == t.reader)
}

// audienceOf returns whom the submessage at hand reaches: by the participant that
// the message names, or whose port the datagram goes to.
func (a *Arbiter) audienceOf(s *service, reader rtps.EntityID) audience {
	if a.message.Destination != (rtps.Prefix{}) {
		a.listens(a.message.Destination)
		return audience{prefix: a.message.Destination, reader: reader}
	}
	to := port{a.datagram.Destination, a.datagram.DestinationPort}
	if to.addr.IsMulticast() {
		return audience{reader: reader}
	}
	if p := a.graph.ports.get(to); p != nil {
		return audience{prefix: *p, reader: reader}
	}
	for _, r := range s.readers {
		if r.guid.Prefix != s.readers[0].guid.Prefix {
			return audience{nobody: true}
		}
	}
	return audience{reader: reader}
}

// heartbeat takes a HEARTBEAT that is passed on.
func (a *Arbiter) heartbeat(h *rtps.Heartbeat) {
	e := a.replier(h.Writer)
	if e == nil {
		return
	}
	s := a.streamOf(e)
	if s == nil {
		return
	}
	to := a.audienceOf(e.service, h.Reader)
	for _, r := range e.service.readers {
		if !to.has(r.guid) {
			continue
		}
		p := s.pair(r.guid)
		if p == nil {
			if len(s.pairs) == maxPairs {
				a.graph.full++
				return
			}
			p = &pair{reader: r.guid, bitmaps: &a.bitmaps}
			s.pairs = append(s.pairs, p)
			a.graph.revision++
		}
		if p.matched {
			a.skip(s, p, h.First)
		}
	}
}

// gapped takes a GAP that the writer sent, and that is passed on.
func (a *Arbiter) gapped(g *rtps.Gap) {
	e := a.replier(g.Writer)
	if e == nil || e.stream == nil {
		return
	}
	s, to := e.stream, a.audienceOf(e.service, g.Reader)
	for i := range s.records {
		if k := &s.records[i]; k.n > 0 && g.Covers(k.n) && s.concerns(to, k.answers()) {
			k.gap = true
		}
	}
	for _, p := range s.pairs {
		if !p.matched || !to.has(p.reader) {
			continue
		}
		if g.Start <= p.next {
			a.skip(s, p, g.List.Base)
		} else {
			for n := g.Start; n < g.List.Base && n-p.next < window; n++ {
				p.gap(n)
			}
		}
		for n, ok := g.List.Next(g.List.Base); ok; n, ok = g.List.Next(n + 1) {
			p.gap(n)
		}
		a.advance(s, p)
	}
}

// concerns says that a reader that may wait for the reply to r is among those. r may
// be nil.
func (s *stream) concerns(to audience, r *request) bool {
	return r != nil && slices.ContainsFunc(s.writer.service.readers, func(e *endpoint) bool {
		return to.has(e.guid) && r.isFor(e.guid)
	})
}

// replier returns the writer of replies there that the message at hand is from,
// nil if it is none.
func (a *Arbiter) replier(id rtps.EntityID) *endpoint {
	e := a.graph.endpoints.get(rtps.GUID{Prefix: a.message.Source, Entity: id})
	if e == nil || e.local() || e.role != rtps.RoleReply {
		return nil
	}
	e.owner.seen = a.now
	return e
}

// skip notes that the reader has all numbers below to that it will get.
func (a *Arbiter) skip(s *stream, p *pair, to rtps.SequenceNumber) {
	for i := 0; p.next < to && i < window; i++ {
		a.step(s, p)
	}
	if p.next < to { // no number of those is followed
		p.next = to
		a.moved = true
	}
	a.advance(s, p)
}

// advance goes on to the first number that is missing.
func (a *Arbiter) advance(s *stream, p *pair) {
	for p.done.has(p.next) {
		a.step(s, p)
	}
}

// step goes on by one number. If it was passed on, the reader hands it out now.
func (a *Arbiter) step(s *stream, p *pair) {
	n, whole := p.next, p.whole.has(p.next)
	p.done.clear(n)
	p.whole.clear(n)
	if len(p.open) > 0 {
		p.close(n)
	}
	p.next++
	a.moved = true
	if whole {
		a.handedOut(s, n)
	}
}

// handedOut notes that a reader has handed out the sample n. If that was the one
// of a client that waits for the reply, it is the first.
func (a *Arbiter) handedOut(s *stream, n rtps.SequenceNumber) {
	record := s.known(n)
	if record == nil || record.gap {
		return
	}
	r := record.answers()
	if r == nil || r.won || !s.reached(r, n) {
		return
	}
	r.won, r.writer, r.n = true, s.writer.guid, n
	s.writer.service.counters.Delivered++
	a.counters.Delivered++
}
