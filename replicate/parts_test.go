package replicate

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// following returns a Reassembler for a run of the sender.
func following(epoch uint32) *Reassembler {
	r := NewReassembler(1280)
	r.Follow(epoch)
	return r
}

// numbered returns a packet of n bytes that tells of itself.
func numbered(seed, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(seed*31 + i*7 + i>>8)
	}
	return p
}

// cut returns the payloads of the frames that carry packet in count parts.
func cut(packet []byte, count int) (parts [][]byte) {
	for i := range count {
		b := make([]byte, PartHeaderLen+len(packet))
		parts = append(parts, b[:PutPart(b, packet, i, count)])
	}
	return parts
}

func TestPartsFor(t *testing.T) {
	for _, c := range []struct{ size, largest, want int }{
		{1280, 1308, 1}, {1280, 1307, 2}, {1280, 1216, 2}, {1280, 671, 2}, {1280, 670, 3},
		{1280, 512, 3}, {1280, 496, 3}, {1280, 458, 3}, {1280, 457, 4}, {1280, 351, 4}, {1280, 350, 0},
		{1280, 48, 0}, {1280, 0, 0}, {20, 48, 1}, {21, 48, 2}, {60, 48, 4}, {68, 48, 4}, {69, 48, 0},
	} {
		if got := PartsFor(c.size, c.largest); got != c.want {
			t.Errorf("%d bytes in frames of %d: %d parts, want %d", c.size, c.largest, got, c.want)
		}
	}
	// No frame is larger than the path takes, and with a part less one would be.
	for size := 20; size < 1500; size++ {
		for largest := 32; largest < 1500; largest += 13 {
			n := PartsFor(size, largest)
			if n < 2 {
				continue
			}
			for i, p := range cut(numbered(0, size), n) {
				if TagLen+len(p) > largest {
					t.Fatalf("part %d of %d of %d bytes: a frame of %d for %d", i, n, size, TagLen+len(p), largest)
				}
			}
			if n > 2 && TagLen+PartHeaderLen+(size+n-2)/(n-1) <= largest {
				t.Fatalf("%d bytes in frames of %d need %d parts only", size, largest, n-1)
			}
		}
	}
}

var partGolden = []struct {
	packet string
	count  int
	parts  []string
}{
	{"000102030405060708090a0b0c0d0e0f10111213", 2, []string{
		"02" + "0014" + "00010203040506070809",
		"12" + "0014" + "0a0b0c0d0e0f10111213"}},
	{"000102030405060708090a0b0c0d0e0f10111213", 3, []string{
		"03" + "0014" + "00010203040506",
		"13" + "0014" + "0708090a0b0c0d",
		"23" + "0014" + "0e0f10111213"}},
	{"000102030405060708090a0b0c0d0e0f1011121314", 4, []string{
		"04" + "0015" + "000102030405",
		"14" + "0015" + "060708090a0b",
		"24" + "0015" + "0c0d0e0f1011",
		"34" + "0015" + "121314"}},
}

func TestPartGolden(t *testing.T) {
	for _, g := range partGolden {
		r := following(epA)
		for i, p := range cut(unhex(t, g.packet), g.count) {
			if got := hex.EncodeToString(p); got != g.parts[i] {
				t.Errorf("part %d of %d: %s, want %s", i, g.count, got, g.parts[i])
			}
			whole := r.Add(epA, 9, unhex(t, g.parts[i]), t0)
			if last := i == g.count-1; last != (whole != nil) || last && hex.EncodeToString(whole) != g.packet {
				t.Errorf("after part %d of %d: %x", i, g.count, whole)
			}
		}
	}
	// With its tag.
	frame := make([]byte, 100)
	frame = frame[:TagLen+PutPart(frame[TagLen:], unhex(t, partGolden[0].packet), 1, 2)]
	PutTag(frame, &Tag{Type: Part, Class: 3, Epoch: 0x01020304, PathSeq: 5, Src: MakeAddress(2, 1), Dst: MakeAddress(11, 1), Seq: 6, SentAt: 7})
	const want = "41430029" + "01020304" + "00000005" + "f1000002" + "f100000b" + "00000006" + "00000007" + "120014" + "0a0b0c0d0e0f10111213"
	if got := hex.EncodeToString(frame); got != want {
		t.Errorf("frame %s, want %s", got, want)
	}
}

func TestOddParts(t *testing.T) {
	whole := numbered(1, 1000)
	good := cut(whole, 3)
	with := func(p []byte, f func(b []byte) []byte) []byte { return f(bytes.Clone(p)) }
	for name, odd := range map[string][]byte{
		"nothing":             {},
		"header only":         good[0][:PartHeaderLen],
		"cut short":           good[0][:len(good[0])-1],
		"too long":            append(bytes.Clone(good[0]), 0),
		"one part":            with(good[0], func(b []byte) []byte { b[0] = 0x01; return b }),
		"no parts":            with(good[0], func(b []byte) []byte { b[0] = 0x00; return b }),
		"five parts":          with(good[0], func(b []byte) []byte { b[0] = 0x05; return b }),
		"index beyond":        with(good[0], func(b []byte) []byte { b[0] = 0x33; return b }),
		"other count":         cut(whole, 4)[1],
		"other length":        cut(numbered(1, 1001), 3)[0],
		"longer than any":     cut(numbered(1, 1281), 3)[0],
		"last piece empty":    {0x34, 0, 5, 1},
		"beside an empty one": {0x04, 0, 5, 1, 2},
		"length of nothing":   {0x02, 0, 0, 1},
		"last piece too big":  append(bytes.Clone(good[2]), 1),
	} {
		r := following(epA)
		if r.Add(epA, 1, odd, t0); r.Counters().Odd != 1 && !strings.HasPrefix(name, "other") {
			t.Errorf("%s: taken for a part", name)
		}
		r = following(epA)
		r.Add(epA, 1, good[1], t0)
		if got := r.Add(epA, 1, odd, t0); got != nil {
			t.Errorf("%s: yields %x", name, got)
		}
		if c := r.Counters(); c.Odd != 1 {
			t.Errorf("%s: %+v", name, c)
		}
		r.Add(epA, 1, good[0], t0)
		if got := r.Add(epA, 1, good[2], t0); !bytes.Equal(got, whole) {
			t.Errorf("%s: spoilt the packet", name)
		}
	}
}

// What becomes of packets whose parts stay away.
func TestPartsGiveWay(t *testing.T) {
	r := following(epA)
	for seq := range Seq(3 * partRing) { // every first part, no second one
		r.Add(epA, seq, cut(numbered(int(seq), 900), 2)[0], t0)
	}
	if c := r.Counters(); c != (PartCounters{Incomplete: 2 * partRing}) {
		t.Errorf("%+v", c)
	}
	// A newer packet has taken the place.
	if got := r.Add(epA, 0, cut(numbered(0, 900), 2)[1], t0); got != nil || r.Counters().Discarded != 1 {
		t.Errorf("%x, %+v", got, r.Counters())
	}
	last := Seq(3*partRing - 1)
	if got := r.Add(epA, last, cut(numbered(int(last), 900), 2)[1], t0.Add(partsAge)); got == nil {
		t.Error("nothing at the age limit")
	}
	if got := r.Add(epA, last-1, cut(numbered(int(last-1), 900), 2)[1], t0.Add(partsAge+1)); got != nil {
		t.Error("a packet beyond the age limit")
	}
	// A number far ahead keeps others out of its place for ten seconds.
	now := t0.Add(time.Minute)
	r.Add(epA, 1<<30, cut(numbered(1, 900), 2)[0], now)
	for _, p := range cut(numbered(2, 900), 2) {
		if r.Add(epA, 4*partRing, p, now.Add(partsMemory)) != nil {
			t.Error("took a newer one's place")
		}
	}
	for i, p := range cut(numbered(2, 900), 2) {
		if got := r.Add(epA, 4*partRing, p, now.Add(partsMemory+1)); (got != nil) != (i == 1) {
			t.Errorf("part %d after the memory's end: %x", i, got)
		}
	}
}

// A restart of the sender begins anew, and parts of another run are nothing, however
// late, until that one is followed again.
func TestPartsOfTwoRuns(t *testing.T) {
	r := following(epA)
	a, b := cut(numbered(1, 900), 2), cut(numbered(2, 900), 2)
	r.Add(epA, 1, a[0], t0)
	r.Follow(epB)
	if r.Add(epB, 1, b[1], t0) != nil || r.Add(epA, 1, a[1], t0) != nil {
		t.Error("parts of two runs make a packet")
	}
	if got := r.Add(epB, 1, b[0], t0); !bytes.Equal(got, numbered(2, 900)) {
		t.Error("the new run's packet was lost")
	}
	if c := r.Counters(); c != (PartCounters{Whole: 1, Incomplete: 1, Discarded: 1}) {
		t.Errorf("%+v", c)
	}
	later := t0.Add(time.Minute) // the run has sent no parts meanwhile
	r.Add(epB, 2, b[0], later)
	if r.Add(epA, 2, a[0], later) != nil || !bytes.Equal(r.Add(epB, 2, b[1], later), numbered(2, 900)) {
		t.Error("a late part of a dead run spoilt a packet")
	}
	r.Follow(epA)
	if r.Add(epA, 2, a[0], later) != nil || !bytes.Equal(r.Add(epA, 2, a[1], later), numbered(1, 900)) {
		t.Error("a run that is followed again is not heard")
	}
}

// In whatever order parts come, twice or not at all: a packet comes out once, as
// it was, when the last of its parts came, or never.
func TestPartsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := Seq(rapid.Uint32().Draw(t, "first"))
		n := rapid.IntRange(1, partRing).Draw(t, "packets")
		type frame struct {
			packet int
			part   []byte
		}
		var frames []frame
		packets := make([][]byte, n)
		missing := make([]map[string]bool, n)
		for i := range packets {
			packets[i] = numbered(i, rapid.IntRange(20, 1280).Draw(t, "size"))
			missing[i] = map[string]bool{}
			for _, p := range cut(packets[i], rapid.IntRange(2, MaxParts).Draw(t, "count")) {
				missing[i][string(p)] = true
				for range rapid.IntRange(0, 9).Draw(t, "copies") * 2 / 5 { // 0 to 3
					frames = append(frames, frame{i, p})
				}
			}
		}
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
		r := following(epA)
		for _, f := range frames {
			left := missing[f.packet]
			want := len(left) == 1 && left[string(f.part)]
			delete(left, string(f.part))
			got := r.Add(epA, first+Seq(f.packet), f.part, t0)
			if want != (got != nil) || want && !bytes.Equal(got, packets[f.packet]) {
				t.Fatalf("packet %d: want it %v, got %d bytes", f.packet, want, len(got))
			}
		}
	})
}

// naiveReassembler is the twin: it keeps every part and looks at all of them.
type naiveReassembler struct {
	parts []naivePart
	runs  []uint32 // the last one is followed
}

type naivePart struct {
	run          int
	seq          Seq
	count, total int
	index        int
	piece        string
	at           time.Time
}

func (n *naiveReassembler) add(largest int, epoch uint32, seq Seq, payload []byte, now time.Time) []byte {
	if len(payload) < 4 {
		return nil
	}
	p := naivePart{
		seq: seq, index: int(payload[0] / 16), count: int(payload[0] % 16),
		total: int(payload[1])*256 + int(payload[2]), piece: string(payload[3:]), at: now,
	}
	if p.count < 2 || p.count > 4 || p.total > largest {
		return nil
	}
	var pieces []string
	for rest := string(make([]byte, p.total)); rest != ""; {
		each := min((p.total+p.count-1)/p.count, len(rest))
		pieces = append(pieces, rest[:each])
		rest = rest[each:]
	}
	if len(pieces) != p.count || p.index >= p.count || len(pieces[p.index]) != len(p.piece) {
		return nil
	}
	if n.runs[len(n.runs)-1] != epoch {
		return nil
	}
	p.run = len(n.runs)

	// The place's history: who took it from whom.
	var owner naivePart
	taken := false
	var mine []naivePart
	visit := func(q naivePart) (in bool) {
		switch {
		case q.run != p.run || q.seq%partRing != p.seq%partRing:
			return false
		case !taken, q.seq != owner.seq && (int32(q.seq-owner.seq) > 0 || q.at.Sub(owner.at) > partsMemory):
			owner, taken, mine = q, true, nil
		case q.seq != owner.seq:
			return false
		}
		if q.count != owner.count || q.total != owner.total || q.at.Sub(owner.at) > partsAge {
			return false
		}
		for _, m := range mine {
			if m.index == q.index {
				return false
			}
		}
		mine = append(mine, q)
		return true
	}
	for _, q := range n.parts {
		visit(q)
	}
	n.parts = append(n.parts, p)
	if !visit(p) || len(mine) != p.count {
		return nil
	}
	whole := make([]string, p.count)
	for _, m := range mine {
		whole[m.index] = m.piece
	}
	var out []byte
	for _, w := range whole {
		out = append(out, w...)
	}
	return out
}

func partsAgree(t *rapid.T) {
	const largest = 64
	r, n := NewReassembler(largest), &naiveReassembler{runs: []uint32{0}}
	now := t0
	first := Seq(rapid.SampledFrom([]uint32{0, 1 << 31, 1<<32 - 40}).Draw(t, "first"))
	for range rapid.IntRange(1, 80).Draw(t, "frames") {
		now = now.Add(rapid.SampledFrom([]time.Duration{0, 0, 0, time.Millisecond, 600 * time.Millisecond, 11 * time.Second}).Draw(t, "later"))
		seq := first + Seq(rapid.SampledFrom([]uint32{0, 0, 0, partRing, partRing, 1, 2 * partRing, 1 << 30}).Draw(t, "seq"))
		if rapid.IntRange(0, 19).Draw(t, "another run") == 0 {
			run := rapid.SampledFrom([]uint32{epA, epB}).Draw(t, "run")
			if r.Follow(run); run != n.runs[len(n.runs)-1] {
				n.runs = append(n.runs, run)
			}
		}
		epoch := n.runs[len(n.runs)-1]
		if rapid.IntRange(0, 9).Draw(t, "late") == 0 {
			epoch = epC
		}
		var p []byte
		if rapid.IntRange(0, 9).Draw(t, "forged") == 0 {
			p = rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "bytes")
		} else {
			size := rapid.SampledFrom([]int{20, 20, 20, 20, 20, 20, 21, 64, 65}).Draw(t, "size")
			parts := cut(numbered(int(seq), size), rapid.SampledFrom([]int{2, 2, 2, 2, 2, 2, 3, 4}).Draw(t, "count"))
			p = parts[rapid.IntRange(0, len(parts)-1).Draw(t, "index")]
		}
		want, got := n.add(largest, epoch, seq, p, now), r.Add(epoch, seq, p, now)
		if !bytes.Equal(got, want) {
			t.Fatalf("number %d, part %x: %x, want %x", seq, p, got, want)
		}
	}
}

func TestPartsAgreeWithTheirTwin(t *testing.T) { rapid.Check(t, partsAgree) }

func FuzzPartsAgreeWithTheirTwin(f *testing.F) { f.Fuzz(rapid.MakeFuzz(partsAgree)) }

// FuzzAddPart feeds octets from a peer that means no good.
func FuzzAddPart(f *testing.F) {
	for _, g := range partGolden {
		for _, p := range g.parts {
			f.Add(unhex(f, p), uint32(9), true)
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte, seq uint32, same bool) {
		r := following(epA)
		before := bytes.Clone(payload)
		for i := range 4 {
			got := r.Add(epA, Seq(seq), payload, t0)
			if got != nil {
				t.Fatalf("one part makes %x", got)
			}
			if !same {
				seq += uint32(i) * partRing
			}
		}
		if !bytes.Equal(payload, before) {
			t.Fatal("changed the payload")
		}
		// Cut again, it is the same part.
		if r.Counters().Odd == 0 {
			index, count := int(payload[0]>>4), int(payload[0]&15)
			total := int(payload[1])<<8 | int(payload[2])
			whole := make([]byte, total)
			off, _, _ := piece(total, index, count)
			copy(whole[off:], payload[PartHeaderLen:])
			if again := cut(whole, count)[index]; !bytes.Equal(again, payload) {
				t.Fatalf("%x became %x", payload, again)
			}
		}
	})
}

func TestPartsDoNotAllocate(t *testing.T) {
	r := following(epA)
	packet := numbered(1, 1280)
	b := make([]byte, 1308)
	seq := Seq(0)
	round := func() {
		seq++
		for i := range 3 {
			if got := r.Add(epA, seq, b[:PutPart(b, packet, i, 3)], t0); (got != nil) != (i == 2) {
				t.Fatal("no packet")
			}
		}
	}
	for range partRing {
		round()
	}
	if c := r.Counters(); c != (PartCounters{Whole: partRing}) {
		t.Errorf("%+v", c)
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if c := r.Counters(); c != (PartCounters{Whole: uint64(seq)}) {
		t.Errorf("%d packets, %+v", seq, c)
	}
}

// BenchmarkParts is one packet cut in three and put together.
func BenchmarkParts(b *testing.B) {
	r := following(epA)
	packet, buf := numbered(1, 1280), make([]byte, 1308)
	for n := range b.N {
		for i := range 3 {
			r.Add(epA, Seq(n), buf[:PutPart(buf, packet, i, 3)], t0)
		}
	}
}
