package tunnel

import (
	"encoding/binary"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"

	"github.com/fogplr/fogplr/hello"
)

// inbox is the scratch of one socket's receiving goroutine: recvmmsg(2) into
// messages that are set up once. The batches of golang.org/x/net would allocate
// the sender's address of every message.
type inbox struct {
	raw   syscall.RawConn
	heads [receiveMessages]mmsghdr
	names [receiveMessages]unix.RawSockaddrInet6
	iovs  [receiveMessages]unix.Iovec
	data  [receiveMessages][]byte
	oob   [receiveMessages][receiveControl]byte

	take   func(fd uintptr) bool // recv, bound once
	result int
	errno  syscall.Errno

	filled int // messages that hold datagrams
	at     int // message being split
	off    int // next datagram's offset in it
	meta   ancillary
	from   *endpoint
}

// mmsghdr is struct mmsghdr of recvmmsg(2); Go pads it as C does.
type mmsghdr struct {
	head   unix.Msghdr
	length uint32
}

func newInbox(raw syscall.RawConn) *inbox {
	b := &inbox{raw: raw}
	b.take = b.recv
	for i := range b.heads {
		b.data[i] = make([]byte, 1<<16)
		b.iovs[i].Base = &b.data[i][0]
		b.iovs[i].SetLen(len(b.data[i]))
		h := &b.heads[i].head
		h.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		h.Iov = &b.iovs[i]
		h.SetIovlen(1)
		h.Control = &b.oob[i][0]
	}
	return b
}

// fill waits for messages and takes what is there.
func (b *inbox) fill() error {
	b.filled, b.at, b.off = 0, 0, 0
	for i := range b.heads {
		h := &b.heads[i].head
		h.Namelen = unix.SizeofSockaddrInet6
		h.SetControllen(receiveControl)
		h.Flags = 0
	}
	if err := b.raw.Read(b.take); err != nil {
		return err
	}
	if b.errno != 0 {
		return os.NewSyscallError("recvmmsg", b.errno)
	}
	b.filled = b.result
	return nil
}

// recv is false while there is nothing to take.
func (b *inbox) recv(fd uintptr) bool {
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.heads[0])), receiveMessages, unix.MSG_DONTWAIT, 0, 0)
	b.result, b.errno = int(n), errno
	return errno != unix.EAGAIN && errno != unix.EINTR
}

// full reports whether the last fill took as much as one can, so that there may be
// more.
func (b *inbox) full() bool { return b.filled == len(b.heads) }

// message returns the bytes and the control messages of message i.
func (b *inbox) message(i int) (data, oob []byte) {
	return b.data[i][:b.heads[i].length], b.oob[i][:b.heads[i].head.Controllen]
}

// sender returns where message i came from, without zone, and the zone.
func (b *inbox) sender(i int) (from netip.AddrPort, zone uint32) {
	n := &b.names[i]
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&n.Port))[:])
	if n.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(n))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), port), 0
	}
	return netip.AddrPortFrom(netip.AddrFrom16(n.Addr), port), n.Scope_id
}

// arrivalOf says where message i came from, and where to if the kernel told.
func (b *inbox) arrivalOf(i int, meta ancillary) (a arrival) {
	a.remote, a.remoteZone = b.sender(i)
	if meta.local.IsValid() && !meta.local.IsMulticast() { // RFC 1122 3.2.1.3: never a source
		a.local = meta.local
		if a.local.IsLinkLocalUnicast() {
			a.localZone = meta.index
		}
	}
	return a
}

// receive fills bufs with datagrams. Left-overs of a coalesced read are kept
// for the next call. A size of 0 marks a datagram that stun took. One goroutine
// at a time may call it.
func (s *socket) receive(bufs [][]byte, sizes []int, eps []conn.Endpoint, stun func([]byte, *endpoint)) (int, error) {
	in := s.in
	if in.at >= in.filled {
		if err := in.fill(); err != nil {
			return 0, err
		}
	}
	n, bytes, foreign := 0, 0, 0
	for ; in.at < in.filled && n < len(bufs); in.at, in.off = in.at+1, 0 {
		data, oob := in.message(in.at)
		if in.off == 0 {
			in.meta = parseControl(oob)
			s.noteOverflow(in.meta.overflow)
			if from, _ := in.sender(in.at); !s.from.has(from) { // nothing is remembered of it
				foreign++
				bytes += len(data)
				continue
			}
			in.from = s.seen.get(in.arrivalOf(in.at, in.meta))
		}
		segment := len(data)
		if in.meta.segment > 0 {
			segment = in.meta.segment
		}
		for ; in.off < len(data) && n < len(bufs); n++ {
			d := data[in.off:min(in.off+segment, len(data))]
			in.off += len(d)
			bytes += len(d)
			eps[n] = in.from
			if hello.IsSTUN(d) {
				sizes[n] = 0
				stun(d, in.from)
				continue
			}
			sizes[n] = copy(bufs[n], d)
		}
		if in.off < len(data) {
			break
		}
	}
	s.stats.rxPackets.Add(uint64(n))
	s.stats.rxBytes.Add(uint64(bytes))
	s.stats.rxForeign.Add(uint64(foreign))
	s.stats.move(uint64(bytes + (n+foreign)*s.headers))
	return n, nil
}

// noteOverflow takes the kernel's running count of datagrams that it dropped,
// which is 0 before the first.
func (s *socket) noteOverflow(total uint32) {
	if total != 0 && total != s.overflow {
		s.stats.rxOverflow.Add(uint64(total - s.overflow))
		s.overflow = total
	}
}
