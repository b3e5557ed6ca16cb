package replicate

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the naive twin of Eliminator: sets in place of bitmaps, and losses
// counted from scratch.
type model struct {
	counters Counters
	epochs   []*modelEpoch // live, in the order of their first number
	past     []*modelEpoch // retired
	refused  map[uint32]time.Time
	order    []uint32 // of retirement
}

// modelEpoch knows every number of an epoch that was delivered.
type modelEpoch struct {
	epoch            uint32
	delivered        map[int64]bool
	first, top       int64
	lostTo           int64 // what is missing up to here is lost
	mark             int64
	markedAt         time.Time
	opened, passedAt time.Time
}

func (m *model) accept(epoch uint32, seq Seq, now time.Time) Verdict {
	for _, ep := range m.epochs {
		if ep.epoch == epoch {
			return m.acceptIn(ep, seq, now)
		}
	}
	if until, ok := m.refused[epoch]; ok && now.Before(until) {
		m.counters.Rogue++
		return Rogue
	}
	if len(m.epochs) == 2 {
		victim := 0
		if m.epochs[1].passedAt.Before(m.epochs[0].passedAt) {
			victim = 1
		}
		m.retire(victim, now)
	}
	if len(m.epochs)+len(m.past) > 0 {
		m.counters.Resets++
	}
	at := int64(seq)
	m.epochs = append(m.epochs, &modelEpoch{
		epoch: epoch, delivered: map[int64]bool{at: true}, first: at, top: at,
		lostTo: at, mark: at, markedAt: now, opened: now, passedAt: now,
	})
	m.counters.Passed++
	return Pass
}

func (m *model) acceptIn(ep *modelEpoch, seq Seq, now time.Time) Verdict {
	at := ep.top + int64(uint32(seq)-uint32(ep.top))
	if at-ep.top > 1<<32-farthestCopy {
		at -= 1 << 32
	}
	switch {
	case at <= ep.top-Window:
		m.counters.Rogue++
		return Rogue
	case ep.delivered[at]:
		m.counters.Discarded++
		return Discard
	case at < ep.top:
		m.counters.OutOfOrder++
	default:
		ep.top = at
		ep.lostTo = max(ep.lostTo, at-Window)
	}
	ep.delivered[at] = true
	ep.passedAt = now
	m.counters.Passed++
	return Pass
}

func (m *model) settle(now time.Time) {
	for _, ep := range m.epochs {
		if now.Sub(ep.markedAt) >= lossAge {
			ep.lostTo = max(ep.lostTo, ep.mark)
			ep.mark, ep.markedAt = ep.top, now
		}
	}
	if len(m.epochs) < 2 {
		return
	}
	a, b := m.epochs[0], m.epochs[1] // b is the newer one
	switch {
	case b.passedAt.Sub(a.passedAt) >= holdFor && b.passedAt.Sub(b.opened) >= holdFor:
		m.retire(0, now)
	case a.passedAt.Sub(b.passedAt) >= refuseFor:
		m.retire(1, now)
	}
}

func (m *model) retire(i int, now time.Time) {
	ep := m.epochs[i]
	ep.lostTo = ep.top
	m.past = append(m.past, ep)
	m.epochs = append(m.epochs[:i:i], m.epochs[i+1:]...)
	m.refused[ep.epoch] = now.Add(refuseFor)
	m.order = append(m.order, ep.epoch)
	if n := len(m.order) - retiredEpochs; n > 0 {
		old := m.order[n-1]
		again := false
		for _, e := range m.order[n:] {
			again = again || e == old
		}
		if !again {
			delete(m.refused, old)
		}
	}
}

// total returns the counters, with the losses counted anew.
func (m *model) total() Counters {
	c := m.counters
	for _, list := range [][]*modelEpoch{m.epochs, m.past} {
		for _, ep := range list {
			c.Lost += uint64(ep.lostTo - ep.first)
			for at := range ep.delivered {
				if ep.first < at && at <= ep.lostTo {
					c.Lost--
				}
			}
		}
	}
	return c
}

// nearEdges are distances at which an off-by-one shows.
var nearEdges = []uint32{
	0, 1, 2, 63, 64, 65, 127, 128, Window - 65, Window - 64, Window - 2, Window - 1, Window, Window + 1, Window + 64,
	2 * Window, farthestCopy - 1, farthestCopy, farthestCopy + 1, 1<<31 - 1, 1 << 31, 1<<31 + 1,
}

// pauses are spans of time around the limits.
var pauses = []time.Duration{
	0, time.Millisecond, 300 * time.Millisecond, lossAge - 1, lossAge, time.Second,
	holdFor - 1, holdFor, holdFor + time.Second, refuseFor - 1, refuseFor, 10 * time.Minute,
}

// agrees lets an Eliminator and its twin judge the same random copies.
func agrees(t *rapid.T) {
	e := NewEliminator()
	m := &model{refused: map[uint32]time.Time{}}
	now := t0
	newest := uint32(0)
	next := [8]Seq{}
	for i := range next {
		next[i] = Seq(rapid.SampledFrom([]uint32{1, 0, 1<<32 - 1, 1<<32 - 100, 1 << 31, 70000}).Draw(t, "first"))
	}
	distance := rapid.OneOf(rapid.SampledFrom(nearEdges), rapid.Uint32Range(0, 300), rapid.Uint32Range(0, 2*Window), rapid.Uint32())
	steps := rapid.IntRange(1, 150).Draw(t, "steps")
	for range steps {
		epoch := newest - min(newest, rapid.SampledFrom([]uint32{0, 0, 0, 0, 1, 1, 2, 3}).Draw(t, "epochs back"))
		n := &next[epoch%8]
		seqs := make([]Seq, 0, 64)
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2: // a run, some of it lost or twice
			for range rapid.IntRange(1, 60).Draw(t, "run") {
				*n += Seq(rapid.SampledFrom([]uint32{0, 1, 1, 1, 1, 2, 3}).Draw(t, "gap"))
				seqs = append(seqs, *n)
			}
		case 3, 4: // a late copy
			seqs = append(seqs, *n-Seq(distance.Draw(t, "behind")))
		case 5: // a jump
			*n += Seq(distance.Draw(t, "ahead"))
			seqs = append(seqs, *n)
		case 6:
			newest++
		case 7:
			now = now.Add(rapid.SampledFrom(pauses).Draw(t, "pause"))
		default:
			now = now.Add(rapid.SampledFrom(pauses[:7]).Draw(t, "pause"))
			e.Settle(now)
			m.settle(now)
		}
		for _, s := range seqs {
			if got, want := e.Accept(epoch, s, now), m.accept(epoch, s, now); got != want {
				t.Fatalf("Accept(%d, %d) = %d, the twin says %d", epoch, s, got, want)
			}
		}
		if got, want := e.Counters(), m.total(); got != want {
			t.Fatalf("counters %+v,\nthe twin has %+v", got, want)
		}
	}
}

func TestAcceptAgreesWithItsTwin(t *testing.T) { rapid.Check(t, agrees) }

func FuzzAcceptAgreesWithItsTwin(f *testing.F) { f.Fuzz(rapid.MakeFuzz(agrees)) }

// FuzzAccept takes raw bytes: 7 for each call.
func FuzzAccept(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x00\x00\x00\x05\x20\x01\x01\x00\x00\x00\x04\x50\x01\x02\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := NewEliminator()
		m := &model{refused: map[uint32]time.Time{}}
		now := t0
		for ; len(data) >= 7; data = data[7:] {
			now = now.Add(time.Duration(data[0]) * time.Duration(data[0]) * time.Millisecond)
			if data[1]&1 != 0 {
				e.Settle(now)
				m.settle(now)
			}
			epoch := uint32(data[2] & 3)
			seq := Seq(data[3])<<24 | Seq(data[4])<<16 | Seq(data[5])<<8 | Seq(data[6])
			if got, want := e.Accept(epoch, seq, now), m.accept(epoch, seq, now); got != want {
				t.Fatalf("Accept(%d, %d) = %d, the twin says %d", epoch, seq, got, want)
			}
		}
		if got, want := e.Counters(), m.total(); got != want {
			t.Fatalf("counters %+v,\nthe twin has %+v", got, want)
		}
	})
}
