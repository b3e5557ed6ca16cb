package tunnel

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"pgregory.net/rapid"

	"github.com/fogplr/fogplr/replicate"
)

// cutUp returns the IP packets that a kernel makes of a UDP datagram with payload
// bytes where packets have mtu at most.
func cutUp(t testing.TB, src, dst string, id uint32, payload []byte, mtu int) (packets [][]byte) {
	whole := inner(t, src, dst, layers.IPProtocolUDP, 7411, payload)
	head := 20
	if netip.MustParseAddr(src).Is6() {
		head = 40
	}
	rest := whole[head:]
	room := mtu - head
	if head == 40 {
		room -= fragmentHeader
	}
	room &^= 7
	for off := 0; off < len(rest); off += room {
		end := min(off+room, len(rest))
		packets = append(packets, makeFragment(whole[:head], id, off, end < len(rest), rest[off:end]))
	}
	return packets
}

// makeFragment returns a packet with the header of a whole one.
func makeFragment(head []byte, id uint32, off int, more bool, data []byte) []byte {
	p := bytes.Clone(head)
	flag := uint16(0)
	if p[0]>>4 == 4 {
		if more {
			flag = 0x2000
		}
		binary.BigEndian.PutUint16(p[2:], uint16(20+len(data)))
		binary.BigEndian.PutUint16(p[4:], uint16(id))
		binary.BigEndian.PutUint16(p[6:], flag|uint16(off/8))
		return append(p, data...)
	}
	if more {
		flag = 1
	}
	p[6] = protoFragment
	binary.BigEndian.PutUint16(p[4:], uint16(fragmentHeader+len(data)))
	p = append(p, protoUDP, 0)
	p = binary.BigEndian.AppendUint16(p, uint16(off)|flag)
	p = binary.BigEndian.AppendUint32(p, id)
	return append(p, data...)
}

// gather gives a packet to g and returns what comes out of it.
func gather(g *gatherer, p []byte, now time.Time) [][]byte {
	f, ok := fragmentOf(p, classify(p))
	if !ok {
		return [][]byte{p}
	}
	return g.add(p, f, now)
}

// families are the addresses of both.
var families = [][2]string{{"10.77.0.9", "10.77.0.1"}, {"fd77::9", "fd77::1"}}

// What the fragments of many datagrams come to, mixed up, and some lost: the whole
// datagrams, each in order and once, and nothing of the others.
func TestGathererAgainstAList(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		var all [][]byte
		datagrams := map[string][][]byte{}
		lost := map[string]bool{}
		owner := map[string]string{}
		for i := range rapid.IntRange(1, 16).Draw(r, "datagrams") {
			ends := families[rapid.IntRange(0, 1).Draw(r, "family")]
			payload := make([]byte, rapid.IntRange(1300, 60_000).Draw(r, "payload"))
			for k := range payload {
				payload[k] = byte(rnd.Uint32())
			}
			packets := cutUp(t, ends[0], ends[1], uint32(i), payload, rapid.SampledFrom([]int{576, 1280}).Draw(r, "mtu"))
			name := string(packets[0])
			datagrams[name] = packets
			for _, p := range packets {
				owner[string(p)] = name
				if rapid.IntRange(0, 99).Draw(r, "luck") == 0 {
					lost[name] = true
				} else {
					all = append(all, p)
				}
			}
		}
		rnd.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		var g gatherer
		now := time.Unix(1, 0)
		got := map[string]int{}
		for _, p := range all {
			now = now.Add(time.Microsecond)
			out := gather(&g, p, now)
			if len(out) == 0 {
				continue
			}
			name := owner[string(out[0])]
			got[name]++
			if !slices.EqualFunc(out, datagrams[name], bytes.Equal) {
				r.Fatalf("%d packets in another order or of another datagram", len(out))
			}
		}
		for name := range datagrams {
			want := 1
			if lost[name] {
				want = 0
			}
			if got[name] != want {
				r.Fatalf("a datagram came %d times, lost: %v", got[name], lost[name])
			}
		}
		g.expire(now.Add(2 * fragmentsAge))
		// One of which all fragments were lost was never seen.
		seen := map[string]bool{}
		for _, p := range all {
			seen[owner[string(p)]] = true
		}
		maps.DeleteFunc(lost, func(name string, _ bool) bool { return !seen[name] })
		if int(g.incomplete) != len(lost) || g.bytes != 0 || len(g.open) != 0 {
			r.Fatalf("%d given up of %d; %d bytes and %d datagrams left", g.incomplete, len(lost), g.bytes, len(g.open))
		}
	})
}

// A datagram whose fragments overlap, or cannot be, does not pass, and no more of
// it either; others do.
func TestGathererSpoilt(t *testing.T) {
	for _, ends := range families {
		good := cutUp(t, ends[0], ends[1], 7, make([]byte, 3000), 1280)
		head := good[0][:20]
		if len(ends[0]) == 7 {
			head = inner(t, ends[0], ends[1], layers.IPProtocolUDP, 7411, nil)[:40]
		}
		for name, bad := range map[string][]byte{
			"overlap":            makeFragment(head, 7, 8, true, make([]byte, 8)),
			"two ends":           makeFragment(head, 7, 5000, false, make([]byte, 8)),
			"an end too soon":    makeFragment(head, 7, 800, false, make([]byte, 8)),
			"beyond the end":     makeFragment(head, 7, 4000, true, make([]byte, 8)),
			"not eights":         makeFragment(head, 7, 16000, true, make([]byte, 9)),
			"nothing":            makeFragment(head, 7, 16000, true, nil),
			"longer than can be": makeFragment(head, 7, 65528, false, make([]byte, 8)),
		} {
			var g gatherer
			now := time.Unix(1, 0)
			for _, p := range [][]byte{good[0], good[2], bad, good[1], good[0], good[1], good[2]} {
				if out := gather(&g, p, now); out != nil {
					t.Errorf("%s: %d packets", name, len(out))
				}
			}
			now = now.Add(fragmentsAge + 1)
			var out [][]byte
			for _, p := range good {
				out = gather(&g, p, now)
			}
			if len(out) != len(good) || g.incomplete != 1 || g.bytes != 0 {
				t.Errorf("%s: later %d packets, %d given up, %d bytes", name, len(out), g.incomplete, g.bytes)
			}
		}
	}
}

// A fragment that came twice, which elimination lets through once in a while, does
// no harm.
func TestGathererTwice(t *testing.T) {
	for _, ends := range families {
		var g gatherer
		var out [][]byte
		packets := cutUp(t, ends[0], ends[1], 7, make([]byte, 3000), 1280)
		for _, i := range []int{2, 0, 2, 0, 1} {
			out = gather(&g, packets[i], time.Unix(1, 0))
		}
		if !slices.EqualFunc(out, packets, bytes.Equal) || g.bytes != 0 {
			t.Errorf("%v: %d packets, %d bytes left", ends, len(out), g.bytes)
		}
	}
}

// However much is begun and never ended, memory stays bounded, and what is whole
// passes.
func TestGathererBounds(t *testing.T) {
	var g gatherer
	now := time.Unix(1, 0)
	for i := range uint32(3000) {
		ends := families[i%2]
		packets := cutUp(t, ends[0], ends[1], i, make([]byte, 40_000), 1280)
		for _, p := range packets[1:] {
			gather(&g, p, now)
			if g.bytes > fragmentsBytes || len(g.open) > fragmentsOpen {
				t.Fatalf("%d bytes, %d datagrams", g.bytes, len(g.open))
			}
		}
		small := cutUp(t, ends[0], ends[1], 1<<15+i, make([]byte, 2000), 1280)
		gather(&g, small[0], now)
		if out := gather(&g, small[1], now); len(out) != 2 {
			t.Fatalf("%d packets of a whole datagram", len(out))
		}
	}
	tiny := inner(t, "10.77.0.9", "10.77.0.1", layers.IPProtocolUDP, 7411, nil)[:20]
	for i := range fragmentsEach + 1 {
		gather(&g, makeFragment(tiny, 9, i*8, true, make([]byte, 8)), now)
	}
	if out := gather(&g, makeFragment(tiny, 9, (fragmentsEach+1)*8, false, []byte{1}), now); out != nil {
		t.Errorf("a datagram of %d fragments passed", len(out))
	}
}

// What is whole goes its way at once: also IPv6 packets with a fragment header that
// says so (RFC 6946).
func TestWholeDatagrams(t *testing.T) {
	for _, ends := range families {
		whole := inner(t, ends[0], ends[1], layers.IPProtocolUDP, 7411, make([]byte, 100))
		if _, ok := fragmentOf(whole, classify(whole)); ok {
			t.Errorf("%v: a whole datagram is taken for a fragment", ends)
		}
		atomic := cutUp(t, ends[0], ends[1], 3, make([]byte, 100), 1280)
		if _, ok := fragmentOf(atomic[0], classify(atomic[0])); ok || len(atomic) != 1 {
			t.Errorf("%v: an atomic fragment is kept back", ends)
		}
	}
}

// Fragments come out of In together or not at all, by whichever path.
func TestInGathersFragments(t *testing.T) {
	in, h, p := testInward(t)
	seq := replicate.Seq(0)
	frame := func(packet []byte, slot int) []byte {
		f := make([]byte, testOffset+replicate.TagLen+len(packet))
		copy(f[testOffset+replicate.TagLen:], packet)
		replicate.PutTag(f[testOffset:], &replicate.Tag{
			Type: replicate.Data, Epoch: 3, PathSeq: seq, Seq: seq,
			Src: p.links[slot].Load().remote, Dst: p.links[slot].Load().local,
		})
		return f
	}
	want := 0
	for i := range 60 {
		packets := cutUp(t, "10.77.0.9", "10.77.0.1", uint32(i), make([]byte, 60_000), 1280)
		for k, packet := range packets {
			seq++
			if i%3 == 0 && k == 20 { // lost on both
				continue
			}
			in.deliver([][]byte{frame(packet, k%2)}, testOffset)
			if h.packets != want && k < len(packets)-1 {
				t.Fatalf("%d packets after fragment %d of datagram %d, want %d", h.packets, k, i, want)
			}
		}
		if i%3 != 0 {
			want += len(packets)
		}
		if h.packets != want {
			t.Fatalf("%d packets, want %d", h.packets, want)
		}
	}
}

func TestGathererAllocatesNothing(t *testing.T) {
	var g gatherer
	now := time.Unix(1, 0)
	packets := cutUp(t, "fd77::9", "fd77::1", 3, make([]byte, 10_000), 1280)
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Millisecond)
		for _, p := range packets {
			gather(&g, p, now)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a datagram", n)
	}
}

func FuzzGatherer(f *testing.F) {
	for _, ends := range families {
		for _, p := range cutUp(f, ends[0], ends[1], 3, make([]byte, 3000), 1280) {
			f.Add(p, p[:len(p)-1])
		}
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var g gatherer
		for _, p := range [][]byte{a, b, a} {
			h := classify(p)
			if h.kind == malformed {
				continue
			}
			out := gather(&g, p, time.Unix(1, 0))
			size := 0
			for _, o := range out {
				size += len(o)
			}
			if size > len(a)+len(b) || g.bytes < 0 {
				t.Fatalf("%d bytes came out of %d and %d; %d are left", size, len(a), len(b), g.bytes)
			}
		}
	})
}
