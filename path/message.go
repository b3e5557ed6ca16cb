package path

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// Lengths in bytes of what Put writes.
const (
	ProbeLen = 8
	ReplyLen = 6
)

// ErrShort is returned for a message that ends too early.
var ErrShort = errors.New("probe or reply is too short")

// Probe is the payload of a frame of type Probe, from robot to gateway. On the
// wire, big endian:
//
//	octets 0-3  ID
//	octets 4-5  Interval in milliseconds
//	octets 6-7  LossIn: 0 to 65,534 stand for 0 to 1, 65,535 for unknown
//
// Octets after these are ignored, so that later versions can append.
type Probe struct {
	ID uint32
	// Interval after which the next probe comes at the latest, 0 to 65.535 s in
	// whole milliseconds; what lies outside is sent as the nearest limit.
	Interval time.Duration
	// LossIn is the share (0 to 1) of the gateway's frames on this path that the
	// robot misses, -1 when unknown.
	LossIn float64
}

// Put writes p into the first ProbeLen bytes of b, which must be long enough.
func (p Probe) Put(b []byte) {
	_ = b[ProbeLen-1]
	binary.BigEndian.PutUint32(b, p.ID)
	ms := min(max(p.Interval.Milliseconds(), 0), math.MaxUint16)
	binary.BigEndian.PutUint16(b[4:], uint16(ms))
	binary.BigEndian.PutUint16(b[6:], packShare(p.LossIn))
}

// DecodeProbe reads what Put wrote. The error is ErrShort.
func DecodeProbe(b []byte) (Probe, error) {
	if len(b) < ProbeLen {
		return Probe{}, ErrShort
	}
	return Probe{
		ID:       binary.BigEndian.Uint32(b),
		Interval: time.Duration(binary.BigEndian.Uint16(b[4:])) * time.Millisecond,
		LossIn:   unpackShare(binary.BigEndian.Uint16(b[6:])),
	}, nil
}

// Reply is the payload of a frame of type Reply, from gateway to robot, sent on
// the path on which the probe came. On the wire, big endian:
//
//	octets 0-3  ID of the probe
//	octets 4-5  LossOut, as LossIn in Probe
//
// Octets after these are ignored.
type Reply struct {
	ID uint32
	// LossOut is the share (0 to 1) of the robot's frames on this path that the
	// gateway misses, -1 when unknown.
	LossOut float64
}

// Put writes r into the first ReplyLen bytes of b, which must be long enough.
func (r Reply) Put(b []byte) {
	_ = b[ReplyLen-1]
	binary.BigEndian.PutUint32(b, r.ID)
	binary.BigEndian.PutUint16(b[4:], packShare(r.LossOut))
}

// DecodeReply reads what Put wrote. The error is ErrShort.
func DecodeReply(b []byte) (Reply, error) {
	if len(b) < ReplyLen {
		return Reply{}, ErrShort
	}
	return Reply{ID: binary.BigEndian.Uint32(b), LossOut: unpackShare(binary.BigEndian.Uint16(b[4:]))}, nil
}

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
