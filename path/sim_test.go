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
	t     tester
	rnd   *rand.Rand
	start time.Time
	now   time.Time
	m     *Machine
	wg    wgModel
	queue eventQueue
	count int
	nextP time.Time // Poll

	// Network.
	rtt      time.Duration
	lossUp   float64
	lossDown float64
	blackUp  bool
	blackDn  bool

	// Gateway.
	dead, refuses, disallows bool
	known                    map[int]bool
	hearing                  Hearing

	// quiet: the caller reports sessions only of paths that are not up.
	quiet bool

	traffic time.Duration // between packets, 0 for none
	trafOn  bool
	duplex  bool // the gateway sends as much

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
}

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
		m: New(DefaultConfig(), start), known: map[int]bool{},
	}
}

func (w *world) at() time.Duration { return w.now.Sub(w.start) }

func (w *world) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.queue, event{w.now.Add(d), w.count, do})
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
		w.wg.staged = append(w.wg.staged, Probe{ID: a.ProbeID, Interval: w.m.Interval(w.now)})
		w.flush()
	}
	if a.Stun {
		w.up(func() {
			w.down(func() { w.m.Reachable(w.now) })
		})
	}
}

func (w *world) note() {
	if up := w.m.Up(); len(w.ups) == 0 && up || len(w.ups) > 0 && w.ups[len(w.ups)-1].up != up {
		w.ups = append(w.ups, flip{w.at(), up})
	}
}

// up carries something to the gateway, down to the robot.
func (w *world) up(do func()) {
	if w.blackUp || w.rnd.Float64() < w.lossUp {
		return
	}
	w.after(w.rtt/2, func() {
		if !w.dead {
			do()
		}
	})
}

func (w *world) down(do func()) {
	if w.blackDn || w.rnd.Float64() < w.lossDown {
		return
	}
	w.after(w.rtt-w.rtt/2, do)
}

func (w *world) initiate() {
	if !w.wg.lastSent.IsZero() && w.now.Sub(w.wg.lastSent) < rekeyTimeout {
		return
	}
	w.wg.lastSent = w.now
	w.count++
	id := w.count
	w.wg.pending = id
	w.wg.attempt++
	gen := w.wg.attempt
	w.after(rekeyTimeout+time.Duration(w.rnd.IntN(334))*time.Millisecond, func() {
		if w.wg.attempt == gen && w.wg.pending == id {
			w.initiate()
		}
	})
	w.up(func() {
		if w.refuses {
			return
		}
		w.known[id] = true
		w.down(func() { w.respond(id) })
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
		w.session() // keepalive
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
		w.up(func() { w.receive(key, p) })
	}
	w.wg.staged = nil
	if w.now.Sub(w.wg.created) > 120*time.Second {
		w.initiate()
	}
}

func (w *world) receive(key int, p Probe) {
	if !w.known[key] || w.disallows {
		return
	}
	w.hearing.Announced(p.Interval, w.now)
	w.down(func() {
		w.wg.sentAt = time.Time{}
		w.m.Reply(p.ID, w.now)
		w.note()
	})
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

// exchange sends a packet of data each way in the session of that key.
func (w *world) exchange(key int) {
	if !w.duplex || !w.known[key] {
		return
	}
	w.up(func() {
		if w.known[key] {
			w.hearing.Heard(w.now)
		}
	})
	if !w.dead && w.hearing.Live(w.now) {
		w.down(func() {
			if w.wg.current == key && w.usable() {
				w.m.Heard(w.now)
			}
		})
	}
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

func isProbe(a Action) bool     { return a.Probe }
func isHandshake(a Action) bool { return a.Handshake }
func isExpire(a Action) bool    { return a.Expire }
func isStun(a Action) bool      { return a.Stun }
