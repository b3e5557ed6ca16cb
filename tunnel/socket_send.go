package tunnel

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// segmenting says whether a socket sends many datagrams as one message
// (UDP_SEGMENT). The zero value does.
type segmenting struct {
	until   atomic.Int64 // not before, in nanoseconds since 1970
	refused atomic.Int32 // in a row, though their datagrams were taken one by one
}

func (g *segmenting) on() bool {
	until := g.until.Load()
	return until == 0 || until != math.MaxInt64 && time.Now().UnixNano() >= until
}

// stop ends it for good.
func (g *segmenting) stop() { g.until.Store(math.MaxInt64) }

// taken notes that the kernel took a segmented message.
func (g *segmenting) taken() {
	if g.refused.Load() != 0 {
		g.refused.Store(0)
	}
}

// useless notes that the kernel refused a segmented message, and then took each
// of its datagrams. One may be too big for the link and get through in fragments; if
// nothing else comes for long, segmenting is a waste, and is tried later.
func (g *segmenting) useless(now time.Time) {
	if g.refused.Add(1) >= segmentRefusals && g.until.Load() != math.MaxInt64 {
		g.refused.Store(0)
		g.until.Store(now.Add(segmentPause).UnixNano())
	}
}

// outgoing is the scratch of one send.
type outgoing struct {
	msgs []ipv4.Message
	oob  []byte // sourceSpace+segmentSpace bytes for each
	one  [1]ipv4.Message
}

func newOutgoing() *outgoing {
	return &outgoing{
		msgs: make([]ipv4.Message, 0, batchPackets),
		oob:  make([]byte, batchPackets*(sourceSpace+segmentSpace)),
	}
}

// add appends a message of bufs, from that source unless it is nil, with
// UDP_SEGMENT if there is more than one.
func (o *outgoing) add(bufs [][]byte, to *endpoint, source []byte) {
	m := ipv4.Message{Buffers: bufs, Addr: to.udp, OOB: source}
	if len(bufs) > 1 {
		m.OOB = o.oob[len(o.msgs)*(sourceSpace+segmentSpace):][:len(source)+segmentSpace]
		copy(m.OOB, source)
		putSegment(m.OOB[len(source):], uint16(len(bufs[0])))
	}
	o.msgs = append(o.msgs, m)
}

// pack groups datagrams of one size (the last of a group may be shorter) into
// messages from that source, the kernel's choice if it is nil; without gso every
// datagram is a message.
func (o *outgoing) pack(bufs [][]byte, to *endpoint, source []byte, gso bool) {
	o.msgs = o.msgs[:0]
	for len(bufs) > 0 {
		n, bytes := 1, len(bufs[0])
		for gso && n < len(bufs) && n < gsoSegments &&
			len(bufs[n-1]) == len(bufs[0]) && len(bufs[n]) <= len(bufs[0]) && bytes+len(bufs[n]) <= gsoBytes {
			bytes += len(bufs[n])
			n++
		}
		o.add(bufs[:n], to, source)
		bufs = bufs[n:]
	}
}

// transmit sends bufs, which must not be more than batchPackets. What the
// kernel does not take is counted and dropped; one bad datagram never takes
// others with it.
func (s *socket) transmit(bufs [][]byte, to *endpoint) {
	o := s.send.Get().(*outgoing)
	source := to.from()
	o.pack(bufs, to, source, s.gso.on())
	for at := 0; at < len(o.msgs); {
		n, err := s.batch.WriteBatch(o.msgs[at:], unix.MSG_DONTWAIT)
		for _, m := range o.msgs[at : at+max(n, 0)] {
			s.count(m.Buffers, nil)
			if len(m.Buffers) > 1 {
				s.gso.taken()
			}
		}
		at += max(n, 0)
		if err != nil {
			s.again(o, o.msgs[at].Buffers, to, source, err)
			at++
		}
	}
	clear(o.msgs)
	s.send.Put(o)
}

// again deals with the datagrams of a message from that source, which the kernel
// refused with err: where that may help, each is sent by itself.
func (s *socket) again(o *outgoing, bufs [][]byte, to *endpoint, source []byte, err error) {
	otherSource := source != nil && addressGone(err)
	if full(err) || !otherSource && (len(bufs) == 1 || unreachable(err)) {
		s.count(bufs, err)
		return
	}
	all := true
	for i := range bufs {
		if e := s.sendOne(o, bufs[i:i+1], to); e != nil {
			all = false
			if unreachable(e) {
				s.count(bufs[i+1:], e)
				break
			}
		}
	}
	switch {
	case len(bufs) == 1:
	case errors.Is(err, unix.EIO): // no checksum offload on this interface (udp_send_skb in the kernel)
		s.gso.stop()
	case all:
		s.gso.useless(time.Now())
	}
}

// sendOne sends one datagram. If its source is not this machine's any more, the
// kernel chooses another.
func (s *socket) sendOne(o *outgoing, d [][]byte, to *endpoint) error {
	source := to.from()
	err := s.write(o, d, to, source)
	if source != nil && err != nil && addressGone(err) {
		if err = s.write(o, d, to, nil); err == nil {
			to.forget(time.Now())
		}
	}
	s.count(d, err)
	return err
}

func (s *socket) write(o *outgoing, d [][]byte, to *endpoint, source []byte) error {
	o.one[0] = ipv4.Message{Buffers: d, Addr: to.udp, OOB: source}
	_, err := s.batch.WriteBatch(o.one[:], unix.MSG_DONTWAIT)
	o.one[0] = ipv4.Message{}
	return err
}

// count counts datagrams by what the kernel said of them.
func (s *socket) count(bufs [][]byte, err error) {
	n := uint64(len(bufs))
	if err != nil {
		s.stats.lost(bufs, s.headers)
	}
	switch {
	case err == nil:
		bytes := 0
		for _, b := range bufs {
			bytes += len(b)
		}
		s.stats.txPackets.Add(n)
		s.stats.txBytes.Add(uint64(bytes))
		s.stats.move(uint64(bytes) + n*uint64(s.headers))
	case full(err):
		s.stats.txDropped.Add(n)
	case errors.Is(err, unix.EMSGSIZE): // an answer rather than an error, where the MTU is searched
		s.stats.txTooBig.Add(n)
	default:
		s.stats.txErrors.Add(n)
		s.stats.failed(err)
	}
}

// full reports errors that say the kernel has no room just now.
func full(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS)
}

// addressGone reports errors that may mean that the source is not an address of
// this machine, or its interface not there, any more. For an address IPv6 and older
// kernels say EINVAL, newer ones ENETUNREACH; for an interface all say ENODEV.
func addressGone(err error) bool {
	return errors.Is(err, unix.EINVAL) || unreachable(err)
}

// unreachable reports errors that every datagram to one address would meet.
func unreachable(err error) bool {
	for _, e := range [...]unix.Errno{unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN, unix.ENODEV, unix.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
