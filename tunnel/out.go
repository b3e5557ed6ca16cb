package tunnel

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.zx2c4.com/wireguard/tun"

	"github.com/fogplr/fogplr/replicate"
)

// outward is the Out half of the walk: it reads inner packets from the host's
// TUN device, numbers them for each peer and hands them to the queues. One
// goroutine runs it.
type outward struct {
	host   tun.Device
	own    []netip.Addr
	roster atomic.Pointer[roster]
	pool   *batchPool
	log    *slog.Logger
	start  time.Time
	// woken is called when traffic with a peer begins after a pause.
	woken func()
	still *standstill

	packets, bytes, local, noPeer, noPath, notAllowed atomic.Uint64
}

// roster is whom Out sends to, and by which queues. It is replaced as a whole.
type roster struct {
	peers  []*peer
	byAddr map[netip.Addr]*peer
	queues []*queue
}

// run walks packets out until the TUN device is closed.
func (o *outward) run() error {
	bufs := make([][]byte, batchPackets)
	sizes := make([]int, batchPackets)
	for i := range bufs {
		bufs[i] = make([]byte, hostBuffer)
	}
	var limit rateLimit
	for {
		n, err := o.host.Read(bufs, sizes, 0)
		if n > 0 {
			o.walk(bufs[:n], sizes[:n], time.Now())
		}
		switch {
		case err == nil, errors.Is(err, tun.ErrTooManySegments):
		case errors.Is(err, os.ErrClosed):
			return nil
		default:
			// A single packet that the TUN library cannot take (an offload that it
			// does not know) must not stop the others.
			if limit.allow(warningsPerSecond, time.Now()) {
				o.log.Warn("A packet from the TUN device could not be read and is lost.", "err", err)
			}
			time.Sleep(time.Millisecond) // in case it is not about one packet
		}
	}
}

// walk sends one batch on its way.
func (o *outward) walk(bufs [][]byte, sizes []int, now time.Time) {
	if o.still.stale(now) {
		o.still.out.Add(uint64(len(sizes)))
		return
	}
	total := 0
	for _, size := range sizes {
		total += size
	}
	b := o.pool.get(total, now)
	if b == nil {
		return
	}
	to := o.roster.Load()
	for i, size := range sizes {
		o.add(b, bufs[i][:size], to)
	}
	o.packets.Add(uint64(len(sizes)))
	o.bytes.Add(uint64(total))
	if len(b.items) > 0 {
		for _, q := range to.queues {
			q.push(b)
		}
	}
	o.pool.release(b)
}

// add puts one inner packet into b, once for each peer that it goes to.
func (o *outward) add(b *batch, p []byte, known *roster) {
	h := classify(p)
	switch {
	case h.kind == malformed, h.kind == local:
		o.local.Add(1)
		return
	case !slices.Contains(o.own, h.src):
		o.notAllowed.Add(1)
		return
	}
	if h.kind == multicast {
		off := b.add(p)
		for _, to := range known.peers {
			o.number(b, to, off, len(p))
		}
		return
	}
	to := known.byAddr[h.dst]
	if to == nil {
		o.noPeer.Add(1)
		return
	}
	o.number(b, to, b.add(p), len(p))
}

// number adds an item for one peer if any path to it carries.
func (o *outward) number(b *batch, to *peer, off, size int) {
	if to.busy(b.at.Sub(o.start)) {
		o.woken()
	}
	slots := uint8(to.carries.Load())
	if slots == 0 {
		o.noPath.Add(1)
		return
	}
	b.items = append(b.items, item{
		peer: to, off: off, len: size,
		seq: to.numbers.Next(), typ: replicate.Data, slots: slots,
	})
}

func (o *outward) counters() OutCounters {
	return OutCounters{
		Packets: o.packets.Load(), Bytes: o.bytes.Load(), Local: o.local.Load(),
		NoPeer: o.noPeer.Load(), NoPath: o.noPath.Load(), NotAllowed: o.notAllowed.Load(),
	}
}
