package tunnel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"

	"github.com/fogplr/fogplr/hello"
)

// socketError is what went wrong last, for status.
type socketError struct {
	text string
	at   time.Time
}

// socketStats counts for SocketStatus; sockets of both families share one.
type socketStats struct {
	txPackets, txBytes, rxPackets, rxBytes atomic.Uint64
	txDropped, txErrors, rxOverflow        atomic.Uint64
	last                                   atomic.Pointer[socketError]
}

func (s *socketStats) status() SocketStatus {
	st := SocketStatus{
		TxPackets: s.txPackets.Load(), TxBytes: s.txBytes.Load(),
		RxPackets: s.rxPackets.Load(), RxBytes: s.rxBytes.Load(),
		TxDropped: s.txDropped.Load(), TxErrors: s.txErrors.Load(), RxOverflow: s.rxOverflow.Load(),
	}
	if e := s.last.Load(); e != nil && time.Since(e.at) < errorShown {
		st.LastError = e.text
	}
	return st
}

// failed notes what last went wrong, for status.
func (s *socketStats) failed(err error) {
	now := time.Now()
	if old := s.last.Load(); old == nil || now.Sub(old.at) > time.Second { // not an allocation per packet
		s.last.Store(&socketError{text: err.Error(), at: now})
	}
}

// batchConn is what ipv4.PacketConn and ipv6.PacketConn have in common; their
// Message types are one.
type batchConn interface {
	ReadBatch([]ipv4.Message, int) (int, error)
	WriteBatch([]ipv4.Message, int) (int, error)
}

// socket is one UDP socket of one address family. Sending never blocks.
type socket struct {
	conn  *net.UDPConn
	batch batchConn
	stats *socketStats
	gso   atomic.Bool
	send  sync.Pool // of *outgoing

	// The rest is for the one goroutine that receives.
	in       []ipv4.Message // scratch, receiveMessages of them
	filled   int            // messages of in that hold datagrams
	at       int            // message being split
	off      int            // next datagram's offset in it
	seen     endpoints
	overflow uint32
}

// socketOptions say how a socket is opened.
type socketOptions struct {
	device string // bound to this interface unless empty
	mark   uint32 // SO_MARK unless 0
	port   uint16
}

func openSocket(network string, o socketOptions, stats *socketStats) (*socket, error) {
	lc := net.ListenConfig{Control: func(network, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) { err = prepareSocket(int(fd), network, o) }); e != nil {
			return e
		}
		return err
	}}
	pc, err := lc.ListenPacket(context.Background(), network, ":"+strconv.Itoa(int(o.port)))
	if err != nil {
		return nil, fmt.Errorf("open %s socket: %w", network, err)
	}
	s := &socket{conn: pc.(*net.UDPConn), stats: stats}
	if network == "udp4" {
		s.batch = ipv4.NewPacketConn(pc)
	} else {
		s.batch = ipv6.NewPacketConn(pc)
	}
	raw, err := s.conn.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			_, e := unix.GetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT)
			s.gso.Store(e == nil)
		})
	}
	s.send.New = func() any { return newOutgoing() }
	s.in = make([]ipv4.Message, receiveMessages)
	for i := range s.in {
		s.in[i].Buffers = [][]byte{make([]byte, 1<<16)}
		s.in[i].OOB = make([]byte, 128)
	}
	return s, nil
}

// prepareSocket sets what must be set before bind(2). Buffer sizes and offloads
// are wishes; binding to the device, the mark and V6ONLY are not.
func prepareSocket(fd int, network string, o socketOptions) error {
	for _, b := range []struct{ force, plain, size int }{
		{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, socketReceiveBuffer},
		{unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, socketSendBuffer},
	} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.force, b.size) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.plain, b.size)
		}
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	if network == "udp6" {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			return fmt.Errorf("IPV6_V6ONLY: %w", err)
		}
	}
	if o.mark != 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(o.mark)); err != nil {
			return fmt.Errorf("mark the socket (needs CAP_NET_ADMIN): %w", err)
		}
	}
	if o.device != "" {
		if err := unix.BindToDevice(fd, o.device); err != nil {
			return fmt.Errorf("bind the socket to %s: %w", o.device, err)
		}
	}
	return nil
}

// receive fills bufs with datagrams. Left-overs of a coalesced read are kept
// for the next call. A size of 0 marks a datagram that stun took.
func (s *socket) receive(bufs [][]byte, sizes []int, eps []conn.Endpoint, stun func([]byte, netip.AddrPort)) (int, error) {
	if s.at >= s.filled {
		for i := range s.in {
			s.in[i].OOB = s.in[i].OOB[:cap(s.in[i].OOB)]
		}
		n, err := s.batch.ReadBatch(s.in, 0)
		if err != nil {
			return 0, err
		}
		s.filled, s.at, s.off = n, 0, 0
	}
	n, bytes := 0, 0
	for ; s.at < s.filled && n < len(bufs); s.at, s.off = s.at+1, 0 {
		m := &s.in[s.at]
		segment := m.N
		if s.off == 0 {
			s.noteOverflow(m.OOB[:m.NN])
		}
		if gro := control(m.OOB[:m.NN], unix.IPPROTO_UDP, unix.UDP_GRO); gro > 0 {
			segment = int(gro & 0xffff)
		}
		from := s.seen.get(m.Addr.(*net.UDPAddr).AddrPort())
		for ; s.off < m.N && n < len(bufs); n++ {
			d := m.Buffers[0][s.off:min(s.off+segment, m.N)]
			s.off += len(d)
			bytes += len(d)
			eps[n] = from
			if hello.IsSTUN(d) {
				sizes[n] = 0
				stun(d, from.addr)
				continue
			}
			sizes[n] = copy(bufs[n], d)
		}
		if s.off < m.N {
			break
		}
	}
	s.stats.rxPackets.Add(uint64(n))
	s.stats.rxBytes.Add(uint64(bytes))
	return n, nil
}

// noteOverflow reads the kernel's running count of datagrams it dropped
// (SO_RXQ_OVFL).
func (s *socket) noteOverflow(oob []byte) {
	if total := control(oob, unix.SOL_SOCKET, unix.SO_RXQ_OVFL); total != s.overflow {
		if total != 0 {
			s.stats.rxOverflow.Add(uint64(total - s.overflow))
			s.overflow = total
		}
	}
}

// control returns the 16- or 32-bit value of a control message, 0 if there is
// none.
func control(oob []byte, level, typ int32) uint32 {
	for len(oob) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return 0
		}
		if h.Level == level && h.Type == typ {
			switch {
			case len(data) >= 4:
				return binary.NativeEndian.Uint32(data)
			case len(data) >= 2:
				return uint32(binary.NativeEndian.Uint16(data))
			}
		}
		oob = rest
	}
	return 0
}

func (s *socket) close() error { return s.conn.Close() }

func (s *socket) localPort() uint16 {
	return s.conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
}

// outgoing is the scratch of one send.
type outgoing struct {
	msgs []ipv4.Message
	oob  [][]byte
}

func newOutgoing() *outgoing {
	o := &outgoing{msgs: make([]ipv4.Message, 0, batchPackets), oob: make([][]byte, batchPackets)}
	for i := range o.oob {
		o.oob[i] = make([]byte, unix.CmsgSpace(2))
	}
	return o
}

// add appends a message of bufs, with UDP_SEGMENT if there is more than one.
func (o *outgoing) add(bufs [][]byte, to *net.UDPAddr) {
	m := ipv4.Message{Buffers: bufs, Addr: to}
	if len(bufs) > 1 {
		oob := o.oob[len(o.msgs)]
		putSegment(oob, uint16(len(bufs[0])))
		m.OOB = oob
	}
	o.msgs = append(o.msgs, m)
}

// pack groups datagrams of one size (the last of a group may be shorter) into
// messages; without gso every datagram is a message.
func (o *outgoing) pack(bufs [][]byte, to *net.UDPAddr, gso bool) {
	o.msgs = o.msgs[:0]
	for len(bufs) > 0 {
		n, bytes := 1, len(bufs[0])
		for gso && n < len(bufs) && n < gsoSegments &&
			len(bufs[n-1]) == len(bufs[0]) && len(bufs[n]) <= len(bufs[0]) && bytes+len(bufs[n]) <= gsoBytes {
			bytes += len(bufs[n])
			n++
		}
		o.add(bufs[:n], to)
		bufs = bufs[n:]
	}
}

// transmit sends bufs, which must not be more than batchPackets. What the
// kernel does not take is counted and dropped; one bad datagram never takes
// others with it.
func (s *socket) transmit(bufs [][]byte, to *endpoint) {
	o := s.send.Get().(*outgoing)
	gso := s.gso.Load()
	o.pack(bufs, to.udp, gso)
	for at := 0; at < len(o.msgs); {
		n, err := s.batch.WriteBatch(o.msgs[at:], unix.MSG_DONTWAIT)
		for _, m := range o.msgs[at : at+max(n, 0)] {
			s.sent(m.Buffers)
		}
		at += max(n, 0)
		if err == nil {
			continue
		}
		m := o.msgs[at]
		at++
		switch {
		case full(err):
			s.stats.txDropped.Add(uint64(len(m.Buffers)))
		case len(m.Buffers) > 1:
			if errors.Is(err, unix.EIO) { // no checksum offload on this interface
				s.gso.Store(false)
			}
			s.transmitSingly(m.Buffers, to)
		default:
			s.stats.txErrors.Add(1)
			s.stats.failed(err)
		}
	}
	clear(o.msgs)
	s.send.Put(o)
}

// transmitSingly sends datagrams that could not go as one segmented message.
func (s *socket) transmitSingly(bufs [][]byte, to *endpoint) {
	m := make([]ipv4.Message, 1)
	for i := range bufs {
		m[0] = ipv4.Message{Buffers: bufs[i : i+1], Addr: to.udp}
		switch _, err := s.batch.WriteBatch(m, unix.MSG_DONTWAIT); {
		case err == nil:
			s.sent(bufs[i : i+1])
		case full(err):
			s.stats.txDropped.Add(1)
		default:
			s.stats.txErrors.Add(1)
			s.stats.failed(err)
		}
	}
}

func (s *socket) sent(bufs [][]byte) {
	bytes := 0
	for _, b := range bufs {
		bytes += len(b)
	}
	s.stats.txPackets.Add(uint64(len(bufs)))
	s.stats.txBytes.Add(uint64(bytes))
}

// full reports errors that say the kernel has no room just now.
func full(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS)
}
