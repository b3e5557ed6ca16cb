package rtps

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
)

// unhex turns lines of hexadecimal into octets. Blanks, and all from a # to the
// end of its line, are for the reader.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(line, "#")
		for field := range strings.FieldsSeq(line) {
			digits.WriteString(field)
		}
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// encoder writes RTPS the simple way, to read it back.
type encoder struct {
	binary.AppendByteOrder
	b []byte
}

func newEncoder(little bool) *encoder {
	if little {
		return &encoder{AppendByteOrder: binary.LittleEndian}
	}
	return &encoder{AppendByteOrder: binary.BigEndian}
}

func (e *encoder) little() byte {
	if e.AppendByteOrder == binary.LittleEndian {
		return flagLittleEndian
	}
	return 0
}

func (e *encoder) raw(b ...byte) *encoder { e.b = append(e.b, b...); return e }
func (e *encoder) u16(v uint16) *encoder  { e.b = e.AppendUint16(e.b, v); return e }
func (e *encoder) u32(v uint32) *encoder  { e.b = e.AppendUint32(e.b, v); return e }

func (e *encoder) halves(v uint64) *encoder { return e.u32(uint32(v >> 32)).u32(uint32(v)) }

func (e *encoder) seq(n SequenceNumber) *encoder { return e.halves(uint64(n)) }

func (e *encoder) entity(ids ...EntityID) *encoder {
	for _, id := range ids {
		e.raw(byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
	}
	return e
}

func (e *encoder) guid(g GUID) *encoder { return e.raw(g.Prefix[:]...).entity(g.Entity) }

// bitmap writes the members of a set, given as offsets from its base.
func (e *encoder) bitmap(span int, members ...int) *encoder {
	words := make([]uint32, (span+31)/32)
	for _, m := range members {
		words[m/32] |= 1 << (31 - m%32)
	}
	e.u32(uint32(span))
	for _, w := range words {
		e.u32(w)
	}
	return e
}

func (e *encoder) parameter(id ParameterID, value ...byte) *encoder {
	for len(value)%4 != 0 {
		value = append(value, 0)
	}
	return e.u16(uint16(id)).u16(uint16(len(value))).raw(value...)
}

func (e *encoder) name(id ParameterID, s string) *encoder {
	length := newEncoder(e.little() != 0).u32(uint32(len(s) + 1)).b
	return e.parameter(id, append(append(length, s...), 0)...)
}

func (e *encoder) sentinel() *encoder { return e.u16(uint16(PIDSentinel)).u16(0) }

func (e *encoder) header(version, vendor, source string) *encoder {
	return e.raw([]byte(magic + version + vendor + source)...)
}

// submessage writes the header for the body that was written by another encoder
// of the same byte order.
func (e *encoder) submessage(kind Kind, flags byte, body *encoder) *encoder {
	return e.raw(byte(kind), flags|e.little()).u16(uint16(len(body.b))).raw(body.b...)
}

// part begins the body of a submessage.
func (e *encoder) part() *encoder { return &encoder{AppendByteOrder: e.AppendByteOrder} }

// readOne reads the only submessage of a message.
func readOne(t testing.TB, kind Kind, flags byte, body *encoder) Submessage {
	t.Helper()
	e := body.part().header("\x02\x01", "\x01\x10", "abcdefghijkl").submessage(kind, flags, body)
	var m Message
	var s Submessage
	if !m.Read(e.b, len(e.b)) || !m.Next(&s) {
		t.Fatalf("% x is not read", e.b)
	}
	return s
}
