package tunnel

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fogplr/fogplr/replicate"
)

// item is one payload for one peer, to be copied to each of slots.
type item struct {
	peer     *peer
	off, len int // of the payload in batch.data
	seq      replicate.Seq
	typ      replicate.Type
	slots    uint8 // bit n: carrier slot n
}

// batch is a run of payloads that was read together. Several queues hold the
// same batch; the last one to release it recycles it. Nobody writes to it
// once it has been pushed.
type batch struct {
	refs  atomic.Int32
	at    time.Time
	data  []byte
	count int // payloads in data
	items []item
	class int
}

// batchSizes are the capacities in bytes that batches come in: a lone packet,
// a few, a whole 64 KiB GSO read with a header for each segment.
var batchSizes = [...]int{2 << 10, 16 << 10, 80 << 10, 256 << 10}

// batchPool recycles batches by size class. The zero value is ready.
type batchPool struct {
	pools [len(batchSizes)]sync.Pool
}

// get returns an empty batch with room for size bytes and one reference, or
// nil when size is beyond the largest class.
func (p *batchPool) get(size int, now time.Time) *batch {
	for c, capacity := range batchSizes {
		if size > capacity {
			continue
		}
		b, _ := p.pools[c].Get().(*batch)
		if b == nil {
			b = &batch{data: make([]byte, 0, capacity), class: c}
		}
		b.refs.Store(1)
		b.at = now
		return b
	}
	return nil
}

// release drops one reference.
func (p *batchPool) release(b *batch) {
	if b.refs.Add(-1) > 0 {
		return
	}
	clear(b.items)
	b.items = b.items[:0]
	b.data, b.count = b.data[:0], 0
	p.pools[b.class].Put(b)
}

// add copies payload into b and returns where it stands.
func (b *batch) add(payload []byte) (off int) {
	off = len(b.data)
	b.count++
	b.data = append(b.data, payload...)
	return off
}
