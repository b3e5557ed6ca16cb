package rtps

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// A Prefix tells a participant from all others (GuidPrefix_t, 9.3.1.1). The
// zero Prefix is GUIDPREFIX_UNKNOWN.
type Prefix [12]byte

// String returns 24 hexadecimal digits. It allocates.
func (p Prefix) String() string { return hex.EncodeToString(p[:]) }

// An EntityID tells a writer or reader from the others of its participant
// (EntityId_t, 9.3.1.2): its four octets, the first one highest, so that it
// reads as it is printed. The last octet is the kind.
type EntityID uint32

// String returns 8 hexadecimal digits. It allocates.
func (e EntityID) String() string { return fmt.Sprintf("%08x", uint32(e)) }

// Writer says that e is a writer, of an application or built in (Table 9.1).
func (e EntityID) Writer() bool { k := e & 0x3f; return k == 0x02 || k == 0x03 }

// Reader says that e is a reader, of an application or built in (Table 9.1).
func (e EntityID) Reader() bool { k := e & 0x3f; return k == 0x04 || k == 0x07 }

// Builtin says that e is one of the protocol's own, and not an application's.
func (e EntityID) Builtin() bool { return e&0xc0 == 0xc0 }

// A GUID is the name of a participant, writer or reader that nobody else has
// (GUID_t, 9.3.1.5).
type GUID struct {
	Prefix
	Entity EntityID
}

// String returns prefix and entity, 33 characters. It allocates.
func (g GUID) String() string { return g.Prefix.String() + ":" + g.Entity.String() }

// guid reads the 16 octets of a GUID, which have no byte order.
func guid(b []byte) (g GUID) {
	copy(g.Prefix[:], b)
	g.Entity = entity(b[12:])
	return g
}

// entity reads the four octets of an entity id, which have no byte order.
func entity(b []byte) EntityID { return EntityID(binary.BigEndian.Uint32(b)) }

// A SequenceNumber counts the samples of one writer, from 1 (9.3.2.10). Numbers
// below that are not valid.
type SequenceNumber int64

// A FragmentNumber counts the fragments of one sample, from 1 (8.3.5.6).
type FragmentNumber uint32

// A Version is the protocol's, major and minor (9.3.2.1).
type Version [2]byte

// A Vendor is who made a DDS implementation, as assigned by the OMG (9.3.2.1).
type Vendor [2]byte

// Vendors that are met with ROS 2.
var (
	VendorRTI     = Vendor{1, 1}
	VendorFast    = Vendor{1, 15} // eProsima Fast DDS
	VendorCyclone = Vendor{1, 16} // Eclipse Cyclone DDS
)

// A Time is a source timestamp (Time_t, 9.3.2.2): seconds since 1970 in the upper
// 32 bits, the fraction of a second in the lower ones.
type Time uint64

// TimeInvalid is no time (9.3.2.1).
const TimeInvalid Time = 1<<64 - 1

// order is the byte order of a submessage, parameter list or payload.
type order bool

const (
	bigEndian    order = false
	littleEndian order = true
)

func (o order) u16(b []byte) uint16 {
	if o == littleEndian {
		return binary.LittleEndian.Uint16(b)
	}
	return binary.BigEndian.Uint16(b)
}

func (o order) u32(b []byte) uint32 {
	if o == littleEndian {
		return binary.LittleEndian.Uint32(b)
	}
	return binary.BigEndian.Uint32(b)
}

func (o order) u64(b []byte) uint64 {
	if o == littleEndian {
		return binary.LittleEndian.Uint64(b)
	}
	return binary.BigEndian.Uint64(b)
}

func (o order) put16(b []byte, v uint16) {
	if o == littleEndian {
		binary.LittleEndian.PutUint16(b, v)
		return
	}
	binary.BigEndian.PutUint16(b, v)
}

func (o order) put32(b []byte, v uint32) {
	if o == littleEndian {
		binary.LittleEndian.PutUint32(b, v)
		return
	}
	binary.BigEndian.PutUint32(b, v)
}

// halves reads two 32-bit words, the upper one first in either byte order: a
// sequence number (9.4.2.5) or a time (9.4.2.9).
func (o order) halves(b []byte) uint64 {
	return uint64(o.u32(b))<<32 | uint64(o.u32(b[4:]))
}

func (o order) sequence(b []byte) SequenceNumber { return SequenceNumber(o.halves(b)) }
