package rtps

import (
	"bytes"
	"path/filepath"
	"testing"
	"unsafe"
)

// inside says that part lies within whole, or is empty.
func inside(whole, part []byte) bool {
	if len(part) == 0 {
		return true
	}
	offset := uintptr(unsafe.Pointer(&part[0])) - uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	return offset < uintptr(len(whole)) && offset+uintptr(cap(part)) <= uintptr(len(whole))
}

// seeds returns messages of the captures, one for each order of kinds.
func seeds(f *testing.F) (messages [][]byte) {
	captures, err := filepath.Glob("testdata/*.pcap.gz")
	if err != nil || len(captures) == 0 {
		f.Fatalf("no captures: %v", err)
	}
	seen := map[string]bool{}
	for _, name := range captures {
		for _, c := range readMessages(f, name) {
			var m Message
			var kinds string
			m.Read(c.whole, len(c.whole))
			for s := (Submessage{}); m.Next(&s); {
				kinds += string([]byte{byte(s.Kind), s.Flags})
			}
			if !seen[kinds] {
				seen[kinds] = true
				messages = append(messages, c.whole)
			}
		}
	}
	return messages
}

// Whatever the octets are: nothing panics, all that is handed out lies in the
// message, the walk goes forward and ends, and the octets stay what they were.
func FuzzMessage(f *testing.F) {
	for _, m := range seeds(f) {
		f.Add(m, uint16(0))
		f.Add(m[:len(m)/2], uint16(len(m)-len(m)/2))
	}
	f.Fuzz(func(t *testing.T, b []byte, missing uint16) {
		before := bytes.Clone(b)
		b = b[:len(b):len(b)]
		whole := len(b) + int(missing)
		var m Message
		if !m.Read(b, whole) {
			return
		}
		if len(b) < headerSize || whole > maxMessage {
			t.Fatalf("%d octets of %d are read", len(b), whole)
		}
		at, steps := headerSize, 0
		for s := (Submessage{}); m.Next(&s); steps++ {
			if s.Start != at || s.End < s.Start+submessageHeader || s.End > whole || s.Cut != (s.End > len(b)) ||
				!inside(b, s.Body) || len(s.Body) != min(s.End, len(b))-s.Start-submessageHeader {
				t.Fatalf("%+v", s)
			}
			at = s.End
			tell(&m, &s)
			if d, ok := s.Data(); ok {
				checkSample(t, b, m.Source, &d)
			}
			if d, ok := s.DataFrag(); ok {
				checkSample(t, b, m.Source, &d.Data)
				last := uint64(d.FragmentStart) + uint64(d.FragmentsInSubmessage) - 1
				if d.FragmentStart < 1 || last > uint64(d.Fragments()) ||
					len(d.Payload) > int(d.FragmentSize)*int(d.FragmentsInSubmessage)+3 {
					t.Fatalf("%+v", d)
				}
			}
		}
		if steps > maxSubmessages || m.Unread() != whole-at {
			t.Fatalf("%d submessages, %d octets unread", steps, m.Unread())
		}
		if !bytes.Equal(b, before) {
			t.Fatal("reading changed the message")
		}
	})
}

// checkSample reads a sample in every way there is.
func checkSample(t *testing.T, b []byte, source Prefix, d *Data) {
	if d.Seq < 1 || !inside(b, d.Payload) || len(d.Payload) > 0 && !d.HasPayload || d.Key && !d.HasPayload {
		t.Fatalf("%+v", d)
	}
	if e, ok := d.Endpoint(); ok {
		if !inside(b, e.Topic) || !inside(b, e.Type) || len(e.Topic) > maxName || len(e.Type) > maxName ||
			e.GUID.Entity.Writer() == e.GUID.Entity.Reader() || e.Gone && len(e.Topic) > 0 {
			t.Fatalf("%+v", e)
		}
		if name, _, ok := ServiceOf(e.Topic); ok && (!inside(e.Topic, name) || name[0] != '/') {
			t.Fatalf("%q of %q", name, e.Topic)
		}
	}
	if p, ok := d.Participant(); ok && p.Lease < 0 {
		t.Fatalf("%+v", p)
	}
	d.CycloneRequest()
	related, ok := RelatedIdentity(d.InlineQos)
	if id, all := d.FastRequest(source); ok && (!all || related.Client != (GUID{}) && id.Client != related.Client) {
		t.Fatalf("%+v of %+v", id, related)
	}
}

// Samples of discovery, whatever is in payload and inline QoS.
func FuzzDiscovery(f *testing.F) {
	for _, b := range seeds(f) {
		var m Message
		m.Read(b, len(b))
		for s := (Submessage{}); m.Next(&s); {
			if d, ok := s.Data(); ok && d.Writer.Builtin() {
				f.Add(d.Payload, d.InlineQos.octets, d.Key)
			}
		}
	}
	f.Fuzz(func(t *testing.T, payload, qos []byte, key bool) {
		d := Data{Seq: 1, InlineQos: newParameters(qos, littleEndian), Payload: payload[:len(payload):len(payload)],
			HasPayload: true, Key: key}
		checkSample(t, payload, Prefix{}, &d)
	})
}

// Parameter lists, compared with one that is read the simple way.
func FuzzParameters(f *testing.F) {
	f.Add(newEncoder(true).parameter(PIDPad, 1, 2, 3, 4).parameter(PIDKeyHash, make([]byte, 16)...).sentinel().b, true)
	f.Add(newEncoder(false).name(PIDTopicName, "rq/planRequest").parameter(0x8007).sentinel().b, false)
	f.Add([]byte{5, 0, 3, 0, 1, 2, 3, 0, 1, 0, 0, 0}, true)
	f.Fuzz(func(t *testing.T, b []byte, little bool) {
		e := newEncoder(little)
		u16 := func(b []byte) int {
			if little {
				return int(b[0]) | int(b[1])<<8
			}
			return int(b[1]) | int(b[0])<<8
		}
		rest, steps := b, 0
		p := newParameters(b, order(e.little() != 0))
		for q := (Parameter{}); p.Next(&q); steps++ {
			if len(q.Value)%4 != 0 || !inside(b, q.Value) || q.ID == PIDPad || q.ID == PIDSentinel {
				t.Fatalf("%04x: %x", uint16(q.ID), q.Value)
			}
			for u16(rest) == int(PIDPad) {
				rest = rest[4+u16(rest[2:]):]
			}
			if int(q.ID) != u16(rest) || !bytes.Equal(q.Value, rest[4:4+u16(rest[2:])]) {
				t.Fatalf("%04x:%x, and there is %x", uint16(q.ID), q.Value, rest)
			}
			rest = rest[4+len(q.Value):]
			p.order.name(q.Value)
		}
		if steps > maxParameters {
			t.Fatalf("%d parameters", steps)
		}
		if after, how := newParameters(b, p.order).skip(); how == ended && !bytes.HasSuffix(b, after) || len(after) > len(b) {
			t.Fatalf("%x is left of %x", after, b)
		}
	})
}
