package replicate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// TagLen is the length in bytes of the replication tag that opens every frame.
const TagLen = 28

// Version is the frame version this program writes. It reads Version and
// Version-1.
const Version = 1

// Type tells what follows the tag.
type Type uint8

// Frame types. Values 5 to 15 are free.
const (
	Data  Type = 1 // one inner IP packet, numbered and eliminated
	Probe Type = 2 // path.Probe, neither numbered nor eliminated
	Reply Type = 3 // path.Reply, neither numbered nor eliminated
	Part  Type = 4 // a part of an inner packet with that packet's number, see PutPart
)

// Address names one end of a path: a node and one of its carrier slots. It
// stands where an IPv4 header has its addresses, because that is where
// wireguard-go looks when it chooses a peer (destination) and when it checks
// what a peer may claim (source). The first octet is 240 + slot, a block that
// is never in use on a network (RFC 1112 section 4), the other three are the
// node number.
type Address uint32

// MaxSlot is the largest carrier slot of a node.
const MaxSlot = 7

const maxNode = 1<<24 - 1

// MakeAddress returns the Address of slot (0 to MaxSlot) of node (1 to 2^24-1);
// bits outside those ranges are ignored.
func MakeAddress(node uint32, slot uint8) Address {
	return Address((240|uint32(slot&MaxSlot))<<24 | node&maxNode)
}

// Node returns the node number.
func (a Address) Node() uint32 { return uint32(a) & maxNode }

// Slot returns the carrier slot. A gateway, which has no carriers, goes by the
// slot of the robot's carrier at the other end.
func (a Address) Slot() uint8 { return uint8(a>>24) & MaxSlot }

// Addr returns the Address as the IPv4 address that WireGuard sees.
func (a Address) Addr() netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(a))
	return netip.AddrFrom4(b)
}

// NodeOf returns the node number of an overlay address, IPv4 or IPv6: the last
// 24 bits of its host part. It fails when the prefix is not valid and when they
// are all zero, since node 0 means nobody.
func NodeOf(p netip.Prefix) (uint32, error) {
	if !p.IsValid() {
		return 0, errors.New("no overlay address")
	}
	b := p.Addr().AsSlice()
	n := binary.BigEndian.Uint32(b[len(b)-4:])
	hostBits := min(p.Addr().BitLen()-p.Bits(), 24)
	n &= 1<<hostBits - 1
	if n == 0 {
		return 0, fmt.Errorf("%v has no host part, so it cannot name a node", p)
	}
	return n, nil
}

// Tag is the decoded replication tag. On the wire, big endian:
//
//	octet  0      4 (high nibble, as in IPv4), version (low nibble)
//	octet  1      type (high nibble), class (low nibble)
//	octets 2-3    length of the frame, tag included
//	octets 4-7    epoch, random at each start of the sender
//	octets 8-11   sequence number on this path
//	octets 12-15  source Address
//	octets 16-19  destination Address
//	octets 20-23  sequence number of the packet, the same in every copy
//	octets 24-27  time of sending, microseconds of a clock of the sender that nobody sets
type Tag struct {
	Type    Type
	Class   uint8 // 0 to 15
	Epoch   uint32
	PathSeq Seq
	Src     Address
	Dst     Address
	Seq     Seq
	SentAt  uint32 // microseconds, wraps after 71 minutes
}

// Errors of DecodeTag.
var (
	// ErrShort: the first octet is not that of a frame, or there are fewer
	// octets than the tag or the length field says.
	ErrShort = errors.New("not a frame, or cut short")
	// ErrVersion: a frame, but of a version other than Version and Version-1.
	// The version is the low nibble of its first octet.
	ErrVersion = errors.New("frame version is not understood")
)

// PutTag writes t into the first TagLen bytes of frame. The length field is
// len(frame), which must be TagLen to 65,535.
func PutTag(frame []byte, t *Tag) {
	_ = frame[TagLen-1]
	frame[0] = 4<<4 | Version
	frame[1] = byte(t.Type)<<4 | t.Class&15
	binary.BigEndian.PutUint16(frame[2:], uint16(len(frame)))
	binary.BigEndian.PutUint32(frame[4:], t.Epoch)
	binary.BigEndian.PutUint32(frame[8:], uint32(t.PathSeq))
	binary.BigEndian.PutUint32(frame[12:], uint32(t.Src))
	binary.BigEndian.PutUint32(frame[16:], uint32(t.Dst))
	binary.BigEndian.PutUint32(frame[20:], uint32(t.Seq))
	binary.BigEndian.PutUint32(frame[24:], t.SentAt)
}

// DecodeTag reads the tag of frame and returns it with the payload, which
// shares frame's memory and ends at the length field; what follows it is
// padding. It never looks beyond frame. Type and the addresses are not checked.
// An error, ErrShort or ErrVersion as it stands, comes with a zero Tag.
func DecodeTag(frame []byte) (t Tag, payload []byte, err error) {
	if len(frame) == 0 || frame[0]>>4 != 4 {
		return t, nil, ErrShort
	}
	if v := frame[0] & 15; v != Version && v != Version-1 {
		return t, nil, ErrVersion
	}
	if len(frame) < TagLen {
		return t, nil, ErrShort
	}
	n := int(binary.BigEndian.Uint16(frame[2:]))
	if n < TagLen || n > len(frame) {
		return t, nil, ErrShort
	}
	t = Tag{
		Type:    Type(frame[1] >> 4),
		Class:   frame[1] & 15,
		Epoch:   binary.BigEndian.Uint32(frame[4:]),
		PathSeq: Seq(binary.BigEndian.Uint32(frame[8:])),
		Src:     Address(binary.BigEndian.Uint32(frame[12:])),
		Dst:     Address(binary.BigEndian.Uint32(frame[16:])),
		Seq:     Seq(binary.BigEndian.Uint32(frame[20:])),
		SentAt:  binary.BigEndian.Uint32(frame[24:]),
	}
	return t, frame[TagLen:n], nil
}
