package tunnel

import (
	"encoding/binary"
	"net/netip"
)

// kind says what Out does with an inner packet.
type kind uint8

const (
	malformed kind = iota // not an IPv4 or IPv6 packet
	unicast
	multicast
	local // link-local housekeeping that means nothing on the other side
)

// Protocol numbers and ports of link-local housekeeping.
const (
	protoICMP6   = 58
	protoIGMP    = 2
	protoUDP     = 17
	protoHopOpts = 0

	protoFragment  = 44
	fragmentHeader = 8    // bytes
	portMDNS       = 5353 // RFC 6762
	portLLMNR      = 5355 // RFC 4795
	portSSDP       = 1900
)

// header is what the walk needs to know of an inner packet.
type header struct {
	kind     kind
	src, dst netip.Addr
}

// classify reads the IP header of an inner packet. Packets of IGMP, MLD,
// neighbour and router discovery, mDNS, LLMNR and SSDP, and broadcasts, are
// local.
func classify(p []byte) header {
	if len(p) < 20 {
		return header{}
	}
	switch p[0] >> 4 {
	case 4:
		return classify4(p)
	case 6:
		return classify6(p)
	}
	return header{}
}

func classify4(p []byte) header {
	hlen := int(p[0]&15) * 4
	total := int(binary.BigEndian.Uint16(p[2:]))
	if hlen < 20 || hlen > len(p) || total < hlen || total > len(p) {
		return header{}
	}
	h := header{
		src: netip.AddrFrom4([4]byte(p[12:16])),
		dst: netip.AddrFrom4([4]byte(p[16:20])),
	}
	first := binary.BigEndian.Uint16(p[6:])&0x1fff == 0
	switch {
	case p[9] == protoIGMP, p[16] == 255:
		h.kind = local
	case !h.dst.IsMulticast():
		h.kind = unicast
	case p[16] == 224 && p[17] == 0 && p[18] == 0: // never forwarded, RFC 5771 section 4
		h.kind = local
	case p[9] == protoUDP && first && housekeeping(p[hlen:]):
		h.kind = local
	default:
		h.kind = multicast
	}
	return h
}

func classify6(p []byte) header {
	if len(p) < 40 {
		return header{}
	}
	h := header{
		src: netip.AddrFrom16([16]byte(p[8:24])),
		dst: netip.AddrFrom16([16]byte(p[24:40])),
	}
	next, rest := skipHopOpts(p)
	switch {
	case next == protoICMP6 && len(rest) > 0 && discovery6(rest[0]):
		h.kind = local
	case !h.dst.IsMulticast():
		h.kind = unicast
	case h.dst.IsInterfaceLocalMulticast():
		h.kind = local
	case next == protoUDP && housekeeping(rest):
		h.kind = local
	default:
		h.kind = multicast
	}
	return h
}

// skipHopOpts returns the protocol of what follows the header of an IPv6 packet of
// 40 bytes or more, and that itself, without hop-by-hop options.
func skipHopOpts(p []byte) (next byte, rest []byte) {
	next, rest = p[6], p[40:]
	if next == protoHopOpts && len(rest) >= 8 {
		if n := 8 + 8*int(rest[1]); n <= len(rest) {
			next, rest = rest[0], rest[n:]
		}
	}
	return next, rest
}

// housekeeping tells from a UDP header's destination port.
func housekeeping(udp []byte) bool {
	if len(udp) < 4 {
		return false
	}
	switch binary.BigEndian.Uint16(udp[2:]) {
	case portMDNS, portLLMNR, portSSDP:
		return true
	}
	return false
}

// discovery6 tells by ICMPv6 type: MLD (RFC 2710, RFC 3810) and neighbour
// discovery (RFC 4861).
func discovery6(typ byte) bool {
	return typ >= 130 && typ <= 137 || typ == 143
}
