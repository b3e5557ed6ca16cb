package arbitrate

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/fogplr/fogplr/rtps"
)

// writer writes an RTPS message the simple way, little endian.
type writer struct{ b []byte }

var le = binary.LittleEndian

func message(vendor rtps.Vendor, source rtps.Prefix) *writer {
	return &writer{slices.Concat([]byte("RTPS\x02\x01"), vendor[:], source[:])}
}

func (w *writer) u16(v int) *writer    { w.b = le.AppendUint16(w.b, uint16(v)); return w }
func (w *writer) u32(v uint32) *writer { w.b = le.AppendUint32(w.b, v); return w }
func (w *writer) raw(b ...byte) *writer {
	w.b = append(w.b, b...)
	return w
}
func (w *writer) entity(e rtps.EntityID) *writer {
	w.b = binary.BigEndian.AppendUint32(w.b, uint32(e))
	return w
}
func (w *writer) seq(n rtps.SequenceNumber) *writer { return w.u32(uint32(n >> 32)).u32(uint32(n)) }

// sub writes a submessage whose body f writes.
func (w *writer) sub(kind rtps.Kind, flags byte, f func(*writer)) *writer {
	body := &writer{}
	f(body)
	for len(body.b)%4 != 0 {
		body.raw(0)
	}
	return w.raw(byte(kind), flags|1).u16(len(body.b)).raw(body.b...)
}

func (w *writer) to(p rtps.Prefix) *writer {
	return w.sub(rtps.KindInfoDst, 0, func(b *writer) { b.raw(p[:]...) })
}

func (w *writer) parameter(id rtps.ParameterID, value []byte) *writer {
	for len(value)%4 != 0 {
		value = append(value, 0)
	}
	return w.u16(int(id)).u16(len(value)).raw(value...)
}

// data writes DATA; qos is nil if there is none.
func (w *writer) data(reader, from rtps.EntityID, n rtps.SequenceNumber, qos, payload []byte) *writer {
	flags := byte(4)
	if qos != nil {
		flags |= 2
	}
	return w.sub(rtps.KindData, flags, func(b *writer) {
		b.u16(0).u16(16).entity(reader).entity(from).seq(n).raw(qos...).raw(payload...)
	})
}

// frag writes DATA_FRAG with one fragment, from 1, of a payload.
func (w *writer) frag(reader, from rtps.EntityID, n rtps.SequenceNumber, qos, payload []byte, size, i int) *writer {
	flags := byte(0)
	if qos != nil {
		flags = 2
	}
	return w.sub(rtps.KindDataFrag, flags, func(b *writer) {
		b.u16(0).u16(28).entity(reader).entity(from).seq(n).u32(uint32(i)).u16(1).u16(size).u32(uint32(len(payload)))
		b.raw(qos...).raw(payload[(i-1)*size : min(i*size, len(payload))]...)
	})
}

func (w *writer) heartbeat(reader, from rtps.EntityID, first, last rtps.SequenceNumber, count int, final bool) *writer {
	flags := byte(0)
	if final {
		flags = 2
	}
	return w.sub(rtps.KindHeartbeat, flags, func(b *writer) {
		b.entity(reader).entity(from).seq(first).seq(last).u32(uint32(count))
	})
}

// set writes a bitmap, given offsets from the base.
func (w *writer) set(members ...int) *writer {
	if len(members) == 0 {
		return w.u32(0)
	}
	words := make([]uint32, slices.Max(members)/32+1)
	for _, i := range members {
		words[i/32] |= 1 << (31 - i%32)
	}
	w.u32(uint32(slices.Max(members) + 1))
	for _, v := range words {
		w.u32(v)
	}
	return w
}

func (w *writer) ackNack(reader, to rtps.EntityID, base rtps.SequenceNumber, count int, final bool, missing ...int) *writer {
	flags := byte(0)
	if final {
		flags = 2
	}
	return w.sub(rtps.KindAckNack, flags, func(b *writer) {
		b.entity(reader).entity(to).seq(base).set(missing...).u32(uint32(count))
	})
}

func (w *writer) nackFrag(reader, to rtps.EntityID, n rtps.SequenceNumber, base, count int, missing ...int) *writer {
	return w.sub(rtps.KindNackFrag, 0, func(b *writer) {
		b.entity(reader).entity(to).seq(n).u32(uint32(base)).set(missing...).u32(uint32(count))
	})
}

// gap writes GAP for the numbers from start to before end.
func (w *writer) gap(reader, from rtps.EntityID, start, end rtps.SequenceNumber) *writer {
	return w.sub(rtps.KindGap, 0, func(b *writer) { b.entity(reader).entity(from).seq(start).seq(end).set() })
}

// list writes a parameter list as the payload of a sample of discovery.
func list(parameters ...func(*writer)) []byte {
	w := (&writer{}).raw(0, 3, 0, 0)
	for _, p := range parameters {
		p(w)
	}
	return w.u16(1).u16(0).b
}

func guidParameter(id rtps.ParameterID, g rtps.GUID) func(*writer) {
	return func(w *writer) { w.parameter(id, nameOf(g)) }
}

func nameParameter(id rtps.ParameterID, s string) func(*writer) {
	return func(w *writer) {
		w.parameter(id, append(append(le.AppendUint32(nil, uint32(len(s)+1)), s...), 0))
	}
}

// spdp writes what a participant says of itself.
func (w *writer) spdp(p rtps.Prefix) *writer {
	return w.data(0, rtps.EntityParticipantWriter, 1, nil, list(
		guidParameter(rtps.PIDParticipantGUID, rtps.GUID{Prefix: p, Entity: rtps.EntityParticipant}),
		func(w *writer) { w.parameter(rtps.PIDLeaseDuration, []byte{10, 0, 0, 0, 0, 0, 0, 0}) }))
}

// sedp writes what a participant says of a reliable writer or reader.
func (w *writer) sedp(g rtps.GUID, topic string, n rtps.SequenceNumber) *writer {
	from := rtps.EntitySubscriptionsWriter
	if g.Entity.Writer() {
		from = rtps.EntityPublicationsWriter
	}
	return w.data(0, from, n, nil, list(
		guidParameter(rtps.PIDEndpointGUID, g), nameParameter(rtps.PIDTopicName, topic),
		func(w *writer) { w.parameter(rtps.PIDReliability, []byte{2, 0, 0, 0, 0, 0, 0, 0}) }))
}

// gone writes that a participant, writer or reader is disposed.
func (w *writer) gone(from rtps.EntityID, g rtps.GUID) *writer {
	qos := (&writer{}).parameter(rtps.PIDKeyHash, nameOf(g)).parameter(rtps.PIDStatusInfo, []byte{0, 0, 0, 3}).u16(1).u16(0)
	return w.sub(rtps.KindData, 2, func(b *writer) {
		b.u16(0).u16(16).entity(0).entity(from).seq(9).raw(qos.b...)
	})
}

// udp makes an IPv4 packet of a message.
func udp(from, to netip.AddrPort, id int, message []byte) []byte {
	p := make([]byte, 28, 28+len(message))
	p[0], p[8], p[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(p[2:], uint16(28+len(message)))
	binary.BigEndian.PutUint16(p[4:], uint16(id))
	src, dst := from.Addr().As4(), to.Addr().As4()
	copy(p[12:], src[:])
	copy(p[16:], dst[:])
	binary.BigEndian.PutUint16(p[20:], from.Port())
	binary.BigEndian.PutUint16(p[22:], to.Port())
	binary.BigEndian.PutUint16(p[24:], uint16(8+len(message)))
	p = append(p, message...)
	binary.BigEndian.PutUint16(p[26:], ^checksum(src[:], dst[:], p[20:]))
	return p
}

// checksum returns the sum over a UDP datagram and its pseudo header: 0xffff if the
// datagram has the right one.
func checksum(src, dst, datagram []byte) uint16 {
	b := slices.Concat(src, dst, []byte{0, 17}, binary.BigEndian.AppendUint16(nil, uint16(len(datagram))), datagram)
	if len(b)%2 != 0 {
		b = append(b, 0)
	}
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// split makes IP fragments of a packet, each of at most size octets behind its header.
func split(p []byte, size int) (all [][]byte) {
	body := p[20:]
	for at := 0; at < len(body); at += size {
		end := min(at+size, len(body))
		f := slices.Concat(p[:20], body[at:end])
		binary.BigEndian.PutUint16(f[2:], uint16(len(f)))
		field := uint16(at / 8)
		if end < len(body) {
			field |= 0x2000
		}
		binary.BigEndian.PutUint16(f[6:], field)
		all = append(all, f)
	}
	return all
}
