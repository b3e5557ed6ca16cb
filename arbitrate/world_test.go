package arbitrate

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/fogplr/fogplr/rtps"
)

// world is a host with clients, an Arbiter before it, and replicas behind a network
// of several paths that loses and reorders. Its time is its own.
type world struct {
	setup
	rng     *rand.Rand
	events  events
	now     time.Duration
	order   int
	arbiter *Arbiter // nil: there is none
	procs   []*process
	servers []*server
	ids     int // of IP packets
	due     time.Duration

	wrong    string // what must not happen, and did
	resent   int    // datagrams that servers sent again
	restarts int
	total    Counters // of Arbiters before the last
}

// setup is what differs between worlds.
type setup struct {
	seed             uint64
	vendor           rtps.Vendor
	servers, paths   int
	procs, clients   int // processes, and clients in each
	requests         int // of each client
	interval         time.Duration
	loss             float64 // of each path
	delay, jitter    time.Duration
	work             time.Duration // of a server, at most
	size             int           // of a reply, octets
	fragment, packet int           // octets of a fragment; of an IP packet
	hostLoss         float64       // between fogplr and the reader
	nackDelay        time.Duration
	early            bool // clients ask before they are matched
	kill             bool // all servers but one die
	restart          bool // the Arbiter is made anew from a snapshot
	rude             bool // all servers but one answer before they are matched
	late             bool // the last client of a process comes late
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

var epoch = time.Unix(1e9, 0)

func (w *world) clock() time.Time { return epoch.Add(w.now) }

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, event{w.now + d, w.order, do})
}

// upTo is a random time up to d.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d) + 1)) }

func newWorld(s setup, arbitrated bool) *world {
	w := &world{setup: s, rng: rand.New(rand.NewPCG(s.seed, 1))}
	if arbitrated {
		w.arbiter = New(w.clock())
	}
	for i := range s.servers {
		w.servers = append(w.servers, newServer(w, i))
	}
	for i := range s.procs {
		w.procs = append(w.procs, newProcess(w, i))
	}
	return w
}

// run plays until nothing happens any more.
func (w *world) run() {
	for i, s := range w.servers {
		s.rude = w.rude && i > 0
		w.after(0, s.begin)
	}
	for _, p := range w.procs {
		for i, c := range p.clients {
			at := 2 * time.Second
			if w.early {
				at = 10 * time.Millisecond
			}
			came := time.Duration(0)
			if w.late && i > 0 && i == len(p.clients)-1 {
				came = 2*time.Second + w.upTo(time.Second)
				at += came
			}
			w.after(came, c.begin)
			for k := range w.requests {
				w.after(at+time.Duration(k)*w.interval+w.upTo(w.interval/2), c.ask)
			}
		}
	}
	span := 2*time.Second + time.Duration(w.requests)*w.interval
	if w.kill {
		for _, s := range w.servers[1:] {
			w.after(2*time.Second+w.upTo(span-2*time.Second+100*time.Millisecond), func() { s.dead = true })
		}
	}
	if w.restart && w.arbiter != nil {
		for range 3 {
			w.after(w.upTo(span+time.Second), w.renew)
		}
	}
	for n := 0; len(w.events) > 0 && w.wrong == ""; n++ {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
		if n > 3_000_000 {
			w.wrong = "it does not end"
		}
	}
}

// renew replaces the Arbiter.
func (w *world) renew() {
	data, err := w.arbiter.Snapshot(w.clock())
	if err != nil {
		w.wrong = err.Error()
		return
	}
	w.total = sum(w.total, w.arbiter.Counters())
	w.arbiter = New(w.clock())
	if err := w.arbiter.Restore(w.clock(), data); err != nil {
		w.wrong = err.Error()
	}
	w.restarts++
}

// arrival says when a packet comes, by the fastest path that does not lose it.
func (w *world) arrival() (first time.Duration, ok bool) {
	for i := range w.paths {
		d := w.delay*time.Duration(i+2)/2 + w.upTo(w.jitter)
		if w.rng.Float64() >= w.loss && (!ok || d < first) {
			first, ok = d, true
		}
	}
	return first, ok
}

// down sends a message of a server to a port of the host.
func (w *world) down(from netip.AddrPort, to netip.AddrPort, message []byte) {
	w.ids++
	packets := [][]byte{udp(from, to, w.ids, message)}
	if len(packets[0]) > w.packet {
		packets = split(packets[0], (w.packet-20)/8*8)
	}
	var last time.Duration
	for range packets {
		d, ok := w.arrival()
		if !ok {
			return
		}
		last = max(last, d)
	}
	w.after(last, func() {
		if w.arbiter != nil {
			packets = w.arbiter.In(w.clock(), packets)
		}
		w.host(packets)
		w.watch()
	})
}

// watch has Tick called when it is due.
func (w *world) watch() {
	if w.arbiter == nil {
		return
	}
	if due := w.arbiter.Due().Sub(epoch); due-w.now < 2*time.Second && due != w.due {
		w.due = due
		w.after(max(due-w.now, 0), func() {
			w.due = 0
			w.host(w.arbiter.Tick(w.clock()))
			w.watch()
		})
	}
}

// up sends a message of a reader to a server.
func (w *world) up(from netip.AddrPort, s *server, message []byte) {
	w.ids++
	p := udp(from, s.at, w.ids, message)
	if w.arbiter != nil {
		w.arbiter.Out(w.clock(), p)
		w.watch()
	}
	if d, ok := w.arrival(); ok {
		w.after(d, func() {
			if m := w.open(p); m != nil {
				s.take(m)
			}
		})
	}
}

// host delivers packets to whoever has their port.
func (w *world) host(packets [][]byte) {
	var whole []byte
	for _, p := range packets {
		field := binary.BigEndian.Uint16(p[6:])
		if field&0x1fff == 0 {
			whole = bytes.Clone(p)
		} else {
			if int(field&0x1fff)*8 != len(whole)-20 {
				w.wrong = "fragments are not in order"
				return
			}
			whole = append(whole, p[20:]...)
		}
		if field&0x2000 != 0 {
			continue
		}
		binary.BigEndian.PutUint16(whole[6:], 0)
		m := w.open(whole)
		if m == nil || w.rng.Float64() < w.hostLoss {
			continue
		}
		for _, proc := range w.procs {
			if proc.at.Port() == binary.BigEndian.Uint16(whole[22:]) {
				for _, c := range proc.clients {
					c.take(m)
				}
			}
		}
	}
}

// open returns the message in a packet, whose checksum must be right.
func (w *world) open(p []byte) []byte {
	if binary.BigEndian.Uint16(p[26:]) != 0 && checksum(p[12:16], p[16:20], p[20:]) != 0xffff {
		w.wrong = fmt.Sprintf("the checksum of %x is wrong", p)
		return nil
	}
	return p[28:]
}

func address(last byte, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 77, 0, last}), port)
}
