package tunnel

import (
	"iter"
	"math"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"golang.zx2c4.com/wireguard/device"

	"github.com/fogplr/fogplr/hello"
	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// peer is the node at the other end: a gateway as a robot sees it, or a robot
// as a gateway does.
type peer struct {
	name  string
	node  uint32
	addrs []netip.Addr
	// links has the paths by carrier slot. They come and go under node.mu; In, Out
	// and the queues read them without.
	links [replicate.MaxSlot + 1]atomic.Pointer[link]

	// carries has bit n set while copies go to slot n.
	carries atomic.Uint32
	// traffic is when data last went to or came from the peer, in nanoseconds
	// since the node's start.
	traffic atomic.Int64

	// epoch and numbers begin anew with each peer, so that one that was taken out and
	// comes back is not taken for the one that it was. txSeq has the numbers of the
	// frames by each slot, which go on when a path is made anew.
	epoch   uint32
	numbers replicate.Numberer                   // Out only
	txSeq   [replicate.MaxSlot + 1]replicate.Seq // the queue's reader only

	// Guarded by inward.mu.
	elim      *replicate.Eliminator
	fragments gatherer
	latent    replicate.LatentDetector
	twin      twinWatch

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
	key           Key // public, of the other end

	txFrames, txParts, txDropped atomic.Uint64
	// applied counts the bytes on the carrier, both ways, that packets of
	// applications took up, with all headers; links of one carrier share it. Robot
	// only. headers are those of UDP and IP.
	applied *atomic.Uint64
	headers atomic.Int32
	// largest is the largest frame in bytes that the path should get, 0 for no limit.
	// It is what any path takes until more is known.
	largest atomic.Int32
	// txFull counts frames with data that were as large as largest; it wraps.
	txFull atomic.Uint32
	// heard is when the last frame came, in nanoseconds since the node's start.
	heard atomic.Int64
	// farewells is how many more times a gateway may be told that this path is not
	// used, and farewellAt, guarded by inward.mu, when it was. Robot only.
	farewells  atomic.Int32
	farewellAt time.Time
	queue      *queue // robot only

	// Guarded by inward.mu.
	loss     path.Loss
	ages     replicate.AgeFilter
	rxFrames uint64
	rxBytes  uint32 // of all frames, tags included; wraps
	// rxLargest is the largest frame with data since that was last told, in bytes.
	rxLargest int
	rxData    int                    // data frames since the last upkeep
	parts     *replicate.Reassembler // nil until a part comes
	lossOut   float64                // gateway only

	// Guarded by node.mu.
	machine *path.Machine // robot only
	caller  *hello.Caller // robot only
	ways    candidates    // robot only
	hearing path.Hearing  // gateway only
	live    bool          // gateway only: whether it was when last looked at
	up      bool          // robot only: whether the machine was, and since when
	since   time.Time
	died    bool      // robot only: it was up until nothing came any more
	called  time.Time // gateway only: when a hello of it last made us start a handshake
	// clockBehind counts the handshakes that the gateway had to start since the
	// robot's clock was behind what it was.
	clockBehind uint64

	// expired is when the device's last handshake before the last Expire was
	// (nanoseconds since 1970). The prober only.
	expired int64
}

// newLink returns a path to the peer by one carrier slot, which add gives it.
func (p *peer) newLink(slot int, carrier string, local, remote replicate.Address) *link {
	l := &link{peer: p, slot: slot, carrier: carrier, local: local, remote: remote, lossOut: -1}
	l.largest.Store(path.BaseFrame)
	return l
}

// add gives the peer a path, in the place of any that its slot has. Frames leave by
// it from then on, so it must be complete; node.admit lets them in.
func (p *peer) add(l *link) { p.links[l.slot].Store(l) }

// carried notes a frame of size bytes, largest at most, that held a packet of an
// application or a part of one.
func (l *link) carried(size, largest int) {
	if l.applied != nil {
		l.applied.Add(uint64(path.Padded(size, largest) + device.MessageTransportSize + int(l.headers.Load())))
	}
}

// sent notes a frame with data of size bytes, tag included.
func (l *link) sent(size int) {
	if path.Padded(size, math.MaxInt) >= int(l.largest.Load()) {
		l.txFull.Add(1)
	}
}

// partsFor returns in how many frames a packet of size bytes goes by l, 0 for not at
// all. most is the largest frame that this node sends, in bytes. A path that takes
// less than any should is filtered, so it gets only what it takes as a whole.
func (l *link) partsFor(size, most int) int {
	largest := most
	if found := int(l.largest.Load()); found > 0 {
		largest = min(largest, found)
	}
	n := replicate.PartsFor(size, largest)
	if n > 1 && largest < path.BaseFrame {
		return 0
	}
	return n
}

// paths yields the peer's links in the order of their slots.
func (p *peer) paths() iter.Seq[*link] {
	return func(yield func(*link) bool) {
		for slot := range p.links {
			if l := p.links[slot].Load(); l != nil && !yield(l) {
				return
			}
		}
	}
}

// same reports whether q describes the node that p is, by whatever name, so that its
// numbers, elimination and paths go on.
func (p *peer) same(q *peer) bool { return p.node == q.node && slices.Equal(p.addrs, q.addrs) }

// busy notes that data went to or came from the peer at that time since the
// node's start, and reports whether it is the first after a pause.
func (p *peer) busy(at time.Duration) (first bool) {
	return at-time.Duration(p.traffic.Swap(int64(at))) > trafficPause
}
