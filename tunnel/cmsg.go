package tunnel

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// segmentSpace is the room of a UDP_SEGMENT control message in bytes, and
// sourceSpace the most that a source takes: an IPV6_PKTINFO.
var (
	segmentSpace = unix.CmsgSpace(2)
	sourceSpace  = unix.CmsgSpace(unix.SizeofInet6Pktinfo)
)

// putSegment writes a UDP_SEGMENT control message (udp(7)) into oob, which has
// segmentSpace bytes.
func putSegment(oob []byte, size uint16) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	h.Level = unix.IPPROTO_UDP
	h.Type = unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(oob[unix.CmsgLen(0):], size)
}

// sourceControl returns the control message that makes a datagram leave from that
// address (ip(7), RFC 3542 section 6.2), by the interface of that index unless
// it is 0.
func sourceControl(from netip.Addr, index uint32) []byte {
	if from.Is4() {
		return unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: int32(index), Spec_dst: from.As4()})
	}
	return unix.PktInfo6(&unix.Inet6Pktinfo{Addr: from.As16(), Ifindex: index})
}

// ancillary is what the kernel tells of a received message beside its bytes.
type ancillary struct {
	segment  int        // bytes of each datagram in it (UDP_GRO), 0 if it is one
	overflow uint32     // running count of datagrams dropped (SO_RXQ_OVFL)
	local    netip.Addr // where it was sent to, if the socket asked for that
	index    uint32     // of the interface it came by, in that case
}

// parseControl reads a message's control messages. What it does not know or what
// is cut short is left out.
func parseControl(oob []byte) (a ancillary) {
	for len(oob) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return a
		}
		switch {
		case h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(data) >= 4:
			a.segment = int(binary.NativeEndian.Uint32(data) & 0xffff)
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
			a.overflow = binary.NativeEndian.Uint32(data)
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			a.index = binary.NativeEndian.Uint32(data)
			a.local = netip.AddrFrom4([4]byte(data[4:]))
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			a.local = netip.AddrFrom16([16]byte(data))
			a.index = binary.NativeEndian.Uint32(data[16:])
		}
		oob = rest
	}
	return a
}
