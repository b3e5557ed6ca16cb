package tunnel

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// socketError is what went wrong last, for status.
type socketError struct {
	text string
	at   time.Time
}

// socketStats counts for SocketStatus; all sockets of a bind share one.
type socketStats struct {
	txPackets, txBytes, rxPackets, rxBytes    atomic.Uint64
	txDropped, txTooBig, txErrors, rxOverflow atomic.Uint64
	rxForeign                                 atomic.Uint64
	// wire counts bytes both ways, with the headers of UDP and IP; move adds to it.
	wire  atomic.Uint64
	quota quota
	// unsent are bytes, with headers, of transport messages that did not become wire.
	unsent atomic.Uint64
	last   atomic.Pointer[socketError]
}

func (s *socketStats) status() SocketStatus {
	st := SocketStatus{
		TxPackets: s.txPackets.Load(), TxBytes: s.txBytes.Load(),
		RxPackets: s.rxPackets.Load(), RxBytes: s.rxBytes.Load(),
		TxDropped: s.txDropped.Load(), TxTooBig: s.txTooBig.Load(), TxErrors: s.txErrors.Load(),
		RxOverflow: s.rxOverflow.Load(), RxForeign: s.rxForeign.Load(), WireBytes: s.wire.Load(),
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

// sendBatch is what ipv4.PacketConn and ipv6.PacketConn have in common; their
// Message types are one.
type sendBatch interface {
	WriteBatch([]ipv4.Message, int) (int, error)
}

// socket is one UDP socket of one address family. Sending never blocks, and
// several goroutines may send; one receives.
//
// What befalls the interface that it is bound to does not befall the socket: while
// the interface is down or without address, sending fails at once and receiving
// waits, and both go on when it is back. Only an interface that was removed and
// made again needs a new socket, since the kernel binds to its index.
type socket struct {
	conn *net.UDPConn
	port uint16
	// headers is the length in bytes of the headers of UDP and IP.
	headers int
	from    *senders
	batch   sendBatch
	stats   *socketStats
	gso     segmenting
	send    sync.Pool // of *outgoing

	// The rest is for the one goroutine that receives.
	in       *inbox
	seen     endpoints
	overflow uint32
}

// Headers of UDP and IP in bytes (RFC 768, RFC 791, RFC 8200).
const (
	udpHeader, ipv4Header, ipv6Header = 8, 20, 40

	headers4 = udpHeader + ipv4Header
	headers6 = udpHeader + ipv6Header
)

// senders are whom a carrier's sockets listen to: the addresses of gateways. What
// comes from elsewhere must not move a path there, as WireGuard would let it.
// The zero value and nil are everybody.
type senders struct {
	all atomic.Pointer[[]netip.AddrPort]
}

func (s *senders) set(all []netip.AddrPort) { s.all.Store(&all) }

// has reports whether a, which is without zone, is one of them.
func (s *senders) has(a netip.AddrPort) bool {
	if s == nil {
		return true
	}
	all := s.all.Load()
	return all == nil || slices.Contains(*all, a)
}

// socketOptions say how a socket is opened.
type socketOptions struct {
	device string // bound to this interface unless empty
	from   *senders
	mark   uint32 // SO_MARK unless 0
	port   uint16 // any if 0
	// morePorts are a gateway's beside port, with sockets of their own.
	morePorts []uint16
	// answering makes endpoints know the own address that they sent to, and
	// answers leave from there. It is for gateways: a carrier's address may change
	// at any moment, so there the kernel must choose.
	answering bool
	// probeMTU sends everything with Don't Fragment set, whatever ICMP messages
	// say of the path's MTU (RFC 8899, section 4.6.1: they may be forged). What
	// is larger than the interface's own MTU is refused and counted as too big.
	// Without it the kernel fragments.
	probeMTU bool
	// noOffload leaves the kernel's UDP_SEGMENT and UDP_GRO alone, for drivers that
	// do them wrong.
	noOffload bool
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
	s := &socket{conn: pc.(*net.UDPConn), stats: stats, from: o.from, headers: headers4}
	s.port = s.conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	s.seen.port = s.port
	if network == "udp4" {
		s.batch = ipv4.NewPacketConn(pc)
	} else {
		s.batch, s.headers = ipv6.NewPacketConn(pc), headers6
	}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		_ = pc.Close()
		return nil, fmt.Errorf("open %s socket: %w", network, err)
	}
	_ = raw.Control(func(fd uintptr) {
		if _, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT); err != nil || o.noOffload {
			s.gso.stop()
		}
	})
	s.send.New = func() any { return newOutgoing() }
	s.in = newInbox(raw)
	return s, nil
}

// prepareSocket sets what must be set before bind(2). Buffer sizes and offloads
// are wishes; the rest is not.
func prepareSocket(fd int, network string, o socketOptions) error {
	for _, b := range []struct{ force, plain, size int }{
		{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, socketReceiveBuffer},
		{unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, socketSendBuffer},
	} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.force, b.size) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.plain, b.size)
		}
	}
	if !o.noOffload {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	if err := familyOptions(fd, network, o); err != nil {
		return err
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

// socketOption is one setsockopt(2).
type socketOption struct {
	want                 bool
	name                 string
	level, option, value int
}

// familyOptions sets what has another name in each address family.
func familyOptions(fd int, network string, o socketOptions) error {
	all := []socketOption{
		{o.answering, "IP_PKTINFO", unix.IPPROTO_IP, unix.IP_PKTINFO, 1},
		{o.probeMTU, "IP_MTU_DISCOVER", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE},
	}
	if network == "udp6" {
		all = []socketOption{
			{true, "IPV6_V6ONLY", unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1},
			{o.answering, "IPV6_RECVPKTINFO", unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1},
			{o.probeMTU, "IPV6_MTU_DISCOVER", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE},
		}
	}
	for _, op := range all {
		if !op.want {
			continue
		}
		if err := unix.SetsockoptInt(fd, op.level, op.option, op.value); err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
	}
	return nil
}

func (s *socket) close() error { return s.conn.Close() }
