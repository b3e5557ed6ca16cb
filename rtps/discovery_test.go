package rtps

import (
	"bytes"
	"math"
	"testing"
	"time"
)

// The standard's own example of a reader (10.6), which ends with a sentinel.
const square = `
	00 03 00 00                              # a parameter list, little endian
	5a 00 10 00 c0 a8 02 05 00 00 3a 20 00 00 00 02 80 00 00 07
	05 00 0c 00 07 00 00 00 53 71 75 61 72 65 00 00
	07 00 10 00 0a 00 00 00 53 68 61 70 65 54 79 70 65 00 00 00
	25 00 04 00 01 00 00 00
	23 00 08 00 03 00 00 00 00 00 00 00
	01 00 00 00`

func TestEndpointGolden(t *testing.T) {
	b := unhex(t, square)
	d := Data{Payload: b, HasPayload: true}
	guid := GUID{Prefix(b[8:20]), 0x80000007}
	e, ok := d.Endpoint()
	if !ok || e.GUID != guid || string(e.Topic) != "Square" || string(e.Type) != "ShapeType" || e.Reliable ||
		e.Durability != Volatile || e.Gone || e.Cut {
		t.Errorf("%v %+v", ok, e)
	}
	if cap(e.Topic) != 6 || &e.Topic[0] != &b[32] {
		t.Error("the topic is not a view of its own")
	}
	for length := range len(b) { // what is there is read, and the rest said to be missing
		d.Payload = b[:length]
		e, ok := d.Endpoint()
		if ok != (length >= 24) || ok && (e.GUID != guid || !e.Cut) {
			t.Errorf("%d octets: %v %+v", length, ok, e)
		}
		if (string(e.Topic) == "Square") != (length >= 40) || (string(e.Type) == "ShapeType") != (length >= 60) {
			t.Errorf("%d octets: topic %q, type %q", length, e.Topic, e.Type)
		}
	}
}

var (
	aWriter = GUID{Prefix{1, 16, 3}, 0x103}
	aReader = GUID{Prefix{1, 16, 3}, 0x204}
)

func TestEndpointQos(t *testing.T) {
	for _, little := range []bool{false, true} {
		word := func(v uint32) []byte { return newEncoder(little).u32(v).b }
		for _, c := range []struct {
			name       string
			guid       GUID
			qos        func(*encoder)
			reliable   bool
			durability Durability
		}{
			{"a writer's defaults", aWriter, func(*encoder) {}, true, Volatile},
			{"a reader's defaults", aReader, func(*encoder) {}, false, Volatile},
			{"best effort", aWriter, func(e *encoder) { e.parameter(PIDReliability, word(1)...) }, false, Volatile},
			{"reliable", aReader, func(e *encoder) { e.parameter(PIDReliability, append(word(2), word(0)...)...) }, true, Volatile},
			{"reliable of old", aReader, func(e *encoder) { e.parameter(PIDReliability, word(3)...) }, true, Volatile},
			{"transient local", aWriter, func(e *encoder) { e.parameter(PIDDurability, word(1)...) }, true, TransientLocal},
			{"values too short", aReader, func(e *encoder) { e.parameter(PIDReliability).parameter(PIDDurability) }, false, Volatile},
			{"unknown parameters", aWriter, func(e *encoder) { e.parameter(0x8007, 1, 2, 3, 4).parameter(0x4fff) }, true, Volatile},
		} {
			e := newEncoder(little).raw(0, 2+newEncoder(little).little(), 0, 0)
			c.qos(e)
			e.parameter(PIDEndpointGUID, newEncoder(little).guid(c.guid).b...).name(PIDTopicName, "rt/a").name(PIDTypeName, "T").sentinel()
			d := Data{Payload: e.b, HasPayload: true}
			got, ok := d.Endpoint()
			if !ok || got.GUID != c.guid || string(got.Topic) != "rt/a" || string(got.Type) != "T" || got.Cut ||
				got.Reliable != c.reliable || got.Durability != c.durability {
				t.Errorf("%s, little endian %v: %v %+v", c.name, little, ok, got)
			}
		}
	}
}

func TestEndpointRefused(t *testing.T) {
	list := func(g GUID) []byte {
		return newEncoder(true).raw(0, 3, 0, 0).parameter(PIDEndpointGUID, newEncoder(true).guid(g).b...).sentinel().b
	}
	for name, d := range map[string]Data{
		"nothing":              {},
		"no GUID":              {Payload: []byte{0, 3, 0, 0, 1, 0, 0, 0}},
		"a short GUID":         {Payload: append([]byte{0, 3, 0, 0}, newEncoder(true).parameter(PIDEndpointGUID, 1, 2).sentinel().b...)},
		"a participant":        {Payload: list(GUID{Prefix{1}, EntityParticipant})},
		"plain CDR":            {Payload: append([]byte{0, 1}, list(aWriter)[2:]...)},
		"a later fragment":     {Payload: list(aWriter), partial: true},
		"gone, no name":        {Key: true},
		"gone, and plain CDR":  {Key: true, Payload: append([]byte{0, 1}, list(aWriter)[2:]...)},
		"half an encapsulaton": {Payload: []byte{0, 3}},
	} {
		if e, ok := d.Endpoint(); ok {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// An end is told by the status, by a payload that is a key, or by both; and the
// GUID is in the payload or the key hash.
func TestGone(t *testing.T) {
	qos := func(status byte, hash GUID) Parameters {
		e := newEncoder(true)
		if status < 8 {
			e.parameter(PIDStatusInfo, 0, 0, 0, status)
		}
		if hash != (GUID{}) {
			e.parameter(PIDKeyHash, newEncoder(true).guid(hash).b...)
		}
		return newParameters(e.sentinel().b, littleEndian)
	}
	const none = 8
	for _, c := range []struct {
		name      string
		qos       Parameters
		payload   bool
		key, gone bool
	}{
		{"Cyclone DDS: status and key", qos(3, GUID{}), true, true, true},
		{"Fast DDS: status and hash", qos(3, aWriter), false, false, true},
		{"disposed", qos(1, aWriter), false, false, true},
		{"unregistered", qos(2, aWriter), false, false, true},
		{"a key alone", qos(none, GUID{}), true, true, true},
		{"alive", qos(0, aWriter), true, false, false},
		{"filtered", qos(4, GUID{}), true, false, false},
		{"no status", qos(none, GUID{}), true, false, false},
		{"alive, the key alone", qos(0, GUID{}), true, true, false},
		{"both differ: the payload wins", qos(1, aReader), true, true, true},
	} {
		for _, endpoint := range []bool{true, false} {
			d := Data{InlineQos: c.qos, Key: c.key}
			if c.payload {
				id := PIDParticipantGUID
				if endpoint {
					id = PIDEndpointGUID
				}
				d.Payload = newEncoder(true).raw(0, 3, 0, 0).parameter(id, newEncoder(true).guid(aWriter).b...).sentinel().b
			}
			e, ok := d.Endpoint()
			guid, gone := e.GUID, e.Gone
			if !endpoint {
				var p Participant
				p, ok = d.Participant()
				guid, gone = p.GUID, p.Gone
			}
			if !ok || guid != aWriter || gone != c.gone {
				t.Errorf("%s, endpoint %v: %v %v gone %v", c.name, endpoint, ok, guid, gone)
			}
		}
	}
}

func TestParticipant(t *testing.T) {
	guid := GUID{Prefix{1, 15, 7}, EntityParticipant}
	for _, little := range []bool{false, true} {
		for _, c := range []struct {
			name      string
			lease     []uint32
			wantLease time.Duration
		}{
			{"default", nil, 100 * time.Second},
			{"20 s", []uint32{20, 0}, 20 * time.Second},
			{"half a second", []uint32{0, 1 << 31}, 500 * time.Millisecond},
			{"zero", []uint32{0, 0}, 0},
			{"negative", []uint32{1<<32 - 1, 0}, 0},
			{"longest", []uint32{math.MaxInt32, math.MaxUint32 - 1}, math.MaxInt32*time.Second + 999999999},
			{"for ever", []uint32{math.MaxInt32, math.MaxUint32}, math.MaxInt64},
			{"too short", []uint32{20}, 100 * time.Second},
		} {
			e := newEncoder(little).raw(0, 2+newEncoder(little).little(), 0, 0).
				parameter(PIDProtocolVersion, 2, 3).parameter(PIDVendor, 1, 15)
			if c.lease != nil {
				value := newEncoder(little)
				for _, v := range c.lease {
					value.u32(v)
				}
				e.parameter(PIDLeaseDuration, value.b...)
			}
			e.parameter(PIDParticipantGUID, newEncoder(little).guid(guid).b...).sentinel()
			d := Data{Payload: e.b}
			want := Participant{GUID: guid, Vendor: VendorFast, Version: Version{2, 3}, Lease: c.wantLease}
			if p, ok := d.Participant(); !ok || p != want {
				t.Errorf("%s, little endian %v: %v %+v", c.name, little, ok, p)
			}
		}
	}
	d := Data{Payload: bytes.Repeat([]byte{0}, 100)}
	if p, ok := d.Participant(); ok {
		t.Errorf("zeros: %+v", p)
	}
}

func TestEntities(t *testing.T) {
	for e, want := range map[EntityID]string{
		EntityParticipantWriter: "writer builtin", EntityPublicationsWriter: "writer builtin",
		EntityPublicationsReader: "reader builtin", EntityParticipant: " builtin", 0x000200c7: "reader builtin",
		0x000300c3: "writer builtin", 0x000300c4: "reader builtin",
		0x103: "writer ", 0x102: "writer ", 0x204: "reader ", 0x207: "reader ", 0x80000007: "reader ", EntityUnknown: " ",
	} {
		got := ""
		if e.Writer() {
			got += "writer"
		}
		if e.Reader() {
			got += "reader"
		}
		if got += " "; e.Builtin() {
			got += "builtin"
		}
		if got != want {
			t.Errorf("%v: %q, want %q", e, got, want)
		}
	}
	g := GUID{Prefix(unhex(t, "0110aabb000102030405ff10")), EntityPublicationsWriter}
	if got, want := g.String(), "0110aabb000102030405ff10:000003c2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
