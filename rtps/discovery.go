package rtps

import (
	"math"
	"time"
)

// A Participant is what one says of itself (SPDP, 8.5.3): samples that
// EntityParticipantWriter writes.
type Participant struct {
	GUID    GUID
	Vendor  Vendor
	Version Version

	// Lease is for how long it is alive after this sample: math.MaxInt64 if for
	// ever, 100 s if it does not say.
	Lease time.Duration

	// Gone says that it takes leave; only GUID is known then.
	Gone bool
}

// An Endpoint is a writer or reader of an application (SEDP, 8.5.4): samples that
// EntityPublicationsWriter and EntitySubscriptionsWriter write. GUID.Entity says
// which of the two it is.
type Endpoint struct {
	GUID        GUID
	Topic, Type []byte // names; views into the payload; empty if not known
	Reliable    bool
	Durability  Durability

	// Gone says that it is deleted; only GUID is known then.
	Gone bool

	// Cut says that not all of the sample is here: what is missing may have another
	// value than the one here.
	Cut bool
}

// Durability says which samples a writer keeps for readers that come late
// (DDS 1.4, 2.2.3.4).
type Durability uint32

// The kinds of durability.
const (
	Volatile Durability = iota
	TransientLocal
	Transient
	Persistent
)

// leaseDefault is the lease of a participant that names none (Table 9.19).
const leaseDefault = 100 * time.Second

// reliabilityReliable is the kind RELIABLE (9.3.2.1). RTPS 2.1 had 3 for it.
const reliabilityReliable = 2

// Participant reads d as a sample of EntityParticipantWriter. False means that
// it names no participant.
func (d *Data) Participant() (p Participant, ok bool) {
	p = Participant{Lease: leaseDefault}
	list, o := d.list()
	for q := (Parameter{}); list.Next(&q); {
		switch {
		case q.ID == PIDParticipantGUID && len(q.Value) >= 16:
			p.GUID, ok = guid(q.Value), true
		case q.ID == PIDVendor && len(q.Value) >= 2:
			p.Vendor = Vendor(q.Value)
		case q.ID == PIDProtocolVersion && len(q.Value) >= 2:
			p.Version = Version(q.Value)
		case q.ID == PIDLeaseDuration && len(q.Value) >= 8:
			p.Lease = o.duration(q.Value)
		}
	}
	if d.gone() {
		if !ok {
			p.GUID, ok = d.keyHash()
		}
		return Participant{GUID: p.GUID, Gone: true}, ok
	}
	return p, ok
}

// Endpoint reads d as a sample of EntityPublicationsWriter or of
// EntitySubscriptionsWriter. False means that it names neither a writer nor a
// reader.
func (d *Data) Endpoint() (e Endpoint, ok bool) {
	list, o := d.list()
	reliability := uint32(0)
	q := Parameter{}
	more, how := list.next(&q)
	for ; more; more, how = list.next(&q) {
		switch {
		case q.ID == PIDEndpointGUID && len(q.Value) >= 16:
			e.GUID, ok = guid(q.Value), true
		case q.ID == PIDTopicName:
			e.Topic, _ = o.name(q.Value)
		case q.ID == PIDTypeName:
			e.Type, _ = o.name(q.Value)
		case q.ID == PIDReliability && len(q.Value) >= 4:
			reliability = o.u32(q.Value)
		case q.ID == PIDDurability && len(q.Value) >= 4:
			e.Durability = Durability(o.u32(q.Value))
		}
	}
	if d.gone() {
		if !ok {
			e.GUID, ok = d.keyHash()
		}
		return Endpoint{GUID: e.GUID, Gone: true}, ok && (e.GUID.Entity.Writer() || e.GUID.Entity.Reader())
	}
	e.Cut = how != ended
	e.Reliable = reliability >= reliabilityReliable
	if reliability == 0 { // DDS 1.4, 2.2.3: the default
		e.Reliable = e.GUID.Entity.Writer()
	}
	return e, ok && (e.GUID.Entity.Writer() || e.GUID.Entity.Reader())
}

// list returns the payload as a parameter list (10.3), which is empty if it is
// none.
func (d *Data) list() (Parameters, order) {
	b, o, ok := d.body(listCDR)
	if !ok {
		return Parameters{}, o
	}
	return newParameters(b, o), o
}

// gone says that the sample tells an instance's end, by its status (9.6.4.9) or,
// where that is missing, by a payload that is a key alone.
func (d *Data) gone() bool {
	if v, ok := d.InlineQos.Find(PIDStatusInfo); ok && len(v) >= 4 {
		return v[3]&(statusDisposed|statusUnregistered) != 0
	}
	return d.Key
}

// keyHash returns the GUID that a sample of discovery is about, from its inline
// QoS (9.6.4.8: a key of 16 octets is its own hash).
func (d *Data) keyHash() (GUID, bool) {
	v, ok := d.InlineQos.Find(PIDKeyHash)
	if !ok || len(v) < 16 {
		return GUID{}, false
	}
	return guid(v), true
}

// duration reads a Duration_t (9.3.2.3): seconds, and the fraction of one.
// Less than nothing is nothing; for ever is math.MaxInt64.
func (o order) duration(b []byte) time.Duration {
	s, fraction := int32(o.u32(b)), o.u32(b[4:])
	switch {
	case s < 0:
		return 0
	case s == math.MaxInt32 && fraction == math.MaxUint32:
		return math.MaxInt64
	}
	return time.Duration(s)*time.Second + time.Duration(uint64(fraction)*uint64(time.Second)>>32)
}
