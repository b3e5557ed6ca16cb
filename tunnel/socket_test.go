package tunnel

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"pgregory.net/rapid"
)

// pair opens two sockets on loopback and returns them with the second's address.
func pair(t *testing.T, network, host string) (a, b *socket, to *endpoint) {
	t.Helper()
	for _, s := range []**socket{&a, &b} {
		var err error
		if *s, err = openSocket(network, socketOptions{device: "lo"}, new(socketStats)); err != nil {
			t.Fatal(err)
		}
		sock := *s
		t.Cleanup(func() { _ = sock.close() })
	}
	return a, b, newEndpoint(netip.AddrPortFrom(netip.MustParseAddr(host), b.localPort()))
}

// collect reads want datagrams.
func collect(t *testing.T, s *socket, want int) [][]byte {
	t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	bufs := make([][]byte, batchPackets)
	for i := range bufs {
		bufs[i] = make([]byte, 1<<16)
	}
	sizes, eps := make([]int, batchPackets), make([]conn.Endpoint, batchPackets)
	var got [][]byte
	for len(got) < want {
		n, err := s.receive(bufs, sizes, eps, func([]byte, netip.AddrPort) {})
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
			if !a.gso.Load() {
				t.Fatal("this kernel has no UDP_SEGMENT; the test needs it")
			}
			a.gso.Store(gso)
			sent := datagrams(1200, 1200, 65000, 1200, 1400, 1400, 65000, 65000, 100)
			raw, err := a.conn.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			// Loopback's MTU is 65,536: a payload of 65,000 fits a packet, so the
			// limit is set by forbidding what does not fit the socket's buffer.
			_ = raw.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
			})
			if err != nil {
				t.Fatal(err)
			}
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
			if n := a.stats.txErrors.Load(); n != 3 {
				t.Errorf("tx_errors is %d, want 3", n)
			}
			if a.stats.status().LastError == "" {
				t.Error("no last_error")
			}
		})
	}
}

// A segmented message whose segments are too big for the path is refused as a
// whole by the kernel; each datagram must then be judged by itself.
func TestSocketSegmentsTooBig(t *testing.T) {
	a, b, to := pair(t, "udp4", "127.0.0.1")
	o := newOutgoing()
	o.pack(datagrams(1200, 1200, 1200), to.udp, true)
	if len(o.msgs) != 1 {
		t.Fatalf("%d messages, want one", len(o.msgs))
	}
	a.transmitSingly(o.msgs[0].Buffers, to)
	if got := collect(t, b, 3); len(got) != 3 {
		t.Fatalf("%d datagrams", len(got))
	}
}

func TestPack(t *testing.T) {
	to := newEndpoint(netip.MustParseAddrPort("127.0.0.1:1"))
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{32, 100, 1340, 9000, 60000}), 1, batchPackets).Draw(t, "sizes")
		bufs := datagrams(sizes...)
		o := newOutgoing()
		o.pack(bufs, to.udp, rapid.Bool().Draw(t, "gso"))
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
			if (len(m.Buffers) > 1) != (len(m.OOB) > 0) {
				t.Fatal("UDP_SEGMENT on a lone datagram, or missing")
			}
		}
		if at != len(bufs) {
			t.Fatalf("%d of %d datagrams packed", at, len(bufs))
		}
	})
}

func TestEndpointsAreShared(t *testing.T) {
	var c endpoints
	a := c.get(netip.MustParseAddrPort("[::ffff:192.0.2.1]:5"))
	if b := c.get(netip.MustParseAddrPort("192.0.2.1:5")); a != b {
		t.Error("one address, two endpoints")
	}
	for i := range 3 * endpointCache {
		c.get(netip.MustParseAddrPort(fmt.Sprintf("10.%d.%d.%d:7", i>>16, i>>8&255, i&255)))
	}
	if len(c.known) > endpointCache {
		t.Errorf("%d endpoints are remembered, more than %d", len(c.known), endpointCache)
	}
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

// A carrier's sockets come back on the port that it asks for, and on another one
// while somebody else has it.
func TestCarriersKeepTheirPort(t *testing.T) {
	b := newBind(socketOptions{}, false, nil)
	if _, _, err := b.Open(0); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	attach := func() uint16 {
		t.Helper()
		if err := b.attach(""); err != nil {
			t.Fatal(err)
		}
		return b.port()
	}
	b.options.port = attach()
	for range 3 {
		if p := attach(); p != b.options.port {
			t.Errorf("port %d, want %d", p, b.options.port)
		}
	}
	b.detach()
	other, err := net.ListenUDP("udp", &net.UDPAddr{Port: int(b.options.port)})
	if err != nil {
		t.Fatal(err)
	}
	if p := attach(); p == b.options.port || p == 0 {
		t.Errorf("port %d, which another program has", p)
	}
	_ = other.Close()
	if p := attach(); p != b.options.port {
		t.Errorf("port %d, want %d, which is free again", p, b.options.port)
	}
}
