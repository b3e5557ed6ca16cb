package tunnel

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// peer is the node at the other end: a gateway as a robot sees it, or a robot
// as a gateway does.
type peer struct {
	name  string
	node  uint32
	addrs []netip.Addr
	links [replicate.MaxSlot + 1]*link // by carrier slot; fixed after set-up

	// carries has bit n set while copies go to slot n.
	carries atomic.Uint32
	// traffic is when data last went to or came from the peer, in nanoseconds
	// since the node's start.
	traffic atomic.Int64

	numbers replicate.Numberer // Out only

	// Guarded by inward.mu.
	elim   *replicate.Eliminator
	latent replicate.LatentDetector
	twin   twinWatch

	// Guarded by node.mu, gateway only.
	wrongAddress bool      // it claims another node's address
	told         rateLimit // of that
}

// link is this node's end of one path.
type link struct {
	peer          *peer
	slot          int
	carrier       string // what status calls it
	local, remote replicate.Address

	txSeq replicate.Seq // the queue's reader only

	txFrames, txDropped atomic.Uint64
	// heard is when the last frame came, in nanoseconds since the node's start.
	heard atomic.Int64

	// Guarded by inward.mu.
	loss     path.Loss
	rxFrames uint64
	rxData   int // data frames since the last upkeep
	lossOut  float64

	// Guarded by node.mu.
	machine *path.Machine // robot only
	hearing path.Hearing  // gateway only
	live    bool          // gateway only: whether it was when last looked at

	// expired is when the device's last handshake before the last Expire was
	// (nanoseconds since 1970). The prober only.
	expired int64
}

// busy notes that data went to or came from the peer at that time since the
// node's start, and reports whether it is the first after a pause.
func (p *peer) busy(at time.Duration) (first bool) {
	return at-time.Duration(p.traffic.Swap(int64(at))) > trafficPause
}

// microseconds is the clock of Tag.SentAt.
func microseconds(t time.Time) uint32 { return uint32(t.UnixMicro()) }
