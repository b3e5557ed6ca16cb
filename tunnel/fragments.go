package tunnel

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"
)

// fragment says where an IP packet belongs in the datagram that it is a part of
// (RFC 791, section 3.2; RFC 8200, section 4.5).
type fragment struct {
	of       datagramKey
	off, end int  // of the datagram's payload, in bytes
	last     bool // nothing comes behind it
}

// datagramKey is what the fragments of one datagram have in common.
type datagramKey struct {
	src, dst netip.Addr
	id       uint32
	proto    uint8 // 0 for IPv6
}

// fragmentOf reads an IP packet that classify made h of. ok is false for one that
// is a whole datagram.
func fragmentOf(p []byte, h header) (f fragment, ok bool) {
	f.of.src, f.of.dst = h.src, h.dst
	var offset, length int
	if h.src.Is4() {
		field := binary.BigEndian.Uint16(p[6:])
		f.last = field&0x2000 == 0
		offset = int(field&0x1fff) * 8
		length = int(binary.BigEndian.Uint16(p[2:])) - int(p[0]&15)*4
		f.of.id, f.of.proto = uint32(binary.BigEndian.Uint16(p[4:])), p[9]
	} else {
		next, rest := skipHopOpts(p)
		if next != protoFragment || len(rest) < fragmentHeader {
			return f, false
		}
		field := binary.BigEndian.Uint16(rest[2:])
		f.last = field&1 == 0
		offset = int(field &^ 7)
		length = len(rest) - fragmentHeader
		f.of.id = binary.BigEndian.Uint32(rest[4:])
	}
	f.off, f.end = offset, offset+length
	return f, offset > 0 || !f.last
}

// possible reports whether f can be a fragment of any datagram.
func (f *fragment) possible() bool {
	return f.end > f.off && f.end <= 65535 && (f.last || (f.end-f.off)%8 == 0)
}

// gatherer has the IP fragments of one datagram share one fate: it keeps them
// until all are there and gives them out together, or none. A host would wait for
// the missing one itself, but for 30 s and in memory that fills up then, so that
// whole datagrams are lost as well. Whoever needs the datagram gets it no later.
// Fragments that overlap spoil their datagram (RFC 5722), unless one came twice. It
// is bounded by datagrams, bytes and age, and gives up the oldest. The zero value is
// ready. The caller serialises all calls; now must not go backwards.
type gatherer struct {
	open  []*datagram // oldest first
	spare []*datagram
	bytes int // in open
	out   [][]byte
	// incomplete counts the datagrams that were given up.
	incomplete uint64
}

// datagram is one in the making.
type datagram struct {
	key    datagramKey
	began  time.Time
	data   []byte  // its packets as they came
	pieces []piece // by offset
	have   int     // bytes of payload
	total  int     // the same when it is whole, 0 until the last fragment came
	spoilt bool
}

// piece is one fragment, data[at:to].
type piece struct{ off, end, at, to int }

// add takes a packet and what fragmentOf read of it. It returns the packets of its
// datagram, in the order of their offsets, if that was the last one missing. They
// are the gatherer's, and stand until the next call.
func (g *gatherer) add(p []byte, f fragment, now time.Time) [][]byte {
	g.expire(now)
	d := g.find(f.of, now)
	if d.spoilt {
		return nil
	}
	before := len(d.data)
	if !f.possible() || !d.place(p, f) {
		g.bytes -= before
		d.spoilt, d.data, d.pieces = true, d.data[:0], d.pieces[:0]
		return nil
	}
	g.bytes += len(d.data) - before
	if d.total == 0 || d.have < d.total {
		for g.bytes > fragmentsBytes {
			g.giveUp()
		}
		return nil
	}
	g.out = g.out[:0]
	for _, k := range d.pieces {
		g.out = append(g.out, d.data[k.at:k.to])
	}
	g.remove(slices.Index(g.open, d))
	return g.out
}

// expire gives up what has waited for long.
func (g *gatherer) expire(now time.Time) {
	for len(g.open) > 0 && now.Sub(g.open[0].began) > fragmentsAge {
		g.giveUp()
	}
}

// find returns the datagram of that key, a new one if there is none.
func (g *gatherer) find(key datagramKey, now time.Time) *datagram {
	for _, d := range slices.Backward(g.open) {
		if d.key == key {
			return d
		}
	}
	if len(g.open) == fragmentsOpen {
		g.giveUp()
	}
	var d *datagram
	if n := len(g.spare); n > 0 {
		d, g.spare = g.spare[n-1], g.spare[:n-1]
	} else {
		d = &datagram{}
	}
	*d = datagram{key: key, began: now, data: d.data[:0], pieces: d.pieces[:0]}
	g.open = append(g.open, d)
	return d
}

// giveUp drops the oldest datagram.
func (g *gatherer) giveUp() {
	g.incomplete++
	g.remove(0)
}

func (g *gatherer) remove(i int) {
	d := g.open[i]
	g.open = slices.Delete(g.open, i, i+1)
	g.bytes -= len(d.data)
	if len(g.spare) < fragmentsSpare {
		g.spare = append(g.spare, d)
	}
}

// place puts a fragment where it belongs, and reports whether it fits there.
func (d *datagram) place(p []byte, f fragment) bool {
	i, found := slices.BinarySearchFunc(d.pieces, f.off, func(k piece, off int) int { return k.off - off })
	switch {
	case found && d.pieces[i].end == f.end && (f.last == (f.end == d.total)):
		return true // it came twice
	case len(d.pieces) == fragmentsEach,
		i > 0 && d.pieces[i-1].end > f.off,
		i < len(d.pieces) && d.pieces[i].off < f.end,
		f.last && (d.total > 0 || i < len(d.pieces)),
		!f.last && d.total > 0 && f.end > d.total:
		return false
	}
	if f.last {
		d.total = f.end
	}
	d.pieces = slices.Insert(d.pieces, i, piece{f.off, f.end, len(d.data), len(d.data) + len(p)})
	d.data = append(d.data, p...)
	d.have += f.end - f.off
	return true
}
