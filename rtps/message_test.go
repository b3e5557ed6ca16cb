package rtps

import (
	"fmt"
	"slices"
	"testing"
)

// golden is a request of rmw_cyclonedds as it stands on the wire, in little
// endian, with everything that may stand around it.
const golden = `
	52545053                    # RTPS
	02 05                       # version 2.5
	01 10                       # vendor: Cyclone DDS
	0110 0102 0304 0506 0708 090a  # source

	00 27 1800                  # HEADER_EXTENSION: length, time, checksum of 4
	98000000                    # message length: 152
	78563412 00000080           # sent at
	deadbeef                    # checksum
	01000000 02000000           # parameters that no flag announces

	0c 01 1400                  # INFO_SRC
	00000000                    # unused
	02 02 01 0f                 # version 2.2, Fast DDS
	010f 0f0e 0d0c 0b0a 0908 0706  # source

	0e 00 000c                  # INFO_DST, big endian
	0110 aaaa bbbb cccc dddd eeee  # destination

	09 01 0800                  # INFO_TS
	00000064 00000080           # 1677721600.5 s

	80 01 0400                  # a vendor's own
	01020304

	15 05 2800                  # DATA, with data
	0000 1000                   # no extra flags; 16 octets to inline QoS
	00000204                    # reader
	00000103                    # writer
	00000000 07000000           # sequence number 7
	00010000                    # CDR, little endian
	efcdab89 67452301           # client 0x0123456789abcdef
	2a000000 00000000           # request 42
`

func TestGolden(t *testing.T) {
	b := unhex(t, golden)
	if len(b) != 152 {
		t.Fatalf("the golden message has %d octets", len(b))
	}
	var m Message
	if !m.Read(b, len(b)) {
		t.Fatal("not read")
	}
	want := []string{
		"00 27 20-48 v2.5 [1 16] 01100102030405060708090a > 000000000000000000000000 at ffffffffffffffff",
		"0c 01 48-72 v2.2 [1 15] 010f0f0e0d0c0b0a09080706 > 000000000000000000000000 at ffffffffffffffff",
		"0e 00 72-88 v2.2 [1 15] 010f0f0e0d0c0b0a09080706 > 0110aaaabbbbccccddddeeee at ffffffffffffffff",
		"09 01 88-100 v2.2 [1 15] 010f0f0e0d0c0b0a09080706 > 0110aaaabbbbccccddddeeee at 6400000080000000",
		"80 01 100-108 v2.2 [1 15] 010f0f0e0d0c0b0a09080706 > 0110aaaabbbbccccddddeeee at 6400000080000000",
		"15 05 108-152 v2.2 [1 15] 010f0f0e0d0c0b0a09080706 > 0110aaaabbbbccccddddeeee at 6400000080000000",
	}
	var got []string
	for s := (Submessage{}); m.Next(&s); {
		got = append(got, fmt.Sprintf("%02x %02x %d-%d v%d.%d %d %v > %v at %016x", byte(s.Kind), s.Flags, s.Start, s.End,
			m.Version[0], m.Version[1], m.Vendor, m.Source, m.Destination, uint64(m.Timestamp)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if !m.Checksum || m.Secured || m.Unread() != 0 {
		t.Errorf("checksum %v, secured %v, %d unread", m.Checksum, m.Secured, m.Unread())
	}
}

func TestHeaders(t *testing.T) {
	const rest = "\x01\x10abcdefghijkl"
	for _, c := range []struct {
		name, message string
		whole         int
		ok            bool
	}{
		{"2.1, alone", "RTPS\x02\x01" + rest, 20, true},
		{"2.5, the beginning", "RTPS\x02\x05" + rest, 1000, true},
		{"2.9, of the future", "RTPS\x02\x09" + rest, 20, true},
		{"1.2, with other submessages", "RTPS\x01\x02" + rest, 20, false},
		{"3.0, of the future", "RTPS\x03\x00" + rest, 20, false},
		{"not RTPS", "RTPX\x02\x01" + rest, 20, false},
		{"short", "RTPS\x02\x01\x01\x10abcdefghijk", 19, false},
		{"cut in the header", "RTPS\x02\x01\x01\x10abcdefghijk", 100, false},
		{"longer than the whole", "RTPS\x02\x01" + rest, 19, false},
		{"longer than a datagram", "RTPS\x02\x01" + rest, 1 << 16, false},
		{"empty", "", 0, false},
	} {
		var m Message
		if ok := m.Read([]byte(c.message), c.whole); ok != c.ok {
			t.Errorf("%s: %v", c.name, ok)
		} else if ok && (m.Vendor != VendorCyclone || m.Source != Prefix([]byte("abcdefghijkl")) ||
			m.Version != Version([]byte(c.message[4:6])) || m.Destination != Prefix{} || m.Timestamp != TimeInvalid) {
			t.Errorf("%s: %+v", c.name, m)
		}
	}
}

// walk reads a message that begins with b, and whose length is whole, or that of
// b if that is 0. It tells the submessages, and what is unread.
func walk(t *testing.T, b []byte, whole int) string {
	t.Helper()
	var m Message
	if !m.Read(b, max(whole, len(b))) {
		t.Fatal("not read")
	}
	var told []string
	for s := (Submessage{}); m.Next(&s); {
		cut := ""
		if s.Cut {
			cut = " cut"
		}
		told = append(told, fmt.Sprintf("%02x:%d+%d%s", byte(s.Kind), s.Start, len(s.Body), cut))
		if s.Body != nil && cap(s.Body) != len(s.Body) {
			t.Errorf("the body of %02x can grow over what follows", byte(s.Kind))
		}
	}
	flags := ""
	if m.Secured {
		flags += " secured"
	}
	if m.Checksum {
		flags += " checksum"
	}
	return fmt.Sprintf("%v unread %d%s", told, m.Unread(), flags)
}

func TestSubmessages(t *testing.T) {
	const header = "52545053 0203 010f 000102030405060708090a0b "
	for _, c := range []struct {
		name, message string
		whole         int
		want          string
	}{
		{"none", "", 0, "[] unread 0"},
		{"little and big endian", "80010400 01020304 81000008 0102030405060708", 0, "[80:20+4 81:28+8] unread 0"},
		{"unknown kinds", "02010000", 0, "[02:20+0] unread 0"},
		// 9.4.5.1.3: length 0 is the rest of the message, but for PAD and INFO_TS.
		{"length 0, the last one", "15010000 0102030405060708", 0, "[15:20+8] unread 0"},
		{"length 0, nothing follows", "15010000", 0, "[15:20+0] unread 0"},
		{"length 0, cut", "15010000 0102030405060708", 5000, "[15:20+8 cut] unread 0"},
		{"PAD and INFO_TS of length 0", "01010000 09030000 07010000 01020304", 0, "[01:20+0 09:24+0 07:28+4] unread 0"},
		{"too long", "01010000 15010900 0102030405060708", 0, "[01:20+0] unread 12"},
		{"too long for the whole", "15010900 01020304", 32, "[] unread 12"},
		{"cut", "01010000 15010800 01020304", 36, "[01:20+0 15:24+4 cut] unread 0"},
		{"cut, and more", "15010800 01020304", 100, "[15:20+4 cut] unread 68"},
		{"cut behind the header", "15010800", 100, "[15:20+0 cut] unread 68"},
		{"cut in the header", "150108", 100, "[] unread 80"},
		{"a stray octet at the end", "01010000 15", 0, "[01:20+0] unread 1"},
		{"INFO_DST too short", "0e010800 0102030405060708 01010000", 0, "[] unread 16"},
		{"INFO_SRC too short", "0c010400 01020304 01010000", 0, "[] unread 12"},
		{"INFO_TS too short", "09010400 01020304 01010000", 0, "[] unread 12"},
		{"INFO_DST cut", "0e010c00 01020304", 36, "[0e:20+4 cut] unread 0"},
		{"INFO_DST longer than known", "0e011000 0102030405060708090a0b0c 0d0e0f10 01010000", 0, "[0e:20+16 01:40+0] unread 0"},
		{"HEADER_EXTENSION with nothing", "00010400 00000000 01010000", 0, "[00:20+4 01:28+0] unread 0"},
		{"with CRC-32C", "00210400 00000000", 0, "[00:20+4] unread 0 checksum"},
		{"with CRC-64", "00410800 0000000000000000", 0, "[00:20+8] unread 0 checksum"},
		{"with MD5", "00611000 00000000000000000000000000000000", 0, "[00:20+16] unread 0 checksum"},
		{"MD5 too short", "00610800 0000000000000000 01010000", 0, "[] unread 16"},
		{"with all but a checksum", "001f1800 000000000000000000000000000000000000000000000000", 0, "[00:20+24] unread 0"},
		{"with all, one octet short", "001f1700 0000000000000000000000000000000000000000000000", 0, "[] unread 27"},
		{"HEADER_EXTENSION not first", "01010000 00210400 00000000", 0, "[01:20+0] unread 8 checksum"},
		{"0x80 of another than RTI", "80010400 00000000", 0, "[80:20+4] unread 0"},
		{"signed submessage", "31010400 00000000 15010400 00000000 32010400 00000000", 0,
			"[31:20+4 15:28+4 32:36+4] unread 0 secured"},
		{"encrypted message", "33010400 00000000 30010400 00000000 34010400 00000000", 0,
			"[33:20+4 30:28+4 34:36+4] unread 0 secured"},
	} {
		if got := walk(t, unhex(t, header+c.message), c.whole); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// RTI Connext begins messages with a checksum if it is told to.
func TestChecksumOfRTI(t *testing.T) {
	const header, first, pad = "52545053 0203 0101 000102030405060708090a0b", "80010400 deadbeef", "01010000"
	for message, want := range map[string]string{
		header + first + pad:       "[80:20+4 01:28+0] unread 0 checksum",
		header + pad + first:       "[01:20+0 80:24+4] unread 0",
		header + pad + pad:         "[01:20+0 01:24+0] unread 0",
		header + "81010000" + pad:  "[81:20+4] unread 0",
		header + "80010800 000000": "[] unread 7",
	} {
		if got := walk(t, unhex(t, message), 0); got != want {
			t.Errorf("%s: %s, want %s", message, got, want)
		}
	}
}

// A message of nothing but empty submessages ends at a bound.
func TestManySubmessages(t *testing.T) {
	b := append([]byte("RTPS\x02\x01\x01\x10abcdefghijkl"), make([]byte, maxMessage-headerSize)...)
	for i := headerSize; i+4 <= len(b); i += 4 {
		b[i] = byte(KindPad)
	}
	var m Message
	m.Read(b, len(b))
	n := 0
	for s := (Submessage{}); m.Next(&s); n++ {
	}
	if n != maxSubmessages || m.Unread() != len(b)-headerSize-4*maxSubmessages {
		t.Errorf("%d submessages, %d octets unread", n, m.Unread())
	}
}

// What one submessage changed, another takes back.
func TestReceiverState(t *testing.T) {
	b := unhex(t, `
		52545053 0203 010f 000102030405060708090a0b
		09010800 01000000 02000000              # INFO_TS: 1 and 2^-31 s
		0e010c00 aaaaaaaabbbbbbbbcccccccc       # INFO_DST
		09030000                                # INFO_TS: none
		0e010c00 000000000000000000000000       # INFO_DST: everyone
		09000008 00000003 00000004              # INFO_TS, big endian
		0c000014 00000000 0201 0110 010203040506070809101112 # INFO_SRC takes the time back`)
	var m Message
	m.Read(b, len(b))
	source, other := m.Source, Prefix(unhex(t, "aaaaaaaabbbbbbbbcccccccc"))
	for i, want := range []struct {
		source, destination Prefix
		at                  Time
	}{
		{source, Prefix{}, 1<<32 | 2},
		{source, other, 1<<32 | 2},
		{source, other, TimeInvalid},
		{source, Prefix{}, TimeInvalid},
		{source, Prefix{}, 3<<32 | 4},
		{Prefix(unhex(t, "010203040506070809101112")), Prefix{}, TimeInvalid},
	} {
		var s Submessage
		if !m.Next(&s) {
			t.Fatalf("submessage %d is not read", i)
		}
		if m.Source != want.source || m.Destination != want.destination || m.Timestamp != want.at {
			t.Errorf("after submessage %d: %v > %v at %x", i, m.Source, m.Destination, uint64(m.Timestamp))
		}
	}
	if m.Version != (Version{2, 1}) || m.Vendor != VendorCyclone {
		t.Errorf("version %v, vendor %v", m.Version, m.Vendor)
	}
	// Read forgets it all.
	if !m.Read(b[:20], 20) || m.Source != source || m.Version != (Version{2, 3}) {
		t.Errorf("%+v", m)
	}
}
