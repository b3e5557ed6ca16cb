package rtps

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// observer learns from the datagrams of a capture what fogplr has to: who writes
// what, which requests there are, and who answers them.
type observer struct {
	participants map[Prefix]Participant
	gone         map[Prefix]bool
	writers      map[GUID]string // their topics
	requests     map[RequestID]bool
	replies      map[RequestID]map[Prefix]bool
}

func (o *observer) see(t *testing.T, c captured) {
	var m Message
	if !m.Read(c.whole[:c.first], len(c.whole)) {
		t.Fatalf("packet %s: not read", c.frame)
	}
	for s := (Submessage{}); m.Next(&s); {
		d, ok := s.Data()
		if !ok {
			var f DataFrag
			f, ok = s.DataFrag()
			d = f.Data
		}
		if !ok {
			continue
		}
		switch d.Writer {
		case EntityParticipantWriter:
			o.participant(t, c, &m, &d)
		case EntityPublicationsWriter:
			if e, ok := d.Endpoint(); !ok || e.GUID.Prefix != m.Source || !e.GUID.Entity.Writer() {
				t.Errorf("packet %s: endpoint %+v", c.frame, e)
			} else if !e.Gone {
				o.writers[e.GUID] = string(e.Topic)
				if !e.Reliable || e.Durability != Volatile || e.Cut {
					t.Errorf("packet %s: endpoint %+v", c.frame, e)
				}
			}
		case EntitySubscriptionsWriter:
			if e, ok := d.Endpoint(); !ok || e.GUID.Prefix != m.Source || !e.GUID.Entity.Reader() {
				t.Errorf("packet %s: endpoint %+v", c.frame, e)
			}
		default:
			o.sample(t, c, &m, &d)
		}
	}
}

func (o *observer) participant(t *testing.T, c captured, m *Message, d *Data) {
	p, ok := d.Participant()
	if !ok || p.GUID != (GUID{m.Source, EntityParticipant}) {
		t.Errorf("packet %s: participant %+v", c.frame, p)
		return
	}
	o.gone[m.Source] = p.Gone
	if !p.Gone {
		o.participants[m.Source] = p
	}
}

func (o *observer) sample(t *testing.T, c captured, m *Message, d *Data) {
	name, role, ok := ServiceOf([]byte(o.writers[GUID{m.Source, d.Writer}]))
	if !ok {
		return
	}
	if string(name) != "/echo" || role == RoleTopic {
		t.Errorf("packet %s: name %q, role %d", c.frame, name, role)
	}
	var id RequestID
	switch {
	case m.Vendor == VendorCyclone:
		id, ok = d.CycloneRequest()
	case role == RoleRequest:
		id, ok = d.FastRequest(m.Source)
	default:
		id, ok = RelatedIdentity(d.InlineQos)
	}
	switch {
	case !ok: // a later fragment
	case role == RoleRequest:
		o.requests[id] = true
	case o.replies[id] == nil:
		o.replies[id] = map[Prefix]bool{m.Source: true}
	default:
		o.replies[id][m.Source] = true
	}
}

// In real traffic of both vendors, from the first fragment of each datagram
// alone: each request is known, and each reply with it.
func TestServicesInCaptures(t *testing.T) {
	for name, count := range map[string]int{
		"cyclone-small": 3, "cyclone-frag": 1, "cyclone-ipfrag": 1, "cyclone-ipfrag6": 1, "cyclone-loss": 3,
		"fast-small": 3, "fast-frag": 1, "fast-ipfrag": 1, "fast-loss": 3,
	} {
		t.Run(name, func(t *testing.T) {
			o := observer{
				map[Prefix]Participant{}, map[Prefix]bool{}, map[GUID]string{},
				map[RequestID]bool{}, map[RequestID]map[Prefix]bool{},
			}
			for _, c := range readMessages(t, filepath.Join("testdata", name+".pcap.gz")) {
				if bytes.HasPrefix(c.whole, []byte(magic)) {
					o.see(t, c)
				}
			}
			vendor, lease := VendorCyclone, 10*time.Second
			if strings.HasPrefix(name, "fast") {
				vendor, lease = VendorFast, 20*time.Second
			}
			for prefix, p := range o.participants {
				if p.Vendor != vendor || p.Lease != lease || p.Version[0] != 2 || !o.gone[prefix] {
					t.Errorf("participant %+v, gone: %v", p, o.gone[prefix])
				}
			}
			if len(o.participants) != 3 || len(o.requests) != count {
				t.Errorf("%d participants, %d requests", len(o.participants), len(o.requests))
			}
			for id, by := range o.replies {
				if !o.requests[id] || len(by) != 2 {
					t.Errorf("request %+v: asked %v, answered by %d", id, o.requests[id], len(by))
				}
			}
			if len(o.replies) != count {
				t.Errorf("%d requests were answered", len(o.replies))
			}
		})
	}
}
