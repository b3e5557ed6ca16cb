package rtps

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"pgregory.net/rapid"
)

// message returns a message with one sample, DATA with so many octets of payload
// or DATA_FRAG, and a HEARTBEAT behind it. first is put before both.
func message(little, fragment bool, seq SequenceNumber, payload []byte, first ...byte) []byte {
	e := newEncoder(little)
	e.raw([]byte("RTPS\x02\x05\x01\x10")...).raw(make([]byte, 12)...).raw(first...)
	if fragment {
		e.raw(byte(KindDataFrag), e.little()).u16(uint16(32 + len(payload))).u16(0).u16(28)
	} else {
		e.raw(byte(KindData), e.little()|flagData).u16(uint16(20 + len(payload))).u16(0).u16(16)
	}
	e.entity(0x204, 0x103).seq(seq)
	if fragment {
		e.u32(1).u16(1).u16(uint16(len(payload))).u32(uint32(4 * len(payload)))
	}
	e.raw(payload...)
	return e.raw(byte(KindHeartbeat), e.little()).u16(28).entity(0x204, 0x103).seq(1).seq(seq).u32(9).b
}

// gapFirst reads a packet and rewrites its first sample. It panics if there is
// none.
func gapFirst(packet []byte) bool {
	var d Datagram
	var m Message
	if !d.Read(packet) || !m.Read(d.Payload, d.Whole) {
		panic("not read")
	}
	for s := (Submessage{}); m.Next(&s); {
		if s.Kind == KindData || s.Kind == KindDataFrag {
			return d.Gap(&m, &s)
		}
	}
	panic("no sample")
}

func TestGapRefuses(t *testing.T) {
	const room = 8 // octets of payload that make DATA as long as GAP
	payload := make([]byte, 100)
	const le = flagLittleEndian
	whole := func(m []byte) []byte { return ipv6(17, udp(8+len(m), m)) }
	rti := message(true, false, 5, payload, 0x80, le, 4, 0, 1, 2, 3, 4)
	rti[6], rti[7] = 1, 1
	for name, c := range map[string]struct {
		packet []byte
		ok     bool
	}{
		"DATA":                      {whole(message(true, false, 5, payload)), true},
		"big endian":                {whole(message(false, false, 5, payload)), true},
		"DATA_FRAG":                 {whole(message(false, true, 5, payload)), true},
		"as long as GAP":            {whole(message(true, false, 5, payload[:room])), true},
		"GAP and empty PAD":         {whole(message(true, false, 5, payload[:room+4])), true},
		"shorter than GAP":          {whole(message(true, false, 5, payload[:room-4])), false},
		"no room for PAD":           {whole(message(true, false, 5, payload[:room+2])), false},
		"number 0":                  {whole(message(true, false, 0, payload)), false},
		"negative number":           {whole(message(true, false, -4, payload)), false},
		"last number but one":       {whole(message(true, false, math.MaxInt64-1, payload)), true},
		"last number":               {whole(message(true, false, math.MaxInt64, payload)), false},
		"not aligned":               {whole(message(true, false, 5, payload, 0x01, le, 2, 0, 0, 0)), false},
		"header extension":          {whole(message(true, false, 5, payload, 0x00, le|2, 4, 0, 0, 0, 0, 0)), true},
		"header extension, sum":     {whole(message(true, false, 5, payload, 0x00, le|0x20, 4, 0, 0, 0, 0, 0)), false},
		"signed message":            {whole(message(true, false, 5, payload, 0x33, le, 4, 0, 0, 0, 0, 0)), false},
		"signed submessage":         {whole(message(true, false, 5, payload, 0x31, le, 4, 0, 0, 0, 0, 0)), false},
		"RTI's checksum":            {whole(rti), false},
		"another vendor's 0x80":     {whole(message(true, false, 5, payload, 0x80, le, 4, 0, 0, 0, 0, 0)), true},
		"fragment holds it":         {ipv6(44, fragment6(17, 0, true, 1, udp(5000, lengthen(message(true, false, 5, payload), 56)))), true},
		"fragment is 4 octets less": {ipv6(44, fragment6(17, 0, true, 1, udp(5000, lengthen(message(true, false, 5, payload), 48)))), false},
	} {
		t.Run(name, func(t *testing.T) {
			before := bytes.Clone(c.packet)
			if ok := gapFirst(c.packet); ok != c.ok {
				t.Errorf("rewritten: %v, want %v", ok, c.ok)
			}
			if !c.ok && !bytes.Equal(before, c.packet) {
				t.Error("refused, and yet changed")
			}
		})
	}
}

// lengthen cuts a message of one sample to its first octets, and lets the sample
// go on to the end of a datagram of 5,000.
func lengthen(m []byte, octets int) []byte {
	m = bytes.Clone(m[:octets])
	m[22], m[23] = 0, 0
	return m
}

// A Datagram that read nothing rewrites nothing.
func TestGapOfNothing(t *testing.T) {
	if (&Datagram{}).Gap(&Message{}, &Submessage{Kind: KindData}) {
		t.Error("nothing was rewritten")
	}
}

// The checksum is what gopacket computes from scratch, for any octets; none stays
// none, and none never comes out.
func TestGapChecksum(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		little, fragment := rapid.Bool().Draw(r, "little"), rapid.Bool().Draw(r, "fragment")
		seq := SequenceNumber(rapid.Int64Range(1, math.MaxInt64-1).Draw(r, "number"))
		size := 4 * rapid.IntRange(2, 75).Draw(r, "size")
		payload := rapid.SliceOfN(rapid.Byte(), size, size).Draw(r, "payload")
		m := message(little, fragment, seq, payload)
		ip := &layers.IPv4{Version: 4, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 77, 0, 1}, DstIP: []byte{10, 77, 0, 2}}
		u := &layers.UDP{SrcPort: 7400, DstPort: 7411}
		_ = u.SetNetworkLayerForChecksum(ip)
		packet := serialize(t, ip, u, gopacket.Payload(m))
		switch rapid.SampledFrom([]string{"as it is", "other form of zero", "none"}).Draw(r, "checksum") {
		case "none":
			packet[26], packet[27] = 0, 0
		case "other form of zero":
			balance(packet, 0)
		}
		none := packet[26] == 0 && packet[27] == 0
		before := bytes.Clone(packet)
		if !gapFirst(packet) {
			r.Fatalf("not rewritten: %x", packet)
		}
		got := binary.BigEndian.Uint16(packet[26:])
		if want := sum(t, ip, packet[20:]); none && got != 0 || !none && got != want {
			r.Errorf("checksum %#04x, want %#04x", got, want)
		}
		checkGap(t, before[28:], packet[28:], takeApart(t, before[28:])[0])
	})
}

// balance changes the source port so that the checksum is v, 0 as 0xffff.
func balance(packet []byte, v uint16) {
	old := binary.BigEndian.Uint16(packet[26:])
	port := uint32(binary.BigEndian.Uint16(packet[20:])) + uint32(old) + uint32(^v)
	for port > 0xffff {
		port = port&0xffff + port>>16
	}
	binary.BigEndian.PutUint16(packet[20:], uint16(port))
	if v == 0 {
		v = 0xffff
	}
	binary.BigEndian.PutUint16(packet[26:], v)
}

// The checksum that comes out as zero is sent as 0xffff.
func TestGapChecksumComesOutAsZero(t *testing.T) {
	ip := &layers.IPv4{Version: 4, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 77, 0, 1}, DstIP: []byte{10, 77, 0, 2}}
	u := &layers.UDP{SrcPort: 7400, DstPort: 7411}
	_ = u.SetNetworkLayerForChecksum(ip)
	packet := serialize(t, ip, u, gopacket.Payload(message(true, false, 5, make([]byte, 40))))
	after := bytes.Clone(packet)
	if !gapFirst(after) {
		t.Fatal("not rewritten")
	}
	// Let the ports take up what the sum is after, so that the next one is zero.
	balance(after, 0)
	copy(packet[20:22], after[20:22])
	binary.BigEndian.PutUint16(packet[26:], sum(t, ip, packet[20:]))
	if !gapFirst(packet) {
		t.Fatal("not rewritten")
	}
	if !bytes.Equal(packet[26:28], []byte{0xff, 0xff}) {
		t.Errorf("checksum %x, want ffff", packet[26:28])
	}
}

func TestReadAndGapDoNotAllocate(t *testing.T) {
	m := message(true, false, 5, make([]byte, 40))
	four, six := ipv4{protocol: 17}.packet(t, udp(8+len(m), m)), ipv6(17, udp(8+len(m), m))
	buf := make([]byte, len(six))
	for _, packet := range [][]byte{four, six} {
		if n := testing.AllocsPerRun(100, func() {
			if b := buf[:copy(buf, packet)]; !gapFirst(b) {
				t.Error("not rewritten")
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// Whatever the packet, Gap changes the sample and the checksum alone, and what it
// makes can be read.
func FuzzGap(f *testing.F) {
	for _, k := range readTrains(f)[:80] {
		f.Add(k.packets[0])
	}
	m := message(false, true, 5, make([]byte, 40))
	f.Add(ipv6(17, udp(8+len(m), m)))
	f.Fuzz(func(t *testing.T, packet []byte) {
		var d Datagram
		var m Message
		if !d.Read(packet) || !m.Read(d.Payload, d.Whole) {
			return
		}
		field := len(packet) // of the checksum
		for i := range packet {
			if &packet[i] == &d.udp[6] {
				field = i
			}
		}
		for s := (Submessage{}); m.Next(&s); {
			before := bytes.Clone(packet)
			start := field + 2 + s.Start
			if !d.Gap(&m, &s) {
				if !bytes.Equal(before, packet) {
					t.Fatal("refused, and yet changed")
				}
				continue
			}
			end := field + 2 + min(s.End, len(d.Payload))
			copy(before[field:], packet[field:field+2])
			copy(before[start:end], packet[start:end])
			if !bytes.Equal(before, packet) {
				t.Fatal("octets outside of the sample were changed")
			}
			var again Message
			var g Submessage
			if !again.Read(d.Payload, d.Whole) {
				t.Fatal("the message is not read any more")
			}
			for again.Next(&g) && g.Start < s.Start {
			}
			gap, ok := g.Gap()
			if !ok || g.Start != s.Start || gap.List.Base != gap.Start+1 || !gap.Covers(gap.Start) {
				t.Fatalf("the sample became %+v %+v", g, gap)
			}
			if g.End != s.End && (!again.Next(&g) || g.Kind != KindPad || g.End != s.End) {
				t.Fatalf("behind the GAP there is %+v", g)
			}
		}
	})
}
