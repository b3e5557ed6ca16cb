package arbitrate

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/fogplr/fogplr/rtps"
)

// snapshotVersion is that of the form below. Another one is not read: what it tells
// would be learnt again in time, but for discovery.
const snapshotVersion = 1

// snapshot is what survives a restart. DDS does not repeat its discovery, so without
// it nothing could be arbitrated until all programs were started again. What is
// parked is not in it.
type snapshot struct {
	Version      int                   `json:"version"`
	Participants []snapshotParticipant `json:"participants"`
	Endpoints    []snapshotEndpoint    `json:"endpoints"`
	Ports        []snapshotPort        `json:"ports"`
	Pairs        []snapshotPair        `json:"pairs"`
	Requests     []snapshotRequest     `json:"requests"`
}

type snapshotParticipant struct {
	Prefix name          `json:"prefix"`
	Local  bool          `json:"local"`
	Lease  time.Duration `json:"lease_ns"`
	Silent time.Duration `json:"silent_ns"`
}

type snapshotEndpoint struct {
	GUID    name          `json:"guid"`
	Service string        `json:"service"`
	Role    rtps.Role     `json:"role"`
	Reader  rtps.EntityID `json:"reader,omitempty"`
}

type snapshotPort struct {
	Port   netip.AddrPort `json:"port"`
	Prefix name           `json:"prefix"`
}

type snapshotPair struct {
	Writer name                `json:"writer"`
	Reader name                `json:"reader"`
	Start  rtps.SequenceNumber `json:"start"`
	Next   rtps.SequenceNumber `json:"next"`
	// Matched is false if the reader was only told of the writer.
	Matched bool                `json:"matched"`
	Early   rtps.SequenceNumber `json:"early,omitempty"`
}

type snapshotRequest struct {
	Service string              `json:"service"`
	Client  name                `json:"client"`
	Number  int64               `json:"number"`
	From    name                `json:"from"`
	Reader  rtps.EntityID       `json:"reader,omitempty"`
	Age     time.Duration       `json:"age_ns"`
	Winner  name                `json:"winner,omitempty"`
	N       rtps.SequenceNumber `json:"n,omitempty"`
}

// name is the octets of a prefix or GUID; hexadecimal in JSON.
type name []byte

func (n name) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, n), nil }

func (n *name) UnmarshalText(text []byte) (err error) {
	*n, err = hex.AppendDecode(nil, text)
	if err == nil && len(*n) != 0 && len(*n) != 12 && len(*n) != 16 {
		err = fmt.Errorf("%q is neither 12 nor 16 octets", text)
	}
	return err
}

func nameOf(g rtps.GUID) name {
	e := g.Entity
	return append(g.Prefix[:], byte(e>>24), byte(e>>16), byte(e>>8), byte(e))
}

func (n name) prefix() (p rtps.Prefix) { copy(p[:], n); return p }

func (n name) guid() rtps.GUID {
	if len(n) != 16 {
		return rtps.GUID{}
	}
	return rtps.GUID{Prefix: n.prefix(), Entity: rtps.EntityID(n[12])<<24 | rtps.EntityID(n[13])<<16 | rtps.EntityID(n[14])<<8 | rtps.EntityID(n[15])}
}

// Revision changes when a snapshot would tell of participants, services or matches
// that the last one does not.
func (a *Arbiter) Revision() uint64 { return a.graph.revision }

// Snapshot returns what another Arbiter needs to go on, as JSON. It names programs
// and services of this host and of the gateways, and no secrets.
func (a *Arbiter) Snapshot(now time.Time) ([]byte, error) {
	a.begin(now)
	s := snapshot{Version: snapshotVersion}
	for p := range a.graph.participants.all() {
		s.Participants = append(s.Participants, snapshotParticipant{p.prefix[:], p.local, p.lease, a.now - p.seen})
		for _, e := range p.endpoints {
			s.Endpoints = append(s.Endpoints, snapshotEndpoint{nameOf(e.guid), e.service.name, e.role, e.reader})
			if e.stream != nil {
				s.Pairs = e.stream.appendPairs(s.Pairs)
			}
		}
	}
	for _, e := range a.graph.ports.chains {
		for ; e != nil; e = e.next {
			s.Ports = append(s.Ports, snapshotPort{netip.AddrPortFrom(e.key.addr, e.key.number), e.value[:]})
		}
	}
	for _, v := range a.graph.services {
		for r := v.first; r != nil; r = r.next {
			k := snapshotRequest{
				Service: v.name, Client: nameOf(r.key.id.Client), Number: r.key.id.Number,
				From: r.from[:], Reader: r.reader, Age: a.now - r.made,
			}
			if r.won {
				k.Winner, k.N = nameOf(r.writer), r.n
			}
			s.Requests = append(s.Requests, k)
		}
	}
	return json.Marshal(s)
}

func (s *stream) appendPairs(all []snapshotPair) []snapshotPair {
	for _, p := range s.pairs {
		all = append(all, snapshotPair{nameOf(s.writer.guid), nameOf(p.reader), p.start, p.next, p.matched, p.early})
	}
	return all
}

// Restore takes a snapshot into an Arbiter that knows nothing yet. A broken one, or
// one of another version, is an error, and leaves it so. What time passed
// between is not counted.
func (a *Arbiter) Restore(now time.Time, data []byte) error {
	if len(data) > maxSnapshot {
		return fmt.Errorf("a snapshot of %d bytes is too large", len(data))
	}
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("read a snapshot: %w", err)
	}
	if s.Version != snapshotVersion {
		return errors.New("the snapshot is of another version of fogplr")
	}
	a.begin(now)
	for _, p := range s.Participants {
		if k := a.participant(p.Prefix.prefix(), p.Local); k != nil {
			k.lease, k.seen = max(p.Lease, 0), a.now-max(p.Silent, 0)
		}
	}
	for _, e := range s.Endpoints {
		a.restoreEndpoint(e)
	}
	for _, p := range s.Ports {
		if k := (port{p.Port.Addr(), p.Port.Port()}); a.graph.ports.get(k) == nil && !a.graph.ports.full() {
			*a.graph.ports.add(k) = p.Prefix.prefix()
		}
	}
	for _, p := range s.Pairs {
		a.restorePair(p)
	}
	for _, r := range s.Requests {
		a.restoreRequest(r)
	}
	return nil
}

func (a *Arbiter) restoreEndpoint(e snapshotEndpoint) {
	guid := e.GUID.guid()
	p := a.graph.participants.get(guid.Prefix)
	if p == nil || a.graph.endpoints.get(guid) != nil || !relevant(e.Role, guid.Entity.Writer(), p.local) {
		return
	}
	seen := p.seen
	if k := a.learn(guid, e.Service, e.Role, p.local); k != nil {
		k.reader = e.Reader
	}
	p.seen = seen
}

// restorePair takes a reader as it was, but does not rely on knowing what it lacks
// until it has said so.
func (a *Arbiter) restorePair(p snapshotPair) {
	w, r := a.graph.endpoints.get(p.Writer.guid()), a.graph.endpoints.get(p.Reader.guid())
	if w == nil || r == nil || w.role != rtps.RoleReply || w.local() || r.role != rtps.RoleReply || !r.local() ||
		w.service != r.service || p.Matched && p.Start < 1 || p.Next < p.Start {
		return
	}
	s := a.streamOf(w)
	if s == nil || len(s.pairs) == maxPairs || s.pair(r.guid) != nil {
		return
	}
	s.pairs = append(s.pairs, &pair{
		reader: r.guid, matched: p.Matched, early: p.Early, stuck: true, start: p.Start, next: p.Next, bitmaps: &a.bitmaps,
	})
}

func (a *Arbiter) restoreRequest(r snapshotRequest) {
	s := a.graph.services[r.Service]
	id := rtps.RequestID{Client: r.Client.guid(), Number: r.Number}
	if s == nil || a.requests.get(requestKey{s.number, id}) != nil {
		return
	}
	k := a.requests.add(s, id, a.now-max(r.Age, 0))
	if k == nil {
		return
	}
	k.from, k.reader = r.From.prefix(), r.Reader
	if len(r.Winner) > 0 {
		k.won, k.writer, k.n = true, r.Winner.guid(), r.N
	}
}
