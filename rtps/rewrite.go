package rtps

import (
	"encoding/binary"
	"math"
)

// Sizes of what Gap writes, in octets.
const (
	gapBody = 28 // of a GAP whose list is empty (9.4.5.6)
	gapSize = submessageHeader + gapBody
	padSize = submessageHeader
)

// Gap turns the sample in s, DATA or DATA_FRAG, into a GAP: the reader, or every
// reader if it names none, is told not to wait for that number of that writer
// (8.3.8.4). What is left of s becomes a PAD, so that no other submessage moves. It
// changes 32 or 36 octets of the packet, and UDP's checksum by what they differ;
// so the first of several IP fragments is enough. The octets that stay in the PAD
// can be read on the way, but not by DDS.
//
// m must have read s in d's payload. False means that nothing was changed: s is no
// sample or a broken one, is shorter than a GAP or in fragments too small to hold
// one, or the message's octets are signed or summed up by more than UDP. After true,
// s is not to be used any more; m goes on.
func (d *Datagram) Gap(m *Message, s *Submessage) bool {
	if m.Checksum || m.Secured || len(m.octets) != len(d.Payload) || s.End > d.Whole {
		return false
	}
	seq, ok := s.sequence()
	if !ok || seq == math.MaxInt64 || s.Start%4 != 0 { // submessages are aligned (9.4.1), and so are the checksum's words
		return false
	}
	rest := s.End - s.Start - gapSize
	size := gapSize
	if rest > 0 {
		size += padSize
	}
	if rest < 0 || rest > 0 && rest < padSize || s.Start+size > len(d.Payload) {
		return false
	}
	var now [gapSize + padSize]byte
	s.putGap(&now, seq, rest)
	old := d.Payload[s.Start : s.Start+size]
	d.updateChecksum(old, now[:size])
	copy(old, now[:size])
	return true
}

// sequence returns the number of the sample in s.
func (s *Submessage) sequence() (SequenceNumber, bool) {
	if s.Kind == KindData {
		d, ok := s.Data()
		return d.Seq, ok
	}
	f, ok := s.DataFrag()
	return f.Seq, ok
}

// putGap writes the GAP for the sample in s, and the header of the PAD over the
// rest behind it.
func (s *Submessage) putGap(b *[gapSize + padSize]byte, seq SequenceNumber, rest int) {
	o := s.order()
	var flags byte
	if o == littleEndian {
		flags = flagLittleEndian
	}
	b[0], b[1] = byte(KindGap), flags
	o.put16(b[2:], gapBody)
	copy(b[4:12], s.Body[4:12])   // reader and writer
	copy(b[12:20], s.Body[12:20]) // the first number of the gap
	o.put32(b[20:], uint32(uint64(seq+1)>>32))
	o.put32(b[24:], uint32(seq+1)) // the first number behind it, and base of an empty set
	b[gapSize], b[gapSize+1] = byte(KindPad), flags
	if rest > padSize {
		o.put16(b[gapSize+2:], uint16(rest-padSize))
	}
}

// updateChecksum changes UDP's checksum for octets that change from old to now,
// both at an even offset and of an even length (RFC 1624, equation 3). None (0)
// stays none, and never comes out: 0 as a sum is sent as its other form (RFC 768).
func (d *Datagram) updateChecksum(old, now []byte) {
	field := d.udp[6:8]
	if field[0] == 0 && field[1] == 0 {
		return
	}
	sum := uint32(^binary.BigEndian.Uint16(field))
	for i := 0; i < len(old); i += 2 {
		sum += uint32(^binary.BigEndian.Uint16(old[i:])) + uint32(binary.BigEndian.Uint16(now[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	if sum == 0xffff {
		sum = 0
	}
	binary.BigEndian.PutUint16(field, ^uint16(sum))
}
