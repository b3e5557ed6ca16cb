package tunnel

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
)

// uplink is a carrier's bind in a namespace, and a server that it can reach.
type uplink struct {
	t          *testing.T
	home, away *space
	b          *bind
	got        chan heard
	server     *net.UDPConn
	to         *endpoint
	network    string
	sent       byte
}

// carrierAddress and serverAddress are in each family's test network.
var carrierAddress = map[string][2]string{
	"udp4": {"10.9.0.9/24", "10.9.0.8/24"},
	"udp6": {"fd09::9/64 nodad", "fd09::8/64 nodad"},
}

func newUplink(t *testing.T, network string, o socketOptions, mtu int) *uplink {
	t.Helper()
	u := &uplink{t: t, home: newSpace(t), away: newSpace(t), network: network}
	wire(u.home, "car", u.away, "net", mtu)
	server := "10.9.0.1"
	if network == "udp6" {
		server = "fd09::1"
		u.away.ip("addr add fd09::1/64 dev net nodad")
	} else {
		u.away.ip("addr add 10.9.0.1/24 dev net")
	}
	u.home.ip("addr add %s dev car", carrierAddress[network][0])
	u.b = newBind(o, false, nil)
	u.got, _ = listen(t, u.b, 0)
	u.attach()
	var err error
	u.away.in(func() { u.server, err = net.ListenUDP(network, nil) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.server.Close() })
	u.to = newEndpoint(netip.AddrPortFrom(netip.MustParseAddr(server), u.server.LocalAddr().(*net.UDPAddr).AddrPort().Port()))
	return u
}

func (u *uplink) attach() {
	u.t.Helper()
	var err error
	u.home.in(func() { err = u.b.attach("car") })
	if err != nil {
		u.t.Fatal(err)
	}
}

// works tries until a datagram came to the server and its answer back, and
// returns the address that the server saw.
func (u *uplink) works() netip.Addr {
	u.t.Helper()
	u.sent++
	deadline := time.Now().Add(within)
	buf := make([]byte, 1<<16)
	for time.Now().Before(deadline) {
		_ = u.b.Send([][]byte{{4, u.sent}}, u.to)
		_ = u.server.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		n, from, err := u.server.ReadFromUDPAddrPort(buf)
		if err != nil || !bytes.Equal(buf[:n], []byte{4, u.sent}) {
			continue
		}
		if _, err := u.server.WriteToUDPAddrPort(buf[:n], from); err != nil {
			continue
		}
		for {
			select {
			case h := <-u.got:
				if h.data[1] == u.sent {
					return from.Addr().Unmap()
				}
				continue
			case <-time.After(50 * time.Millisecond):
			}
			break
		}
	}
	u.t.Fatalf("nothing gets through: %+v", u.b.stats.status())
	panic("unreachable")
}

// refused sends to to and wants that refused, without an attempt for each.
func (u *uplink) refused() {
	u.t.Helper()
	before := u.b.stats.status()
	_ = u.b.Send(datagrams(1200, 1200, 100), u.to)
	after := u.b.stats.status()
	if after.TxErrors != before.TxErrors+3 || after.TxPackets != before.TxPackets || after.LastError == "" {
		u.t.Errorf("%+v after %+v, want 3 errors more", after, before)
	}
	u.b.stats.last.Store(nil)
}

// calm wants that nothing was wrong since refused.
func (u *uplink) calm(what string) {
	u.t.Helper()
	if e := u.b.stats.last.Load(); e != nil {
		u.t.Errorf("%s: %s", what, e.text)
	}
}

// readdress gives the carrier another address of its test network.
func (u *uplink) readdress(from, to int) {
	u.t.Helper()
	u.home.ip("addr del %s dev car", strings.Fields(carrierAddress[u.network][from])[0])
	u.home.ip("addr add %s dev car", carrierAddress[u.network][to])
}

// restore adds the addresses that IPv6 loses when an interface goes down.
func (u *uplink) restore(device string, n int) {
	u.t.Helper()
	if u.network == "udp6" {
		u.home.ip("addr replace %s dev %s", carrierAddress[u.network][n], device)
		u.away.ip("addr replace fd09::1/64 dev net nodad")
	}
}

// Whatever happens to a carrier's interface, its sockets go on when it is back,
// and only a new interface needs new ones.
func TestCarrierOutlivesItsInterface(t *testing.T) {
	for _, network := range []string{"udp4", "udp6"} {
		t.Run(network, func(t *testing.T) {
			u := newUplink(t, network, socketOptions{}, 1500)
			u.works()
			sock := u.b.socketFor(u.to)

			u.home.ip("link set car down")
			u.refused()
			u.home.ip("link set car up")
			u.restore("car", 0)
			u.works()

			u.away.ip("link set net down") // the cable is pulled
			_ = u.b.Send(datagrams(100), u.to)
			u.away.ip("link set net up")
			u.restore("car", 0)
			u.works()

			u.readdress(0, 1)
			if got, want := u.works(), netip.MustParsePrefix(strings.Fields(carrierAddress[network][1])[0]).Addr(); got != want {
				t.Errorf("the server sees %v, want the new address %v", got, want)
			}

			u.home.ip("link set car down\n link set car name other\n link set other up")
			u.restore("other", 1)
			u.works()
			u.home.ip("link set other down\n link set other name car\n link set car up")
			u.restore("car", 1)
			u.works()
			if u.b.socketFor(u.to) != sock {
				t.Error("the socket is another one")
			}
			u.b.stats.last.Store(nil)

			u.home.ip("link del car")
			u.refused()
			wire(u.home, "car", u.away, "net", 1500)
			u.refused() // the name is the same, the interface is not
			u.calm("receiving from an interface that has gone")
			if network == "udp4" {
				u.away.ip("addr add 10.9.0.1/24 dev net")
				u.home.ip("addr add %s dev car", carrierAddress[network][0])
			}
			u.restore("car", 0)
			u.attach()
			u.works()
		})
	}
}

// What ICMP says of a port is nothing to a socket that many share.
func TestICMPErrorsDoNotReachTheSocket(t *testing.T) {
	for _, network := range []string{"udp4", "udp6"} {
		t.Run(network, func(t *testing.T) {
			u := newUplink(t, network, socketOptions{}, 1500)
			u.works()
			u.b.stats.last.Store(nil)
			closed := netip.AddrPortFrom(u.to.addr.Addr(), 9)
			var witness net.Conn
			var err error
			u.home.in(func() { witness, err = net.Dial(network, closed.String()) })
			if err != nil {
				t.Fatal(err)
			}
			defer witness.Close()
			for range 5 {
				_ = u.b.Send(datagrams(100, 100), newEndpoint(closed))
			}
			_, _ = witness.Write([]byte{1})
			_ = witness.SetReadDeadline(time.Now().Add(within))
			if _, err := witness.Read(make([]byte, 10)); !errors.Is(err, unix.ECONNREFUSED) {
				t.Fatalf("a connected socket says %v; so no ICMP came, and the test is void", err)
			}
			u.works()
			u.calm("after ICMP errors")
		})
	}
}

// An error that stays costs a call in receivePause, and the receiver outlives it.
func TestReceivingGoesOnAfterErrors(t *testing.T) {
	b := newBind(socketOptions{}, false, nil)
	receivers, _, err := b.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.attach("lo"); err != nil {
		t.Fatal(err)
	}
	s := b.ports[0].v4.sock.Load()
	const failing = 10
	calls, take := 0, s.in.take
	s.in.take = func(fd uintptr) bool {
		if calls++; calls <= failing {
			s.in.errno = unix.ENETDOWN
			return true
		}
		return take(fd)
	}
	to := newEndpoint(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.port))
	_ = b.Send([][]byte{{4, 5, 6}}, to)
	bufs, sizes := fillBufs()
	start := time.Now()
	n, err := receivers[0](bufs, sizes, make([]conn.Endpoint, batchPackets))
	if err != nil || n != 1 || sizes[0] != 3 {
		t.Fatalf("%d datagrams, %v", n, err)
	}
	if took := time.Since(start); took < failing*receivePause {
		t.Errorf("%d errors took %v only", failing, took)
	}
	if !strings.Contains(b.stats.status().LastError, unix.ENETDOWN.Error()) {
		t.Errorf("the last error is %q", b.stats.status().LastError)
	}
}
