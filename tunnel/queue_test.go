package tunnel

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// testPeer is a peer with paths on the given slots.
func testPeer(node uint32, slots ...int) *peer {
	p := &peer{node: node}
	for _, s := range slots {
		l := p.newLink(s, "", replicate.MakeAddress(1, uint8(s)), replicate.MakeAddress(node, uint8(s)))
		p.add(l)
		l.largest.Store(0)
	}
	return p
}

func fillBufs() (bufs [][]byte, sizes []int) {
	for range batchPackets {
		bufs = append(bufs, make([]byte, 1<<16))
	}
	return bufs, make([]int, batchPackets)
}

// pushPayload pushes one payload for one peer.
func pushPayload(q *queue, p *peer, seq replicate.Seq, slots uint8, payload []byte, at time.Time) {
	b := q.pool.get(len(payload), at)
	b.items = append(b.items, item{peer: p, off: b.add(payload), len: len(payload), seq: seq, typ: replicate.Data, slots: slots})
	q.push(b)
	q.pool.release(b)
}

func TestQueueMakesOneFrameForEachSlot(t *testing.T) {
	var pool batchPool
	q := newQueue(&pool, new(standstill), 0b0110, 1280, time.Hour)
	p := testPeer(9, 0, 1, 2)
	p.epoch = 77
	pushPayload(q, p, 5, 0b0111, []byte("payload"), time.Now())
	bufs, sizes := fillBufs()
	n, err := q.fill(bufs, sizes, 16)
	if err != nil || n != 2 {
		t.Fatalf("%d frames, error %v; want 2, of slots 1 and 2", n, err)
	}
	for i := range n {
		tag, payload, err := replicate.DecodeTag(bufs[i][16 : 16+sizes[i]])
		slot := uint8(i + 1)
		if err != nil || string(payload) != "payload" || tag.Seq != 5 || tag.PathSeq != 1 || tag.Epoch != 77 || tag.Type != replicate.Data ||
			tag.Src != replicate.MakeAddress(1, slot) || tag.Dst != replicate.MakeAddress(9, slot) {
			t.Errorf("slot %d: %+v %q, error %v", slot, tag, payload, err)
		}
	}
}

func TestQueueDropsTheOldestWhenFull(t *testing.T) {
	var pool batchPool
	q := newQueue(&pool, new(standstill), 1, 1280, time.Hour)
	p := testPeer(9, 0)
	const extra = 100
	for i := range queuePackets + extra {
		pushPayload(q, p, replicate.Seq(i), 1, []byte{1}, time.Now())
	}
	if n := p.links[0].Load().txDropped.Load(); n != extra {
		t.Errorf("tx_dropped is %d, want %d", n, extra)
	}
	bufs, sizes := fillBufs()
	if n, err := q.fill(bufs, sizes, 0); err != nil || n != batchPackets {
		t.Fatalf("%d frames, %v", n, err)
	}
	if tag, _, _ := replicate.DecodeTag(bufs[0][:sizes[0]]); tag.Seq != extra {
		t.Errorf("the first number is %d, want %d", tag.Seq, extra)
	}
	for i := range 2 * queueBytes / batchSizes[3] {
		pushPayload(q, p, replicate.Seq(i), 1, make([]byte, batchSizes[2]+1), time.Now())
	}
	if q.bytes > queueBytes {
		t.Errorf("%d bytes wait, more than %d", q.bytes, queueBytes)
	}
}

// A multicast packet to many robots is one packet: it must not push out what
// waits for others.
func TestQueueCountsPacketsNotCopies(t *testing.T) {
	var pool batchPool
	q := newQueue(&pool, new(standstill), 1, 1280, time.Hour)
	waiting := testPeer(9, 0)
	pushPayload(q, waiting, 1, 1, []byte("unicast"), time.Now())
	b := pool.get(100, time.Now())
	off := b.add([]byte("multicast"))
	for range 2 * queuePackets {
		b.items = append(b.items, item{peer: testPeer(8, 0), off: off, len: 9, typ: replicate.Data, slots: 1})
	}
	q.push(b)
	pool.release(b)
	if n := waiting.links[0].Load().txDropped.Load(); n != 0 {
		t.Error("the unicast packet was pushed out")
	}
}

func TestQueueDropsTheStaleAndPrefersControl(t *testing.T) {
	var pool batchPool
	q := newQueue(&pool, new(standstill), 1, 1280, time.Second)
	p := testPeer(9, 0)
	pushPayload(q, p, 1, 1, []byte("stale"), time.Now().Add(-time.Minute))
	pushPayload(q, p, 2, 1, []byte("fresh"), time.Now())
	b := pool.get(4, time.Now())
	b.items = append(b.items, item{peer: p, off: b.add([]byte("ping")), len: 4, typ: replicate.Probe, slots: 1})
	q.pushControl(b)
	pool.release(b)
	bufs, sizes := fillBufs()
	var got [][]byte
	for len(got) < 2 {
		n, err := q.fill(bufs, sizes, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			_, payload, _ := replicate.DecodeTag(bufs[i][:sizes[i]])
			got = append(got, bytes.Clone(payload))
		}
	}
	if string(got[0]) != "ping" || string(got[1]) != "fresh" {
		t.Errorf("got %q, want the probe, then the fresh packet", got)
	}
	if n := p.links[0].Load().txDropped.Load(); n != 1 {
		t.Errorf("tx_dropped is %d, want 1", n)
	}
}

func TestQueueDropsWhatIsTooLong(t *testing.T) {
	var pool batchPool
	q := newQueue(&pool, new(standstill), 1, 1280, time.Hour)
	p := testPeer(9, 0)
	pushPayload(q, p, 1, 1, make([]byte, 1281), time.Now())
	pushPayload(q, p, 2, 1, make([]byte, 1280), time.Now())
	bufs, sizes := fillBufs()
	n, err := q.fill(bufs, sizes, 0)
	if err != nil || n != 1 || sizes[0] != 1280+replicate.TagLen {
		t.Errorf("%d frames, the first of %d bytes, error %v; want the second packet alone", n, sizes[0], err)
	}
	if n := p.links[0].Load().txDropped.Load(); n != 1 {
		t.Errorf("tx_dropped is %d, want 1", n)
	}
}

func TestQueueCloseWakesItsReader(t *testing.T) {
	var pool batchPool
	q := newQueue(&pool, new(standstill), 1, 1280, time.Hour)
	done := make(chan error)
	go func() {
		bufs, sizes := fillBufs()
		_, err := q.fill(bufs, sizes, 0)
		done <- err
	}()
	time.Sleep(10 * time.Millisecond)
	q.close()
	if err := <-done; !errors.Is(err, os.ErrClosed) {
		t.Errorf("error %v, want %v", err, os.ErrClosed)
	}
	pushPayload(q, testPeer(9, 0), 1, 1, []byte{1}, time.Now()) // must do nothing
}

// Whatever is pushed comes out of each queue once for each of its slots, in
// order, with its own bytes, however batches and reads fall.
func TestQueuesAgainstAList(t *testing.T) {
	all, allSizes := fillBufs()
	rapid.Check(t, func(t *rapid.T) {
		var pool batchPool
		queues := []*queue{newQueue(&pool, new(standstill), 0b001, 1280, time.Hour), newQueue(&pool, new(standstill), 0b110, 1280, time.Hour)}
		peers := []*peer{testPeer(7, 0, 1, 2), testPeer(8, 0, 1)}
		whole := map[replicate.Address]*replicate.Reassembler{}
		for _, p := range peers {
			for l := range p.paths() {
				l.largest.Store(rapid.SampledFrom([]int32{0, 60, 496, 700}).Draw(t, "largest"))
				whole[l.remote] = replicate.NewReassembler(1280)
			}
		}
		type frame struct {
			dst     replicate.Address
			seq     replicate.Seq
			payload string
		}
		var want [2][]frame
		seq := replicate.Seq(0)
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			b := pool.get(80<<10, time.Now())
			for range rapid.IntRange(0, 40).Draw(t, "items") {
				seq++
				p := rapid.SampledFrom(peers).Draw(t, "peer")
				slots := uint8(rapid.IntRange(0, 7).Draw(t, "slots"))
				payload := rapid.SliceOfN(rapid.Byte(), 20, 1280).Draw(t, "payload")
				b.items = append(b.items, item{peer: p, off: b.add(payload), len: len(payload), seq: seq, typ: replicate.Data, slots: slots})
				for i, q := range queues {
					for slot := range 3 {
						l := p.links[slot].Load()
						if slots&q.slots>>slot&1 == 1 && l != nil && q.partsFor(&b.items[len(b.items)-1], l) > 0 {
							want[i] = append(want[i], frame{l.remote, seq, string(payload)})
						}
					}
				}
			}
			for _, q := range queues {
				q.push(b)
			}
			pool.release(b)
		}
		size := rapid.IntRange(1, batchPackets).Draw(t, "read size")
		bufs, sizes := all[:size], allSizes[:size]
		for i, q := range queues {
			var got []frame
			for len(got) < len(want[i]) {
				n, err := q.fill(bufs, sizes, 0)
				if err != nil {
					t.Fatal(err)
				}
				for k := range n {
					tag, payload, err := replicate.DecodeTag(bufs[k][:sizes[k]])
					if err != nil {
						t.Fatal(err)
					}
					if tag.Type == replicate.Part {
						whole[tag.Dst].Follow(tag.Epoch)
						payload = whole[tag.Dst].Add(tag.Epoch, tag.Seq, payload, time.Now())
					}
					if payload != nil {
						got = append(got, frame{tag.Dst, tag.Seq, string(payload)})
					}
				}
			}
			for k := range got {
				if got[k] != want[i][k] {
					t.Fatalf("queue %d, frame %d: %+v, want %+v", i, k, got[k], want[i][k])
				}
			}
		}
	})
}

// A packet goes whole where it can, in parts where any path should take those, and
// not at all by a path that drops what any should take.
func TestPartsFor(t *testing.T) {
	l := testPeer(9, 0).links[0].Load()
	for _, c := range []struct{ largest, size, want int }{
		{0, 1280, 1}, {1308, 1280, 1}, // not known, or all that there is
		{1300, 1280, 2}, {1300, 1272, 1}, {1056, 1280, 2}, {704, 1280, 2}, {656, 1280, 3},
		{path.BaseFrame, 1280, 3}, {path.BaseFrame, 468, 1}, {path.BaseFrame, 469, 2},
		{480, 1280, 0}, {480, 452, 1}, {256, 800, 0}, {256, 228, 1}, {48, 20, 1}, {48, 21, 0},
	} {
		l.largest.Store(int32(c.largest))
		if got := l.partsFor(c.size, 1308); got != c.want {
			t.Errorf("%d bytes where frames of %d pass: %d parts, want %d", c.size, c.largest, got, c.want)
		}
	}
}

// Frames are counted that are as large as what passes, padded as WireGuard does.
func TestFullFramesAreCounted(t *testing.T) {
	l := testPeer(9, 0).links[0].Load()
	for _, c := range []struct {
		largest, size int
		want          uint32
	}{{1308, 1308, 1}, {1308, 1297, 1}, {1308, 1296, 0}, {1056, 1056, 1}, {1056, 1041, 1}, {1056, 1040, 0}} {
		before := l.txFull.Load()
		l.largest.Store(int32(c.largest))
		l.sent(c.size)
		if got := l.txFull.Load() - before; got != c.want {
			t.Errorf("%d bytes where %d pass: %d, want %d", c.size, c.largest, got, c.want)
		}
	}
}

// Until it is known what a path takes, no more is sent than any path should take: by
// a gateway that was not told yet, and by a robot whose path is not up.
func TestUnknownPathsGetWhatAnyTakes(t *testing.T) {
	p := &peer{}
	if l := p.newLink(0, "wwan0", 1, 2); l.largest.Load() != path.BaseFrame {
		t.Errorf("a new path gets frames of %d bytes", l.largest.Load())
	}
	for _, c := range []struct {
		path.Snapshot
		want int
	}{
		{path.Snapshot{}, path.BaseFrame},
		{path.Snapshot{Up: true, Search: path.SearchBase}, path.BaseFrame},
		{path.Snapshot{Up: true, Search: path.SearchOff}, 0}, // an old gateway
		{path.Snapshot{Up: true, Search: path.SearchComplete, Largest: 1056}, 1056},
		{path.Snapshot{Search: path.SearchComplete, Largest: 1308}, 1308}, // it was up
	} {
		if got := largestOf(c.Snapshot); got != c.want {
			t.Errorf("%+v: frames of %d bytes, want %d", c.Snapshot, got, c.want)
		}
	}
}

// The headers are those that docs/ARCHITECTURE.md tells, and add up.
func TestOnCarrier(t *testing.T) {
	for _, mtu := range []int{1280, 1412, 9000} {
		s := onCarrier(mtu + replicate.TagLen)
		if sum := mtu + s.Tag + s.WireGuard + s.UDP; s.LargestIPv4 != sum+s.IPv4 || s.LargestIPv6 != sum+s.IPv6 {
			t.Errorf("MTU %d: %+v", mtu, s)
		}
	}
	if s := onCarrier(1308); s.LargestIPv4 != 1368 || s.LargestIPv6 != 1388 {
		t.Errorf("%+v", s)
	}
	for to, want := range map[string]int{"198.51.100.10:51820": 1116, "[::ffff:198.51.100.10]:51820": 1116, "[2001:db8::1]:51820": 1136, "": 0} {
		if got := packetBytes(1056, 1308, to); got != want {
			t.Errorf("to %q: %d, want %d", to, got, want)
		}
	}
}

// The way out must not allocate per packet once its batches are there.
func TestQueueAllocatesNothingPerPacket(t *testing.T) {
	var pool batchPool
	q := newQueue(&pool, new(standstill), 1, 1280, time.Hour)
	p := testPeer(9, 0)
	bufs, sizes := fillBufs()
	payload := make([]byte, 1000)
	if n := testing.AllocsPerRun(1000, func() {
		pushPayload(q, p, 1, 1, payload, time.Now())
		_, _ = q.fill(bufs[:1], sizes, 0)
	}); n >= 1 {
		t.Errorf("%v allocations for a packet", n)
	}
}
