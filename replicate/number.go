package replicate

// Numberer gives out the sequence numbers of one stream, from one sender node
// to one receiver node. One goroutine at a time may use it.
type Numberer struct {
	epoch uint32
	last  Seq
}

// NewNumberer returns a Numberer whose first number is 1. The epoch names this
// run of the sender: the caller draws it at random, anew at every start.
func NewNumberer(epoch uint32) *Numberer { return &Numberer{epoch: epoch} }

// Epoch returns the epoch given to NewNumberer, which goes into every tag
// beside the number.
func (n *Numberer) Epoch() uint32 { return n.epoch }

// Next returns the number of the next packet, one more than the last; 2^32-1 is
// followed by 0. All copies of one packet carry the same number.
func (n *Numberer) Next() Seq {
	n.last++
	return n.last
}
