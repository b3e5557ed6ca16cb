package arbitrate

import (
	"net/netip"
	"slices"
	"time"

	"github.com/fogplr/fogplr/rtps"
)

// replyWriter and replyReader are as the programs of test/apps have them.
const replyWriter rtps.EntityID = 0x00000303

// server is a replica: a reliable, volatile writer of replies.
type server struct {
	w      *world
	prefix rtps.Prefix
	at     netip.AddrPort
	dead   bool
	rude   bool // it answers clients that it is not matched with
	last   rtps.SequenceNumber
	kept   map[rtps.SequenceNumber]*sample
	match  map[rtps.GUID]rtps.SequenceNumber // readers, and what they lack
	queue  []asked                           // until the client is matched
	count  int
	quiet  bool // no HEARTBEAT is planned
}

// sample is a reply.
type sample struct {
	of      asked
	payload []byte
	qos     []byte
}

// asked is a request.
type asked struct {
	client *client
	number int64
}

func newServer(w *world, i int) *server {
	s := &server{w: w, at: address(byte(10+i), 7411), quiet: true, kept: map[rtps.SequenceNumber]*sample{}, match: map[rtps.GUID]rtps.SequenceNumber{}}
	s.prefix = rtps.Prefix{1, w.vendor[1], 's', byte(i)}
	return s
}

func (s *server) guid() rtps.GUID { return rtps.GUID{Prefix: s.prefix, Entity: replyWriter} }

func (s *server) message() *writer { return message(s.w.vendor, s.prefix) }

// begin announces the server to the host, which misses nothing of that, and beats.
func (s *server) begin() {
	w := s.w
	if w.arbiter != nil {
		for _, m := range []*writer{s.message().spdp(s.prefix), s.message().sedp(s.guid(), "rr/echoReply", 1)} {
			w.arbiter.In(w.clock(), [][]byte{udp(s.at, address(1, 7400), 0, m.b)})
		}
	}
	s.plan()
}

// plan has HEARTBEATs sent until all is acknowledged.
func (s *server) plan() {
	if !s.quiet {
		return
	}
	s.quiet = false
	s.w.after(50*time.Millisecond+s.w.upTo(20*time.Millisecond), func() {
		s.quiet = true
		if s.dead || s.w.now > time.Hour {
			return
		}
		lacks := false
		for _, p := range s.w.procs {
			for _, c := range p.clients {
				next, matched := s.match[c.reader]
				lacks = lacks || !matched || next <= s.last
			}
		}
		if lacks {
			s.beat()
			s.plan()
		}
	})
}

func (s *server) first() rtps.SequenceNumber {
	first := s.last + 1
	for n := range s.kept {
		first = min(first, n)
	}
	return first
}

func (s *server) beat() {
	for _, p := range s.w.procs {
		s.count++
		m := s.message().to(p.prefix).heartbeat(0, replyWriter, s.first(), s.last, s.count, false)
		s.w.down(s.at, p.at, m.b)
	}
}

// requested takes a request.
func (s *server) requested(k asked) {
	if s.dead {
		return
	}
	if _, matched := s.match[k.client.reader]; !matched && !s.rude {
		s.queue = append(s.queue, k)
		return
	}
	s.w.after(s.w.upTo(s.w.work), func() { s.answer(k) })
}

// answer writes a reply, and sends it to everybody.
func (s *server) answer(k asked) {
	if s.dead {
		return
	}
	s.last++
	v := &sample{of: k}
	v.payload = make([]byte, 4+max(s.w.size, 16))
	v.payload[1] = 1 // CDR, little endian
	if s.w.vendor == rtps.VendorCyclone {
		le.PutUint64(v.payload[4:], k.client.id)
		le.PutUint64(v.payload[12:], uint64(k.number))
	} else {
		identity := (&writer{b: nameOf(k.client.reader)}).seq(rtps.SequenceNumber(k.number))
		v.qos = (&writer{}).parameter(rtps.PIDRelatedIdentityVendor, identity.b).u16(1).u16(0).b
	}
	s.kept[s.last] = v
	for _, p := range s.w.procs {
		if s.w.vendor == rtps.VendorCyclone {
			s.send(p, 0, s.last, nil)
			continue
		}
		for _, c := range p.clients {
			s.send(p, c.reader.Entity, s.last, nil)
		}
	}
	s.plan()
}

// send sends a sample, or those fragments of it, to all readers of a process or to
// one.
func (s *server) send(p *process, reader rtps.EntityID, n rtps.SequenceNumber, fragments []int) {
	v := s.kept[n]
	total := (len(v.payload)-1)/s.w.fragment + 1
	if fragments == nil {
		for i := 1; i <= total; i++ {
			fragments = append(fragments, i)
		}
	}
	for _, i := range fragments {
		m := s.message()
		if reader != 0 {
			m.to(p.prefix)
		}
		if total == 1 {
			m.data(reader, replyWriter, n, v.qos, v.payload)
		} else {
			m.frag(reader, replyWriter, n, v.qos, v.payload, s.w.fragment, i)
		}
		if s.w.rng.IntN(2) == 0 {
			s.count++
			m.heartbeat(0, replyWriter, s.first(), s.last, s.count, false)
		}
		s.w.down(s.at, p.at, m.b)
	}
}

// take takes a message of a reader.
func (s *server) take(b []byte) {
	var m rtps.Message
	if s.dead || !m.Read(b, len(b)) {
		return
	}
	for sub := (rtps.Submessage{}); m.Next(&sub); {
		if k, ok := sub.AckNack(); ok {
			s.acknowledged(rtps.GUID{Prefix: m.Source, Entity: k.Reader}, &k)
		}
		if k, ok := sub.NackFrag(); ok && s.kept[k.Seq] != nil {
			var fragments []int
			for i, ok := k.Missing.Next(k.Missing.Base); ok; i, ok = k.Missing.Next(i + 1) {
				fragments = append(fragments, int(i))
			}
			if len(fragments) > 0 {
				s.again(rtps.GUID{Prefix: m.Source, Entity: k.Reader}, k.Seq, fragments)
			}
		}
	}
}

func (s *server) acknowledged(reader rtps.GUID, k *rtps.AckNack) {
	if k.Count == 0 { // before any HEARTBEAT
		s.beat()
		return
	}
	if _, matched := s.match[reader]; !matched {
		s.queue = slices.DeleteFunc(s.queue, func(q asked) bool {
			if q.client.reader == reader {
				s.w.after(s.w.upTo(s.w.work), func() { s.answer(q) })
			}
			return q.client.reader == reader
		})
	}
	s.match[reader] = max(s.match[reader], k.Missing.Base)
	for n, ok := k.Missing.Next(k.Missing.Base); ok; n, ok = k.Missing.Next(n + 1) {
		if s.kept[n] != nil {
			s.again(reader, n, nil)
		}
	}
	acked := s.last + 1
	for _, p := range s.w.procs {
		for _, c := range p.clients {
			if next, ok := s.match[c.reader]; ok {
				acked = min(acked, next)
			}
		}
	}
	for n := range s.kept {
		if n < acked {
			delete(s.kept, n)
		}
	}
}

// again sends a sample, or fragments of it, to one reader that asked for it.
func (s *server) again(reader rtps.GUID, n rtps.SequenceNumber, fragments []int) {
	for _, p := range s.w.procs {
		if p.prefix == reader.Prefix {
			s.w.resent += max(1, len(fragments))
			s.send(p, reader.Entity, n, fragments)
		}
	}
}
