package tunnel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
)

// bind is the outer side of one WireGuard device: a conn.Bind. A robot's bind
// belongs to a carrier and has sockets only while attached to its interface; a
// gateway's opens them once on its port. wireguard-go never sees the
// difference: without a socket, what it sends is dropped, and its receivers
// wait.
type bind struct {
	stats socketStats
	// stun takes STUN messages. Set before the device comes up.
	stun func(b *bind, msg []byte, from netip.AddrPort)
	// fixed is true for a gateway: Open itself opens the sockets.
	fixed   bool
	options socketOptions
	// sending and receiving bound what is inside the device; memTUN has the
	// other ends.
	sending, receiving *window

	v4, v6 family
}

// family is the socket of one address family, which may come and go.
type family struct {
	network string
	sock    atomic.Pointer[socket]
	mu      sync.Mutex
	changed sync.Cond
	open    bool // between Open and Close
}

func newBind(o socketOptions, fixed bool, stun func(*bind, []byte, netip.AddrPort)) *bind {
	b := &bind{
		options: o, fixed: fixed, stun: stun,
		sending: newWindow(sendingFrames), receiving: newWindow(receivingFrames),
	}
	b.v4.network, b.v6.network = "udp4", "udp6"
	b.v4.changed.L, b.v6.changed.L = &b.v4.mu, &b.v6.mu
	return b
}

// Open implements conn.Bind.
func (b *bind) Open(port uint16) ([]conn.ReceiveFunc, uint16, error) {
	for _, f := range b.families() {
		f.mu.Lock()
		f.open = true
		f.mu.Unlock()
	}
	if b.fixed {
		b.options.port = port
		if err := b.attach(""); err != nil {
			return nil, 0, err
		}
		if port == 0 {
			port = b.port()
		}
	}
	return []conn.ReceiveFunc{b.receiver(&b.v4), b.receiver(&b.v6)}, port, nil
}

func (b *bind) families() [2]*family { return [2]*family{&b.v4, &b.v6} }

// attach opens fresh sockets, bound to that interface unless it is empty, in place
// of any there are. A family that the
// kernel does not have is left out; it is an error if no socket results.
func (b *bind) attach(device string) error {
	b.options.device = device
	var errs []error
	opened := 0
	for _, f := range b.families() {
		f.set(nil) // gives its port back
		s, err := b.openSocket(f.network)
		if err == nil {
			opened++
		} else if !errors.Is(err, unix.EAFNOSUPPORT) {
			errs = append(errs, err)
		}
		f.set(s)
	}
	if opened == 0 || b.fixed && len(errs) > 0 {
		b.detach()
		return errors.Join(errs...)
	}
	return nil
}

// openSocket opens one on the port asked for; if somebody else has that, a
// robot takes any.
func (b *bind) openSocket(network string) (*socket, error) {
	s, err := openSocket(network, b.options, &b.stats)
	if err != nil && !b.fixed && errors.Is(err, unix.EADDRINUSE) {
		other := b.options
		other.port = 0
		return openSocket(network, other, &b.stats)
	}
	return s, err
}

// detach closes the sockets.
func (b *bind) detach() {
	b.v4.set(nil)
	b.v6.set(nil)
}

func (b *bind) port() uint16 {
	for _, f := range b.families() {
		if s := f.sock.Load(); s != nil {
			return s.localPort()
		}
	}
	return 0
}

// set puts s in the place of the socket there is. After Close nobody would close
// it any more, so it is closed at once.
func (f *family) set(s *socket) {
	f.mu.Lock()
	old := s
	if f.open || s == nil {
		old = f.sock.Swap(s)
	}
	f.mu.Unlock()
	if old != nil {
		_ = old.close()
	}
	f.changed.Broadcast()
}

// wait returns the socket once there is one, nil when the bind is closed.
func (f *family) wait() *socket {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.open && f.sock.Load() == nil {
		f.changed.Wait()
	}
	if !f.open {
		return nil
	}
	return f.sock.Load()
}

func (b *bind) receiver(f *family) conn.ReceiveFunc {
	stun := func(msg []byte, from netip.AddrPort) { b.stun(b, msg, from) }
	given := new(givenFrames)
	return func(bufs [][]byte, sizes []int, eps []conn.Endpoint) (int, error) {
		for {
			s := f.wait()
			if s == nil {
				return 0, net.ErrClosed
			}
			b.receiving.back(given.unused(bufs))
			b.receiving.admit()
			n, err := s.receive(bufs, sizes, eps, stun)
			if err == nil {
				b.receiving.enter(given.note(bufs[:n], sizes))
				return n, nil
			}
			if !errors.Is(err, net.ErrClosed) {
				b.stats.failed(err)
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
}

// Close implements conn.Bind.
func (b *bind) Close() error {
	for _, f := range b.families() {
		f.mu.Lock()
		f.open = false
		f.mu.Unlock()
		f.set(nil)
	}
	return nil
}

// SetMark implements conn.Bind. The mark is fixed when a socket is opened.
func (b *bind) SetMark(uint32) error { return nil }

// BatchSize implements conn.Bind.
func (b *bind) BatchSize() int { return batchPackets }

// ParseEndpoint implements conn.Bind.
func (b *bind) ParseEndpoint(s string) (conn.Endpoint, error) { return parseEndpoint(s) }

// Send implements conn.Bind. It never blocks and never fails: losses on the
// way out are counted here, and are what the other paths are for.
func (b *bind) Send(bufs [][]byte, ep conn.Endpoint) error {
	to, ok := ep.(*endpoint)
	if !ok {
		return fmt.Errorf("%w: %T", conn.ErrWrongEndpointType, ep)
	}
	if len(bufs) > 0 && isTransport(bufs[0]) {
		b.sending.leave(len(bufs))
	}
	if s := b.socketFor(to); s != nil {
		s.transmit(bufs, to)
	} else {
		b.stats.txDropped.Add(uint64(len(bufs)))
	}
	return nil
}

// transmit sends one datagram that is not WireGuard's.
func (b *bind) transmit(d []byte, at netip.AddrPort) {
	to := newEndpoint(at)
	if s := b.socketFor(to); s != nil {
		s.transmit([][]byte{d}, to)
	}
}

func (b *bind) socketFor(to *endpoint) *socket {
	if to.addr.Addr().Is4() {
		return b.v4.sock.Load()
	}
	return b.v6.sock.Load()
}

// isTransport tells a WireGuard transport data message by its first octet.
func isTransport(d []byte) bool { return len(d) > 0 && d[0] == device.MessageTransportType }

// givenFrames remembers which buffers of the last receive held messages that
// should come out of the device as frames: transport data that is more than a
// keepalive. wireguard-go puts a fresh buffer in the place of one whose message
// it keeps; what it does not know a session for, such as a forged message, it
// leaves where it is.
type givenFrames struct {
	at    [batchPackets]*byte // nil where there was no such message
	count int                 // of the entries in use
}

// note takes the messages of one receive and returns how many count.
func (g *givenFrames) note(bufs [][]byte, sizes []int) (n int) {
	for i := range bufs {
		g.at[i] = nil
		if sizes[i] > device.MessageKeepaliveSize && isTransport(bufs[i]) {
			g.at[i] = &bufs[i][0]
			n++
		}
	}
	g.count = len(bufs)
	return n
}

// unused returns how many of the noted messages the device did not keep, once.
func (g *givenFrames) unused(bufs [][]byte) (n int) {
	for i := range g.count {
		if g.at[i] != nil && g.at[i] == &bufs[i][0] {
			n++
		}
	}
	g.count = 0
	return n
}
