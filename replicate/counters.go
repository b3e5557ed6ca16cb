package replicate

// Counters are the sequence recovery counters of IEEE Std 802.1CB-2017, 10.4
// (frerCpsSeqRcvy...), by their standard names.
type Counters struct {
	Passed     uint64 `json:"passed"`       // numbers delivered
	Discarded  uint64 `json:"discarded"`    // copies of a number already delivered
	OutOfOrder uint64 `json:"out_of_order"` // delivered, but behind the highest number seen
	Rogue      uint64 `json:"rogue"`        // older than the window, or of a retired epoch; dropped
	Lost       uint64 `json:"lost"`         // numbers of which no copy came
	Resets     uint64 `json:"resets"`       // new epochs of the sender after the first
}
