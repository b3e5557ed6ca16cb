package arbitrate

import "github.com/fogplr/fogplr/rtps"

// requestKey names a request among those of all services.
type requestKey struct {
	service uint32
	id      rtps.RequestID
}

// request is one that left.
type request struct {
	key  requestKey
	made moment
	uses uint32 // of this memory
	next *request

	// The client's reader; entity 0 if it may be any of the participant's.
	from   rtps.Prefix
	reader rtps.EntityID

	// won says that a reply was delivered: number n of the writer.
	won    bool
	writer rtps.GUID
	n      rtps.SequenceNumber
}

// isFor says that the reader may be the one that waits for the reply.
func (r *request) isFor(reader rtps.GUID) bool {
	return reader.Prefix == r.from && (r.reader == 0 || reader.Entity == r.reader)
}

// requests are those of all services, each service's in order of age.
type requests struct{ table[requestKey, request] }

// add makes a request known that was not. It returns nil if there is no room.
func (q *requests) add(s *service, id rtps.RequestID, now moment) *request {
	if s.requests == maxAsked || q.full() && s.requests > 0 {
		q.drop(s)
	}
	key := requestKey{s.number, id}
	r := q.table.add(key)
	if r == nil {
		return nil
	}
	*r = request{key: key, made: now, uses: r.uses + 1}
	if s.last == nil {
		s.first = r
	} else {
		s.last.next = r
	}
	s.last = r
	s.requests++
	return r
}

// drop forgets the oldest request of a service.
func (q *requests) drop(s *service) {
	r := s.first
	if s.first = r.next; s.first == nil {
		s.last = nil
	}
	s.requests--
	r.uses++ // no record is about it any more
	q.remove(r.key)
}

// asked takes a sample of a writer of requests here.
func (a *Arbiter) asked(e *endpoint, d *rtps.Data) {
	id, ok := requestOf(&a.message, d, e.role)
	if !ok {
		return
	}
	s := e.service
	if a.requests.get(requestKey{s.number, id}) != nil {
		return // it is sent again
	}
	r := a.requests.add(s, id, a.now)
	if r == nil {
		a.graph.full++
		return
	}
	r.from = e.guid.Prefix
	if id.Client.Entity.Reader() {
		r.from, r.reader = id.Client.Prefix, id.Client.Entity
	} else {
		r.reader = a.readerOf(e)
	}
	s.counters.Requests++
	a.counters.Requests++
}

// requestOf returns which request a sample is, or answers. False means that it does
// not say.
func requestOf(m *rtps.Message, d *rtps.Data, role rtps.Role) (rtps.RequestID, bool) {
	switch {
	case m.Vendor == rtps.VendorCyclone:
		return d.CycloneRequest()
	case role == rtps.RoleRequest:
		return d.FastRequest(m.Source)
	}
	return rtps.RelatedIdentity(d.InlineQos)
}

// readerOf returns the reader that belongs to a writer of requests, 0 if it is not
// known. A client makes both before it asks for the first time; so if by then
// there is only one reader that is not another client's, it is that, whatever
// readers come later. Of several it is the one that was made right behind the
// writer, as rmw_cyclonedds does: its number is the next one.
func (a *Arbiter) readerOf(e *endpoint) rtps.EntityID {
	if e.reader != 0 {
		return e.reader
	}
	var only rtps.EntityID
	several := false
	for _, r := range e.service.readers {
		switch {
		case r.guid.Prefix != e.guid.Prefix || taken(e.service, r.guid):
		case r.guid.Entity>>8 == e.guid.Entity>>8+1:
			e.reader = r.guid.Entity
			return e.reader
		default:
			several = several || only != 0
			only = r.guid.Entity
		}
	}
	if !several {
		e.reader = only
	}
	return e.reader
}

// taken says that the reader belongs to a writer of requests.
func taken(s *service, reader rtps.GUID) bool {
	for _, w := range s.asking {
		if w.guid.Prefix == reader.Prefix && w.reader == reader.Entity {
			return true
		}
	}
	return false
}
