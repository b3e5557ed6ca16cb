package rtps

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// members of a set, the simple way.
func members[N SequenceNumber | FragmentNumber](s Set[N]) (m []N) {
	for i := range maxSet {
		if n := s.Base + N(i); s.Contains(n) {
			m = append(m, n)
		}
	}
	return m
}

// Every control submessage as it stands on the wire.
func TestControlGolden(t *testing.T) {
	b := unhex(t, `
		52545053 0201 0110 000102030405060708090a0b
		07 03 1c00                    # HEARTBEAT, final
		00000000 00000103             # every reader; writer
		00000000 05000000             # first 5
		01000000 00000000             # last 2^32
		07000000                      # count
		07 0c 0034                    # HEARTBEAT, big endian, liveliness, with group info
		00000204 00000103
		00000000 00000001  00000000 00000000  fffffffe  # nothing yet; count -2
		00000000 00000001  00000000 00000001  00000000 00000001
		06 03 1c00                    # ACKNACK, final
		00000204 00000103
		00000000 d2040000             # base 1234
		0c000000 00000030             # 12 bits: 00110...
		09000000                      # count
		08 01 2400                    # GAP
		00000000 00000103
		00000000 03000000             # from 3
		00000000 06000000 21000000    # below 6; of 33 from there
		01000040 000000ff             # 7, 37 and 38; the bits behind do not count
		12 01 2000                    # NACK_FRAG
		00000204 00000103
		00000000 02000000             # sample 2
		01000000 02000000 000000c0    # fragments 1 and 2
		04000000
		13 01 1800                    # HEARTBEAT_FRAG
		00000000 00000103
		00000000 02000000             # sample 2
		0f000000 05000000             # up to fragment 15; count`)
	var m Message
	if !m.Read(b, len(b)) {
		t.Fatal("not read")
	}
	next := func() *Submessage {
		t.Helper()
		s := &Submessage{}
		if !m.Next(s) {
			t.Fatal("no more")
		}
		return s
	}
	if h, ok := next().Heartbeat(); !ok || h != (Heartbeat{Writer: 0x103, First: 5, Last: 1 << 32, Count: 7, Final: true}) {
		t.Errorf("%v %+v", ok, h)
	}
	if h, ok := next().Heartbeat(); !ok ||
		h != (Heartbeat{Reader: 0x204, Writer: 0x103, First: 1, Last: 0, Count: -2, Liveliness: true}) {
		t.Errorf("%v %+v", ok, h)
	}
	a, ok := next().AckNack()
	if !ok || a.Reader != 0x204 || a.Writer != 0x103 || a.Count != 9 || !a.Final || a.Missing.Base != 1234 ||
		!slices.Equal(members(a.Missing), []SequenceNumber{1236, 1237}) {
		t.Errorf("%v %+v", ok, a)
	}
	g, ok := next().Gap()
	if !ok || g.Reader != 0 || g.Writer != 0x103 || g.Start != 3 || g.List.Base != 6 ||
		!slices.Equal(members(g.List), []SequenceNumber{7, 37, 38}) {
		t.Errorf("%v %+v", ok, g)
	}
	for n, want := range map[SequenceNumber]bool{2: false, 3: true, 5: true, 6: false, 7: true, 8: false, 38: true, 39: false} {
		if g.Covers(n) != want {
			t.Errorf("covers %d: %v", n, !want)
		}
	}
	n, ok := next().NackFrag()
	if !ok || n.Reader != 0x204 || n.Writer != 0x103 || n.Seq != 2 || n.Count != 4 ||
		!slices.Equal(members(n.Missing), []FragmentNumber{1, 2}) {
		t.Errorf("%v %+v", ok, n)
	}
	if h, ok := next().HeartbeatFrag(); !ok || h != (HeartbeatFrag{Writer: 0x103, Seq: 2, Last: 15, Count: 5}) {
		t.Errorf("%v %+v", ok, h)
	}
	if m.Unread() != 0 {
		t.Errorf("%d octets unread", m.Unread())
	}
}

func TestControlRefused(t *testing.T) {
	ids := func() *encoder { return newEncoder(true).entity(0x204, 0x103) }
	heartbeat := func(first, last SequenceNumber) *encoder { return ids().seq(first).seq(last).u32(1) }
	acknack := func(base SequenceNumber, span int, m ...int) *encoder {
		return ids().seq(base).bitmap(span, m...).u32(1)
	}
	gap := func(start, base SequenceNumber, span int) *encoder { return ids().seq(start).seq(base).bitmap(span) }
	nackfrag := func(seq SequenceNumber, base uint32, span int) *encoder {
		return ids().seq(seq).u32(base).bitmap(span).u32(1)
	}
	for _, c := range []struct {
		name string
		kind Kind
		body *encoder
		ok   bool
	}{
		{"heartbeat", KindHeartbeat, heartbeat(1, 1), true},
		{"heartbeat: nothing left", KindHeartbeat, heartbeat(11, 10), true},
		{"heartbeat: last too low", KindHeartbeat, heartbeat(11, 9), false},
		{"heartbeat: first 0", KindHeartbeat, heartbeat(0, 10), false},
		{"heartbeat: first lowest", KindHeartbeat, heartbeat(-1<<63, 10), false},
		{"acknack: all", KindAckNack, acknack(1, 0), true},
		{"acknack: 256 wide", KindAckNack, acknack(1, 256, 0, 255), true},
		{"acknack: 257 wide", KindAckNack, acknack(1, 257), false},
		{"acknack: before any heartbeat", KindAckNack, acknack(0, 0), true},
		{"acknack: 0 is missing", KindAckNack, acknack(0, 1, 0), false},
		{"acknack: negative", KindAckNack, acknack(-1, 0), false},
		{"acknack: numbers end", KindAckNack, acknack(1<<63-200, 1, 0), false},
		{"acknack: no count", KindAckNack, ids().seq(1).bitmap(32), false},
		{"acknack: bitmap short", KindAckNack, ids().seq(1).u32(64).u32(0), false},
		{"acknack: bits without end", KindAckNack, ids().seq(1).u32(1<<32 - 1).u32(0).u32(0), false},
		{"gap", KindGap, gap(1, 2, 0), true},
		{"gap: list before start", KindGap, gap(5, 1, 0), true},
		{"gap: start 0", KindGap, gap(0, 2, 0), false},
		{"gap: base 0", KindGap, gap(1, 0, 0), false},
		{"gap: 257 wide", KindGap, gap(1, 2, 257), false},
		{"nackfrag", KindNackFrag, nackfrag(1, 1, 256), true},
		{"nackfrag: sample 0", KindNackFrag, nackfrag(0, 1, 1), false},
		{"nackfrag: fragment 0", KindNackFrag, nackfrag(1, 0, 1), false},
		{"nackfrag: numbers end", KindNackFrag, nackfrag(1, 1<<32-100, 1), false},
		{"heartbeatfrag", KindHeartbeatFrag, ids().seq(1).u32(1).u32(1), true},
		{"heartbeatfrag: sample 0", KindHeartbeatFrag, ids().seq(0).u32(1).u32(1), false},
		{"heartbeatfrag: fragment 0", KindHeartbeatFrag, ids().seq(1).u32(0).u32(1), false},
	} {
		for length := range len(c.body.b) + 1 { // all that is shorter is refused
			body := c.body.part().raw(c.body.b[:length]...)
			if length == 0 {
				continue // would be the rest of the message
			}
			s := readOne(t, c.kind, 0, body)
			if ok := controls(&s); ok != (c.ok && length == len(c.body.b)) {
				t.Errorf("%s, %d of %d octets: %v", c.name, length, len(c.body.b), ok)
			}
			s.Kind = KindPad
			if controls(&s) {
				t.Errorf("%s: PAD is read", c.name)
			}
		}
	}
}

// controls says that a control submessage is read.
func controls(s *Submessage) bool {
	_, h := s.Heartbeat()
	_, hf := s.HeartbeatFrag()
	_, a := s.AckNack()
	_, n := s.NackFrag()
	_, g := s.Gap()
	return h || hf || a || n || g
}

// A set answers as a map does.
func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := SequenceNumber(rapid.OneOf(rapid.Int64Range(1, 300), rapid.Int64Range(1, 1<<63-1-maxSet)).Draw(t, "base"))
		span := rapid.IntRange(0, maxSet).Draw(t, "span")
		twin := map[SequenceNumber]bool{}
		e := newEncoder(rapid.Bool().Draw(t, "little"))
		var offsets []int
		if span > 0 {
			offsets = rapid.SliceOf(rapid.IntRange(0, span-1)).Draw(t, "offsets")
		}
		for _, o := range offsets {
			twin[base+SequenceNumber(o)] = true
		}
		s := Set[SequenceNumber]{Base: base}
		e.bitmap(span, offsets...)
		rest, ok := s.read(order(e.little() != 0), append(e.b, "rest"...))
		if !ok || string(rest) != "rest" {
			t.Fatalf("%v, %q is left", ok, rest)
		}
		for _, n := range []SequenceNumber{0, base - 1, base, base + SequenceNumber(span), base + maxSet} {
			if s.Contains(n) != twin[n] {
				t.Fatalf("contains %d: %v", n, s.Contains(n))
			}
		}
		var got []SequenceNumber
		for n, ok := s.Next(0); ok; n, ok = s.Next(n + 1) {
			got = append(got, n)
		}
		if len(got) != len(twin) || !slices.IsSorted(got) || slices.ContainsFunc(got, func(n SequenceNumber) bool { return !twin[n] }) {
			t.Fatalf("%v, want %v", got, twin)
		}
	})
}

// Bits behind the last one mean nothing.
func TestSetTail(t *testing.T) {
	s := Set[FragmentNumber]{Base: 1}
	if _, ok := s.read(bigEndian, []byte{0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff}); !ok || len(members(s)) != 0 {
		t.Errorf("%v, members %v", ok, members(s))
	}
	if n, ok := s.Next(0); ok {
		t.Errorf("%d is in an empty set", n)
	}
}
