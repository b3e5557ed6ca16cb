package rtps

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// list tells the parameters of a list.
func list(p Parameters) (told []string) {
	for q := (Parameter{}); p.Next(&q); {
		told = append(told, fmt.Sprintf("%04x:%x", uint16(q.ID), q.Value))
	}
	return told
}

// A reply of rmw_fastrtps in big endian.
func TestDataGolden(t *testing.T) {
	b := unhex(t, `
		52545053 0203 010f 010f 0102 0304 0506 0708 090a
		15 06 0044                    # DATA, big endian, with inline QoS and data
		0000 0010                     # no extra flags; 16 octets to inline QoS
		00000204                      # reader
		00000103                      # writer
		00000001 00000002             # sequence number 2^32 + 2
		800f 0018                     # related sample identity, of Fast DDS
		010f a1a2 a3a4 a5a6 a7a8 a9aa 00000404  # the client's reader
		00000000 00000005             # its request 5
		0001 0000                     # sentinel
		0000 0000                     # CDR, big endian
		11223344 55667788             # the reply
		aabbccdd`)
	var m Message
	var s Submessage
	if !m.Read(b, len(b)) || !m.Next(&s) {
		t.Fatal("not read")
	}
	d, ok := s.Data()
	if !ok || d.Reader != 0x204 || d.Writer != 0x103 || d.Seq != 1<<32+2 || !d.HasPayload || d.Key {
		t.Errorf("%v %+v", ok, d)
	}
	if want := unhex(t, "00000000 1122334455667788 aabbccdd"); !bytes.Equal(d.Payload, want) {
		t.Errorf("payload % x", d.Payload)
	}
	if got, want := list(d.InlineQos), []string{"800f:010fa1a2a3a4a5a6a7a8a9aa000004040000000000000005"}; !slices.Equal(got, want) {
		t.Errorf("inline QoS %v", got)
	}
	want := RequestID{GUID{Prefix(unhex(t, "010fa1a2a3a4a5a6a7a8a9aa")), 0x404}, 5}
	if id, ok := RelatedIdentity(d.InlineQos); !ok || id != want {
		t.Errorf("identity %v %+v", ok, id)
	}
	if id, ok := d.FastRequest(m.Source); !ok || id.Client != want.Client || id.Number != 1<<32+2 {
		t.Errorf("as a request: %v %+v", ok, id)
	}
}

func TestData(t *testing.T) {
	const fixed = "0000 1000 000001c7 000001c2 00000000 01000000 "
	for _, c := range []struct {
		name  string
		flags byte
		body  string
		ok    bool
		want  string // inline QoS, payload, has, key
	}{
		{"data", 0x04, fixed + "00010000 01020304", true, "[] 0001000001020304 true false"},
		{"key", 0x08, fixed + "00010000 01020304", true, "[] 0001000001020304 true true"},
		{"data and key", 0x0c, fixed + "00010000", false, ""},
		{"neither", 0x00, fixed, true, "[]  false false"},
		{"neither, and octets", 0x00, fixed + "01020304", true, "[]  false false"},
		{"encrypted", 0x14, fixed + "01020304", true, "[]  true false"},
		{"unknown flags", 0xe4, fixed + "00010000", true, "[] 00010000 true false"},
		{"inline QoS alone", 0x02, fixed + "71000400 00000003 0100ffff", true, "[0071:00000003]  false false"},
		{"both", 0x06, fixed + "71000400 00000003 01000000 00010000", true, "[0071:00000003] 00010000 true false"},
		{"no sentinel", 0x02, fixed + "71000400 00000003", false, ""},
		{"a parameter too long", 0x02, fixed + "71000800 00000003 01000000", false, ""},
		{"a parameter not aligned", 0x02, fixed + "71000300 000003 01000000", false, ""},
		{"more fields than known", 0x04, "0000 1800 000001c7 000001c2 00000000 01000000 ffffffff ffffffff 00010000", true,
			"[] 00010000 true false"},
		{"fewer fields than known", 0x04, "0000 0c00 000001c7 000001c2 00000000 01000000 00010000", false, ""},
		{"fields too long", 0x04, "0000 1400 000001c7 000001c2 00000000 01000000", false, ""},
		{"number 0", 0x04, "0000 1000 000001c7 000001c2 00000000 00000000 00010000", false, ""},
		{"number unknown", 0x04, "0000 1000 000001c7 000001c2 ffffffff 00000000 00010000", false, ""},
		{"short", 0x04, "0000 1000 000001c7 000001c2 00000000 010000", false, ""},
	} {
		e := newEncoder(true)
		s := readOne(t, KindData, c.flags, e.raw(unhex(t, c.body)...))
		d, ok := s.Data()
		got := ""
		if ok {
			got = fmt.Sprintf("%v %x %v %v", list(d.InlineQos), d.Payload, d.HasPayload, d.Key)
			if d.Reader != 0x1c7 || d.Writer != 0x1c2 || d.Seq != 1 {
				t.Errorf("%s: %+v", c.name, d)
			}
		}
		if ok != c.ok || got != c.want {
			t.Errorf("%s: %v %q, want %q", c.name, ok, got, c.want)
		}
		if _, ok := s.DataFrag(); ok {
			t.Errorf("%s: read as DATA_FRAG", c.name)
		}
	}
}

func TestDataFrag(t *testing.T) {
	build := func(start uint32, count, size uint16, sample uint32, payload int) *encoder {
		return newEncoder(false).u16(0).u16(28).entity(0x1c7, 0x1c2).seq(9).u32(start).u16(count).u16(size).u32(sample).
			raw(make([]byte, payload)...)
	}
	for _, c := range []struct {
		name        string
		start       uint32
		count, size uint16
		sample      uint32
		payload     int
		ok          bool
		fragments   FragmentNumber
	}{
		{"first of three", 1, 1, 100, 250, 100, true, 3},
		{"last of three", 3, 1, 100, 250, 50, true, 3},
		{"all of three", 1, 3, 100, 300, 300, true, 3},
		{"the only one", 1, 1, 100, 100, 100, true, 1},
		{"padded", 3, 1, 100, 250, 52, true, 3},
		{"the largest", 1, 1, 1, 1<<32 - 1, 1, true, 1<<32 - 1},
		{"behind the largest", 1<<32 - 1, 2, 1, 1<<32 - 1, 1, false, 0},
		{"number 0", 0, 1, 100, 250, 100, false, 0},
		{"behind the last", 4, 1, 100, 250, 100, false, 0},
		{"reaching behind the last", 3, 2, 100, 250, 100, false, 0},
		{"none", 1, 0, 100, 250, 0, false, 0},
		{"of size 0", 1, 1, 0, 250, 0, false, 0},
		{"larger than the sample", 1, 1, 251, 250, 250, false, 0},
		{"padded in full", 1, 1, 99, 250, 100, true, 3},
		{"more than they can hold", 1, 2, 100, 250, 204, false, 0},
	} {
		s := readOne(t, KindDataFrag, 0, build(c.start, c.count, c.size, c.sample, c.payload))
		f, ok := s.DataFrag()
		if ok != c.ok {
			t.Errorf("%s: %v", c.name, ok)
		} else if ok && (f.Reader != 0x1c7 || f.Writer != 0x1c2 || f.Seq != 9 || uint32(f.FragmentStart) != c.start ||
			f.FragmentsInSubmessage != c.count || f.FragmentSize != c.size || f.SampleSize != c.sample ||
			len(f.Payload) != c.payload || !f.HasPayload || f.Fragments() != c.fragments) {
			t.Errorf("%s: %+v, %d fragments", c.name, f, f.Fragments())
		}
		if _, ok := s.Data(); ok {
			t.Errorf("%s: read as DATA", c.name)
		}
	}
	s := readOne(t, KindDataFrag, flagFragKey, build(1, 1, 100, 250, 100))
	if f, ok := s.DataFrag(); !ok || !f.Key {
		t.Errorf("a key: %v %+v", ok, f)
	}
	s = readOne(t, KindDataFrag, flagFragNonStandard, build(1, 1, 100, 250, 100))
	if f, ok := s.DataFrag(); !ok || f.Payload != nil || !f.HasPayload {
		t.Errorf("encrypted: %v %+v", ok, f)
	}
}

// Of a sample that is cut, all is read that is here.
func TestDataCut(t *testing.T) {
	e := newEncoder(true).header("\x02\x01", "\x01\x10", "abcdefghijkl")
	body := e.part().u16(0).u16(16).entity(0x1c7, 0x1c2).seq(3).
		parameter(PIDStatusInfo, 0, 0, 0, 3).parameter(PIDKeyHash, make([]byte, 16)...).sentinel().
		raw(0, 1, 0, 0).raw(bytes.Repeat([]byte{7}, 1000)...)
	b := e.submessage(KindData, flagInlineQos|flagData, body).b
	for _, c := range []struct {
		here int // octets of the body
		ok   bool
		want string
	}{
		{19, false, ""},
		{20, true, "[]  true"},
		{27, true, "[]  true"},
		{28, true, "[0071:00000003]  true"},
		{51, true, "[0071:00000003 0070:00000000000000000000000000000000]  true"},
		{52, true, "[0071:00000003 0070:00000000000000000000000000000000]  false"},
		{57, true, "[0071:00000003 0070:00000000000000000000000000000000] 0001000007 false"},
	} {
		var m Message
		var s Submessage
		if !m.Read(b[:24+c.here], len(b)) || !m.Next(&s) || !s.Cut {
			t.Fatalf("%d octets: not read", c.here)
		}
		d, ok := s.Data()
		got := ""
		if ok {
			got = fmt.Sprintf("%v %x %v", list(d.InlineQos), d.Payload, d.partial)
		}
		if ok != c.ok || got != c.want || ok && (d.Seq != 3 || !d.HasPayload) {
			t.Errorf("%d octets: %v %q, want %q", c.here, ok, got, c.want)
		}
	}
}
