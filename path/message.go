package path

import (
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"time"
)

// Lengths in bytes of what Put writes. The messages grew by appended fields:
// what ends earlier, but not before its first fields, still decodes.
const (
	ProbeLen = 12
	ReplyLen = 20

	oldProbeLen = 8
	oldReplyLen = 6
)

// ErrShort is returned for a message that ends too early.
var ErrShort = errors.New("probe or reply is too short")

// Probe is the payload of a frame of type Probe, from robot to gateway. On the
// wire, big endian:
//
//	octets 0-3    ID
//	octets 4-5    Interval in milliseconds
//	octets 6-7    LossIn: 0 to 65,534 stand for 0 to 1, 65,535 for unknown
//	octets 8-9    ReplySize
//	octets 10-11  Largest
//
// Octets after these are ignored, so that later versions can append; a probe
// for a size is padded with zeros, so 0 must say nothing in what they append.
type Probe struct {
	ID uint32
	// Interval after which the next probe comes at the latest, 0 to 65.535 s in
	// whole milliseconds; what lies outside is sent as the nearest limit. 0 is a
	// farewell: nothing is to be sent by this path, not even a reply, until something
	// comes by it again.
	Interval time.Duration
	// LossIn is the share (0 to 1) of the gateway's frames on this path that the
	// robot misses, -1 when unknown.
	LossIn float64
	// ReplySize is the frame size in bytes that the reply is wanted to have, 0
	// for the shortest; see ReplyFrame.
	ReplySize uint16
	// Largest is the frame size in bytes up to which this path takes frames both
	// ways, 0 when unknown: the gateway sends larger ones in parts.
	Largest uint16
}

// Put writes p into the first ProbeLen bytes of b, which must be long enough.
func (p Probe) Put(b []byte) {
	_ = b[ProbeLen-1]
	binary.BigEndian.PutUint32(b, p.ID)
	ms := min(max(p.Interval.Milliseconds(), 0), math.MaxUint16)
	binary.BigEndian.PutUint16(b[4:], uint16(ms))
	binary.BigEndian.PutUint16(b[6:], packShare(p.LossIn))
	binary.BigEndian.PutUint16(b[8:], p.ReplySize)
	binary.BigEndian.PutUint16(b[10:], p.Largest)
}

// DecodeProbe reads what Put wrote, now or when there were fewer fields. The
// error is ErrShort.
func DecodeProbe(b []byte) (Probe, error) {
	if len(b) < oldProbeLen {
		return Probe{}, ErrShort
	}
	p := Probe{
		ID:       binary.BigEndian.Uint32(b),
		Interval: time.Duration(binary.BigEndian.Uint16(b[4:])) * time.Millisecond,
		LossIn:   unpackShare(binary.BigEndian.Uint16(b[6:])),
	}
	if len(b) >= ProbeLen {
		p.ReplySize = binary.BigEndian.Uint16(b[8:])
		p.Largest = binary.BigEndian.Uint16(b[10:])
	}
	return p, nil
}

// ReplyFrame returns the size in bytes of the frame that answers p, which came
// in a frame of got bytes: what p asks for, but at least shortest, and never
// more than got or than largest, the largest frame that this node sends. So a
// reply never costs more than its probe did.
func (p Probe) ReplyFrame(got, shortest, largest int) int {
	return max(min(int(p.ReplySize), got, largest), shortest)
}

// Reply is the payload of a frame of type Reply, from gateway to robot, sent on
// the path on which the probe came. On the wire, big endian:
//
//	octets 0-3    ID of the probe
//	octets 4-5    LossOut, as LossIn in Probe
//	octets 6-8    Received, its low 24 bits
//	octets 9-11   Expected, its low 24 bits
//	octets 12-15  Bytes
//	octets 16-17  Mapping
//	octets 18-19  Seen
//
// Octets after these are ignored.
type Reply struct {
	ID uint32
	// LossOut is the share (0 to 1) of the robot's frames on this path that the
	// gateway misses, -1 when unknown.
	LossOut float64
	// Received and Expected count the robot's frames on this path, and Bytes what
	// the received ones held, tags included, since the gateway began to count. All
	// wrap, the first two after 2^24 on the wire. Expected is 0 when the gateway does
	// not tell.
	Received, Expected, Bytes uint32
	// Mapping stands for the address and port that the gateway sees the robot's
	// carrier at, as MappingOf makes it; 0 when unknown.
	Mapping uint16
	// Seen is the size in bytes, tag included, of the largest frame with data that
	// came by this path since the reply before, 0 when there was none.
	Seen uint16
}

// Put writes r into the first ReplyLen bytes of b, which must be long enough.
func (r Reply) Put(b []byte) {
	_ = b[ReplyLen-1]
	binary.BigEndian.PutUint32(b, r.ID)
	binary.BigEndian.PutUint64(b[4:], uint64(packShare(r.LossOut))<<48|uint64(r.Received&low24)<<24|uint64(r.Expected&low24))
	binary.BigEndian.PutUint32(b[12:], r.Bytes)
	binary.BigEndian.PutUint16(b[16:], r.Mapping)
	binary.BigEndian.PutUint16(b[18:], r.Seen)
}

// DecodeReply reads what Put wrote, now or when there were fewer fields. The
// error is ErrShort.
func DecodeReply(b []byte) (Reply, error) {
	if len(b) < oldReplyLen {
		return Reply{}, ErrShort
	}
	r := Reply{ID: binary.BigEndian.Uint32(b), LossOut: unpackShare(binary.BigEndian.Uint16(b[4:]))}
	if len(b) >= ReplyLen {
		totals := binary.BigEndian.Uint64(b[4:])
		r.Received, r.Expected = uint32(totals>>24)&low24, uint32(totals)&low24
		r.Bytes = binary.BigEndian.Uint32(b[12:])
		r.Mapping = binary.BigEndian.Uint16(b[16:])
		r.Seen = binary.BigEndian.Uint16(b[18:])
	}
	return r, nil
}

// MappingOf folds an address and port into the 16 bits of Reply.Mapping (FNV-1a),
// so that a robot notices when a translator gave its carrier another one: of
// 65,535 changes one goes unnoticed. It is 0 for an invalid address only.
func MappingOf(a netip.AddrPort) uint16 {
	if !a.IsValid() {
		return 0
	}
	h := uint32(2166136261)
	mix := func(b byte) { h = (h ^ uint32(b)) * 16777619 }
	for _, b := range a.Addr().Unmap().As16() {
		mix(b)
	}
	mix(byte(a.Port() >> 8))
	mix(byte(a.Port()))
	return max(uint16(h>>16^h), 1)
}

const low24 = 1<<24 - 1

// since24 returns how far a count went on that is known by its low 24 bits,
// negative if it went back.
func since24(now, before uint32) int32 { return int32((now-before)<<8) >> 8 }

const (
	shareOne     = math.MaxUint16 - 1
	shareUnknown = math.MaxUint16
)

func packShare(s float64) uint16 {
	if !(s >= 0) { // also NaN
		return shareUnknown
	}
	return uint16(math.Round(min(s, 1) * shareOne))
}

func unpackShare(v uint16) float64 {
	if v == shareUnknown {
		return -1
	}
	return float64(v) / shareOne
}
