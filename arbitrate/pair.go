package arbitrate

import (
	"math/bits"

	"github.com/fogplr/fogplr/rtps"
)

// bitset has a bit for each of window consecutive numbers.
type bitset [window / 64]uint64

func (b *bitset) has(n rtps.SequenceNumber) bool { return b[n%window/64]>>(n%64)&1 != 0 }
func (b *bitset) set(n rtps.SequenceNumber)      { b[n%window/64] |= 1 << (n % 64) }
func (b *bitset) clear(n rtps.SequenceNumber)    { b[n%window/64] &^= 1 << (n % 64) }

// pair is what a reader of this host has of a writer there, as far as it can be
// told from here. It comes to be when a HEARTBEAT came for the reader.
type pair struct {
	reader rtps.GUID
	// matched says that the reader has sent an ACKNACK since, so that it takes what
	// the writer sends. Nothing is known of what was passed on before: early is the
	// highest number of that.
	matched bool
	early   rtps.SequenceNumber
	// stuck says that the reader may have more than is known here: a number that
	// seems to be missing may have been read.
	stuck bool

	// start is the first number that is for the reader. Of all below next it has
	// what it will get; next is missing, or still to come.
	start, next rtps.SequenceNumber
	// done has the numbers from next on, fewer than window, of which the reader has
	// what it will get; whole, those of them that were passed on as they are.
	done, whole bitset
	open        []assembly
	bitmaps     *bitmaps
}

// bitmaps is what the bitmaps of all assemblies may take.
type bitmaps struct {
	room int    // octets that are left
	full uint64 // assemblies that there was no room for
}

// assembly is a sample of which some fragments were passed on.
type assembly struct {
	n           rtps.SequenceNumber
	have, total rtps.FragmentNumber
	bits        []uint64
}

// pieces are consecutive fragments of a sample; all that there is of DATA.
type pieces struct{ first, count, total rtps.FragmentNumber }

// covers says that n is among the numbers that are followed, and not done.
func (p *pair) covers(n rtps.SequenceNumber) bool {
	return p.matched && n >= p.next && n-p.next < window && !p.done.has(n)
}

// blocked says that the reader, if it had n, would not hand it out yet.
func (p *pair) blocked(n rtps.SequenceNumber) bool { return p.covers(n) && n > p.next }

// completes says that with these pieces the reader has all of n, of which it lacks
// something now.
func (p *pair) completes(n rtps.SequenceNumber, k pieces) bool {
	if !p.covers(n) {
		return false
	}
	if k.count == k.total {
		return true
	}
	if o := p.assembly(n); o != nil && o.total == k.total {
		return o.have+o.new(k, false) == o.total
	}
	return false
}

// take notes that these pieces were passed on, and reports whether the reader has
// all of n now.
func (p *pair) take(n rtps.SequenceNumber, k pieces) bool {
	if !p.matched {
		p.early = max(p.early, n)
	}
	if !p.covers(n) {
		return false
	}
	if k.count < k.total {
		o := p.assembly(n)
		if o == nil {
			o = p.assemble(n, k.total)
		}
		if o == nil || o.total != k.total {
			return false
		}
		o.have += o.new(k, true)
		if o.have < o.total {
			return false
		}
	}
	p.done.set(n)
	p.whole.set(n)
	p.close(n)
	return true
}

// gap notes that the reader will not get n.
func (p *pair) gap(n rtps.SequenceNumber) {
	if p.covers(n) {
		p.done.set(n)
		p.close(n)
	}
}

func (p *pair) assembly(n rtps.SequenceNumber) *assembly {
	for i := range p.open {
		if p.open[i].n == n {
			return &p.open[i]
		}
	}
	return nil
}

// assemble begins to put a sample together. It returns nil if that has too many
// fragments, or there is no room.
func (p *pair) assemble(n rtps.SequenceNumber, total rtps.FragmentNumber) *assembly {
	switch {
	case total > maxFragments:
		p.stuck = true
		p.bitmaps.full++
		return nil
	case len(p.open) == maxOpen: // the oldest goes, and its memory is used again
		p.stuck = true
		p.bitmaps.full++
		p.close(p.open[0].n)
	case len(p.open) == cap(p.open):
		p.open = append(p.open, assembly{})[:len(p.open)]
	}
	o := &p.open[:len(p.open)+1][len(p.open)]
	if words := int(total+63) / 64; cap(o.bits) < words {
		if p.bitmaps.room < words*8 {
			p.stuck = true
			p.bitmaps.full++
			return nil
		}
		p.bitmaps.room -= (words - cap(o.bits)) * 8
		o.bits = make([]uint64, words)
	}
	p.open = p.open[:len(p.open)+1]
	*o = assembly{n: n, total: total, bits: o.bits[:int(total+63)/64]}
	clear(o.bits)
	return o
}

// free gives back what the bitmaps take.
func (p *pair) free() {
	for _, o := range p.open[:cap(p.open)] {
		p.bitmaps.room += cap(o.bits) * 8
	}
	p.open = nil
}

// close ends the putting together of n.
func (p *pair) close(n rtps.SequenceNumber) {
	for i := range p.open {
		if p.open[i].n == n {
			spare := p.open[i]
			copy(p.open[i:], p.open[i+1:])
			p.open[len(p.open)-1] = spare
			p.open = p.open[:len(p.open)-1]
			return
		}
	}
}

// new counts the pieces that are missing so far, and notes them if it shall.
func (o *assembly) new(k pieces, note bool) (n rtps.FragmentNumber) {
	from, to := k.first-1, k.first-1+k.count
	for from < to {
		end := min(from/64*64+64, to)
		mask := ^uint64(0) >> (64 - (end - from)) << (from % 64)
		word := &o.bits[from/64]
		n += rtps.FragmentNumber(bits.OnesCount64(mask &^ *word))
		if note {
			*word |= mask
		}
		from = end
	}
	return n
}

// match notes the first ACKNACK of a reader that has heard a HEARTBEAT: it has, or
// will never get, everything below base.
func (p *pair) match(base rtps.SequenceNumber) {
	p.matched, p.start, p.next = true, base, base
}

// rewind goes back to n, below next: what lies between was passed on.
func (p *pair) rewind(n rtps.SequenceNumber) {
	if p.next-n >= window {
		p.done, p.whole = bitset{}, bitset{} // nothing is known of so many
	} else {
		for k := n; k < p.next; k++ {
			p.done.set(k)
			p.whole.set(k)
		}
	}
	p.next = n
}

// lost notes that the reader lacks something of n, though it was passed on.
func (p *pair) lost(n rtps.SequenceNumber) {
	if n < p.next {
		p.rewind(n)
	}
	if n-p.next < window {
		p.done.clear(n)
	}
}
