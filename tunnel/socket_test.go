package tunnel

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	"pgregory.net/rapid"
)

// pair opens two sockets on loopback and returns them with the second's address.
func pair(t testing.TB, network, host string) (a, b *socket, to *endpoint) {
	t.Helper()
	for _, s := range []**socket{&a, &b} {
		var err error
		if *s, err = openSocket(network, socketOptions{device: "lo"}, new(socketStats)); err != nil {
			t.Fatal(err)
		}
		sock := *s
		t.Cleanup(func() { _ = sock.close() })
	}
	return a, b, newEndpoint(netip.AddrPortFrom(netip.MustParseAddr(host), b.port))
}

// collect reads want datagrams.
func collect(t testing.TB, s *socket, want int) [][]byte {
	t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	bufs := make([][]byte, batchPackets)
	for i := range bufs {
		bufs[i] = make([]byte, 1<<16)
	}
	sizes, eps := make([]int, batchPackets), make([]conn.Endpoint, batchPackets)
	var got [][]byte
	for len(got) < want {
		n, err := s.receive(bufs, sizes, eps, func([]byte, *endpoint) {})
		if err != nil {
			t.Fatalf("after %d of %d datagrams: %v", len(got), want, err)
		}
		for i := range n {
			got = append(got, bytes.Clone(bufs[i][:sizes[i]]))
		}
	}
	return got
}

// datagrams makes payloads of the given sizes that can be told apart.
func datagrams(sizes ...int) [][]byte {
	var all [][]byte
	for i, n := range sizes {
		all = append(all, bytes.Repeat([]byte{byte(i + 5)}, n))
	}
	return all
}

func TestSocketKeepsDatagramsAndOrder(t *testing.T) {
	many := make([]int, batchPackets)
	for i := range many {
		many[i] = 1340
	}
	for name, sizes := range map[string][]int{
		"one":        {100},
		"equal":      many,
		"last short": {1340, 1340, 1340, 7},
		"mixed":      {1340, 100, 100, 1340, 1340, 1, 60000, 60000, 32},
	} {
		for network, host := range map[string]string{"udp4": "127.0.0.1", "udp6": "::1"} {
			t.Run(name+"/"+network, func(t *testing.T) {
				a, b, to := pair(t, network, host)
				sent := datagrams(sizes...)
				a.transmit(sent, to)
				for i, got := range collect(t, b, len(sent)) {
					if !bytes.Equal(got, sent[i]) {
						t.Fatalf("datagram %d: %d bytes of %d, want %d of %d", i, len(got), got[0], len(sent[i]), sent[i][0])
					}
				}
				if n := a.stats.txPackets.Load(); n != uint64(len(sent)) {
					t.Errorf("tx_packets is %d, want %d", n, len(sent))
				}
				if n := b.stats.rxPackets.Load(); n != uint64(len(sent)) {
					t.Errorf("rx_packets is %d, want %d", n, len(sent))
				}
			})
		}
	}
}

// One datagram that is too big must not take the rest of its batch with it.
func TestSocketOversizeAlone(t *testing.T) {
	for name, gso := range map[string]bool{"with GSO": true, "without GSO": false} {
		t.Run(name, func(t *testing.T) {
			a, b, to := pair(t, "udp4", "127.0.0.1")
			if !a.gso.on() {
				t.Fatal("this kernel has no UDP_SEGMENT; the test needs it")
			}
			if !gso {
				a.gso.stop()
			}
			sent := datagrams(1200, 1200, 65000, 1200, 1400, 1400, 65000, 65000, 100)
			oversize := bytes.Repeat([]byte{9}, 65508) // one more than a UDP payload can be
			sent[2], sent[6], sent[7] = oversize, oversize, oversize
			a.transmit(sent, to)
			var want [][]byte
			for _, d := range sent {
				if len(d) < 65508 {
					want = append(want, d)
				}
			}
			for i, got := range collect(t, b, len(want)) {
				if !bytes.Equal(got, want[i]) {
					t.Fatalf("datagram %d: %d bytes, want %d", i, len(got), len(want[i]))
				}
			}
			if s := a.stats.status(); s.TxTooBig != 3 || s.TxErrors != 0 || s.LastError != "" {
				t.Errorf("tx_too_big is %d, want 3; tx_errors %d, %q", s.TxTooBig, s.TxErrors, s.LastError)
			}
		})
	}
}

func TestPack(t *testing.T) {
	plain := newEndpoint(netip.MustParseAddrPort("127.0.0.1:1"))
	sourced := (&endpoints{port: 7}).get(arrival{remote: plain.addr, local: netip.MustParseAddr("127.0.0.2")})
	rapid.Check(t, func(t *rapid.T) {
		to := rapid.SampledFrom([]*endpoint{plain, sourced}).Draw(t, "to")
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{32, 100, 1340, 9000, 60000}), 1, batchPackets).Draw(t, "sizes")
		bufs := datagrams(sizes...)
		o := newOutgoing()
		o.pack(bufs, to, to.from(), rapid.Bool().Draw(t, "gso"))
		at := 0
		for _, m := range o.msgs {
			total := 0
			for i, b := range m.Buffers {
				if &b[0] != &bufs[at][0] {
					t.Fatalf("datagram %d is not in its place", at)
				}
				if i < len(m.Buffers)-1 && len(b) != len(m.Buffers[0]) || len(b) > len(m.Buffers[0]) {
					t.Fatalf("segment %d of %d has %d bytes, the first %d", i, len(m.Buffers), len(b), len(m.Buffers[0]))
				}
				total += len(b)
				at++
			}
			if len(m.Buffers) > gsoSegments || len(m.Buffers) > 1 && total > gsoBytes {
				t.Fatalf("%d segments, %d bytes in one message", len(m.Buffers), total)
			}
			segment, source := readControl(m.OOB)
			if want := len(m.Buffers[0]); len(m.Buffers) > 1 && segment != want || len(m.Buffers) == 1 && segment != 0 {
				t.Fatalf("UDP_SEGMENT is %d for %d datagrams of %d bytes", segment, len(m.Buffers), want)
			}
			if source != to.SrcIP() {
				t.Fatalf("source %v, want %v", source, to.SrcIP())
			}
		}
		if at != len(bufs) {
			t.Fatalf("%d of %d datagrams packed", at, len(bufs))
		}
	})
}

func TestRateLimit(t *testing.T) {
	var r rateLimit
	now := time.Unix(1000, 0)
	n := 0
	for range 100 {
		if r.allow(10, now) {
			n++
		}
	}
	if n != 10 || !r.allow(10, now.Add(time.Second)) {
		t.Errorf("%d of 100 in one moment, want 10, and more a second later", n)
	}
}
