package tunnel

import (
	"bytes"
	"math"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// choosy is a socket's sending side that refuses some messages, as a driver or a
// kernel may.
type choosy struct {
	sendBatch
	refuse    func(ipv4.Message) error
	calls     int
	segmented int // messages with UDP_SEGMENT that were tried
}

func (c *choosy) WriteBatch(ms []ipv4.Message, flags int) (int, error) {
	c.calls++
	for i, m := range ms {
		if len(m.Buffers) > 1 {
			c.segmented++
		}
		if err := c.refuse(m); err != nil {
			if i == 0 {
				return -1, os.NewSyscallError("sendmmsg", err)
			}
			return c.sendBatch.WriteBatch(ms[:i], flags)
		}
	}
	return c.sendBatch.WriteBatch(ms, flags)
}

// choosyPair is pair with a first socket that refuses.
func choosyPair(t *testing.T, refuse func(ipv4.Message) error) (a, b *socket, to *endpoint, c *choosy) {
	t.Helper()
	a, b, to = pair(t, "udp4", "127.0.0.1")
	c = &choosy{sendBatch: a.batch, refuse: refuse}
	a.batch = c
	return a, b, to, c
}

// segmentsRefused refuses every segmented message.
func segmentsRefused(err error) func(ipv4.Message) error {
	return func(m ipv4.Message) error {
		if len(m.Buffers) > 1 {
			return err
		}
		return nil
	}
}

// passes sends a batch and wants all of it at the other end.
func passes(t *testing.T, a, b *socket, to *endpoint, sizes ...int) {
	t.Helper()
	sent := datagrams(sizes...)
	a.transmit(sent, to)
	for i, got := range collect(t, b, len(sent)) {
		if !bytes.Equal(got, sent[i]) {
			t.Fatalf("datagram %d: %d bytes, want %d", i, len(got), len(sent[i]))
		}
	}
}

// A driver without checksum offload says EIO: no segmenting there, ever.
func TestSegmentingEndsWithEIO(t *testing.T) {
	a, b, to, c := choosyPair(t, segmentsRefused(unix.EIO))
	for range 3 {
		passes(t, a, b, to, 1340, 1340, 700)
	}
	if c.segmented != 1 {
		t.Errorf("%d segmented messages were tried, want one", c.segmented)
	}
	if a.gso.useless(time.Now()); a.gso.until.Load() != math.MaxInt64 {
		t.Error("a later refusal makes it come back")
	}
	if s := a.stats.status(); s.TxPackets != 9 || s.TxErrors+s.TxDropped+s.TxTooBig != 0 || s.LastError != "" {
		t.Errorf("%+v", s)
	}
}

// What else is refused only as a whole is tried for a while, and later again.
func TestSegmentingPauses(t *testing.T) {
	for _, refusal := range []error{unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP} {
		a, b, to, c := choosyPair(t, segmentsRefused(refusal))
		for range segmentRefusals + 5 {
			passes(t, a, b, to, 1340, 1340, 700)
		}
		if c.segmented != segmentRefusals {
			t.Errorf("%v: %d segmented messages were tried, want %d", refusal, c.segmented, segmentRefusals)
		}
		if pause := time.Until(time.Unix(0, a.gso.until.Load())); pause <= 0 || pause > segmentPause {
			t.Errorf("%v: it pauses for %v", refusal, pause)
		}
		a.gso.until.Store(time.Now().UnixNano())
		c.refuse = func(ipv4.Message) error { return nil } // the link is another one
		c.segmented = 0
		passes(t, a, b, to, 1340, 1340, 700)
		if c.segmented != 1 {
			t.Errorf("%v: it did not come back", refusal)
		}
		if s := a.stats.status(); s.TxErrors+s.TxDropped+s.TxTooBig != 0 {
			t.Errorf("%v: %+v", refusal, s)
		}
	}
}

// One peer's narrow link does not end segmenting for the others.
func TestSegmentingGoesOnWhileSomeAreTaken(t *testing.T) {
	a, b, to, _ := choosyPair(t, func(m ipv4.Message) error {
		if len(m.Buffers) > 1 && len(m.Buffers[0]) > 1300 {
			return unix.EINVAL
		}
		return nil
	})
	for range 3 * segmentRefusals {
		passes(t, a, b, to, 1340, 1340, 700)
		passes(t, a, b, to, 1200, 1200, 700)
	}
	if !a.gso.on() {
		t.Error("it is off")
	}
}

// What no datagram of a batch can get through is refused once.
func TestUnreachableIsNotTriedSingly(t *testing.T) {
	for _, refusal := range []error{unix.ENETUNREACH, unix.ENETDOWN, unix.ENODEV, unix.ENOBUFS} {
		a, _, to, c := choosyPair(t, func(ipv4.Message) error { return refusal })
		a.transmit(datagrams(1340, 1340, 1340, 700), to)
		if s := a.stats.status(); c.calls != 1 || s.TxErrors+s.TxDropped != 4 || s.TxPackets != 0 {
			t.Errorf("%v: %d calls, %+v", refusal, c.calls, s)
		}
		if !a.gso.on() || a.gso.refused.Load() != 0 {
			t.Errorf("%v: segmenting was blamed", refusal)
		}
	}
}

// If no source at all helps, the one there is stays, and each datagram counts once.
func TestSourceIsNotForgottenInVain(t *testing.T) {
	a, _, plain, c := choosyPair(t, func(ipv4.Message) error { return unix.ENETUNREACH })
	to := (&endpoints{}).get(arrival{remote: plain.addr, local: netip.MustParseAddr("127.0.0.2")})
	a.transmit(datagrams(1340, 1340, 1340, 700), to)
	if to.from() == nil {
		t.Error("it was forgotten")
	}
	if s := a.stats.status(); s.TxErrors != 4 || c.calls != 3 {
		t.Errorf("%d calls, %+v", c.calls, s)
	}
}

func TestWithoutOffload(t *testing.T) {
	s, err := openSocket("udp4", socketOptions{noOffload: true}, new(socketStats))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	_, b, _ := pair(t, "udp4", "127.0.0.1")
	c := &choosy{sendBatch: s.batch, refuse: func(ipv4.Message) error { return nil }}
	s.batch = c
	passes(t, s, b, newEndpoint(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), b.port)), 1340, 1340, 1340)
	gro := -1
	_ = s.in.raw.Control(func(fd uintptr) { gro, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO) })
	if err != nil || gro != 0 || c.segmented != 0 {
		t.Errorf("UDP_GRO is %d (%v), %d segmented messages", gro, err, c.segmented)
	}
}

// arrivals counts datagrams at the server by size until it hears an end mark,
// which is sent to it last.
func (u *uplink) arrivals() map[int]int {
	u.t.Helper()
	_ = u.b.Send([][]byte{{0}}, u.to)
	got := map[int]int{}
	buf := make([]byte, 1<<16)
	_ = u.server.SetReadDeadline(time.Now().Add(within))
	for {
		n, _, err := u.server.ReadFromUDPAddrPort(buf)
		if err != nil {
			u.t.Fatal(err)
		}
		if n == 1 {
			return got
		}
		got[n]++
	}
}

var mtuCases = []struct {
	network string
	mtu     int // of the interface, bytes
	most    int // bytes of UDP payload
}{
	{"udp4", 1500, 1472}, {"udp4", 1280, 1252}, {"udp4", 1124, 1096},
	{"udp6", 1500, 1452}, {"udp6", 1280, 1232}, // IPv6 has no smaller one
}

func TestProbingRespectsTheInterfacesMTU(t *testing.T) {
	for _, c := range mtuCases {
		u := newUplink(t, c.network, socketOptions{probeMTU: true}, c.mtu)
		u.works()
		over := c.most + 1
		for range segmentRefusals + 1 {
			_ = u.b.Send(datagrams(c.most, over, 100, over, over, over, c.most, c.most, 50), u.to)
			got := u.arrivals()
			if got[c.most] != 3 || got[100] != 1 || got[50] != 1 || len(got) != 3 {
				t.Fatalf("%s, MTU %d: datagrams by size %v", c.network, c.mtu, got)
			}
		}
		s := u.b.stats.status()
		if s.TxTooBig != 4*(segmentRefusals+1) || s.TxErrors+s.TxDropped != 0 || s.LastError != "" {
			t.Errorf("%s, MTU %d: %+v", c.network, c.mtu, s)
		}
		if !u.b.socketFor(u.to).gso.on() {
			t.Errorf("%s, MTU %d: segmenting is off", c.network, c.mtu)
		}
	}
}

func TestWithoutProbingTheKernelFragments(t *testing.T) {
	for _, c := range mtuCases {
		u := newUplink(t, c.network, socketOptions{}, c.mtu)
		u.works()
		over := c.most + 1
		for range segmentRefusals + 1 {
			_ = u.b.Send(datagrams(c.most, over, 100, over, over, over, c.most, c.most, 50), u.to)
			if got := u.arrivals(); got[c.most] != 3 || got[over] != 4 || got[100] != 1 || got[50] != 1 {
				t.Fatalf("%s, MTU %d: datagrams by size %v", c.network, c.mtu, got)
			}
		}
		if s := u.b.stats.status(); s.TxTooBig+s.TxErrors+s.TxDropped != 0 {
			t.Errorf("%s, MTU %d: %+v", c.network, c.mtu, s)
		}
	}
}

// The MTU that the kernel believes a path to have, by ICMP or by its route, neither
// blocks nor fragments what probes the true one.
func TestProbingIgnoresThePathMTUCache(t *testing.T) {
	for _, network := range []string{"udp4", "udp6"} {
		for _, probe := range []bool{true, false} {
			u := newUplink(t, network, socketOptions{probeMTU: probe}, 1500)
			u.home.ip("route add %s dev car mtu 1280", u.to.addr.Addr())
			u.works()
			packets := u.sniff()
			_ = u.b.Send(datagrams(1380, 1390, 1400), u.to) // growing, so not segments
			if got := u.arrivals(); len(got) != 3 {
				t.Errorf("%s, probing %v: datagrams by size %v", network, probe, got)
			}
			if whole, fragments := packets(); probe && (whole != 3 || fragments != 0) || !probe && fragments == 0 {
				t.Errorf("%s, probing %v: %d whole packets, %d fragments", network, probe, whole, fragments)
			}
		}
	}
}

// sniff returns a function that says what of more than 1,000 bytes, or in
// fragments, came to the server's interface since: whole packets that nobody may
// fragment (DF, or IPv6), and fragments.
func (u *uplink) sniff() func() (whole, fragments int) {
	u.t.Helper()
	ether := uint16(unix.ETH_P_IP)
	if u.network == "udp6" {
		ether = unix.ETH_P_IPV6
	}
	index := u.away.index("net")
	var fd int
	var err error
	u.away.in(func() {
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0); err == nil {
			err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ether>>8 | ether<<8, Ifindex: index})
		}
	})
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = unix.Close(fd) })
	return func() (whole, fragments int) {
		buf := make([]byte, 1<<16)
		for {
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if err != nil {
				return whole, fragments
			}
			p := buf[:n]
			switch v6 := p[0]>>4 == 6; {
			case v6 && p[6] == 44 || !v6 && (p[6]&0x3f != 0 || p[7] != 0): // more fragments, or an offset
				fragments++
			case n > 1000 && (v6 || p[6]&0x40 != 0):
				whole++
			}
		}
	}
}

// The hot path allocates nothing, with a source and without, segmented and not.
func TestSocketsAllocateNothing(t *testing.T) {
	const count = 100
	sizes := make([]int, count)
	for i := range sizes {
		sizes[i] = 200 + i // growing, so that each is a message
	}
	most := 0.0
	if poolsDrop() {
		most = count / 4
	}
	for name, answering := range map[string]bool{"carrier": false, "gateway": true} {
		for batch, sizes := range map[string][]int{"one": {200}, "messages": sizes, "segments": slices.Repeat([]int{1340}, count)} {
			a, b := benchPair(t, answering)
			bufs, sizesIn, eps := receiveBufs()
			stun := func([]byte, *endpoint) {}
			sent := datagrams(sizes...)
			to := newEndpoint(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), b.port))
			a.transmit(sent[:1], to)
			if _, err := b.receive(bufs, sizesIn, eps, stun); err != nil {
				t.Fatal(err)
			}
			back := eps[0].(*endpoint) // b answers
			if (back.from() != nil) != answering {
				t.Fatalf("%s: source %v", name, back.SrcIP())
			}
			n := testing.AllocsPerRun(200, func() {
				b.transmit(sent, back)
				for got := 0; got < len(sent); {
					n, err := a.receive(bufs, sizesIn, eps, stun)
					if err != nil {
						t.Fatal(err)
					}
					got += n
				}
			})
			if n > most {
				t.Errorf("%s, %s: %v allocations, want %v at most", name, batch, n, most)
			}
		}
	}
}

// poolsDrop reports whether sync.Pool forgets at random, as it does under the race
// detector, and with it the scratch of a send.
func poolsDrop() bool {
	var p sync.Pool
	for range 100 {
		if p.Put(new(int)); p.Get() == nil {
			return true
		}
	}
	return false
}
