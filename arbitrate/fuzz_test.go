package arbitrate

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fogplr/fogplr/rtps"
)

// within checks that all that is known is bounded, and adds up.
func within(t testing.TB, a *Arbiter) {
	t.Helper()
	parked, octets, pairs := 0, 0, 0
	for _, s := range a.streams {
		parked, octets = parked+s.parked, octets+s.parkedBytes
		pairs += len(s.pairs)
		if s.parked > parkedEach || s.parkedBytes > parkedEachBytes || len(s.pairs) > maxPairs {
			t.Fatalf("a stream has parked %d, %d octets, and has %d pairs", s.parked, s.parkedBytes, len(s.pairs))
		}
	}
	orphans := 0
	for _, p := range a.parking.kept {
		if p.stream == nil {
			orphans++
		}
	}
	if len(a.parking.kept) != parked+orphans || a.parking.bytes < octets || len(a.parking.kept) > parkedAll {
		t.Fatalf("%d parked, and %d of streams", len(a.parking.kept), parked)
	}
	if len(a.streams) > maxStreams || len(a.graph.services) > maxServices || a.bitmaps.room < 0 || a.bitmaps.room > maxBitmaps {
		t.Fatalf("%d streams, %d services, %d octets of bitmaps left", len(a.streams), len(a.graph.services), a.bitmaps.room)
	}
	requests := 0
	for _, s := range a.graph.services {
		n := 0
		for r := s.first; r != nil; r = r.next {
			n++
		}
		if n != s.requests || n > maxAsked {
			t.Fatalf("%d requests of a service, and %d counted", n, s.requests)
		}
		requests += n
	}
	if requests != a.requests.count {
		t.Fatalf("%d requests, and %d counted", requests, a.requests.count)
	}
}

// script makes the packets of a fuzz input: for each a direction, a time, and octets,
// alone or as a message of a participant.
func script(input []byte, do func(out bool, after time.Duration, p []byte)) {
	for len(input) > 4 {
		how, after, size := input[0], time.Duration(input[1])*20*time.Millisecond, int(binary.BigEndian.Uint16(input[2:]))
		input = input[4:]
		size = min(size, len(input), 1400)
		p := bytes.Clone(input[:size])
		input = input[size:]
		if how&2 != 0 {
			prefix := replica(int(how >> 4 & 1))
			if how&1 != 0 {
				prefix = here
			}
			vendor := rtps.VendorCyclone
			if how&4 != 0 {
				vendor = rtps.VendorFast
			}
			p = udp(address(10, 7411), hereTo, 1, append(message(vendor, prefix).to(replica(int(how>>5&1))).b, p...))
		}
		do(how&1 != 0, after, p)
	}
}

func scripted(out bool, after byte, wrapped bool, b []byte) []byte {
	how := byte(0)
	if out {
		how |= 1
	}
	if wrapped {
		how |= 2
	}
	return append([]byte{how, after, byte(len(b) >> 8), byte(len(b))}, b...)
}

func FuzzArbiter(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("..", "rtps", "testdata", "*-loss.pcap.gz"))
	if len(files) == 0 {
		f.Fatal("no captures")
	}
	for _, file := range files {
		var all []byte
		for _, c := range readCapture(f, file) {
			for _, p := range c.packets {
				all = append(all, scripted(fromClient(p), 1, false, p)...)
			}
		}
		f.Add(all)
	}
	r := &rig{}
	f.Add(bytes.Join([][]byte{
		scripted(true, 0, true, (&writer{}).data(0, askWriter, 1, nil, append([]byte{0, 1, 0, 0}, make([]byte, 16)...)).b),
		scripted(false, 1, true, r.answer(0, 2, 1).b[20:]),
		scripted(false, 1, true, r.answer(0, 1, 1).heartbeat(0, replyWriter, 1, 2, 3, false).b[20:]),
		scripted(true, 9, true, (&writer{}).ackNack(readerHere, replyWriter, 1, 2, false, 0, 1).nackFrag(readerHere, replyWriter, 2, 1, 1, 0, 3).b),
		scripted(false, 60, true, (&writer{}).gap(0, replyWriter, 1, 4).b),
	}, nil))
	f.Fuzz(func(t *testing.T, input []byte) {
		a := newRig(nil, 2).a
		now := epoch
		script(input, func(out bool, after time.Duration, p []byte) {
			now = now.Add(after)
			size := len(p)
			if out {
				a.Out(now, p)
			} else {
				for _, q := range a.In(now, [][]byte{p, p[:len(p)/2]}) {
					if len(q) > 1<<16 {
						t.Fatalf("a packet of %d octets", len(q))
					}
				}
			}
			if len(p) != size {
				t.Fatal("the packet has another length")
			}
		})
		within(t, a)
		data, err := a.Snapshot(now)
		if err != nil {
			t.Fatal(err)
		}
		b := New(now)
		if err := b.Restore(now, data); err != nil {
			t.Fatal(err)
		}
		within(t, b)
		if a.graph.endpoints.count != b.graph.endpoints.count || a.requests.count != b.requests.count {
			t.Fatalf("%d endpoints and %d requests became %d and %d",
				a.graph.endpoints.count, a.requests.count, b.graph.endpoints.count, b.requests.count)
		}
		a.Tick(now.Add(time.Hour))
		if len(a.parking.kept) > 0 {
			t.Fatal("something is parked for ever")
		}
	})
}

func FuzzRestore(f *testing.F) {
	r := newRig(nil, 2)
	r.ask(1)
	r.in(r.answer(0, 1, 1))
	data, err := r.a.Snapshot(epoch)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1,"participants":[{"prefix":"00"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := New(epoch)
		if a.Restore(epoch, data) == nil {
			within(t, a)
			a.Tick(epoch.Add(time.Hour))
			within(t, a)
		} else if a.graph.participants.count > 0 {
			t.Error("a snapshot that is refused was taken in part")
		}
	})
}

// A gateway that announces without end, and says that it replies, fills nothing.
func TestFlood(t *testing.T) {
	r := newRig(t, 1)
	for i := range 3 * maxEndpoints {
		p := rtps.Prefix{9, 9, byte(i >> 8), byte(i), byte(i >> 16)}
		m := message(rtps.VendorCyclone, p)
		if i%2 == 0 { // one with very many
			p = rtps.Prefix{9, 9, 9, 9, 9, 9}
			m = message(rtps.VendorCyclone, p)
		}
		w := rtps.EntityID(i+1)<<8 | 3
		topic := "rr/echoReply"
		if i%3 == 0 {
			topic = "rr/e" + rtps.EntityID(i).String() + "Reply"
		}
		m.sedp(rtps.GUID{Prefix: p, Entity: w}, topic, 1).to(here).heartbeat(0, w, 1, 0, 1, false)
		m.frag(0, w, 1, nil, make([]byte, 60000), 4, 2)
		r.in(m)
	}
	for n := range int64(2 * maxAsked) {
		r.ask(n + 1)
	}
	within(t, r.a)
	if r.a.Counters().Full == 0 || r.a.graph.participants.count != maxParticipants || r.a.requests.count != maxAsked {
		t.Errorf("%+v, %d participants, %d requests", r.a.Counters(), r.a.graph.participants.count, r.a.requests.count)
	}
	r.now = 2 * silentFor
	r.tick()
	if n := r.a.graph.endpoints.count; n != 0 || r.a.bitmaps.room != maxBitmaps || r.a.graph.ports.count != 0 {
		t.Errorf("an hour later %d endpoints are known, %d octets of bitmaps left", n, r.a.bitmaps.room)
	}
}

func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := newTable[uint8, int](20), map[uint8]*int{}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			k := rapid.Uint8Range(0, 40).Draw(t, "key")
			switch v := a.get(k); {
			case v != b[k]:
				t.Fatalf("%d is at %p, want %p", k, v, b[k])
			case v != nil:
				a.remove(k)
				delete(b, k)
			case a.full() != (len(b) == 20):
				t.Fatalf("full: %v with %d", a.full(), len(b))
			case !a.full():
				b[k] = a.add(k)
			}
		}
		n := 0
		for range a.all() {
			n++
		}
		if n != len(b) || n != a.count {
			t.Fatalf("%d values, want %d", n, len(b))
		}
	})
}
