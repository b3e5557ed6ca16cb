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
