package replicate

// Seq is a sequence number. It wraps: 2^32-1 is followed by 0.
type Seq uint32

// Numberer gives out the sequence numbers of one stream, from one sender node
// to one receiver node, in one epoch: a run of the sender, which it names by a
// random number in every tag. The zero value is ready. One goroutine at a time
// may use it.
type Numberer struct{ last Seq }

// Next returns the number of the next packet, one more than the last; the first
// one is 1. All copies of one packet carry the same number.
func (n *Numberer) Next() Seq {
	n.last++
	return n.last
}
