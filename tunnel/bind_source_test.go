package tunnel

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"testing"
	"time"

	"golang.zx2c4.com/wireguard/conn"

	"github.com/fogplr/fogplr/hello"
)

// heard is what a bind's receivers brought.
type heard struct {
	data []byte
	from conn.Endpoint
}

// listen opens a bind and reads all it receives until the test ends.
func listen(t *testing.T, b *bind, main uint16) (got chan heard, port uint16) {
	t.Helper()
	receivers, port, err := b.Open(main)
	if err != nil {
		t.Fatal(err)
	}
	got = make(chan heard, 1000)
	done := make(chan error)
	for _, receive := range receivers {
		go func() { done <- relay(receive, got) }()
	}
	t.Cleanup(func() {
		_ = b.Close()
		for range receivers {
			if err := <-done; !errors.Is(err, net.ErrClosed) {
				t.Errorf("a receiver ended with %v", err)
			}
		}
	})
	return got, port
}

func relay(receive conn.ReceiveFunc, got chan<- heard) error {
	bufs, sizes := fillBufs()
	eps := make([]conn.Endpoint, batchPackets)
	for {
		n, err := receive(bufs, sizes, eps)
		if err != nil {
			return err
		}
		for i := range n {
			if sizes[i] > 0 {
				got <- heard{bytes.Clone(bufs[i][:sizes[i]]), eps[i]}
			}
		}
	}
}

// asker is a plain UDP client that does not mind who answers.
type asker struct {
	t    *testing.T
	c    *net.UDPConn
	sent byte
}

func newAsker(t *testing.T, s *space, network string) *asker {
	t.Helper()
	a := &asker{t: t}
	var err error
	s.in(func() { a.c, err = net.ListenUDP(network, nil) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.c.Close() })
	return a
}

func (a *asker) send(to netip.AddrPort, data []byte) {
	a.t.Helper()
	if _, err := a.c.WriteToUDPAddrPort(data, to); err != nil {
		a.t.Fatal(err)
	}
}

func (a *asker) receive() (data []byte, from netip.AddrPort) {
	a.t.Helper()
	data = make([]byte, 1<<16)
	_ = a.c.SetReadDeadline(time.Now().Add(within))
	n, from, err := a.c.ReadFromUDPAddrPort(data)
	if err != nil {
		a.t.Fatal(err)
	}
	return data[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
}

// ask sends to a bind until it hears that, and returns what it heard: an address
// that was just added takes a moment.
func (a *asker) ask(to netip.AddrPort, got <-chan heard) heard {
	a.t.Helper()
	a.sent++
	deadline := time.After(within)
	for {
		a.send(to, []byte{4, a.sent})
		again := time.After(50 * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case h := <-got:
				if h.data[1] == a.sent {
					return h
				}
			case <-again:
				waiting = false
			case <-deadline:
				a.t.Fatalf("nothing was heard at %v", to)
			}
		}
	}
}

// twoAddresses makes a gateway with two addresses of each kind, and a robot.
func twoAddresses(t *testing.T) (gateway, robot *space) {
	gateway, robot = newSpace(t), newSpace(t)
	wire(gateway, "gw", robot, "car", 1500)
	gateway.ip(`addr add 10.9.0.1/24 dev gw
		addr add 10.9.0.2/24 dev gw
		addr add fd09::1/64 dev gw nodad
		addr add fd09::2/64 dev gw nodad
		addr add fe80::1/64 dev gw nodad
		addr add fe80::2/64 dev gw nodad`)
	robot.ip(`addr add 10.9.0.9/24 dev car
		addr add fd09::9/64 dev car nodad
		addr add fe80::9/64 dev car nodad`)
	return gateway, robot
}

func gatewayBind(t *testing.T, s *space, more ...uint16) (b *bind, got chan heard, port uint16) {
	t.Helper()
	b = newBind(socketOptions{morePorts: more}, true, func(b *bind, msg []byte, from *endpoint) { b.transmit(msg, from) })
	s.in(func() { got, port = listen(t, b, 51820) })
	return b, got, port
}

func TestGatewayAnswersFromWhereItWasAsked(t *testing.T) {
	gateway, robot := twoAddresses(t)
	b, got, _ := gatewayBind(t, gateway, 443, 4500)
	plain := hello.PlainRequest(hello.TransactionID{1, 2, 3})
	ask := func(t *testing.T, a *asker, to netip.AddrPort, answers ...int) {
		a.t = t
		h := a.ask(to, got)
		sent := datagrams(answers...)
		if err := b.Send(sent, h.from); err != nil {
			t.Fatal(err)
		}
		for i, want := range sent {
			data, from := a.receive()
			if from.Addr().WithZone("") != to.Addr().WithZone("") || from.Port() != to.Port() {
				t.Errorf("answer %d of %d to what was sent to %v comes from %v", i, len(sent), to, from)
			}
			if !bytes.Equal(data, want) {
				t.Errorf("answer %d: %d bytes, want %d", i, len(data), len(want))
			}
		}
	}
	askSTUN := func(t *testing.T, a *asker, to netip.AddrPort) {
		a.t = t
		a.send(to, plain)
		data, from := a.receive()
		if !bytes.Equal(data, plain) || from.Addr().WithZone("") != to.Addr().WithZone("") || from.Port() != to.Port() {
			t.Errorf("STUN sent to %v was answered by %v with %x", to, from, data)
		}
	}
	for network, addrs := range map[string][]string{
		"udp4": {"10.9.0.1", "10.9.0.2"},
		"udp6": {"fd09::1", "fd09::2", "fe80::1%car", "fe80::2%car"},
	} {
		a := newAsker(t, robot, network)
		// Twice, so that the last answer's address is never the right one by chance.
		for range 2 {
			for _, addr := range addrs {
				for _, port := range []uint16{51820, 443, 4500} {
					to := netip.AddrPortFrom(zoned(robot, addr), port)
					t.Run(to.String(), func(t *testing.T) {
						ask(t, a, to, 100)
						ask(t, a, to, 1340, 1340, 1340, 700)
						askSTUN(t, a, to)
					})
				}
			}
		}
	}
	if s := b.stats.status(); s.TxErrors+s.TxTooBig+s.TxDropped != 0 {
		t.Errorf("not all was sent: %+v", s)
	}
}

// zoned parses an address whose zone is an interface of s: by its index, since
// names are looked up in the namespace of whoever sends.
func zoned(s *space, addr string) netip.Addr {
	a := netip.MustParseAddr(addr)
	if a.Zone() != "" {
		a = a.WithZone(fmt.Sprint(s.index(a.Zone())))
	}
	return a
}

// An address that is taken from the gateway must not silence it.
func TestGatewayLosesAnAddress(t *testing.T) {
	for _, answers := range [][]int{{100}, {1340, 1340, 1340, 700, 100, 200, 1340, 1340}} {
		for network, addr := range map[string][2]string{
			"udp4": {"10.9.0.2/24", "10.9.0.1"},
			"udp6": {"fd09::2/64", "fd09::1"},
		} {
			t.Run(fmt.Sprintf("%s/%d", network, len(answers)), func(t *testing.T) {
				gateway, robot := twoAddresses(t)
				b, got, _ := gatewayBind(t, gateway)
				a := newAsker(t, robot, network)
				gone, kept := netip.MustParsePrefix(addr[0]).Addr(), netip.MustParseAddr(addr[1])
				answer := func(h heard, want netip.Addr) {
					t.Helper()
					sent := datagrams(answers...)
					_ = b.Send(sent, h.from)
					for i := range sent {
						if data, from := a.receive(); from != netip.AddrPortFrom(want, 51820) || !bytes.Equal(data, sent[i]) {
							t.Errorf("datagram %d, %d bytes from %v, want %d from %v", i, len(data), from, len(sent[i]), want)
						}
					}
				}
				h := a.ask(netip.AddrPortFrom(gone, 51820), got)
				answer(h, gone)
				gateway.ip("addr del %s dev gw", addr[0])
				for range 3 {
					answer(h, kept)
				}
				if h.from.SrcIP().IsValid() {
					t.Error("the source was not forgotten")
				}
				if s := b.stats.status(); s.TxErrors+s.TxTooBig+s.TxDropped != 0 {
					t.Errorf("not all was sent: %+v", s)
				}
				if s := b.socketFor(h.from.(*endpoint)); !s.gso.on() || s.gso.refused.Load() != 0 {
					t.Error("segmenting was blamed")
				}
				gateway.ip("addr add %s dev gw %s", addr[0], map[string]string{"udp4": "", "udp6": "nodad"}[network])
				h.from.(*endpoint).forget(time.Now().Add(-sourceRetry))
				answer(a.ask(netip.AddrPortFrom(gone, 51820), got), gone)
			})
		}
	}
}

// A carrier leaves the choice to the kernel, so that a new address is used at once.
func TestCarriersDoNotChooseTheirSource(t *testing.T) {
	b := newBind(socketOptions{}, false, nil)
	got, _ := listen(t, b, 0)
	if err := b.attach("lo"); err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenUDP("udp4", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a := asker{t: t, c: c}
	if h := a.ask(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), b.port()), got); h.from.SrcIP().IsValid() {
		t.Errorf("source %v", h.from.SrcIP())
	}
}

func TestPortsThatCannotBeOpened(t *testing.T) {
	taken, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	for name, more := range map[string][]uint16{
		"taken":    {0, port},
		"too many": make([]uint16, maxPorts),
	} {
		b := newBind(socketOptions{morePorts: more}, true, nil)
		if _, _, err := b.Open(0); err == nil {
			t.Errorf("%s: no error", name)
		}
		for _, p := range b.ports {
			if p.v4.sock.Load() != nil || p.v6.sock.Load() != nil {
				t.Errorf("%s: a socket is left", name)
			}
		}
		_ = b.Close()
	}
}
