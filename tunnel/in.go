package tunnel

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/tun"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// inward is the In half of the walk: it takes authenticated frames from every
// WireGuard device, eliminates copies and writes the survivors to the host's
// TUN device. Its lock is held across both, so that packets reach the kernel in
// the order in which they won.
type inward struct {
	host  tun.Device
	own   []netip.Addr
	start time.Time
	log   *slog.Logger
	still *standstill
	// mtu is this node's own, in bytes.
	mtu int
	// onProbe and onReply take control messages, with the size of their frames in
	// bytes. They are called with mu held and must not call back.
	onProbe func(l *link, m path.Probe, size int, now time.Time)
	onReply func(l *link, m path.Reply, size int, now time.Time)
	// woken is called when traffic with a peer begins after a pause.
	woken func()
	// heard is called with mu held for every batch that a path brought.
	heard func(*link, time.Time)
	// begun is called with mu held when a peer's new run is first heard on a path.
	begun func(*link)

	mu       sync.Mutex
	links    map[replicate.Address]*link // by the source that WireGuard vouched for
	store    [][]byte                    // persistent buffers of the survivors
	pass     [][]byte                    // survivors of one batch, slices of store
	counters InCounters
	warned   rateLimit
	last     *link  // of the batch at hand that was heard
	arrived  uint32 // when the batch at hand did, by the clock of Tag.SentAt
}

func newInward(host tun.Device, own []netip.Addr, log *slog.Logger, start time.Time) *inward {
	in := &inward{host: host, own: own, log: log, start: start, links: make(map[replicate.Address]*link), woken: func() {}, begun: func(*link) {}}
	in.store = make([][]byte, batchPackets)
	in.pass = make([][]byte, 0, batchPackets)
	return in
}

// admit takes frames of the peers' paths from now on, and of no others. The
// caller holds mu.
func (in *inward) admit(peers []*peer) {
	clear(in.links)
	for _, p := range peers {
		for l := range p.paths() {
			in.links[l.remote] = l
		}
	}
}

// deliver walks one batch of frames in; each begins at offset. Several
// WireGuard peers call it at once.
func (in *inward) deliver(frames [][]byte, offset int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.walk(frames, offset, time.Now()) // under the lock, since elimination's time must not go back
}

// walk is deliver at that time. The caller holds mu.
func (in *inward) walk(frames [][]byte, offset int, now time.Time) {
	if in.still.stale(now) {
		in.still.in.Add(uint64(len(frames)))
		return
	}
	in.last, in.arrived = nil, in.still.stamp(now)
	for _, f := range frames {
		in.frame(f[offset:], offset, now)
	}
	in.flush(offset)
}

// frame takes one frame.
func (in *inward) frame(f []byte, offset int, now time.Time) {
	t, payload, err := replicate.DecodeTag(f)
	if err != nil {
		if errors.Is(err, replicate.ErrVersion) {
			in.counters.BadVersion++
		} else {
			in.counters.Malformed++
		}
		return
	}
	in.counters.Frames++
	l := in.links[t.Src]
	if l == nil || t.Dst != l.local {
		in.counters.NotAllowed++
		return
	}
	if l != in.last { // before an answer can tell the peer that it was heard
		in.heard(l, now)
		in.last = l
	}
	l.rxFrames++
	l.rxBytes += uint32(len(f))
	if l.loss.Seen(t.Epoch, uint32(t.PathSeq)) {
		in.begun(l)
	}
	l.peer.twin.see(t.Epoch, t.SentAt, now)
	old := l.ages.Old(t.Epoch, t.SentAt, in.arrived, in.still.tolerance(), now)
	switch t.Type {
	case replicate.Data, replicate.Part:
		in.carried(l, len(f))
		if old {
			in.still.in.Add(1)
			return
		}
		in.copied(l, &t, payload, offset, now)
	case replicate.Probe:
		if m, err := path.DecodeProbe(payload); err == nil {
			in.onProbe(l, m, len(f), now)
		} else {
			in.counters.Malformed++
		}
	case replicate.Reply:
		if m, err := path.DecodeReply(payload); err == nil {
			in.onReply(l, m, len(f), now)
		} else {
			in.counters.Malformed++
		}
	default: // a newer peer's: harmless
		in.counters.BadVersion++
	}
}

// carried notes a frame of size bytes that holds a packet or a part of one.
func (in *inward) carried(l *link, size int) {
	l.carried(size, in.mtu+replicate.TagLen)
	l.rxLargest = max(l.rxLargest, size)
}

// copied takes a copy of a packet, or a part of one.
func (in *inward) copied(l *link, t *replicate.Tag, p []byte, offset int, now time.Time) {
	if t.Type == replicate.Part {
		if l.parts == nil {
			l.parts = replicate.NewReassembler(max(in.mtu, leastReassembled))
		}
		l.parts.Follow(l.loss.Epoch())
		if p = l.parts.Add(t.Epoch, t.Seq, p, now); p == nil {
			return
		}
	}
	in.data(l, t, p, offset, now)
}

// data takes one numbered inner packet: its claim is checked before its number
// is, so that a refused packet never uses one up.
func (in *inward) data(l *link, t *replicate.Tag, p []byte, offset int, now time.Time) {
	h := classify(p)
	if h.kind != unicast && h.kind != multicast || !slices.Contains(l.peer.addrs, h.src) ||
		h.kind == unicast && !slices.Contains(in.own, h.dst) {
		in.counters.NotAllowed++
		return
	}
	l.rxData++
	if l.peer.elim.Accept(t.Epoch, t.Seq, now) != replicate.Pass {
		return
	}
	if l.peer.busy(now.Sub(in.start)) {
		in.woken()
	}
	f, ok := fragmentOf(p, h)
	if !ok {
		in.write(p, offset)
		return
	}
	for _, p := range l.peer.fragments.add(p, f, now) {
		in.write(p, offset)
	}
}

// write puts a packet among the survivors.
func (in *inward) write(p []byte, offset int) {
	n := len(in.pass)
	if n == batchPackets {
		in.flush(offset)
		n = 0
	}
	if in.store[n] == nil {
		in.store[n] = make([]byte, offset+hostBuffer)
	}
	buf := in.store[n][:offset+len(p)]
	copy(buf[offset:], p)
	in.pass = append(in.pass, buf)
}

// flush writes the survivors to the host.
func (in *inward) flush(offset int) {
	pass := in.pass
	in.pass = in.pass[:0]
	if len(pass) == 0 {
		return
	}
	if in.still.stale(time.Now()) { // it began meanwhile
		in.still.in.Add(uint64(len(pass)))
		return
	}
	if _, err := in.host.Write(pass, offset); err != nil {
		in.counters.TUNErrors++
		if in.warned.allow(warningsPerSecond, time.Now()) {
			in.log.Warn("The TUN device did not take packets, which are lost. Is it down?", "err", err)
		}
	}
}
