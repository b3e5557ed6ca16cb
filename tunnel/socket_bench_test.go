package tunnel

import (
	"net/netip"
	"slices"
	"testing"

	"golang.zx2c4.com/wireguard/conn"
)

// benchPair opens two sockets on all addresses.
func benchPair(tb testing.TB, answering bool) (a, b *socket) {
	tb.Helper()
	for _, s := range []**socket{&a, &b} {
		var err error
		if *s, err = openSocket("udp4", socketOptions{answering: answering}, new(socketStats)); err != nil {
			tb.Fatal(err)
		}
		sock := *s
		tb.Cleanup(func() { _ = sock.close() })
	}
	return a, b
}

func receiveBufs() (bufs [][]byte, sizes []int, eps []conn.Endpoint) {
	bufs, sizes = fillBufs()
	return bufs, sizes, make([]conn.Endpoint, batchPackets)
}

// BenchmarkSocket sends batches over loopback, there and back, from a carrier's
// socket or a gateway's.
func BenchmarkSocket(b *testing.B) {
	for _, c := range []struct {
		name                string
		answering, segments bool
		size, count         int
	}{
		{"carrier/one", false, true, 200, 1},
		{"gateway/one", true, true, 200, 1},
		{"carrier/batch", false, true, 1340, batchPackets},
		{"gateway/batch", true, true, 1340, batchPackets},
		{"carrier/singles", false, false, 1340, batchPackets / 2},
		{"gateway/singles", true, false, 1340, batchPackets / 2},
	} {
		b.Run(c.name, func(b *testing.B) {
			near, far := benchPair(b, c.answering)
			if !c.segments {
				near.gso.stop()
				far.gso.stop()
			}
			bufs, sizes, eps := receiveBufs()
			sent := datagrams(slices.Repeat([]int{c.size}, c.count)...)
			pass := func(from, by *socket, to *endpoint) {
				from.transmit(sent, to)
				for got := 0; got < c.count; {
					n, err := by.receive(bufs, sizes, eps, func([]byte, *endpoint) {})
					if err != nil {
						b.Fatal(err)
					}
					got += n
				}
			}
			to := newEndpoint(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), far.port))
			b.SetBytes(int64(2 * c.size * c.count))
			b.ReportAllocs()
			for b.Loop() {
				pass(near, far, to)
				pass(far, near, eps[0].(*endpoint))
			}
		})
	}
}
