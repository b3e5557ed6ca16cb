package arbitrate

import "github.com/fogplr/fogplr/rtps"

// reply decides on a reply, or pieces of one, in the submessage at hand.
func (a *Arbiter) reply(e *endpoint, d *rtps.Data, k pieces) {
	s := a.streamOf(e)
	if s == nil {
		return
	}
	to, n := a.audienceOf(e.service, d.Reader), d.Seq
	record := s.record(n)
	r := a.answered(s, record, d)
	switch {
	case r == nil:
	case r.won && r.writer != e.guid:
		if a.datagram.Gap(&a.message, &a.sub) {
			a.withheld(s, record, to, n)
			return
		}
		a.counters.Refused++
	case !r.won && a.keep(s, r, to, n, k):
		return
	}
	a.passed(s, to, n, k)
}

// answered returns the request that the sample answers, nil if that is not known.
// record may be nil.
func (a *Arbiter) answered(s *stream, record *record, d *rtps.Data) *request {
	if record != nil {
		if r := record.answers(); r != nil {
			return r
		}
	}
	id, ok := requestOf(&a.message, d, rtps.RoleReply)
	if !ok {
		return nil
	}
	service := s.writer.service
	r := a.requests.get(requestKey{service.number, id})
	switch {
	case record == nil:
	case r != nil:
		record.request, record.uses = r, r.uses
		service.counters.Replies++
		a.counters.Replies++
	case !record.unknown:
		record.unknown = true
		service.counters.Unknown++
		a.counters.Unknown++
	}
	return r
}

// withheld notes that the sample became a GAP.
func (a *Arbiter) withheld(s *stream, record *record, to audience, n rtps.SequenceNumber) {
	if record != nil {
		record.passed = a.now
		if !record.gap {
			record.gap = true
			s.writer.service.counters.Withheld++
			a.counters.Withheld++
		}
	}
	for _, p := range s.pairs {
		if to.has(p.reader) {
			p.gap(n)
			a.advance(s, p)
		}
	}
}

// passed notes that pieces of a sample are passed on.
func (a *Arbiter) passed(s *stream, to audience, n rtps.SequenceNumber, k pieces) {
	for _, p := range s.pairs {
		switch {
		case to.nobody:
			p.stuck = true
		case to.has(p.reader) && p.take(n, k):
			if record := s.known(n); record != nil {
				record.passed = a.now
			}
			a.advance(s, p)
		}
	}
}
