package tunnel

import (
	"math/bits"
	"os"
	"sync"
	"time"

	"github.com/fogplr/fogplr/replicate"
)

// queue stands between the walk and one WireGuard device: many writers, one
// reader. It never blocks a writer: when it is full the oldest batch goes, so
// that a carrier that stands still delays nobody and keeps nothing stale.
type queue struct {
	pool   *batchPool
	slots  uint8         // the carrier slots this device serves
	frame  int           // largest frame, bytes
	maxAge time.Duration // older batches are dropped, not sent
	still  *standstill   // whose clock stamps the frames

	mu      sync.Mutex
	wake    sync.Cond
	control fifo
	data    fifo
	packets int // waiting in data
	bytes   int // waiting in data, by capacity
	closed  bool

	// cursor of the reader
	cur     *batch
	next    int   // index into cur.items
	pending uint8 // slots of cur.items[next] that still need their copy
	// part is which of parts of the copy for the lowest of them comes next.
	part, parts int
}

func newQueue(pool *batchPool, still *standstill, slots uint8, mtu int, maxAge time.Duration) *queue {
	q := &queue{pool: pool, still: still, slots: slots, frame: mtu + replicate.TagLen, maxAge: max(maxAge, leastAge)}
	q.wake.L = &q.mu
	return q
}

// push hands b to the queue, which takes a reference of its own if any item is
// for its slots.
func (q *queue) push(b *batch) {
	mine := 0
	for i := range b.items {
		if b.items[i].slots&q.slots != 0 {
			mine++
		}
	}
	if mine == 0 {
		return
	}
	b.refs.Add(1)
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		q.pool.release(b)
		return
	}
	for q.data.len() > 0 && (q.packets+b.count > queuePackets || q.bytes+cap(b.data) > queueBytes) {
		q.drop(q.shift())
	}
	q.data.push(b)
	q.packets += b.count
	q.bytes += cap(b.data)
	q.mu.Unlock()
	q.wake.Signal()
}

// pushControl hands over a batch of probes or replies, ahead of all data.
func (q *queue) pushControl(b *batch) {
	b.refs.Add(1)
	q.mu.Lock()
	if q.closed || q.control.len() >= controlFrames {
		q.mu.Unlock()
		q.pool.release(b)
		return
	}
	q.control.push(b)
	q.mu.Unlock()
	q.wake.Signal()
}

// shift takes the oldest data batch. The caller holds mu.
func (q *queue) shift() *batch {
	b := q.data.shift()
	q.packets -= b.count
	q.bytes -= cap(b.data)
	return b
}

// drop counts b's copies as dropped on their paths and lets it go.
func (q *queue) drop(b *batch) {
	for i := range b.items {
		it := &b.items[i]
		for s := it.slots & q.slots; s != 0; s &= s - 1 {
			if l := it.peer.links[bits.TrailingZeros8(s)].Load(); l != nil {
				l.txDropped.Add(1)
			}
		}
	}
	q.pool.release(b)
}

// take returns the next batch; it waits for one only if block is set. It
// returns nil when there is none or the queue is closed.
func (q *queue) take(block bool) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		switch {
		case q.closed:
			return nil
		case q.control.len() > 0:
			return q.control.shift()
		case q.data.len() > 0:
			b := q.shift()
			if time.Since(b.at) <= q.maxAge {
				return b
			}
			q.drop(b)
		case !block:
			return nil
		default:
			q.wake.Wait()
		}
	}
}

// fill writes frames into bufs from offset on and their lengths into sizes. It
// waits for the first one and returns how many there are, or os.ErrClosed. Only
// the device's TUN reader may call it.
func (q *queue) fill(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	sentAt := uint32(0)
	for n < len(bufs) {
		if q.cur == nil {
			if q.cur = q.take(n == 0); q.cur == nil {
				break
			}
			q.next, q.pending, q.part = -1, 0, 0
			sentAt = q.still.stamp(time.Now())
		}
		if q.pending == 0 {
			if q.next++; q.next == len(q.cur.items) {
				q.pool.release(q.cur)
				q.cur = nil
				continue
			}
			q.pending = q.cur.items[q.next].slots & q.slots
			continue
		}
		if sentAt == 0 {
			sentAt = q.still.stamp(time.Now())
		}
		size, more := q.put(bufs[n][offset:], &q.cur.items[q.next], bits.TrailingZeros8(q.pending), sentAt)
		if size > 0 {
			sizes[n] = size
			n++
		}
		if q.part++; !more {
			q.pending &= q.pending - 1
			q.part = 0
		}
	}
	if n == 0 {
		return 0, os.ErrClosed
	}
	return n, nil
}

// put writes the frame of it for slot and returns its length, 0 if the peer has no
// such path or that takes no such frame, which counts as dropped. A packet that is
// too large for the path goes in parts: put writes part q.part, and more says that
// others follow.
func (q *queue) put(buf []byte, it *item, slot int, sentAt uint32) (size int, more bool) {
	l := it.peer.links[slot].Load()
	if l == nil {
		return 0, false
	}
	if q.part == 0 {
		q.parts = q.partsFor(it, l)
	}
	if q.parts == 0 {
		l.txDropped.Add(1)
		return 0, false
	}
	typ, payload := it.typ, q.cur.data[it.off:it.off+it.len]
	if q.parts == 1 {
		size = replicate.TagLen + copy(buf[replicate.TagLen:], payload)
	} else {
		typ = replicate.Part
		size = replicate.TagLen + replicate.PutPart(buf[replicate.TagLen:], payload, q.part, q.parts)
		l.txParts.Add(1)
	}
	it.peer.txSeq[slot]++
	replicate.PutTag(buf[:size], &replicate.Tag{
		Type: typ, Epoch: it.peer.epoch, PathSeq: it.peer.txSeq[slot],
		Src: l.local, Dst: l.remote, Seq: it.seq, SentAt: sentAt,
	})
	l.txFrames.Add(1)
	if typ != replicate.Probe && typ != replicate.Reply {
		l.carried(size, q.frame)
		l.sent(size)
	}
	return size, q.part+1 < q.parts
}

// partsFor returns in how many frames it goes by l, 0 for not at all.
func (q *queue) partsFor(it *item, l *link) int {
	switch {
	case replicate.TagLen+it.len > q.frame:
		return 0
	case it.typ != replicate.Data:
		return 1
	}
	return l.partsFor(it.len, q.frame)
}

// setMaxAge changes how long batches may wait.
func (q *queue) setMaxAge(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.maxAge = max(d, leastAge)
}

// close wakes the reader and drops what waits.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	for q.data.len() > 0 {
		q.pool.release(q.shift())
	}
	for q.control.len() > 0 {
		q.pool.release(q.control.shift())
	}
	q.mu.Unlock()
	q.wake.Broadcast()
}

// fifo is a queue of batches in a ring that grows to what was needed.
type fifo struct {
	ring []*batch
	head int
	n    int
}

func (f *fifo) len() int { return f.n }

func (f *fifo) push(b *batch) {
	if f.n == len(f.ring) {
		grown := make([]*batch, max(16, 2*len(f.ring)))
		for i := range f.n {
			grown[i] = f.ring[(f.head+i)%len(f.ring)]
		}
		f.ring, f.head = grown, 0
	}
	f.ring[(f.head+f.n)%len(f.ring)] = b
	f.n++
}

func (f *fifo) shift() *batch {
	b := f.ring[f.head]
	f.ring[f.head] = nil
	f.head = (f.head + 1) % len(f.ring)
	f.n--
	return b
}
