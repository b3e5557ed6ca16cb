package tunnel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/tun"

	"github.com/fogplr/fogplr/replicate"
)

// Common is what robots and gateways are configured with alike.
type Common struct {
	Name    string
	Version string
	// Interface is the name of the host's TUN device, MTU its MTU in bytes.
	Interface string
	MTU       int
	// Addresses are the overlay addresses with their prefix. The first one gives
	// the node its number.
	Addresses []netip.Prefix
	// Deadline bounds how long a packet may wait in this node (50 ms at least).
	Deadline time.Duration
	// Mark is set on every UDP socket (SO_MARK) unless 0.
	Mark uint32
	Log  *slog.Logger
}

// node is what robots and gateways have in common: the two halves of the walk
// and the peers. Locks are taken in the order inward.mu, node.mu, queue.mu.
type node struct {
	cfg   Common
	start time.Time
	host  tun.Device
	pool  batchPool
	out   *outward
	in    *inward
	still *standstill
	beats *rhythm
	keeps *rhythm

	// mu guards the part of link that says so. Who holds it must not ask WireGuard
	// for a peer: that waits while one is removed, and the removal waits for In.
	mu sync.Mutex
	// peers change under inward.mu and node.mu; either is enough to read them.
	peers []*peer
	clock wallClock // guarded by mu
}

func newNode(cfg Common, host tun.Device) *node {
	n := &node{cfg: cfg, start: time.Now(), host: host}
	own := make([]netip.Addr, len(cfg.Addresses))
	for i, p := range cfg.Addresses {
		own[i] = p.Addr()
	}
	n.still = newStandstill(cfg.Deadline, n.start, asleep)
	n.beats, n.keeps = newRhythm(beatInterval, idleBeat), newRhythm(upkeepInterval, idleUpkeep)
	n.in = newInward(host, own, cfg.Log, n.start)
	n.in.mtu = cfg.MTU
	n.in.still, n.in.woken = n.still, n.stir
	n.out = &outward{host: host, own: own, pool: &n.pool, log: cfg.Log, start: n.start, woken: n.stir, still: n.still}
	n.out.roster.Store(&roster{})
	if told := n.clock.warning(n.start); told != "" {
		cfg.Log.Warn(told)
	}
	return n
}

// meet returns the peers that are described, with those that are known already in
// the place of their descriptions. It is an error if two share an address.
func (n *node) meet(described []*peer) ([]*peer, error) {
	n.in.mu.Lock()
	defer n.in.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := make(map[netip.Addr]string)
	met := slices.Clone(described)
	for i, p := range described {
		for _, a := range p.addrs {
			if other, twice := taken[a]; twice {
				return nil, fmt.Errorf("%s and %s have one overlay address, %v; each node needs its own", other, p.name, a)
			}
			taken[a] = p.name
		}
		if k := slices.IndexFunc(n.peers, p.same); k >= 0 {
			met[i] = n.peers[k]
		}
	}
	for i, p := range described {
		met[i].name = p.name
	}
	return met, nil
}

// admit makes peers, with the paths that they have now, those that packets are
// taken from and sent to.
func (n *node) admit(peers []*peer, queues []*queue) {
	to := &roster{peers: peers, queues: queues, byAddr: make(map[netip.Addr]*peer)}
	for _, p := range peers {
		for _, a := range p.addrs {
			to.byAddr[a] = p
		}
	}
	n.in.mu.Lock()
	defer n.in.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.peers = peers
	n.in.admit(peers)
	n.out.roster.Store(to)
}

// newPeer makes a peer whose first address lies in one of the overlay prefixes
// of this node, which is how both ends come to the same node number.
func newPeer(name string, addrs []netip.Addr, own []netip.Prefix) (*peer, error) {
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%s has no overlay address", name)
	}
	p := &peer{name: name, addrs: addrs, elim: replicate.NewEliminator(), epoch: rand.Uint32()}
	for _, prefix := range own {
		if prefix.Contains(addrs[0]) {
			number, err := replicate.NodeOf(netip.PrefixFrom(addrs[0], prefix.Bits()))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			p.node = number
			return p, nil
		}
	}
	return nil, fmt.Errorf("the overlay address %v of %s is in none of this node's prefixes %v", addrs[0], name, own)
}

// walkOut runs Out until ctx ends. It is an error if the TUN device goes before
// that: whoever starts the daemon again makes a new one.
func (n *node) walkOut(ctx context.Context) error {
	err := n.out.run()
	if err == nil && ctx.Err() == nil {
		return fmt.Errorf("%s has gone; was it deleted? A restart of fogplr makes it again", n.cfg.Interface)
	}
	return err
}

// number returns the node's number.
func (c *Common) number() (uint32, error) {
	if len(c.Addresses) == 0 {
		return 0, errors.New("a node needs an overlay address")
	}
	return replicate.NodeOf(c.Addresses[0])
}

// frameMTU is the largest frame in bytes.
func (c *Common) frameMTU() int { return c.MTU + replicate.TagLen }

// sendControl sends a probe or a reply by one path.
func (n *node) sendControl(q *queue, l *link, typ replicate.Type, payload []byte, now time.Time) {
	b := n.pool.get(len(payload), now)
	off := b.add(payload)
	b.items = append(b.items, item{peer: l.peer, off: off, len: len(payload), typ: typ, slots: 1 << l.slot})
	q.pushControl(b)
	n.pool.release(b)
}

// upkeep rolls the counters of what came in, and judges latent errors and twins.
func (n *node) upkeep() {
	n.in.mu.Lock()
	defer n.in.mu.Unlock()
	now := time.Now()
	for _, p := range n.peers {
		p.elim.Settle(now)
		p.fragments.expire(now)
		n.judgeLatent(p, now)
		if p.twin.begun(now) {
			n.cfg.Log.Warn(twinWarning(p.name))
		}
		for l := range p.paths() {
			l.loss.Roll(now)
		}
	}
}

// status fills in what both kinds of node have, and the paths by describe,
// which is called with node.mu held.
func (n *node) status(role string, describe func(*link, *PathStatus)) Status {
	now := time.Now()
	s := Status{
		Role: role, Name: n.cfg.Name, Version: n.cfg.Version, Uptime: now.Sub(n.start).Seconds(),
		Interface: n.cfg.Interface, MTU: n.cfg.MTU, OnCarrier: onCarrier(n.cfg.frameMTU()), Out: n.out.counters(), Peers: []PeerStatus{},
	}
	for _, a := range n.cfg.Addresses {
		s.Addresses = append(s.Addresses, a.String())
	}
	n.in.mu.Lock()
	defer n.in.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	s.In = n.in.counters
	s.In.Stale, s.Out.Stale = n.still.in.Load(), n.still.out.Load()
	if told := n.clock.warning(now); told != "" {
		s.Warnings = append(s.Warnings, told)
	}
	if s.In.BadVersion > 0 {
		s.Warnings = append(s.Warnings, "A peer sends frames of another version, which cannot be read. Install the same fogplr on robots and gateways.")
	}
	for _, p := range n.peers {
		ps := PeerStatus{Name: p.name, Elimination: p.elim.Counters(), Incomplete: p.fragments.incomplete, Paths: []PathStatus{}}
		for _, a := range p.addrs {
			ps.Addresses = append(ps.Addresses, a.String())
		}
		if p.twin.twins(now) {
			s.Warnings = append(s.Warnings, twinWarning(p.name))
		}
		carries := p.carries.Load()
		for l := range p.paths() {
			st := PathStatus{
				Carrier: l.carrier, Slot: l.slot, Carries: carries>>l.slot&1 == 1,
				LossIn: l.loss.Share(), LossOut: l.lossOut, LastProof: -1,
				TxFrames: l.txFrames.Load(), RxFrames: l.rxFrames, TxDropped: l.txDropped.Load(),
				LatentErrors: p.latent.Errors(l.slot), Latent: p.latent.Latent().Has(l.slot),
			}
			st.ClockBehind = l.clockBehind
			st.Parts, st.TxParts = l.partsFor(n.cfg.MTU, n.cfg.frameMTU()), l.txParts.Load()
			if l.parts != nil {
				st.RxParts = l.parts.Counters()
			}
			s.ClockBehind += l.clockBehind
			describe(l, &st)
			st.LargestPacket = packetBytes(st.Largest, n.cfg.frameMTU(), st.Endpoint)
			ps.Paths = append(ps.Paths, st)
		}
		s.Peers = append(s.Peers, ps)
	}
	return s
}

// ago returns the seconds since t, -1 if t never was.
func ago(t, now time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return now.Sub(t).Seconds()
}
