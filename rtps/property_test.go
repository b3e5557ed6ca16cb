package rtps

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// drawn is a submessage as it was made up, and what is to be read of it.
type drawn struct {
	octets []byte
	want   string // of tell
}

// tell says all that is read of a submessage, and of the receiver's state then.
func tell(m *Message, s *Submessage) string {
	state := fmt.Sprintf("%02x v%v %v %v>%v @%x ", byte(s.Kind), m.Version, m.Vendor, m.Source, m.Destination, uint64(m.Timestamp))
	if d, ok := s.Data(); ok {
		return state + tellData(&d)
	}
	if f, ok := s.DataFrag(); ok {
		return state + fmt.Sprintln(f.FragmentStart, f.FragmentsInSubmessage, f.FragmentSize, f.SampleSize) + tellData(&f.Data)
	}
	if h, ok := s.Heartbeat(); ok {
		return state + fmt.Sprintf("%+v", h)
	}
	if h, ok := s.HeartbeatFrag(); ok {
		return state + fmt.Sprintf("%+v", h)
	}
	if a, ok := s.AckNack(); ok {
		return state + fmt.Sprintln(a.Reader, a.Writer, a.Missing.Base, members(a.Missing), a.Count, a.Final)
	}
	if n, ok := s.NackFrag(); ok {
		return state + fmt.Sprintln(n.Reader, n.Writer, n.Seq, n.Missing.Base, members(n.Missing), n.Count)
	}
	if g, ok := s.Gap(); ok {
		return state + fmt.Sprintln(g.Reader, g.Writer, g.Start, g.List.Base, members(g.List))
	}
	return state + fmt.Sprintf("%x", s.Body)
}

func tellData(d *Data) string {
	return fmt.Sprintf(" %v %v %d %v %x %v %v", d.Reader, d.Writer, d.Seq, list(d.InlineQos), d.Payload, d.HasPayload, d.Key)
}

// maker makes up messages.
type maker struct {
	t     *rapid.T
	state Message
}

func (k *maker) octets(name string, n int) []byte {
	return rapid.SliceOfN(rapid.Byte(), n, n).Draw(k.t, name)
}
func (k *maker) entity(name string) EntityID { return EntityID(rapid.Uint32().Draw(k.t, name)) }
func (k *maker) number(name string) SequenceNumber {
	return SequenceNumber(rapid.OneOf(rapid.Int64Range(1, 10), rapid.Int64Range(1, 1<<63-1-maxSet)).Draw(k.t, name))
}

// set makes up members of a set, and what is to be read of them.
func (k *maker) set(e *encoder, base int64) string {
	span := rapid.IntRange(0, maxSet).Draw(k.t, "span")
	in := make([]bool, span)
	var offsets []int
	if span > 0 {
		offsets = rapid.SliceOfN(rapid.IntRange(0, span-1), 0, 5).Draw(k.t, "offsets")
	}
	for _, o := range offsets {
		in[o] = true
	}
	e.bitmap(span, offsets...)
	told := []int64{}
	for o, member := range in {
		if member {
			told = append(told, base+int64(o))
		}
	}
	return fmt.Sprint(told)
}

// list makes up inline QoS, and what is to be read of it.
func (k *maker) list(e *encoder) []string {
	var told []string
	for range rapid.IntRange(0, 4).Draw(k.t, "parameters") {
		id := ParameterID(rapid.SampledFrom([]ParameterID{PIDPad, PIDKeyHash, PIDStatusInfo, PIDRelatedIdentityVendor, 0x7fff}).Draw(k.t, "id"))
		value := k.octets("value", 4*rapid.IntRange(0, 6).Draw(k.t, "length"))
		if e.parameter(id, value...); id != PIDPad {
			told = append(told, fmt.Sprintf("%04x:%x", uint16(id), value))
		}
	}
	e.sentinel()
	return told
}

// sample makes up what DATA and DATA_FRAG have in common. between writes the
// fields that only the latter has.
func (k *maker) sample(e *encoder, fields int, between func(), payload []byte, has, key bool) (flags byte, want string) {
	reader, writer, seq := k.entity("reader"), k.entity("writer"), k.number("seq")
	unknown := k.octets("unknown fields", 4*rapid.IntRange(0, 2).Draw(k.t, "unknown"))
	e.u16(0).u16(uint16(fields-4+len(unknown))).entity(reader, writer).seq(seq)
	between()
	e.raw(unknown...)
	var qos []string
	if rapid.Bool().Draw(k.t, "inline QoS") {
		flags |= flagInlineQos
		qos = k.list(e)
	}
	e.raw(payload...)
	return flags, fmt.Sprintf(" %v %v %d %v %x %v %v", reader, writer, seq, qos, payload, has, key)
}

// submessage makes up one of any kind.
func (k *maker) submessage() drawn {
	out := newEncoder(rapid.Bool().Draw(k.t, "little endian"))
	e := out.part()
	kind := rapid.SampledFrom([]Kind{
		KindPad, KindAckNack, KindHeartbeat, KindGap, KindInfoTS, KindInfoSrc, KindInfoDst, KindNackFrag,
		KindHeartbeatFrag, KindData, KindDataFrag, 0x80, 0x42,
	}).Draw(k.t, "kind")
	reader, writer, seq, count := k.entity("reader"), k.entity("writer"), k.number("number"), rapid.Int32().Draw(k.t, "count")
	fragment := rapid.Uint32Range(1, 1<<32-1-maxSet).Draw(k.t, "fragment")
	flags, want := byte(0), ""
	switch kind {
	case KindInfoTS:
		k.state.Timestamp = Time(rapid.Uint64().Draw(k.t, "time"))
		want = fmt.Sprintf("%x", e.halves(uint64(k.state.Timestamp)).b)
	case KindInfoSrc:
		k.state.Version, k.state.Vendor = Version(k.octets("version", 2)), Vendor(k.octets("vendor", 2))
		k.state.Source, k.state.Timestamp = Prefix(k.octets("source", 12)), TimeInvalid
		e.u32(0).raw(k.state.Version[:]...).raw(k.state.Vendor[:]...).raw(k.state.Source[:]...)
		want = fmt.Sprintf("%x", e.b)
	case KindInfoDst:
		k.state.Destination = Prefix(k.octets("destination", 12))
		want = fmt.Sprintf("%x", e.raw(k.state.Destination[:]...).b)
	case KindData:
		payload, has, key := k.octets("payload", rapid.IntRange(0, 40).Draw(k.t, "size")), true, false
		switch rapid.IntRange(0, 2).Draw(k.t, "what") {
		case 0:
			flags = flagData
		case 1:
			flags, key = flagKey, true
		default:
			payload, has = nil, false
		}
		more, w := k.sample(e, dataFields, func() {}, payload, has, key)
		flags, want = flags|more, w
	case KindDataFrag:
		size, n := rapid.Uint16Range(1, 20).Draw(k.t, "size"), rapid.Uint16Range(1, 3).Draw(k.t, "fragments")
		start, all := fragment%100+1, uint32(size)*(fragment%100+uint32(n))
		payload := k.octets("payload", int(size)*int(n))
		flags, want = k.sample(e, dataFragFields, func() { e.u32(start).u16(n).u16(size).u32(all) }, payload, true, false)
		want = fmt.Sprintln(start, n, size, all) + want
	case KindHeartbeat:
		h := Heartbeat{reader, writer, seq, seq + SequenceNumber(rapid.Int64Range(-1, 100).Draw(k.t, "more")), count, true, false}
		flags = flagFinal
		e.entity(reader, writer).seq(h.First).seq(h.Last).u32(uint32(count))
		want = fmt.Sprintf("%+v", h)
	case KindHeartbeatFrag:
		e.entity(reader, writer).seq(seq).u32(fragment).u32(uint32(count))
		want = fmt.Sprintf("%+v", HeartbeatFrag{reader, writer, seq, FragmentNumber(fragment), count})
	case KindAckNack:
		e.entity(reader, writer).seq(seq)
		want = fmt.Sprintln(reader, writer, seq, k.set(e, int64(seq)), count, false)
		e.u32(uint32(count))
	case KindNackFrag:
		e.entity(reader, writer).seq(seq).u32(fragment)
		want = fmt.Sprintln(reader, writer, seq, fragment, k.set(e, int64(fragment)), count)
		e.u32(uint32(count))
	case KindGap:
		start := k.number("start")
		e.entity(reader, writer).seq(start).seq(seq)
		want = fmt.Sprintln(reader, writer, start, seq, k.set(e, int64(seq)))
	default:
		e.raw(k.octets("body", rapid.IntRange(1, 20).Draw(k.t, "size"))...)
		want = fmt.Sprintf("%x", e.b)
	}
	st := &k.state
	want = fmt.Sprintf("%02x v%v %v %v>%v @%x ", byte(kind), st.Version, st.Vendor, st.Source, st.Destination, uint64(st.Timestamp)) + want
	return drawn{out.submessage(kind, flags, e).b, want}
}

// What was written is read back; and of a message that is cut anywhere, all
// submessages before the cut, and nothing else.
func TestReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &maker{t: t, state: Message{
			Version: Version{2, rapid.Byte().Draw(t, "minor")}, Vendor: VendorCyclone, Source: Prefix{9}, Timestamp: TimeInvalid,
		}}
		b := newEncoder(true).header(string(k.state.Version[:]), "\x01\x10", string(k.state.Source[:])).b
		var parts []drawn
		ends := []int{len(b)}
		for range rapid.IntRange(0, 6).Draw(t, "submessages") {
			p := k.submessage()
			parts, b = append(parts, p), append(b, p.octets...)
			ends = append(ends, len(b))
		}
		for here := range len(b) + 1 {
			for _, whole := range []int{here, len(b), len(b) + 9} {
				if whole >= here {
					readCut(t, b[:here:here], whole, parts, ends)
				}
			}
		}
	})
}

func readCut(t *rapid.T, b []byte, whole int, parts []drawn, ends []int) {
	var m Message
	if ok := m.Read(b, whole); !ok || len(b) < headerSize {
		if ok != (len(b) >= headerSize) {
			t.Fatalf("%d of %d octets: %v", len(b), whole, ok)
		}
		return
	}
	n := 0
	for s := (Submessage{}); m.Next(&s); n++ {
		if n >= len(parts) || s.Start != ends[n] || s.End != ends[n+1] || s.Cut != (s.End > len(b)) ||
			!bytes.Equal(s.Body, b[s.Start+4:min(s.End, len(b))]) {
			t.Fatalf("%d of %d octets: submessage %d is %+v", len(b), whole, n, s)
		}
		if got := tell(&m, &s); !s.Cut && got != parts[n].want {
			t.Fatalf("%d of %d octets: submessage %d:\n%s\nwant\n%s", len(b), whole, n, got, parts[n].want)
		}
	}
	want := 0 // submessages whose header is here, and which do not claim more than there is
	for want < len(parts) && ends[want]+4 <= len(b) && ends[want+1] <= whole {
		want++
	}
	if n != want || m.Unread() != whole-ends[n] {
		t.Fatalf("%d of %d octets: %d submessages, want %d; %d octets unread", len(b), whole, n, want, m.Unread())
	}
}
