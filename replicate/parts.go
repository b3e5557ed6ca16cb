package replicate

import (
	"encoding/binary"
	"time"
)

// A path whose carrier takes only small packets gets a large inner packet in
// parts, each a frame of type Part with the packet's own sequence number: the
// packet stays one packet, and elimination sees it once it is whole. What follows
// the tag, big endian:
//
//	octet  0      index, from 0 (high nibble), number of parts (low nibble)
//	octets 1-2    length of the inner packet
//	octets 3-     the piece
//
// With n parts a piece has a n-th of the packet, rounded up, and the last one
// what is left. So index and length tell where a piece belongs and how long it is.

// PartHeaderLen is the length in bytes of what stands between tag and piece.
const PartHeaderLen = 3

// MaxParts is into how many parts a packet is cut at most.
const MaxParts = 4

// PartsFor returns in how many frames an inner packet of size bytes travels on a
// path that takes frames of up to largest bytes: 1 if it need not be cut, 0 if it
// does not pass even in MaxParts parts.
func PartsFor(size, largest int) int {
	if TagLen+size <= largest {
		return 1
	}
	for n := 2; n <= MaxParts; n++ {
		if TagLen+PartHeaderLen+(size+n-1)/n <= largest {
			return n
		}
	}
	return 0
}

// PutPart writes the payload of the frame for part index (0 to count-1) of packet
// into b and returns its length, which is at most PartHeaderLen and a count-th of
// the packet, rounded up. count is 2 to MaxParts, the packet has 20 to 65,535
// bytes.
func PutPart(b, packet []byte, index, count int) int {
	off, n, _ := piece(len(packet), index, count)
	_ = b[PartHeaderLen+n-1]
	b[0] = byte(index<<4 | count)
	binary.BigEndian.PutUint16(b[1:], uint16(len(packet)))
	return PartHeaderLen + copy(b[PartHeaderLen:], packet[off:off+n])
}

// piece returns where in a packet of total bytes a piece belongs and how long it
// is, and whether there are such pieces.
func piece(total, index, count int) (off, n int, ok bool) {
	if count < 2 || count > MaxParts || index >= count {
		return 0, 0, false
	}
	each := (total + count - 1) / count
	off = index * each
	return off, min(each, total-off), each*(count-1) < total
}

// PartCounters count what became of parts.
type PartCounters struct {
	Whole      uint64 `json:"whole"`      // packets put together
	Incomplete uint64 `json:"incomplete"` // packets given up for want of a part
	Discarded  uint64 `json:"discarded"`  // parts that came twice, too late or from another run than the one followed
	Odd        uint64 `json:"odd"`        // parts that are malformed or do not fit the others
}

// Reassembler puts the packets of one path together. It keeps partRing packets at
// once, by the last bits of their numbers, and a newer packet takes an older one's
// place: nothing ever waits for a part. So the order of arrival does not matter
// as long as a packet's parts arrive before those of the packet partRing numbers
// on. A packet comes out once at most, unless its parts come twice and more than
// ten seconds apart, or a run of the sender is followed again, which the Eliminator
// would notice. The caller serialises all calls; now must not go backwards.
type Reassembler struct {
	largest  int
	epoch    uint32 // of the sender
	ring     [partRing]assembly
	counters PartCounters
}

// assembly is a packet in the making, or one that was made.
type assembly struct {
	used  bool
	seq   Seq
	count int
	total int
	have  uint8     // parts that came, by bits
	began time.Time // when the first one did
	buf   []byte
}

// NewReassembler returns a Reassembler for inner packets of up to largest bytes.
// It takes up hardly anything until parts come, and then partRing such packets.
func NewReassembler(largest int) *Reassembler { return &Reassembler{largest: largest} }

// Follow says which epoch of the sender the path's parts must be from until the next
// call, 0 at first. What was being made of another one's is given up.
func (r *Reassembler) Follow(epoch uint32) {
	if epoch == r.epoch {
		return
	}
	r.epoch = epoch
	for i := range r.ring {
		r.leave(&r.ring[i])
	}
}

// Add takes the payload of a frame of type Part, with the epoch and the sequence
// number of its tag. It returns the packet when that part was the last one missing,
// else nil. The packet's bytes are the Reassembler's, and stand until the next
// call. Parts that are malformed or fit no other do no harm: they cost at most the
// packets of their own sender with the same last bits of the number.
func (r *Reassembler) Add(epoch uint32, seq Seq, payload []byte, now time.Time) []byte {
	if len(payload) <= PartHeaderLen {
		r.counters.Odd++
		return nil
	}
	index, count := int(payload[0]>>4), int(payload[0]&15)
	total := int(binary.BigEndian.Uint16(payload[1:]))
	off, n, ok := piece(total, index, count)
	if !ok || total > r.largest || n != len(payload)-PartHeaderLen {
		r.counters.Odd++
		return nil
	}
	var a *assembly
	if epoch == r.epoch {
		a = r.claim(seq, now)
	}
	if a == nil || a.used && now.Sub(a.began) > partsAge {
		r.counters.Discarded++
		return nil
	}
	if !a.used {
		a.open(seq, count, total, now)
		if a.buf == nil {
			a.buf = make([]byte, r.largest)
		}
	}
	bit := uint8(1) << index
	switch {
	case a.count != count || a.total != total:
		r.counters.Odd++
		return nil
	case a.have&bit != 0:
		r.counters.Discarded++
		return nil
	}
	a.have |= bit
	copy(a.buf[off:], payload[PartHeaderLen:])
	if !a.whole() {
		return nil
	}
	r.counters.Whole++
	return a.buf[:total]
}

// Counters returns the counters as they are now.
func (r *Reassembler) Counters() PartCounters { return r.counters }

// claim returns the place for the packet of that number, its own or one that is
// not used; nil if a newer packet has taken it.
func (r *Reassembler) claim(seq Seq, now time.Time) *assembly {
	a := &r.ring[seq%partRing]
	if a.used && a.seq != seq {
		if int32(seq-a.seq) < 0 && now.Sub(a.began) <= partsMemory {
			return nil
		}
		r.leave(a)
	}
	return a
}

// leave gives up the packet in a place.
func (r *Reassembler) leave(a *assembly) {
	if a.used && !a.whole() {
		r.counters.Incomplete++
	}
	a.used = false
}

func (a *assembly) open(seq Seq, count, total int, now time.Time) {
	*a = assembly{used: true, seq: seq, count: count, total: total, began: now, buf: a.buf}
}

// whole reports whether all parts came.
func (a *assembly) whole() bool { return a.have == 1<<a.count-1 }
