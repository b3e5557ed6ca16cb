package path

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// world is a robot's Machine, its WireGuard device, a network and a gateway, in
// virtual time. WireGuard is modelled after golang.zx2c4.com/wireguard: one
// initiation in 5 s unless expired, staging, rekeying at 120 s, a key pair's end
// at 180 s, a new handshake after 15 s without an answer.
type world struct {
	t      tester
	rnd    *rand.Rand
	start  time.Time
	now    time.Time
	m      *Machine
	wg     wgModel
	queue  eventQueue
	events int
	nextP  time.Time // Poll

	// Network.
	rtt      time.Duration
	lossUp   float64
	lossDown float64
	blackUp  bool
	blackDn  bool
	ipv6     bool
	mtu      int           // larger packets get lost, 0 for none
	mtuDown  int           // and on the way down alone
	policer  *pipe         // on the way up
	nat      time.Duration // lifetime of a mapping, 0 for ever
	mapping  uint16
	outAt    time.Time // when the robot last sent
	own      int       // bytes that left and came in, but for data

	// Gateway.
	dead, refuses, disallows bool
	known                    map[int]bool
	hearing                  Hearing
	plain                    bool   // of a version that knows of no sizes and totals
	largest                  uint16 // what the robot says

	// Numbers and losses of the path's frames.
	seqUp, seqDown   uint32
	atGateway, atBot Loss
	epoch            uint32    // of the gateway
	bytes            uint32    // that the gateway got
	seen             uint16    // largest data since the last reply
	full             uint32    // data of the largest size that the robot sent
	told             []float64 // LossIn of the probes since the path came up

	// quiet: the caller reports sessions only of paths that are not up.
	quiet bool

	traffic time.Duration // between packets, 0 for none
	trafOn  bool
	duplex  bool // the gateway sends as much
	data    int  // frame size of data out and in, bytes
	dataIn  int

	log []entry
	ups []flip
}

// tester is what *testing.T and *rapid.T share.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

type entry struct {
	at time.Duration
	Action
}

type flip struct {
	at time.Duration
	up bool
}

type wgModel struct {
	lastSent time.Time
	pending  int
	current  int
	created  time.Time
	dead     bool
	staged   []Probe
	attempt  int // generation of the retransmit timer
	sentAt   time.Time
	owes     int // generation of the keepalive timer, 0 when it is not set
}

// Messages of WireGuard, bytes.
const (
	initiationLen = 148
	responseLen   = 92
	keepaliveLen  = 32
	stunLen       = 60 // tunnel/hello.go
)

type event struct {
	at  time.Time
	seq int
	do  func()
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

func newWorld(t tester, rtt time.Duration) *world {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return &world{
		t: t, rnd: rand.New(rand.NewPCG(1, 2)), start: start, now: start, rtt: rtt,
		m: New(DefaultConfig(), start), known: map[int]bool{}, mapping: 1, data: 200, dataIn: 200, outAt: start,
	}
}

func (w *world) at() time.Duration { return w.now.Sub(w.start) }

func (w *world) after(d time.Duration, do func()) {
	w.events++
	heap.Push(&w.queue, event{w.now.Add(d), w.events, do})
}

// run lets d pass.
func (w *world) run(d time.Duration) {
	w.poll()
	end := w.now.Add(d)
	for {
		if len(w.queue) > 0 && !w.queue[0].at.After(w.nextP) {
			if w.queue[0].at.After(end) {
				break
			}
			e := heap.Pop(&w.queue).(event)
			w.now = latest(w.now, e.at)
			e.do()
		} else {
			if w.nextP.After(end) {
				break
			}
			w.now = latest(w.now, w.nextP)
		}
		w.poll()
	}
	w.now = end
}

// untilUp runs until the path is up and returns how long it took.
func (w *world) untilUp(limit time.Duration) time.Duration {
	w.t.Helper()
	begin := w.now
	for w.now.Sub(begin) < limit {
		w.run(time.Millisecond)
		if w.m.Up() {
			return w.now.Sub(begin)
		}
	}
	w.t.Fatalf("not up within %v, stage %q", limit, w.m.Snapshot(w.now).Stage)
	return 0
}

func (w *world) poll() {
	received, expected := w.atBot.Totals()
	w.m.Arrived(received, expected, w.now)
	w.m.Full(w.full)
	a, next := w.m.Poll(w.now)
	if !next.After(w.now) {
		w.t.Fatalf("%v: next is %v", w.at(), next.Sub(w.now))
	}
	w.nextP = next
	w.note()
	if a == (Action{}) {
		return
	}
	w.log = append(w.log, entry{w.at(), a})
	if a.Expire {
		w.wg.pending, w.wg.dead, w.wg.staged = 0, true, nil
		w.wg.lastSent = w.now.Add(-rekeyTimeout - time.Second)
	}
	if a.Handshake {
		w.initiate()
	}
	if a.Probe {
		if a.ProbeID&sizeProbeID != 0 != (a.Size != 0) {
			w.t.Fatalf("%v: %+v", w.at(), a)
		}
		p := Probe{
			ID: a.ProbeID, Interval: w.m.Interval(w.now), LossIn: w.m.LossIn(w.now), ReplySize: uint16(a.Size), Largest: uint16(w.m.Largest()),
		}
		if w.m.Up() {
			w.told = append(w.told, p.LossIn)
		} else {
			w.told = nil
		}
		w.wg.staged = append(w.wg.staged, p)
		w.flush()
	}
	if a.Stun {
		w.up(stunLen, func() {
			w.down(stunLen, func() { w.m.Reachable(w.now) })
		})
	}
}

func (w *world) note() {
	if up := w.m.Up(); len(w.ups) == 0 && up || len(w.ups) > 0 && w.ups[len(w.ups)-1].up != up {
		w.ups = append(w.ups, flip{w.at(), up})
	}
}

// up carries a UDP payload of n bytes to the gateway, down to the robot.
func (w *world) up(n int, do func()) {
	w.count(n)
	w.wg.owes = 0
	if w.nat > 0 && w.now.Sub(w.outAt) >= w.nat {
		w.mapping++
	}
	w.outAt = w.now
	if w.blackUp || w.tooBig(n, w.mtu) || w.rnd.Float64() < w.lossUp || w.policer != nil && !w.policer.passes(n+28, w.now) {
		return
	}
	w.after(w.rtt/2, func() {
		if !w.dead {
			do()
		}
	})
}

func (w *world) down(n int, do func()) {
	if w.blackDn || w.tooBig(n, w.mtu) || w.tooBig(n, w.mtuDown) || w.rnd.Float64() < w.lossDown {
		return
	}
	w.after(w.rtt-w.rtt/2, func() {
		if w.nat == 0 || w.now.Sub(w.outAt) < w.nat {
			w.count(n)
			do()
		}
	})
}

func (w *world) count(n int) {
	w.own += n + udpLen + ipv4Len
	if w.ipv6 {
		w.own += ipv6Len - ipv4Len
	}
}

func (w *world) tooBig(n, mtu int) bool {
	return mtu > 0 && n-wireguardLen+surroundings(w.ipv6) > mtu
}

// frame is the UDP payload of a frame.
func (w *world) frame(n int) int { return wireguardLen + Padded(n, w.m.cfg.Largest) }

// got sets WireGuard's timer for a keepalive after data.
func (w *world) got() {
	if w.wg.owes != 0 {
		return
	}
	w.events++
	id := w.events
	w.wg.owes = id
	w.after(10*time.Second, func() {
		if w.wg.owes == id && w.usable() {
			w.up(keepaliveLen, func() {})
		}
	})
}

func (w *world) initiate() {
	if !w.wg.lastSent.IsZero() && w.now.Sub(w.wg.lastSent) < rekeyTimeout {
		return
	}
	w.wg.lastSent = w.now
	w.events++
	id := w.events
	w.wg.pending = id
	w.wg.attempt++
	gen := w.wg.attempt
	w.after(rekeyTimeout+time.Duration(w.rnd.IntN(334))*time.Millisecond, func() {
		if w.wg.attempt == gen && w.wg.pending == id {
			w.initiate()
		}
	})
	w.up(initiationLen, func() {
		if w.refuses {
			return
		}
		w.known[id] = true
		w.down(responseLen, func() { w.respond(id) })
	})
}

func (w *world) respond(id int) {
	if w.wg.pending != id {
		return
	}
	w.wg.pending = 0
	w.wg.current, w.wg.created, w.wg.dead = id, w.now, false
	w.wg.sentAt = time.Time{}
	if len(w.wg.staged) == 0 {
		w.session()
		w.up(keepaliveLen, func() {})
		return
	}
	w.flush()
}

func (w *world) session() {
	if !w.quiet || !w.m.Up() {
		w.m.Session(w.now)
	}
}

func (w *world) usable() bool {
	return w.wg.current != 0 && !w.wg.dead && w.now.Sub(w.wg.created) < rejectAfterTime
}

func (w *world) flush() {
	if !w.usable() {
		w.initiate()
		return
	}
	key := w.wg.current
	for _, p := range w.wg.staged {
		w.session()
		sent := w.now
		if w.wg.sentAt.IsZero() {
			w.wg.sentAt = sent
			w.after(15*time.Second, func() {
				if w.wg.sentAt.Equal(sent) {
					w.initiate()
				}
			})
		}
		size := max(int(p.ReplySize), 28+ProbeLen)
		w.seqUp++
		seq := w.seqUp
		w.up(w.frame(size), func() { w.receive(key, p, size, seq) })
	}
	w.wg.staged = nil
	if w.now.Sub(w.wg.created) > 120*time.Second {
		w.initiate()
	}
}

func (w *world) receive(key int, p Probe, size int, seq uint32) {
	if !w.known[key] || w.disallows {
		return
	}
	w.hearing.Announced(p.Interval, w.now)
	w.largest = p.Largest
	w.arrive(seq, size)
	shortest := 28 + ReplyLen
	r := Reply{ID: p.ID, LossOut: w.atGateway.Share(), Bytes: w.bytes, Mapping: w.mapping, Seen: w.seen}
	w.seen = 0
	r.Received, r.Expected = w.atGateway.Totals()
	size = p.ReplyFrame(size, shortest, w.m.cfg.Largest)
	if w.plain {
		r, size = Reply{ID: p.ID, LossOut: r.LossOut}, 28+oldReplyLen
	}
	w.seqDown++
	epoch, back := w.epoch, w.seqDown
	w.down(w.frame(size), func() {
		w.wg.sentAt = time.Time{}
		w.got()
		w.hear(epoch, back)
		w.m.Answered(r, size, w.now)
		w.note()
	})
}

// arrive counts a frame at the gateway.
func (w *world) arrive(seq uint32, size int) {
	w.atGateway.Seen(1, seq)
	w.atGateway.Roll(w.now)
	w.bytes += uint32(size)
}

// hear counts a frame at the robot.
func (w *world) hear(epoch, seq uint32) {
	if w.atBot.Seen(epoch, seq) {
		w.m.Restarted()
	}
}

// anew has the gateway begin another run, with counts of its own.
func (w *world) anew() {
	w.restart()
	w.epoch++
	w.seqDown, w.bytes = 0, 0
	w.atGateway, w.hearing = Loss{}, Hearing{}
}

// restart makes the gateway forget all keys, in silence.
func (w *world) restart() { w.known = map[int]bool{} }

// flow starts traffic, one packet every d.
func (w *world) flow(d time.Duration) {
	w.traffic = d
	if w.trafOn {
		return
	}
	w.trafOn = true
	var tick func()
	tick = func() {
		if w.traffic == 0 {
			w.trafOn = false
			return
		}
		w.m.Traffic(w.now)
		if w.m.HasSession(w.now) && w.usable() {
			w.session()
			w.exchange(w.wg.current)
		}
		w.after(w.traffic, tick)
	}
	tick()
}

func (w *world) stage() Stage { return w.m.Snapshot(w.now).Stage }

// number counts actions since from.
func (w *world) number(from time.Duration, f func(Action) bool) (n int) {
	for _, e := range w.log {
		if e.at >= from && f(e.Action) {
			n++
		}
	}
	return n
}

func isProbe(a Action) bool     { return a.Probe && a.Size == 0 }
func isSize(a Action) bool      { return a.Size != 0 }
func isHandshake(a Action) bool { return a.Handshake }
func isExpire(a Action) bool    { return a.Expire }
func isStun(a Action) bool      { return a.Stun }
