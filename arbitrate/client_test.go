package arbitrate

import (
	"net/netip"
	"time"

	"github.com/fogplr/fogplr/rtps"
)

// process is a participant on the host.
type process struct {
	prefix  rtps.Prefix
	at      netip.AddrPort
	clients []*client
}

// client asks, and has a reliable reader: it hands out each writer's samples in order.
type client struct {
	w      *world
	p      *process
	reader rtps.GUID
	writer rtps.EntityID
	id     uint64
	here   bool
	count  int
	number int64
	got    map[int64]int // replies by request
	of     map[rtps.Prefix]*proxy
}

// proxy is what a reader knows of a writer.
type proxy struct {
	matched, heard bool
	next, last     rtps.SequenceNumber
	beats          int32
	planned        bool
	have           map[rtps.SequenceNumber]*arrived
}

// arrived is a sample, or part of it, that waits for its turn.
type arrived struct {
	done, gap bool
	parts     map[rtps.FragmentNumber]bool
	total     rtps.FragmentNumber
	client    uint64
	number    int64
}

func newProcess(w *world, i int) *process {
	p := &process{prefix: rtps.Prefix{1, w.vendor[1], 'c', byte(i)}, at: address(1, uint16(7411+2*i))}
	for k := range w.clients {
		key := rtps.EntityID(2*k+4) << 8
		p.clients = append(p.clients, &client{
			w: w, p: p, reader: rtps.GUID{Prefix: p.prefix, Entity: key | 0x104}, writer: key | 0x03,
			id: uint64(i*100 + k + 1), got: map[int64]int{}, of: map[rtps.Prefix]*proxy{},
		})
	}
	return p
}

// begin announces the client, and has it matched with each server at some time.
func (c *client) begin() {
	c.here = true
	if a := c.w.arbiter; a != nil {
		for _, m := range []*writer{
			message(c.w.vendor, c.p.prefix).spdp(c.p.prefix),
			message(c.w.vendor, c.p.prefix).sedp(rtps.GUID{Prefix: c.p.prefix, Entity: c.writer}, "rq/echoRequest", 1),
			message(c.w.vendor, c.p.prefix).sedp(c.reader, "rr/echoReply", 1),
		} {
			a.Out(c.w.clock(), udp(c.p.at, address(10, 7400), 0, m.b))
		}
	}
	for _, s := range c.w.servers {
		c.w.after(c.w.upTo(300*time.Millisecond), func() {
			c.of[s.prefix] = &proxy{matched: true, have: map[rtps.SequenceNumber]*arrived{}}
			if c.w.vendor == rtps.VendorCyclone {
				c.send(s, message(c.w.vendor, c.p.prefix).to(s.prefix).ackNack(c.reader.Entity, replyWriter, 1, 0, false))
			}
			s.plan()
		})
	}
}

func (c *client) send(s *server, m *writer) { c.w.up(c.p.at, s, m.b) }

// ask sends a request. It reaches every server sooner or later: its repetitions are
// no part of this model.
func (c *client) ask() {
	c.number++
	k := asked{c, c.number}
	m := message(c.w.vendor, c.p.prefix)
	if c.w.vendor == rtps.VendorCyclone {
		payload := le.AppendUint64(le.AppendUint64([]byte{0, 1, 0, 0}, c.id), uint64(k.number))
		m.data(0, c.writer, rtps.SequenceNumber(k.number), nil, payload)
	} else {
		identity := (&writer{b: nameOf(c.reader)}).seq(-1 << 32)
		qos := (&writer{}).parameter(rtps.PIDRelatedIdentityVendor, identity.b).u16(1).u16(0)
		m.data(0, c.writer, rtps.SequenceNumber(k.number), qos.b, []byte{0, 1, 0, 0, 1, 2, 3, 4})
	}
	for _, s := range c.w.servers {
		if c.w.arbiter != nil {
			c.w.arbiter.Out(c.w.clock(), udp(c.p.at, s.at, 0, m.b))
		}
		d, ok := c.w.arrival()
		if !ok {
			d = 4 * c.w.delay
		}
		c.w.after(d, func() { s.requested(k) })
	}
}

// take takes a message of a server.
func (c *client) take(b []byte) {
	var m rtps.Message
	if !c.here || !m.Read(b, len(b)) {
		return
	}
	x := c.of[m.Source]
	if x == nil {
		return
	}
	mine := func(reader rtps.EntityID) bool {
		return (m.Destination == rtps.Prefix{} || m.Destination == c.p.prefix) && (reader == 0 || reader == c.reader.Entity)
	}
	for s := (rtps.Submessage{}); m.Next(&s); {
		if h, ok := s.Heartbeat(); ok && mine(h.Reader) {
			c.beat(x, m.Source, &h)
		}
		if !x.heard {
			continue
		}
		if g, ok := s.Gap(); ok && mine(g.Reader) {
			for n := max(g.Start, x.next); n < g.List.Base; n++ {
				if v := x.sample(n); !v.done {
					v.done, v.gap = true, true
				}
			}
		}
		if d, ok := s.Data(); ok && mine(d.Reader) {
			c.part(x, &m, &d, pieces{1, 1, 1})
		}
		if f, ok := s.DataFrag(); ok && mine(f.Reader) {
			c.part(x, &m, &f.Data, pieces{f.FragmentStart, 1, f.Fragments()})
		}
		c.handOut(x)
	}
}

func (x *proxy) sample(n rtps.SequenceNumber) *arrived {
	if x.have[n] == nil {
		x.have[n] = &arrived{parts: map[rtps.FragmentNumber]bool{}}
	}
	return x.have[n]
}

func (c *client) part(x *proxy, m *rtps.Message, d *rtps.Data, k pieces) {
	if d.Seq < x.next {
		return
	}
	v := x.sample(d.Seq)
	if v.done {
		return
	}
	if id, ok := requestOf(m, d, rtps.RoleReply); ok && k.first == 1 {
		v.number = id.Number
		if m.Vendor == rtps.VendorCyclone {
			for _, o := range id.Client.Prefix[:8] {
				v.client = v.client<<8 | uint64(o)
			}
		} else if id.Client == c.reader {
			v.client = c.id
		}
	}
	v.parts[k.first], v.total = true, k.total
	v.done = len(v.parts) == int(k.total)
}

// handOut gives the client what is its turn.
func (c *client) handOut(x *proxy) {
	for x.have[x.next] != nil && x.have[x.next].done {
		if v := x.have[x.next]; !v.gap && v.client == c.id {
			c.got[v.number]++
		}
		delete(x.have, x.next)
		x.next++
	}
}

func (c *client) beat(x *proxy, from rtps.Prefix, h *rtps.Heartbeat) {
	if !x.matched || h.Count <= x.beats {
		return
	}
	x.beats = h.Count
	if !x.heard {
		x.heard, x.next = true, h.Last+1
	}
	for x.last = max(x.last, h.Last); x.next < h.First; { // what is missing will not come
		if v := x.sample(x.next); !v.done {
			v.done, v.gap = true, true
		}
		c.handOut(x)
	}
	c.handOut(x)
	if !x.planned {
		x.planned = true
		c.w.after(c.w.upTo(c.w.nackDelay), func() {
			x.planned = false
			c.acknowledge(x, from)
		})
	}
}

// acknowledge says what is there, and asks for what is not.
func (c *client) acknowledge(x *proxy, from rtps.Prefix) {
	var s *server
	for _, v := range c.w.servers {
		if v.prefix == from {
			s = v
		}
	}
	c.count++
	m := message(c.w.vendor, c.p.prefix).to(from)
	var missing []int
	for n := x.next; n <= x.last && n < x.next+256; n++ {
		v := x.have[n]
		switch {
		case v == nil:
			missing = append(missing, int(n-x.next))
		case !v.done:
			var parts []int
			for i := rtps.FragmentNumber(1); i <= v.total && i <= 256; i++ {
				if !v.parts[i] {
					parts = append(parts, int(i-1))
				}
			}
			m.nackFrag(c.reader.Entity, replyWriter, n, 1, c.count, parts...)
		}
	}
	m.ackNack(c.reader.Entity, replyWriter, x.next, c.count, len(missing) == 0, missing...)
	c.send(s, m)
}
