package replicate

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// unhex turns spaced hexadecimal into bytes.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// golden are frames as they stand on the wire.
var golden = []struct {
	name    string
	frame   string
	tag     Tag
	payload string
}{
	{
		name: "every field differs",
		frame: "41 15 0021 01020304 05060708 f20d0e0f f0000b0b" +
			"11121314 15161718 4500dead60",
		tag: Tag{
			Type: Data, Class: 5, Epoch: 0x01020304, PathSeq: 0x05060708,
			Src: MakeAddress(0x0d0e0f, 2), Dst: MakeAddress(0x0b0b, 0),
			Seq: 0x11121314, SentAt: 0x15161718,
		},
		payload: "4500dead60",
	},
	{
		name:  "zero",
		frame: "41 00 001c 00000000 00000000 00000000 00000000 00000000 00000000",
	},
	{
		name:  "all bits",
		frame: "41 ff 001d ffffffff ffffffff f7ffffff f7ffffff ffffffff ffffffff 00",
		tag: Tag{
			Type: 15, Class: 15, Epoch: 1<<32 - 1, PathSeq: 1<<32 - 1,
			Src: MakeAddress(1<<24-1, MaxSlot), Dst: MakeAddress(1<<24-1, MaxSlot),
			Seq: 1<<32 - 1, SentAt: 1<<32 - 1,
		},
		payload: "00",
	},
	{
		name:    "probe",
		frame:   "41 20 001e 00000000 00000001 f0000002 f000000b 00000000 00000000 abcd",
		tag:     Tag{Type: Probe, PathSeq: 1, Src: MakeAddress(2, 0), Dst: MakeAddress(11, 0)},
		payload: "abcd",
	},
	{
		name:  "reply",
		frame: "41 30 001c 00000000 00000001 f000000b f3000002 00000000 00000000",
		tag:   Tag{Type: Reply, PathSeq: 1, Src: MakeAddress(11, 0), Dst: MakeAddress(2, 3)},
	},
}

func TestGoldenFrames(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			want, payload := unhex(t, g.frame), unhex(t, g.payload)
			frame := make([]byte, TagLen+len(payload))
			for i := range frame {
				frame[i] = 0xaa
			}
			copy(frame[TagLen:], payload)
			PutTag(frame, &g.tag)
			if !bytes.Equal(frame, want) {
				t.Errorf("PutTag wrote\n%x, want\n%x", frame, want)
			}
			tag, rest, err := DecodeTag(want)
			if err != nil || tag != g.tag || !bytes.Equal(rest, payload) {
				t.Errorf("DecodeTag: %+v, %x, %v", tag, rest, err)
			}
		})
	}
}

func TestDecodeTagIgnoresPadding(t *testing.T) {
	frame := unhex(t, golden[0].frame+"0000000000")
	tag, payload, err := DecodeTag(frame)
	if err != nil || tag != golden[0].tag || !bytes.Equal(payload, unhex(t, golden[0].payload)) {
		t.Errorf("%+v, %x, %v", tag, payload, err)
	}
}

func TestDecodeTagErrors(t *testing.T) {
	const rest = "00000000 00000000 f0000001 f0000002 00000000 00000000"
	tests := []struct {
		name  string
		frame string
		want  error
	}{
		{"this version", "4110001c" + rest, nil},
		{"the version before", "4010001c" + rest, nil},
		{"the version after", "4210001c" + rest, ErrVersion},
		{"the last version", "4f10001c" + rest, ErrVersion},
		{"another version, shorter tag", "42100014000000000000000000000000", ErrVersion},
		{"empty", "", ErrShort},
		{"one octet", "41", ErrShort},
		{"tag cut short", "4110001c" + rest[:len(rest)-2], ErrShort},
		{"length below the tag", "4110001b" + rest, ErrShort},
		{"length beyond the frame", "4110001d" + rest, ErrShort},
		{"length zero", "41100000" + rest, ErrShort},
		{"IPv6-shaped", "6110001c" + rest, ErrShort},
		{"not IP", "0110001c" + rest, ErrShort},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tag, payload, err := DecodeTag(unhex(t, tt.frame))
			if !errors.Is(err, tt.want) {
				t.Fatalf("err %v, want %v", err, tt.want)
			}
			if err != nil && (tag != Tag{} || payload != nil) {
				t.Errorf("an error came with %+v, %x", tag, payload)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	tests := []struct {
		node uint32
		slot uint8
		want string
	}{
		{1, 0, "240.0.0.1"},
		{0x0b, 7, "247.0.0.11"},
		{0x4d0002, 3, "243.77.0.2"},
		{1<<24 - 1, 7, "247.255.255.255"},
		{1<<24 + 5, 8 + 2, "242.0.0.5"}, // out of range: upper bits ignored
	}
	for _, tt := range tests {
		a := MakeAddress(tt.node, tt.slot)
		if a.Addr().String() != tt.want {
			t.Errorf("MakeAddress(%d, %d) = %v, want %v", tt.node, tt.slot, a.Addr(), tt.want)
		}
		if a.Node() != tt.node&(1<<24-1) || a.Slot() != tt.slot&7 {
			t.Errorf("%v: node %d, slot %d", a.Addr(), a.Node(), a.Slot())
		}
	}
}

func TestNodeOf(t *testing.T) {
	tests := []struct {
		prefix string
		want   uint32 // 0: an error
	}{
		{"10.77.0.2/16", 2},
		{"10.77.3.4/16", 3<<8 | 4},
		{"10.77.3.4/8", 77<<16 | 3<<8 | 4},
		{"11.77.3.4/4", 77<<16 | 3<<8 | 4}, // 28 host bits: the low 24
		{"10.77.0.2/31", 0},                // host part 0
		{"10.77.0.3/31", 1},
		{"10.77.0.2/32", 0},
		{"10.77.0.0/16", 0},
		{"11.0.0.0/4", 0}, // host part not 0, its low 24 bits are
		{"fd00:77::2/64", 2},
		{"fd00:77::1:2:3/64", 2<<16 | 3},
		{"fd00:77::ab:cdef/120", 0xef},
		{"fd00:77::1/128", 0},
	}
	for _, tt := range tests {
		got, err := NodeOf(netip.MustParsePrefix(tt.prefix))
		if got != tt.want || (err != nil) != (tt.want == 0) {
			t.Errorf("NodeOf(%s) = %d, %v, want %d", tt.prefix, got, err, tt.want)
		}
	}
	invalid := netip.PrefixFrom(netip.MustParseAddr("10.77.0.2"), 33)
	for _, p := range []netip.Prefix{{}, invalid} {
		if n, err := NodeOf(p); err == nil {
			t.Errorf("NodeOf(%v) = %d without an error", p, n)
		}
	}
}

func FuzzDecodeTag(f *testing.F) {
	for _, g := range golden {
		f.Add(unhex(f, g.frame))
	}
	f.Add(unhex(f, golden[0].frame+"0000"))
	f.Add([]byte{0x42})
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := bytes.Clone(frame)
		tag, payload, err := DecodeTag(frame)
		if !bytes.Equal(frame, before) {
			t.Fatal("DecodeTag changed the frame")
		}
		if err != nil {
			if tag != (Tag{}) || payload != nil {
				t.Fatalf("error %v came with %+v, %x", err, tag, payload)
			}
			return
		}
		n := TagLen + len(payload)
		if n > len(frame) || len(payload) > 0 && &payload[0] != &frame[TagLen] {
			t.Fatalf("payload of %d octets is not inside the frame of %d", len(payload), len(frame))
		}
		again := bytes.Clone(frame[:n])
		clear(again[:TagLen])
		PutTag(again, &tag)
		before[0] = 4<<4 | Version // an older version is written as this one
		if !bytes.Equal(again, before[:n]) {
			t.Fatalf("encoded again\n%x, was\n%x", again, before[:n])
		}
	})
}
