package arbitrate

import (
	"net/netip"
	"slices"
	"time"

	"github.com/fogplr/fogplr/rtps"
)

// moment is time since the Arbiter was made.
type moment = time.Duration

// participant is a DDS participant, of this host or behind a gateway.
type participant struct {
	prefix    rtps.Prefix
	local     bool
	lease     time.Duration
	seen      moment
	endpoints []*endpoint
}

// alive says that its lease has not ended.
func (p *participant) alive(now moment) bool { return now-p.seen <= p.lease }

// endpoint is a writer of requests or reader of replies here, or a writer of
// replies there.
type endpoint struct {
	guid    rtps.GUID
	owner   *participant
	service *service
	role    rtps.Role

	// stream is what is known of a writer of replies, nil if nothing is.
	stream *stream
	// reader is the one that gets the replies to this writer's requests, 0 if it is
	// not known.
	reader rtps.EntityID
}

// local says that the endpoint is on this host.
func (e *endpoint) local() bool { return e.owner.local }

// service is a ROS 2 service.
type service struct {
	name     string
	number   uint32      // no other service has it
	asking   []*endpoint // writers of requests here
	readers  []*endpoint // of replies, here
	writers  []*endpoint // of replies, there
	first    *request    // the oldest
	last     *request
	requests int
	counters Counters
}

// replicated says that another writer than that one may answer as well.
func (s *service) replicated(than *endpoint, now moment) bool {
	for _, w := range s.writers {
		if w != than && w.owner.alive(now) {
			return true
		}
	}
	return false
}

// port is a UDP port of this host.
type port struct {
	addr   netip.Addr
	number uint16
}

// graph is what discovery told of services, as far as arbitration needs it.
type graph struct {
	participants table[rtps.Prefix, participant]
	endpoints    table[rtps.GUID, endpoint]
	ports        table[port, rtps.Prefix]
	services     map[string]*service
	number       uint32 // of the last service
	revision     uint64 // counts changes
	full         uint64 // what there was no room for
}

func newGraph() graph {
	return graph{
		participants: newTable[rtps.Prefix, participant](maxParticipants),
		endpoints:    newTable[rtps.GUID, endpoint](maxEndpoints),
		ports:        newTable[port, rtps.Prefix](maxPorts),
		services:     map[string]*service{},
	}
}

// announced takes what a participant says of itself, or of another.
func (a *Arbiter) announced(p rtps.Participant, local bool) {
	known := a.graph.participants.get(p.GUID.Prefix)
	if known != nil && known.local && !local {
		return // nobody there may speak for one of this host
	}
	if p.Gone {
		if known != nil {
			a.forget(known)
		}
		return
	}
	if k := a.participant(p.GUID.Prefix, local); k != nil {
		k.lease = p.Lease
	}
}

// participant returns the one of that prefix, and makes it known. It returns nil if
// there is no room.
func (a *Arbiter) participant(prefix rtps.Prefix, local bool) *participant {
	p := a.graph.participants.get(prefix)
	if p != nil && p.local != local { // of this host after all
		a.forget(p)
		p = nil
	}
	if p == nil {
		if p = a.graph.participants.add(prefix); p == nil {
			a.graph.full++
			return nil
		}
		*p = participant{prefix: prefix, local: local, lease: leaseDefault, endpoints: p.endpoints[:0]}
		a.graph.revision++
	}
	p.seen = a.now
	return p
}

// forget removes a participant and all that is its.
func (a *Arbiter) forget(p *participant) {
	for len(p.endpoints) > 0 {
		a.remove(p.endpoints[len(p.endpoints)-1])
	}
	a.graph.participants.remove(p.prefix)
	a.graph.revision++
}

// discovered takes what a participant says of a writer or reader.
func (a *Arbiter) discovered(e *rtps.Endpoint, local bool) {
	known := a.graph.endpoints.get(e.GUID)
	if known != nil && known.local() && !local {
		return
	}
	if e.Gone {
		if known != nil {
			a.remove(known)
		}
		return
	}
	name, role, ok := rtps.ServiceOf(e.Topic)
	if !ok || !relevant(role, e.GUID.Entity.Writer(), local) {
		return
	}
	if known != nil {
		if known.role == role && known.service.name == string(name) {
			known.owner.seen = a.now
			return
		}
		a.remove(known)
	}
	a.learn(e.GUID, string(name), role, local)
}

// relevant says that an endpoint matters here: requests that leave and replies
// that come.
func relevant(role rtps.Role, writer, local bool) bool {
	switch role {
	case rtps.RoleRequest:
		return local && writer
	case rtps.RoleReply:
		return local != writer
	}
	return false
}

// learn makes an endpoint known, and returns it; nil if there is no room.
func (a *Arbiter) learn(guid rtps.GUID, name string, role rtps.Role, local bool) *endpoint {
	p := a.participant(guid.Prefix, local)
	if p == nil || p.local != local || len(p.endpoints) == maxOwned || a.graph.endpoints.full() {
		a.graph.full++
		return nil
	}
	s := a.graph.services[name]
	if s == nil {
		if len(a.graph.services) == maxServices {
			a.graph.full++
			return nil
		}
		a.graph.number++
		s = &service{name: name, number: a.graph.number}
		a.graph.services[name] = s
	}
	e := a.graph.endpoints.add(guid)
	*e = endpoint{guid: guid, owner: p, service: s, role: role}
	p.endpoints = append(p.endpoints, e)
	list := s.list(e)
	*list = append(*list, e)
	a.graph.revision++
	return e
}

// list returns where s keeps endpoints like e.
func (s *service) list(e *endpoint) *[]*endpoint {
	switch {
	case e.role == rtps.RoleRequest:
		return &s.asking
	case e.local():
		return &s.readers
	}
	return &s.writers
}

// remove forgets an endpoint, and its service with the last one.
func (a *Arbiter) remove(e *endpoint) {
	s := e.service
	if e.stream != nil {
		a.closeStream(e.stream)
	}
	if e.role == rtps.RoleReply && e.local() {
		for _, w := range s.writers {
			if w.stream != nil {
				w.stream.unpair(e.guid)
			}
		}
		a.moved = true
	}
	for _, list := range []*[]*endpoint{s.list(e), &e.owner.endpoints} {
		*list = slices.DeleteFunc(*list, func(o *endpoint) bool { return o == e })
	}
	if len(s.asking)+len(s.readers)+len(s.writers) == 0 {
		for s.first != nil {
			a.requests.drop(s)
		}
		delete(a.graph.services, s.name)
	}
	a.graph.revision++
	a.graph.endpoints.remove(e.guid)
}

// listens notes that a participant of this host has the port that a datagram goes
// to.
func (a *Arbiter) listens(p rtps.Prefix) {
	to := port{a.datagram.Destination, a.datagram.DestinationPort}
	if to.addr.IsMulticast() {
		return
	}
	k := a.graph.ports.get(to)
	if k != nil && *k == p {
		return
	}
	if who := a.graph.participants.get(p); who == nil || !who.local {
		return
	}
	if k == nil {
		if k = a.graph.ports.add(to); k == nil {
			a.graph.full++
			return
		}
	}
	*k = p
	a.graph.revision++
}

// sweep forgets what is old.
func (a *Arbiter) sweep() {
	for _, s := range a.graph.services {
		for s.first != nil && a.now-s.first.made > requestAge {
			a.requests.drop(s)
		}
	}
	var old []*participant
	for p := range a.graph.participants.all() {
		if !p.alive(a.now) && a.now-p.seen > silentFor {
			old = append(old, p)
		}
	}
	for _, p := range old {
		a.forget(p)
	}
	var closed []port
	for _, e := range a.graph.ports.chains {
		for ; e != nil; e = e.next {
			if a.graph.participants.get(e.value) == nil {
				closed = append(closed, e.key)
			}
		}
	}
	for _, p := range closed {
		a.graph.ports.remove(p)
	}
}
