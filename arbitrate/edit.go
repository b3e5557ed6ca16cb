package arbitrate

import (
	"encoding/binary"

	"github.com/fogplr/fogplr/rtps"
)

const (
	udpHeader = 8  // octets
	leastUDP  = 28 // where its payload begins at least: behind 20 octets of IPv4, octets
)

// udpOf returns UDP's header and payload as they stand in the packet, given the
// payload, which is a view into the packet.
func udpOf(packet, payload []byte) []byte {
	for i := leastUDP; i+len(payload) <= len(packet); i++ {
		if &packet[i] == &payload[0] {
			return packet[i-udpHeader : i+len(payload)]
		}
	}
	return nil
}

// changeable returns UDP's header and payload in the packet at hand, nil if octets
// of it must not be changed.
func (a *Arbiter) changeable(packet []byte) []byte {
	if a.message.Checksum || a.message.Secured {
		return nil
	}
	return udpOf(packet, a.datagram.Payload)
}

// put changes the octet of a payload at that offset, and UDP's checksum by what that
// is different (RFC 1624, equation 3). None stays none.
func put(udp []byte, at int, v byte) {
	word := udp[udpHeader+at&^1:][:2]
	old := binary.BigEndian.Uint16(word)
	udp[udpHeader+at] = v
	field := udp[6:8]
	if field[0]|field[1] == 0 {
		return
	}
	sum := uint32(^binary.BigEndian.Uint16(field)) + uint32(^old) + uint32(binary.BigEndian.Uint16(word))
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	if sum == 0xffff { // 0 is sent as its other form (RFC 768)
		sum = 0
	}
	binary.BigEndian.PutUint16(field, ^uint16(sum))
}

// pad turns a submessage into one that says nothing, of the same length. False means
// that it cannot be: it takes up what there is, and does not say how much.
func pad(udp []byte, s *rtps.Submessage) bool {
	if !sized(udp, s) {
		return false
	}
	put(udp, s.Start, byte(rtps.KindPad))
	put(udp, s.Start+1, s.Flags&1) // its byte order
	return true
}

// sized says that the submessage gives its length (9.4.5.1.3).
func sized(udp []byte, s *rtps.Submessage) bool {
	length := udp[udpHeader+s.Start+2:]
	return length[0]|length[1] != 0
}

// talks says that a submessage of that kind says something, and does not only
// explain those that follow it.
func talks(k rtps.Kind) bool {
	switch k {
	case rtps.KindData, rtps.KindDataFrag, rtps.KindHeartbeat, rtps.KindHeartbeatFrag,
		rtps.KindGap, rtps.KindAckNack, rtps.KindNackFrag:
		return true
	}
	return false
}

// says reports whether anything is left in the datagram at hand that a reader or
// writer would want.
func (a *Arbiter) says() bool {
	m := &a.message
	if !m.Read(a.datagram.Payload, a.datagram.Whole) {
		return true
	}
	for m.Next(&a.sub) {
		if talks(a.sub.Kind) {
			return true
		}
	}
	return m.Unread() > 0 || m.Secured
}
