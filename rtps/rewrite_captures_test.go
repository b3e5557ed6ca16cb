package rtps

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// sum returns the checksum that the datagram should have, by gopacket, with 0xffff
// for 0.
func sum(t testing.TB, ip gopacket.NetworkLayer, datagram []byte) uint16 {
	t.Helper()
	var u layers.UDP
	if err := u.DecodeFromBytes(datagram, gopacket.NilDecodeFeedback); err != nil {
		t.Fatal(err)
	}
	if err := u.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	b := serialize(t, &u, gopacket.Payload(u.Payload))
	if c := binary.BigEndian.Uint16(b[6:]); c != 0 {
		return c
	}
	return 0xffff
}

// part is one submessage of a message, as a naive reader sees it.
type part struct {
	kind, flags byte
	start, end  int
}

// takeApart reads the frame of a message's submessages the simple way.
func takeApart(t testing.TB, message []byte) (parts []part) {
	t.Helper()
	for at := 20; at < len(message); {
		p := part{kind: message[at], flags: message[at+1], start: at}
		length := int(binary.BigEndian.Uint16(message[at+2:]))
		if p.flags&1 != 0 {
			length = int(binary.LittleEndian.Uint16(message[at+2:]))
		}
		p.end = at + 4 + length
		if length == 0 && p.kind != 0x01 && p.kind != 0x09 {
			p.end = len(message)
		}
		if p.end > len(message) {
			t.Fatalf("submessage %+v ends behind its message of %d octets", p, len(message))
		}
		parts = append(parts, p)
		at = p.end
	}
	return parts
}

// checkGap compares the message before and after the sample p became a GAP, the
// simple way.
func checkGap(t testing.TB, before, after []byte, p part) {
	t.Helper()
	var order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	} = binary.BigEndian
	if p.flags&1 != 0 {
		order = binary.LittleEndian
	}
	want := slices.Concat(before[:p.start], []byte{0x08, p.flags & 1}, order.AppendUint16(nil, 28),
		before[p.start+8:p.start+16], before[p.start+16:p.start+24])
	high, low := order.Uint32(before[p.start+16:]), order.Uint32(before[p.start+20:])
	next := (uint64(high)<<32 | uint64(low)) + 1
	for _, v := range []uint32{uint32(next >> 32), uint32(next), 0} {
		want = order.AppendUint32(want, v)
	}
	if left := p.end - p.start - 32; left > 0 {
		want = order.AppendUint16(append(want, 0x01, p.flags&1), uint16(left-4))
	}
	want = append(want, before[len(want):]...)
	if !bytes.Equal(after, want) {
		t.Errorf("the sample at %+v became\n%x, want\n%x", p, after, want)
	}
}

// Every sample of the captures, by itself and all of a message together, becomes a
// GAP: the checksum holds, what it should be is there, and nothing else is changed.
func TestGapInCaptures(t *testing.T) {
	samples := map[string]int{}
	for _, k := range readTrains(t) {
		ip, before, _ := k.join(t)
		if got := binary.BigEndian.Uint16(before[6:]); got != sum(t, ip, before) {
			t.Fatalf("%s: its checksum is wrong before", k)
		}
		parts := takeApart(t, before[8:])
		for i, p := range parts {
			if p.kind != 0x15 && p.kind != 0x16 {
				continue
			}
			changed := k.gap(t, p.start)
			if p.end-p.start < 32 || k.behind(t, p) {
				if changed != nil {
					t.Errorf("%s: the sample %d was rewritten, though there is no room", k, i)
				}
				samples["no room"]++
				continue
			}
			if changed == nil {
				t.Errorf("%s: the sample %+v was not rewritten", k, p)
				continue
			}
			_, after, whole := train{packets: changed}.join(t)
			if !whole || binary.BigEndian.Uint16(after[6:]) != sum(t, ip, after) {
				t.Errorf("%s: the checksum is wrong", k)
			}
			checkGap(t, before[8:], after[8:], p)
			if !bytes.Equal(before[:6], after[:6]) || !slices.EqualFunc(k.packets[1:], changed[1:], bytes.Equal) {
				t.Errorf("%s: more than the first packet's payload was changed", k)
			}
			got := takeApart(t, after[8:])
			if want := expected(parts, i); !slices.Equal(got, want) {
				t.Errorf("%s: the submessages are %v, want %v", k, got, want)
			}
			samples[fmt.Sprintf("%#02x, IPv%c, fragments: %v", p.kind, "4.6"[k.packets[0][0]>>4-4], len(k.packets) > 1)]++
		}
	}
	for _, s := range []string{
		"0x15, IPv4, fragments: false", "0x15, IPv4, fragments: true", "0x15, IPv6, fragments: false",
		"0x16, IPv4, fragments: false", "0x16, IPv4, fragments: true", "0x16, IPv6, fragments: true",
	} {
		if samples[s] == 0 {
			t.Errorf("the captures have no %s", s)
		}
	}
	t.Log(samples)
}

// expected returns the submessages after number i became a GAP.
func expected(parts []part, i int) []part {
	p := parts[i]
	gap := []part{{0x08, p.flags & 1, p.start, p.start + 32}}
	if p.end > p.start+32 {
		gap = append(gap, part{0x01, p.flags & 1, p.start + 32, p.end})
	}
	return slices.Concat(parts[:i], gap, parts[i+1:])
}

// gap returns copies of the packets, with the sample that begins there a GAP; nil
// if Gap refused and left all as it was.
func (k train) gap(t testing.TB, start int) [][]byte {
	t.Helper()
	changed := make([][]byte, len(k.packets))
	for i, p := range k.packets {
		changed[i] = bytes.Clone(p)
	}
	var d Datagram
	var m Message
	if !d.Read(changed[0]) || !m.Read(d.Payload, d.Whole) {
		t.Fatalf("%s: not read", k)
	}
	for s := (Submessage{}); m.Next(&s); {
		if s.Start != start {
			continue
		}
		if d.Gap(&m, &s) {
			return changed
		}
		break
	}
	if !slices.EqualFunc(changed, k.packets, bytes.Equal) {
		t.Errorf("%s: refused, and yet changed", k)
	}
	return nil
}

// behind says that the GAP for p would not be in the first packet.
func (k train) behind(t testing.TB, p part) bool {
	var d Datagram
	if !d.Read(k.packets[0]) {
		t.Fatalf("%s: not read", k)
	}
	return p.start+min(p.end-p.start, 36) > len(d.Payload)
}
