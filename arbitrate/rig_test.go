package arbitrate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/rtps"
)

// rig is an Arbiter with a client of Cyclone DDS and replicas, step by step.
type rig struct {
	t   *testing.T
	a   *Arbiter
	now time.Duration
}

const (
	askWriter  rtps.EntityID = 0x00000303
	readerHere rtps.EntityID = 0x00000404
)

var (
	here     = rtps.Prefix{1, 16, 'c'}
	hereTo   = address(1, 7411)
	hereFrom = address(1, 40000)
)

func replica(i int) rtps.Prefix { return rtps.Prefix{1, 16, 's', byte(i)} }

// newRig returns one in which the client is known and matched with so many replicas.
func newRig(t *testing.T, replicas int) *rig {
	r := &rig{t: t, a: New(epoch)}
	r.out(r.mine().spdp(here))
	r.out(r.mine().sedp(rtps.GUID{Prefix: here, Entity: askWriter}, "rq/echoRequest", 1))
	r.out(r.mine().sedp(rtps.GUID{Prefix: here, Entity: readerHere}, "rr/echoReply", 1))
	for i := range replicas {
		r.announce(i)
		r.match(i, 0)
	}
	return r
}

func (r *rig) mine() *writer        { return message(rtps.VendorCyclone, here) }
func (r *rig) theirs(i int) *writer { return message(rtps.VendorCyclone, replica(i)) }

func (r *rig) out(m *writer) []byte {
	p := udp(hereFrom, address(10, 7411), 1, m.b)
	r.a.Out(epoch.Add(r.now), p)
	return p
}

// in returns what of a message is delivered, and what is delivered with it.
func (r *rig) in(m *writer) string {
	return show(r.t, r.a.In(epoch.Add(r.now), [][]byte{udp(address(10, 7411), hereTo, 1, m.b)}))
}

func (r *rig) tick() string { return show(r.t, r.a.Tick(epoch.Add(r.now))) }

func (r *rig) announce(i int) {
	r.in(r.theirs(i).spdp(replica(i)))
	r.in(r.theirs(i).sedp(rtps.GUID{Prefix: replica(i), Entity: replyWriter}, "rr/echoReply", 1))
}

// match has a HEARTBEAT come, and the reader acknowledge all up to last.
func (r *rig) match(i int, last rtps.SequenceNumber) {
	r.in(r.theirs(i).to(here).heartbeat(0, replyWriter, 1, last, 1, false))
	r.out(r.mine().to(replica(i)).ackNack(readerHere, replyWriter, last+1, 1, true))
}

func (r *rig) ask(number int64) {
	payload := le.AppendUint64(le.AppendUint64([]byte{0, 1, 0, 0}, 77), uint64(number))
	r.out(r.mine().data(0, askWriter, rtps.SequenceNumber(number), nil, payload))
}

// answer writes sample n of a replica, the reply to the request of that number.
func (r *rig) answer(i int, n rtps.SequenceNumber, number int64) *writer {
	payload := le.AppendUint64(le.AppendUint64([]byte{0, 1, 0, 0}, 77), uint64(number))
	return r.theirs(i).data(0, replyWriter, n, nil, append(payload, make([]byte, 200)...))
}

// show says what is in packets: "0:3" is sample 3 of replica 0, "0:-3" a GAP.
func show(t testing.TB, packets [][]byte) string {
	var all []string
	for _, p := range packets {
		if checksum(p[12:16], p[16:20], p[20:]) != 0xffff {
			t.Errorf("the checksum of %x is wrong", p)
		}
		var d rtps.Datagram
		var m rtps.Message
		if !d.Read(p) || !m.Read(d.Payload, d.Whole) {
			t.Fatalf("%x is not read", p)
		}
		before := len(all)
		for s := (rtps.Submessage{}); m.Next(&s); {
			if x, ok := s.Data(); ok {
				all = append(all, fmt.Sprintf("%d:%d", m.Source[3], x.Seq))
			}
			if x, ok := s.DataFrag(); ok {
				all = append(all, fmt.Sprintf("%d:%d/%d", m.Source[3], x.Seq, x.FragmentStart))
			}
			if x, ok := s.Gap(); ok {
				all = append(all, fmt.Sprintf("%d:-%d", m.Source[3], x.Start))
			}
			if _, ok := s.Heartbeat(); ok {
				all = append(all, fmt.Sprintf("%d:beat", m.Source[3]))
			}
		}
		if len(all) == before {
			all = append(all, "nothing")
		}
	}
	return strings.Join(all, " ")
}

func (r *rig) want(what, got, want string) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: %q is delivered, want %q", what, got, want)
	}
}
