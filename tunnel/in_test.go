package tunnel

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// countingHost counts what is written to it.
type countingHost struct {
	tun.Device
	packets int
}

func (h *countingHost) Write(bufs [][]byte, _ int) (int, error) {
	h.packets += len(bufs)
	return len(bufs), nil
}

// testInward is node 1 (10.77.0.1) with the peer 10.77.0.9 on slots 0 and 1.
func testInward(t testing.TB) (*inward, *countingHost, *peer) {
	p := testPeer(9, 0, 1)
	p.addrs = []netip.Addr{netip.MustParseAddr("10.77.0.9")}
	p.elim = replicate.NewEliminator()
	h := &countingHost{}
	in := newInward(h, []netip.Addr{netip.MustParseAddr("10.77.0.1")}, slog.New(slog.DiscardHandler), time.Now())
	in.still = newStandstill(time.Second, in.start, func() time.Duration { return 0 })
	in.admit([]*peer{p})
	in.heard = func(*link, time.Time) {}
	in.onProbe = func(*link, path.Probe, int, time.Time) {}
	in.onReply = func(*link, path.Reply, int, time.Time) {}
	return in, h, p
}

const testOffset = 16 // what wireguard-go leaves in front of a frame

// frames returns n data frames of the peer's, copied over each of slots, number
// by number, each at testOffset of its buffer.
func frames(t testing.TB, p *peer, first replicate.Seq, n int, slots ...int) (all [][]byte) {
	packet := inner(t, "10.77.0.9", "10.77.0.1", layers.IPProtocolUDP, 7411, make([]byte, 1000))
	for i := range n {
		for _, s := range slots {
			f := make([]byte, testOffset+replicate.TagLen+len(packet))
			copy(f[testOffset+replicate.TagLen:], packet)
			replicate.PutTag(f[testOffset:], &replicate.Tag{
				Type: replicate.Data, Epoch: 3, PathSeq: first + replicate.Seq(i), Seq: first + replicate.Seq(i),
				Src: p.links[s].Load().remote, Dst: p.links[s].Load().local,
			})
			all = append(all, f)
		}
	}
	return all
}

func TestInDeliversMoreThanABatch(t *testing.T) {
	in, h, p := testInward(t)
	in.deliver(frames(t, p, 1, 3*batchPackets+5, 0, 1), testOffset)
	if want := 3*batchPackets + 5; h.packets != want || p.elim.Counters().Discarded != uint64(want) {
		t.Errorf("%d packets written, %d copies discarded, want %d of each", h.packets, p.elim.Counters().Discarded, want)
	}
}

func TestInRefuses(t *testing.T) {
	in, h, p := testInward(t)
	for name, c := range map[string]struct {
		change func(f []byte)
		count  func() uint64
	}{
		"short":           {func(f []byte) { f[3], f[2] = 27, 0 }, func() uint64 { return in.counters.Malformed }},
		"version":         {func(f []byte) { f[0] = 0x4f }, func() uint64 { return in.counters.BadVersion }},
		"type":            {func(f []byte) { f[1] = 0xf0 }, func() uint64 { return in.counters.BadVersion }},
		"unknown source":  {func(f []byte) { f[15] = 77 }, func() uint64 { return in.counters.NotAllowed }},
		"other's frame":   {func(f []byte) { f[19] = 77 }, func() uint64 { return in.counters.NotAllowed }},
		"inner source":    {func(f []byte) { f[28+15] = 77 }, func() uint64 { return in.counters.NotAllowed }},
		"inner target":    {func(f []byte) { f[28+19] = 77 }, func() uint64 { return in.counters.NotAllowed }},
		"not IP":          {func(f []byte) { f[28] = 0 }, func() uint64 { return in.counters.NotAllowed }},
		"housekeeping":    {func(f []byte) { copy(f[28+16:], []byte{224, 0, 0, 1}) }, func() uint64 { return in.counters.NotAllowed }},
		"malformed probe": {func(f []byte) { f[1], f[2], f[3] = byte(replicate.Probe)<<4, 0, 29 }, func() uint64 { return in.counters.Malformed }},
		"malformed reply": {func(f []byte) { f[1], f[2], f[3] = byte(replicate.Reply)<<4, 0, 29 }, func() uint64 { return in.counters.Malformed }},
	} {
		f := frames(t, p, 1, 1, 0)
		c.change(f[0][testOffset:])
		before := c.count()
		in.deliver(f, testOffset)
		if got := c.count() - before; got != 1 {
			t.Errorf("%s: counted %d times", name, got)
		}
	}
	if h.packets != 0 {
		t.Errorf("%d packets were delivered", h.packets)
	}
	in.deliver(frames(t, p, 1, 1, 0), testOffset) // no refused frame used up its number
	if h.packets != 1 {
		t.Error("a refused frame used up the number of a good one")
	}
}

// What a silence ends with, and was stamped long before others that came, is dropped,
// whatever its number, and what follows is not; a probe of that age is a probe.
func TestInDropsWhatWaited(t *testing.T) {
	in, h, p := testInward(t)
	probes := 0
	in.onProbe = func(*link, path.Probe, int, time.Time) { probes++ }
	now := in.start
	deliver := func(typ replicate.Type, seq replicate.Seq, ago time.Duration) {
		f := frames(t, p, seq, 1, 0)[0]
		tag, _, _ := replicate.DecodeTag(f[testOffset:])
		tag.Type, tag.SentAt = typ, in.still.stamp(now.Add(-ago))
		if typ == replicate.Probe {
			f = f[:testOffset+replicate.TagLen+path.ProbeLen]
		}
		replicate.PutTag(f[testOffset:], &tag)
		in.walk([][]byte{f}, testOffset, now)
	}
	deliver(replicate.Data, 1, 0)
	now = now.Add(5 * time.Second)
	deliver(replicate.Data, 2, 5*time.Second)
	deliver(replicate.Part, 3, 5*time.Second)
	deliver(replicate.Probe, 4, 5*time.Second)
	deliver(replicate.Data, 2, 0)
	deliver(replicate.Data, 5, 5*time.Second)
	if dropped := in.still.in.Load(); h.packets != 3 || dropped != 2 || probes != 1 {
		t.Errorf("%d packets written, %d dropped for their age, %d probes; want 3, 2, 1", h.packets, dropped, probes)
	}
}

func TestInAllocatesNothing(t *testing.T) {
	in, _, p := testInward(t)
	all := frames(t, p, 1, batchPackets/2, 0, 1)
	seq := replicate.Seq(0)
	if n := testing.AllocsPerRun(100, func() {
		seq += 1000
		for i, f := range all {
			putSeq(f[testOffset:], seq+replicate.Seq(i/2))
		}
		in.deliver(all, testOffset)
	}); n != 0 {
		t.Errorf("%v allocations for a batch", n)
	}
}

// putSeq renumbers a frame.
func putSeq(f []byte, seq replicate.Seq) {
	t, _, _ := replicate.DecodeTag(f)
	t.Seq, t.PathSeq = seq, seq
	replicate.PutTag(f, &t)
}

// Nothing that an authenticated peer sends may panic, or reach the host without
// the peer's own source address.
func FuzzIn(f *testing.F) {
	_, _, p := testInward(f)
	f.Add(frames(f, p, 1, 1, 0)[0][testOffset:])
	f.Fuzz(func(t *testing.T, frame []byte) {
		in, h, _ := testInward(t)
		buf := append(make([]byte, testOffset), frame...)
		in.deliver([][]byte{buf}, testOffset)
		if h.packets > 0 && string(buf[testOffset+replicate.TagLen+12:][:4]) != "\x0a\x4d\x00\x09" {
			t.Fatal("a packet with a foreign source was delivered")
		}
	})
}

func BenchmarkIn(b *testing.B) {
	in, _, p := testInward(b)
	all := frames(b, p, 1, batchPackets/2, 0, 1)
	seq := replicate.Seq(0)
	b.SetBytes(int64(len(all) / 2 * 1028))
	b.ReportAllocs()
	for b.Loop() {
		seq += 1000
		for i, f := range all {
			putSeq(f[testOffset:], seq+replicate.Seq(i/2))
		}
		in.deliver(all, testOffset)
	}
}

func TestInWakesAfterAPause(t *testing.T) {
	in, _, p := testInward(t)
	in.start = time.Now().Add(-2 * trafficPause)
	wakes := 0
	in.woken = func() { wakes++ }
	in.deliver(frames(t, p, 1, 2, 0, 1), testOffset)
	in.deliver(frames(t, p, 3, 1, 0), testOffset)
	if wakes != 1 {
		t.Errorf("data that came after a pause woke the prober %d times, want once", wakes)
	}
	p.traffic.Store(0)
	in.deliver(frames(t, p, 4, 1, 0), testOffset)
	if wakes != 2 {
		t.Error("data after another pause did not wake the prober")
	}
}
