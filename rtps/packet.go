package rtps

import (
	"encoding/binary"
	"net/netip"
)

// A Datagram is a UDP datagram in an IP packet, or as much of it as the first of
// its IP fragments holds.
type Datagram struct {
	// Source and Destination are those of the IP header. An IPv4 address is never
	// mapped into IPv6.
	Source, Destination         netip.Addr
	SourcePort, DestinationPort uint16

	// Payload is what follows the UDP header and is here, a view into the packet.
	Payload []byte
	// Whole is the length of the payload, octets: len(Payload), or more if the
	// rest of it is in later fragments.
	Whole int
	// Fragmented says that later fragments follow. ID is then what they have in
	// common (RFC 791: 16 bits; RFC 8200: 32 bits).
	Fragmented bool
	ID         uint32

	udp []byte // header and payload in the packet
}

// IP's numbers for what follows a header (IANA, protocol numbers).
const (
	protocolHopByHop    = 0
	protocolUDP         = 17
	protocolFragment    = 44
	protocolDestination = 60
)

// Sizes of headers, in octets.
const (
	ipv4Header     = 20 // without options
	ipv6Header     = 40
	ipv6Extension  = 8 // the unit that extension headers come in
	fragmentHeader = 8
	udpHeader      = 8
)

// Read reads an IP packet, version 4 or 6, and keeps views into it until the next
// call. False means that it is no UDP, a later fragment, broken, or of a kind that
// is left alone: with a header behind which something else than its payload
// depends on every octet (AH), whose destination is a stage (routing header), or
// too long for UDP's own length field. Checksums are not looked at; octets behind
// the packet's own length do not count.
func (d *Datagram) Read(packet []byte) bool {
	*d = Datagram{}
	if len(packet) < ipv4Header {
		return false
	}
	switch packet[0] >> 4 {
	case 4:
		return d.readIPv4(packet)
	case 6:
		return d.readIPv6(packet)
	}
	return false
}

// readIPv4 reads the header of RFC 791, section 3.1. Options are passed over:
// none of them makes a datagram another.
func (d *Datagram) readIPv4(p []byte) bool {
	header, total := int(p[0]&15)*4, int(binary.BigEndian.Uint16(p[2:]))
	field := binary.BigEndian.Uint16(p[6:])
	if header < ipv4Header || total < header || total > len(p) || p[9] != protocolUDP || field&0x1fff != 0 {
		return false
	}
	d.Source = netip.AddrFrom4([4]byte(p[12:16]))
	d.Destination = netip.AddrFrom4([4]byte(p[16:20]))
	d.Fragmented = field&0x2000 != 0
	if d.Fragmented {
		d.ID = uint32(binary.BigEndian.Uint16(p[4:]))
	}
	return d.readUDP(p[header:total:total])
}

// readIPv6 reads the header of RFC 8200, section 3, and the extension headers
// that may come before UDP.
func (d *Datagram) readIPv6(p []byte) bool {
	if len(p) < ipv6Header {
		return false
	}
	end := ipv6Header + int(binary.BigEndian.Uint16(p[4:]))
	if end > len(p) {
		return false
	}
	d.Source = netip.AddrFrom16([16]byte(p[8:24]))
	d.Destination = netip.AddrFrom16([16]byte(p[24:40]))
	next, rest := p[6], p[ipv6Header:end:end]
	for range maxExtensions {
		if next == protocolUDP {
			return d.readUDP(rest)
		}
		if len(rest) < ipv6Extension {
			return false
		}
		size := ipv6Extension
		switch next {
		case protocolHopByHop, protocolDestination:
			size += int(rest[1]) * ipv6Extension
		case protocolFragment:
			if !d.readFragmentHeader(rest) {
				return false
			}
		default:
			return false
		}
		if len(rest) < size {
			return false
		}
		next, rest = rest[0], rest[size:]
	}
	return false
}

// readFragmentHeader reads the header of RFC 8200, section 4.5. False means a
// later fragment, or a fragment of a fragment.
func (d *Datagram) readFragmentHeader(b []byte) bool {
	field := binary.BigEndian.Uint16(b[2:])
	if field&^7 != 0 || d.Fragmented {
		return false
	}
	d.Fragmented = field&1 != 0
	if d.Fragmented {
		d.ID = binary.BigEndian.Uint32(b[4:])
	}
	return true
}

// readUDP reads the header of RFC 768. b is what of the datagram is in the packet.
func (d *Datagram) readUDP(b []byte) bool {
	if len(b) < udpHeader {
		return false
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	switch {
	case length < udpHeader:
		return false
	case !d.Fragmented && length > len(b):
		return false
	case d.Fragmented && (length <= len(b) || len(b)%8 != 0):
		return false
	}
	here := min(length, len(b))
	d.udp = b[:here:here]
	d.Payload = d.udp[udpHeader:]
	d.Whole = length - udpHeader
	d.SourcePort = binary.BigEndian.Uint16(b)
	d.DestinationPort = binary.BigEndian.Uint16(b[2:])
	return true
}
