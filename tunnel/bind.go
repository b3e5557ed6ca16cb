package tunnel

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
)

// bind is the outer side of one WireGuard device: a conn.Bind. A robot's bind
// belongs to a carrier and has sockets only while attached to its interface; a
// gateway's opens them once on its ports, and answers each peer from the address
// and port that it last sent to. wireguard-go never sees the difference: without
// a socket, what it sends is dropped, and its receivers wait.
type bind struct {
	stats socketStats
	// stun takes STUN messages. Set before the device comes up.
	stun func(b *bind, msg []byte, from *endpoint)
	// fixed is true for a gateway: Open itself opens the sockets.
	fixed   bool
	options socketOptions
	// sending and receiving bound what is inside the device; memTUN has the
	// other ends.
	sending, receiving *window
	still              *standstill // set before the device comes up

	ports []*port // the main one first; a robot has no other
	peers whence  // a gateway's
}

// port is the sockets on one UDP port, one for each address family.
type port struct {
	v4, v6 family
}

func newPort() *port {
	p := new(port)
	for _, f := range p.families() {
		f.changed.L = &f.mu
	}
	p.v4.network, p.v6.network = "udp4", "udp6"
	return p
}

func (p *port) families() [2]*family { return [2]*family{&p.v4, &p.v6} }

// family is the socket of one address family, which may come and go.
type family struct {
	network string
	sock    atomic.Pointer[socket]
	mu      sync.Mutex
	changed sync.Cond
	open    bool // between Open and Close
}

// newBind makes a gateway's bind if fixed, else a carrier's.
func newBind(o socketOptions, fixed bool, stun func(*bind, []byte, *endpoint)) *bind {
	o.answering = fixed
	b := &bind{
		options: o, fixed: fixed, stun: stun,
		sending: newWindow(sendingFrames), receiving: newWindow(receivingFrames),
	}
	for range 1 + len(o.morePorts) {
		b.ports = append(b.ports, newPort())
	}
	return b
}

// Open implements conn.Bind. There is one receiver for each port and family.
func (b *bind) Open(main uint16) ([]conn.ReceiveFunc, uint16, error) {
	var receivers []conn.ReceiveFunc
	for _, p := range b.ports {
		for _, f := range p.families() {
			f.mu.Lock()
			f.open = true
			f.mu.Unlock()
			receivers = append(receivers, b.receiver(f))
		}
	}
	if b.fixed {
		b.options.port = main
		if err := b.attach(""); err != nil {
			return nil, 0, err
		}
		if main == 0 {
			main = b.port()
		}
	}
	return receivers, main, nil
}

// attach opens fresh sockets, bound to that interface unless it is empty, in the
// place of any there are. A family that the kernel does not have is left out; it
// is an error if no socket results.
func (b *bind) attach(device string) error {
	if len(b.ports) > maxPorts {
		return fmt.Errorf("%d UDP ports are more than %d", len(b.ports), maxPorts)
	}
	b.options.device = device
	var errs []error
	opened := 0
	for i, p := range b.ports {
		o := b.options
		if i > 0 {
			o.port = o.morePorts[i-1]
		}
		for _, f := range p.families() {
			f.set(nil) // gives its port back
			s, err := b.openSocket(f.network, o)
			if err == nil {
				opened++
			} else if !errors.Is(err, unix.EAFNOSUPPORT) {
				errs = append(errs, err)
			}
			f.set(s)
		}
	}
	if opened == 0 || b.fixed && len(errs) > 0 {
		b.detach()
		return errors.Join(errs...)
	}
	return nil
}

// openSocket opens one on the port asked for; if somebody else has that, a
// robot takes any.
func (b *bind) openSocket(network string, o socketOptions) (*socket, error) {
	s, err := openSocket(network, o, &b.stats)
	switch {
	case b.fixed && errors.Is(err, unix.EACCES) && o.port < lowPorts:
		return nil, fmt.Errorf("UDP port %d: a port below %d takes the capability CAP_NET_BIND_SERVICE, which root and the gateway's systemd unit have: %w",
			o.port, lowPorts, err)
	case b.fixed && err != nil:
		return nil, fmt.Errorf("UDP port %d: %w", o.port, err)
	case b.fixed:
		s.seen.all = &b.peers
	case errors.Is(err, unix.EADDRINUSE):
		o.port = 0
		return openSocket(network, o, &b.stats)
	}
	return s, err
}

// detach closes the sockets.
func (b *bind) detach() {
	for _, p := range b.ports {
		for _, f := range p.families() {
			f.set(nil)
		}
	}
}

// port returns the main one, 0 while there is no socket.
func (b *bind) port() uint16 {
	for _, f := range b.ports[0].families() {
		if s := f.sock.Load(); s != nil {
			return s.port
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
	stun := func(msg []byte, from *endpoint) { b.stun(b, msg, from) }
	given := new(givenFrames)
	var drain time.Time // since when all is dropped, zero if it is not
	return func(bufs [][]byte, sizes []int, eps []conn.Endpoint) (int, error) {
		for {
			s := f.wait()
			if s == nil {
				return 0, net.ErrClosed
			}
			b.receiving.back(given.unused(bufs))
			b.receiving.admit()
			n, err := s.receive(bufs, sizes, eps, stun)
			if err == nil && b.waited(s, &drain) {
				b.still.in.Add(uint64(n))
				continue
			}
			if err == nil {
				b.receiving.enter(given.note(bufs[:n], sizes))
				return n, nil
			}
			if !errors.Is(err, net.ErrClosed) {
				b.stats.failed(err)
				time.Sleep(receivePause)
			}
		}
	}
}

// waited reports whether what s has just received may have waited in a standstill:
// after one, until the socket was empty once.
func (b *bind) waited(s *socket, drain *time.Time) bool {
	now := time.Now()
	switch {
	case b.still.stale(now):
		if drain.IsZero() {
			*drain = now
		}
	case !drain.IsZero() && (!s.in.full() || now.Sub(*drain) >= longestDrain):
		*drain = time.Time{}
	}
	return !drain.IsZero()
}

// Close implements conn.Bind.
func (b *bind) Close() error {
	for _, p := range b.ports {
		for _, f := range p.families() {
			f.mu.Lock()
			f.open = false
			f.mu.Unlock()
			f.set(nil)
		}
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
		if b.still.stale(time.Now()) {
			b.still.out.Add(uint64(len(bufs)))
			b.stats.lost(bufs, headersTo(to))
			return nil
		}
	}
	if bufs = b.stats.within(bufs, headersTo(to)); len(bufs) == 0 {
		return nil
	}
	if s := b.socketFor(to); s != nil {
		s.transmit(bufs, to)
	} else {
		b.stats.txDropped.Add(uint64(len(bufs)))
		b.stats.lost(bufs, headersTo(to))
	}
	return nil
}

// transmit sends one datagram that is not WireGuard's.
func (b *bind) transmit(d []byte, to *endpoint) {
	if s := b.socketFor(to); s != nil {
		s.transmit([][]byte{d}, to)
	}
}

// socketFor returns the socket on the port that the peer sent to, or on the main
// one; nil if there is none of its family.
func (b *bind) socketFor(to *endpoint) *socket {
	main := b.ports[0].socketFor(to)
	for _, p := range b.ports[1:] {
		if s := p.socketFor(to); s != nil && s.port == to.local.Port() {
			return s
		}
	}
	return main
}

func (p *port) socketFor(to *endpoint) *socket {
	if to.addr.Addr().Is4() {
		return p.v4.sock.Load()
	}
	return p.v6.sock.Load()
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
