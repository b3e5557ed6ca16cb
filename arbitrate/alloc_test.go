package arbitrate

import (
	"bytes"
	"testing"
	"time"

	"github.com/fogplr/fogplr/rtps"
)

// drive plays rounds of requests and replies of two replicas, in packets that
// exist already. Every fourth round, one's reply comes before the one before.
type drive struct {
	a       *Arbiter
	now     time.Duration
	steps   []step
	next    int
	scratch []byte
	one     [1][]byte
}

type step struct {
	out    bool
	packet []byte
}

func newDrive(t *testing.T, rounds int) *drive {
	r := newRig(t, 2)
	d := &drive{a: r.a, scratch: make([]byte, 2048)}
	for i := range 2 { // alive for as long as it takes
		m := r.theirs(i).data(0, rtps.EntityParticipantWriter, 2, nil, list(
			guidParameter(rtps.PIDParticipantGUID, rtps.GUID{Prefix: replica(i), Entity: rtps.EntityParticipant}),
			func(w *writer) { w.parameter(rtps.PIDLeaseDuration, []byte{255, 255, 255, 127, 255, 255, 255, 255}) }))
		r.in(m)
	}
	add := func(out bool, m *writer) {
		p := udp(address(10, 7411), hereTo, 1, m.b)
		d.steps = append(d.steps, step{out, p})
	}
	for k := range int64(rounds) {
		n := rtps.SequenceNumber(k + 1)
		payload := le.AppendUint64(le.AppendUint64([]byte{0, 1, 0, 0}, 77), uint64(n))
		add(true, r.mine().data(0, askWriter, n, nil, payload))
		switch k % 4 {
		case 2: // replica 1 is late, and 0 has lost one
			add(false, r.answer(1, n, int64(n)))
		case 3:
			add(false, r.answer(0, n, int64(n)))
			add(true, r.mine().to(replica(0)).ackNack(readerHere, replyWriter, n-1, int(n), false, 0, 1))
			add(false, r.answer(0, n-1, int64(n-1)))
			add(false, r.answer(1, n, int64(n)))
		default:
			for i := range 2 {
				for f := 1; f <= 3; f++ {
					add(false, r.theirs(i).frag(0, replyWriter, n, nil, append(bytes.Clone(payload), make([]byte, 250)...), 100, f))
				}
			}
		}
		for i := range 2 {
			if k%4 == 2 && i == 0 {
				continue
			}
			add(false, r.theirs(i).heartbeat(0, replyWriter, n, n, int(n)+5, false))
			add(true, r.mine().to(replica(i)).ackNack(readerHere, replyWriter, n+1, int(n), true))
		}
	}
	return d
}

// round takes the steps of the next rounds.
func (d *drive) round(steps int) {
	for range steps {
		s := &d.steps[d.next]
		d.next++
		d.now += time.Millisecond
		d.one[0] = append(d.scratch[:0], s.packet...)
		if s.out {
			d.a.Out(epoch.Add(d.now), d.one[0])
		} else {
			d.a.In(epoch.Add(d.now), d.one[:])
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	const warm, runs, each = 60_000, 100, 200
	d := newDrive(t, 12_000)
	d.round(warm)
	if n := testing.AllocsPerRun(runs, func() { d.round(each) }); n != 0 {
		t.Errorf("%v allocations in %d packets", n, each)
	}
	c := d.a.Counters()
	if c.Parked == 0 || c.Withheld == 0 || c.Unknown > 0 || c.Unasked == 0 || c.Full > 0 {
		t.Errorf("%+v", c)
	}
}

func benchmark(b *testing.B, packets ...[]byte) {
	r := newRig(nil, 2)
	r.ask(1)
	one := make([][]byte, 1)
	scratch := make([]byte, 2048)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		one[0] = append(scratch[:0], packets[i%len(packets)]...)
		r.a.In(epoch, one)
	}
}

func BenchmarkNoRTPS(b *testing.B) {
	benchmark(b, udp(address(10, 5000), address(1, 5000), 1, make([]byte, 1200)))
}

func BenchmarkOtherTopic(b *testing.B) {
	m := message(rtps.VendorCyclone, replica(0)).data(0, 0x1203, 1, nil, make([]byte, 1100)).heartbeat(0, 0x1203, 1, 1, 1, false)
	benchmark(b, udp(address(10, 7411), hereTo, 1, m.b))
}

func BenchmarkReplies(b *testing.B) {
	r := &rig{}
	benchmark(b, udp(address(10, 7411), hereTo, 1, r.answer(0, 1, 1).b), udp(address(10, 7411), hereTo, 1, r.answer(1, 1, 1).b))
}
