package lab

import "time"

// Counters tell what became of the packets of one direction of a link. At any
// time Received + Duplicated = Delivered + Lost + Overflowed + Swallowed +
// TooBig + Refused + InFlight.
type Counters struct {
	Received       uint64 // read from the sender's device
	ReceivedBytes  uint64 // with Ethernet headers
	Delivered      uint64 // handed to the receiver's device
	DeliveredBytes uint64
	Lost           uint64 // by Loss or Burst
	Overflowed     uint64 // the queue for the rate was full
	Swallowed      uint64 // by BlackHole
	TooBig         uint64 // by MTU
	Duplicated     uint64 // copies made
	Reordered      uint64 // held back
	Refused        uint64 // not taken by the receiver's device (down or gone)
	InFlight       uint64 // inside now
	// Latest is the longest time by which a packet left after it was due: how
	// well the emulator kept up.
	Latest time.Duration
}

// Plus returns the sum of two links' counters.
func (c Counters) Plus(o Counters) Counters {
	return c.combine(o, func(a, b uint64) uint64 { return a + b })
}

// Since returns what was counted after an earlier reading; Latest and InFlight
// are those of now.
func (c Counters) Since(o Counters) Counters {
	d := c.combine(o, func(a, b uint64) uint64 { return a - b })
	d.Latest, d.InFlight = c.Latest, c.InFlight
	return d
}

func (c Counters) combine(o Counters, f func(a, b uint64) uint64) Counters {
	return Counters{
		Received: f(c.Received, o.Received), ReceivedBytes: f(c.ReceivedBytes, o.ReceivedBytes),
		Delivered: f(c.Delivered, o.Delivered), DeliveredBytes: f(c.DeliveredBytes, o.DeliveredBytes),
		Lost: f(c.Lost, o.Lost), Overflowed: f(c.Overflowed, o.Overflowed), Swallowed: f(c.Swallowed, o.Swallowed),
		TooBig: f(c.TooBig, o.TooBig), Duplicated: f(c.Duplicated, o.Duplicated), Reordered: f(c.Reordered, o.Reordered),
		Refused: f(c.Refused, o.Refused), InFlight: f(c.InFlight, o.InFlight), Latest: max(c.Latest, o.Latest),
	}
}

// packet is one frame inside a pipe.
type packet struct {
	due   time.Time
	order uint64 // breaks ties, so that equal due times keep their order
	frame []byte
}

func (p *packet) before(o *packet) bool {
	if p.due.Equal(o.due) {
		return p.order < o.order
	}
	return p.due.Before(o.due)
}

// pipe is one direction of a link, without its devices. Time is passed in and
// must not go backwards. Not safe for concurrent use.
type pipe struct {
	settings
	header  int // bytes before the packet in a frame
	seed    uint64
	packets uint64 // offered so far: the number of the next packet
	order   uint64
	bad     bool      // state of the Gilbert-Elliott model
	free    time.Time // when the link has sent all that was queued for its rate
	lastDue time.Time // of packets that keep their order
	heap    []*packet
	pool    []*packet
	count   Counters
}

// settings are what a pipe does to packets.
type settings struct {
	params   Params
	rtt      *RTTTrace // nil without
	capacity *capacity // nil without
	start    time.Time // of the traces, zero for not yet
}

func newPipe(seed uint64, params Params) *pipe {
	return &pipe{settings: settings{params: params}, seed: seed, header: ethernetHeader}
}

// offer takes a frame that arrived at now. The frame is copied when it is kept.
func (p *pipe) offer(now time.Time, frame []byte) {
	n := p.packets
	p.packets++
	p.count.Received++
	p.count.ReceivedBytes += uint64(len(frame))
	length := len(frame) - p.header
	lost := p.lose(n, length) // drawn for every packet, or black holes would shift the luck
	switch {
	case p.params.BlackHole:
		p.count.Swallowed++
		return
	case p.params.MTU > 0 && length > p.params.MTU:
		p.count.TooBig++
		return
	case len(p.heap) >= maxInFlight:
		p.count.Overflowed++
		return
	}
	sent, ok := p.send(now, len(frame))
	recorded, service := p.recorded(sent)
	switch {
	case !ok:
		p.count.Overflowed++
	case lost || !service:
		p.count.Lost++
	default:
		p.fly(n, sent.Add(p.delay(n)+recorded), frame)
	}
}

// recorded returns what the trace adds to the delay of a packet that leaves at
// sent, and false if it has no service then.
func (p *pipe) recorded(sent time.Time) (time.Duration, bool) {
	if p.rtt == nil {
		return 0, true
	}
	return p.rtt.At(p.since(sent))
}

// since is the time since the traces' start, negative before it.
func (p *pipe) since(now time.Time) time.Duration {
	if p.start.IsZero() {
		return -1
	}
	return now.Sub(p.start)
}

// lose decides whether packet n, of length bytes, is lost.
func (p *pipe) lose(n uint64, length int) bool {
	lost := uniform(p.seed, n, drawLoss) < p.params.Loss ||
		p.params.Big > 0 && length > p.params.Big && uniform(p.seed, n, drawBig) < p.params.BigLoss
	b := p.params.Burst
	if b == nil {
		return lost
	}
	change := b.ToBad
	if p.bad {
		change = b.ToGood
	}
	if uniform(p.seed, n, drawState) < change {
		p.bad = !p.bad
	}
	loss := b.LossGood
	if p.bad {
		loss = b.LossBad
	}
	return uniform(p.seed, n, drawBurst) < loss || lost
}

// send returns when a frame of size bytes has left, at the rate of the link.
func (p *pipe) send(now time.Time, size int) (time.Time, bool) {
	if since := p.since(now); p.capacity != nil && since >= 0 {
		left, ok := p.capacity.send(since, size, p.params.queue())
		return p.start.Add(left), ok
	}
	if p.params.Rate == 0 {
		return now, true
	}
	if p.free.Before(now) {
		p.free = now
	}
	if p.free.Sub(now) > p.params.queue() {
		return now, false
	}
	p.free = p.free.Add(time.Duration(float64(size) * 8 / p.params.Rate * float64(time.Second)))
	return p.free, true
}

// delay returns the time in flight of packet n.
func (p *pipe) delay(n uint64) time.Duration {
	d := p.params.Delay
	if j := float64(p.params.Jitter); j > 0 {
		switch p.params.Distribution {
		case Uniform:
			d += time.Duration(j * (2*uniform(p.seed, n, drawJitter) - 1))
		case Normal:
			d += time.Duration(j * normal(p.seed, n))
		}
	}
	return max(d, 0)
}

// fly puts packet n on its way.
func (p *pipe) fly(n uint64, due time.Time, frame []byte) {
	if uniform(p.seed, n, drawReorder) < p.params.Reorder {
		p.count.Reordered++
		due = due.Add(p.params.reorderDelay())
	} else {
		if p.rtt == nil && due.Before(p.lastDue) {
			due = p.lastDue
		}
		p.lastDue = due
	}
	p.push(due, frame)
	if uniform(p.seed, n, drawDuplicate) < p.params.Duplicate {
		p.count.Duplicated++
		p.push(due, frame)
	}
}

// next returns when the next packet is due.
func (p *pipe) next() (time.Time, bool) {
	if len(p.heap) == 0 {
		return time.Time{}, false
	}
	return p.heap[0].due, true
}

// pop returns the next packet that is due at now, nil when there is none. The
// caller gives it back with delivered or refused.
func (p *pipe) pop(now time.Time) *packet {
	for len(p.heap) > 0 && !p.heap[0].due.After(now) {
		k := p.take()
		if !p.params.BlackHole {
			p.count.Latest = max(p.count.Latest, now.Sub(k.due))
			return k
		}
		p.count.Swallowed++
		p.recycle(k)
	}
	return nil
}

// delivered takes back a packet that the receiver's device took.
func (p *pipe) delivered(k *packet) {
	p.count.Delivered++
	p.count.DeliveredBytes += uint64(len(k.frame))
	p.recycle(k)
}

// refused takes back a packet that the receiver's device did not take.
func (p *pipe) refused(k *packet) {
	p.count.Refused++
	p.recycle(k)
}

func (p *pipe) counters() Counters {
	c := p.count
	c.InFlight = uint64(len(p.heap))
	return c
}

func (p *pipe) push(due time.Time, frame []byte) {
	k := p.alloc()
	k.due, k.order = due, p.order
	k.frame = append(k.frame[:0], frame...)
	p.order++
	p.heap = append(p.heap, k)
	for i := len(p.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !p.heap[i].before(p.heap[up]) {
			break
		}
		p.heap[i], p.heap[up] = p.heap[up], p.heap[i]
		i = up
	}
}

// take removes the first packet of the heap, which is not empty.
func (p *pipe) take() *packet {
	first, last := p.heap[0], len(p.heap)-1
	p.heap[0], p.heap[last] = p.heap[last], nil
	p.heap = p.heap[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if p.heap[c].before(p.heap[least]) {
				least = c
			}
		}
		if least == i {
			return first
		}
		p.heap[i], p.heap[least] = p.heap[least], p.heap[i]
		i = least
	}
}

func (p *pipe) alloc() *packet {
	if n := len(p.pool); n > 0 {
		k := p.pool[n-1]
		p.pool = p.pool[:n-1]
		return k
	}
	return &packet{frame: make([]byte, 0, smallFrame)}
}

func (p *pipe) recycle(k *packet) {
	if cap(k.frame) <= smallFrame {
		p.pool = append(p.pool, k)
	}
}
