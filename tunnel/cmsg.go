package tunnel

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// putSegment writes a UDP_SEGMENT control message (udp(7)) into oob, which has
// CmsgSpace(2) bytes.
func putSegment(oob []byte, size uint16) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	h.Level = unix.IPPROTO_UDP
	h.Type = unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(oob[unix.CmsgLen(0):], size)
}
