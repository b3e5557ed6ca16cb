package tunnel

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"go.uber.org/goleak"
	"golang.org/x/crypto/curve25519"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/fogplr/fogplr/replicate"
)

// fakeHost stands in for the host's TUN device.
type fakeHost struct {
	tun.Device
	out  chan []byte // what applications send
	in   chan []byte // what applications receive
	done chan struct{}
	once sync.Once
}

func newFakeHost() *fakeHost {
	return &fakeHost{out: make(chan []byte, 1<<16), in: make(chan []byte, 1<<16), done: make(chan struct{})}
}

func (h *fakeHost) Read(bufs [][]byte, sizes []int, offset int) (int, error) {
	select {
	case p := <-h.out:
		sizes[0] = copy(bufs[0][offset:], p)
		n := 1
		for n < len(bufs) && len(h.out) > 0 {
			sizes[n] = copy(bufs[n][offset:], <-h.out)
			n++
		}
		return n, nil
	case <-h.done:
		return 0, os.ErrClosed
	}
}

func (h *fakeHost) Write(bufs [][]byte, offset int) (int, error) {
	for _, b := range bufs {
		h.in <- bytes.Clone(b[offset:])
	}
	return len(bufs), nil
}

func (h *fakeHost) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

func (h *fakeHost) receive(t *testing.T, within time.Duration) []byte {
	t.Helper()
	select {
	case p := <-h.in:
		return p
	case <-time.After(within):
		t.Fatalf("nothing came within %v", within)
		return nil
	}
}

func (h *fakeHost) receivesNothing(t *testing.T, within time.Duration) {
	t.Helper()
	select {
	case p := <-h.in:
		t.Fatalf("an unexpected packet came: %x", p)
	case <-time.After(within):
	}
}

func newKey(t *testing.T) (private, public Key) {
	t.Helper()
	if _, err := rand.Read(private[:]); err != nil {
		t.Fatal(err)
	}
	private[0] &= 248
	private[31] = private[31]&127 | 64
	curve25519.ScalarBaseMult(&public, &private)
	return private, public
}

// world is robots and gateways in this process, on loopback, each robot with
// two carriers that are both the loopback interface.
type world struct {
	t        *testing.T
	robots   []*Robot
	gateways []*Gateway
	hosts    map[string]*fakeHost // by node name
	robotCfg []RobotConfig
	gwCfg    []GatewayConfig
	stop     map[string]func()
}

func common(name, address string) Common {
	return Common{
		Name: name, Interface: "plr0", MTU: 1280, Deadline: time.Second,
		Addresses: []netip.Prefix{netip.MustParsePrefix(address), netip.MustParsePrefix("fd77::" + address[strings.LastIndex(address, ".")+1:strings.Index(address, "/")] + "/64")},
		Log:       slog.New(slog.DiscardHandler),
	}
}

func overlay(c Common) (a []netip.Addr) {
	for _, p := range c.Addresses {
		a = append(a, p.Addr())
	}
	return a
}

// newWorld makes the nodes' configurations and starts them.
func newWorld(t *testing.T, robots, gateways int) *world {
	w := &world{t: t, hosts: map[string]*fakeHost{}, stop: map[string]func(){}}
	for i := range gateways {
		private, _ := newKey(t)
		w.gwCfg = append(w.gwCfg, GatewayConfig{Common: common(fmt.Sprintf("gateway%d", i), fmt.Sprintf("10.77.0.%d/16", 11+i)), Key: private})
	}
	for i := range robots {
		c := RobotConfig{Common: common(fmt.Sprintf("robot%d", i), fmt.Sprintf("10.77.0.%d/16", 101+i))}
		p := RobotPeer{Name: c.Name, Addresses: overlay(c.Common)}
		for slot := range 2 {
			private, public := newKey(t)
			c.Carriers = append(c.Carriers, Carrier{Interface: "lo", Slot: slot, Key: private})
			p.Keys = append(p.Keys, public)
		}
		w.robotCfg = append(w.robotCfg, c)
		for g := range w.gwCfg {
			w.gwCfg[g].Robots = append(w.gwCfg[g].Robots, p)
		}
	}
	t.Cleanup(func() {
		for _, stop := range w.stop {
			stop()
		}
	})
	w.gateways = make([]*Gateway, gateways)
	for i := range gateways {
		w.startGateway(i)
	}
	w.robots = make([]*Robot, robots)
	for i := range w.robotCfg {
		for g := range w.gwCfg {
			c := w.gwCfg[g]
			var public Key
			curve25519.ScalarBaseMult(&public, &c.Key)
			w.robotCfg[i].Gateways = append(w.robotCfg[i].Gateways, GatewayPeer{
				Name: c.Name, Addresses: overlay(c.Common), Key: public,
				Endpoints: []netip.AddrPort{netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", c.ListenPort))},
			})
		}
		w.startRobot(i)
	}
	return w
}

// start runs a node until its stop function is called.
func (w *world) start(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	w.stop[name] = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("%s ended with %v", name, err)
		}
	})
}

func (w *world) startGateway(i int) {
	w.t.Helper()
	c := &w.gwCfg[i]
	h := newFakeHost()
	w.hosts[c.Name] = h
	g, err := NewGateway(*c, h)
	if err != nil {
		w.t.Fatal(err)
	}
	c.ListenPort = g.wg.bind.port()
	w.gateways[i] = g
	w.start(c.Name, g.Run)
}

func (w *world) startRobot(i int) {
	w.t.Helper()
	c := w.robotCfg[i]
	h := newFakeHost()
	w.hosts[c.Name] = h
	r, err := NewRobot(c, h)
	if err != nil {
		w.t.Fatal(err)
	}
	w.robots[i] = r
	w.start(c.Name, r.Run)
	for _, carrier := range c.Carriers {
		r.SetUplink(carrier.Slot, loopback())
	}
}

// loopback is the uplink of all carriers.
func loopback() Uplink {
	return Uplink{Interface: "lo", Index: 1, Reached: map[netip.Addr]bool{netip.MustParseAddr("127.0.0.1"): true}}
}

// settle waits until every path of every robot is up.
func (w *world) settle() {
	w.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for i, r := range w.robots {
		for !allUp(r.Status()) {
			if time.Now().After(deadline) {
				w.t.Fatalf("robot %d: not all paths came up: %+v", i, r.Status().Peers)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func allUp(s Status) bool {
	for _, p := range s.Peers {
		for _, l := range p.Paths {
			if !l.Up {
				return false
			}
		}
	}
	return true
}

const within = 5 * time.Second // generous: the machine may be busy

func TestUnicastAndMulticast(t *testing.T) {
	defer goleak.VerifyNone(t)
	defer func() { t.Log("done") }()
	t.Run("world", func(t *testing.T) {
		w := newWorld(t, 2, 2)
		w.settle()
		for name, c := range map[string]struct {
			from, src, dst string
			to             []string
		}{
			"robot to gateway":            {"robot0", "10.77.0.101", "10.77.0.11", []string{"gateway0"}},
			"robot to other gateway, 6":   {"robot1", "fd77::102", "fd77::12", []string{"gateway1"}},
			"gateway to robot":            {"gateway1", "10.77.0.12", "10.77.0.101", []string{"robot0"}},
			"multicast from robot":        {"robot0", "10.77.0.101", "239.255.0.1", []string{"gateway0", "gateway1"}},
			"multicast from robot, 6":     {"robot0", "fd77::101", "ff02::ffff:efff:1", []string{"gateway0", "gateway1"}},
			"multicast from gateway":      {"gateway0", "10.77.0.11", "239.255.0.1", []string{"robot0", "robot1"}},
			"robot to robot":              {"robot0", "10.77.0.101", "10.77.0.102", nil},
			"robot with a foreign source": {"robot0", "10.77.0.102", "10.77.0.11", nil},
			"robot to nobody":             {"robot0", "10.77.0.101", "10.77.3.3", nil},
		} {
			p := inner(t, c.src, c.dst, layers.IPProtocolUDP, 7400, []byte(name))
			w.hosts[c.from].out <- p
			for _, to := range c.to {
				if got := w.hosts[to].receive(t, within); !bytes.Equal(got, p) {
					t.Errorf("%s: %s got %x, want %x", name, to, got, p)
				}
			}
			for _, h := range w.hosts {
				h.receivesNothing(t, 20*time.Millisecond)
			}
		}
		for _, s := range []Status{w.robots[0].Status(), w.gateways[0].Status()} {
			e := s.Peers[0].Elimination
			if e.Passed == 0 || e.Discarded != e.Passed || e.Lost+e.Rogue != 0 {
				t.Errorf("%s: two healthy paths must discard one copy for each that passes: %+v", s.Name, e)
			}
		}
	})
}

// A robot that holds a valid session must not be able to claim another's inner
// address, nor to reach another robot through the gateway.
func TestRobotCannotSpoofOrReachAnother(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.settle()
	rogue := w.robots[0]
	for _, c := range [][2]string{
		{"10.77.0.102", "10.77.0.11"},  // another's source
		{"10.77.0.101", "10.77.0.102"}, // to another robot
		{"10.77.0.11", "10.77.0.11"},   // the gateway's own source
	} {
		p := inner(t, c[0], c[1], layers.IPProtocolUDP, 7400, []byte("rogue"))
		b := rogue.pool.get(len(p), time.Now())
		to := rogue.peers[0]
		b.items = append(b.items, item{peer: to, off: b.add(p), len: len(p), seq: to.numbers.Next(), typ: replicate.Data, slots: 3})
		for _, q := range rogue.out.roster.Load().queues {
			q.push(b)
		}
		rogue.pool.release(b)
	}
	for _, h := range w.hosts {
		h.receivesNothing(t, 200*time.Millisecond)
	}
	deadline := time.Now().Add(within)
	for w.gateways[0].Status().In.NotAllowed != 6 {
		if time.Now().After(deadline) {
			t.Fatalf("not_allowed is %d, want 6", w.gateways[0].Status().In.NotAllowed)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A frame whose tag names another node is refused by WireGuard itself, and the
// gateway names the robot. This also holds disallowedSource against the
// library.
func TestWrongAddressIsNamed(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	w.stop["robot0"]()
	w.robotCfg[0].Addresses[0] = netip.MustParsePrefix("10.77.0.200/16")
	w.startRobot(0)
	deadline := time.Now().Add(20 * time.Second)
	for {
		robot, gateway := w.robots[0].Status(), w.gateways[0].Status()
		if robot.Peers[0].Paths[0].Stage == "address not allowed" && len(gateway.Warnings) == 1 &&
			strings.Contains(gateway.Warnings[0], "robot0") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("robot says %+v, gateway %q", robot.Peers[0].Paths, gateway.Warnings)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestEveryNumberOnceThroughRestarts(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	send := func(n int) {
		for i := range n {
			w.hosts["robot0"].out <- inner(t, "10.77.0.101", "10.77.0.11", layers.IPProtocolUDP, 7400, []byte{byte(i >> 8), byte(i)})
		}
	}
	receive := func(n int) {
		t.Helper()
		for i := range n {
			p := w.hosts["gateway0"].receive(t, within)
			if got := int(p[28])<<8 | int(p[29]); got != i {
				t.Fatalf("packet %d came in place of %d", got, i)
			}
		}
		w.hosts["gateway0"].receivesNothing(t, 50*time.Millisecond)
	}
	for round := range 3 {
		send(1000)
		receive(1000)
		if round == 0 {
			w.stop["robot0"]()
			w.startRobot(0)
		} else if round == 1 {
			w.stop["gateway0"]()
			w.startGateway(0)
			// The robot must notice by itself; traffic makes it look at once.
			start := time.Now()
			for got := false; !got; {
				send(1)
				select {
				case <-w.hosts["gateway0"].in:
					got = true
				case <-time.After(10 * time.Millisecond):
				}
				if time.Since(start) > 20*time.Second {
					t.Fatal("no traffic after the gateway's silent restart")
				}
			}
			t.Logf("traffic came %v after the gateway's silent restart", time.Since(start))
		}
		w.settle()
		time.Sleep(100 * time.Millisecond)
		for len(w.hosts["gateway0"].in) > 0 {
			<-w.hosts["gateway0"].in
		}
	}
}

func TestOneAddressForTwoIsRefused(t *testing.T) {
	a := netip.MustParseAddr("10.77.0.101")
	_, k1 := newKey(t)
	_, k2 := newKey(t)
	private, _ := newKey(t)
	_, err := NewGateway(GatewayConfig{Common: common("g", "10.77.0.11/16"), Key: private, Robots: []RobotPeer{
		{Name: "ann", Addresses: []netip.Addr{a}, Keys: []Key{k1}},
		{Name: "bob", Addresses: []netip.Addr{a}, Keys: []Key{k2}},
	}}, newFakeHost())
	if err == nil || !strings.Contains(err.Error(), "ann") || !strings.Contains(err.Error(), "bob") {
		t.Fatalf("error %v does not name both robots", err)
	}
}

// wireguard-go must go on leaving what it has no session for in its buffer:
// that is how the window knows forged messages.
func TestForgedFlood(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", w.gwCfg[0].ListenPort))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	forged := make([]byte, 100)
	forged[0] = 4
	p := inner(t, "10.77.0.101", "10.77.0.11", layers.IPProtocolUDP, 7400, []byte("genuine"))
	inside := &w.gateways[0].wg.bind.receiving.inside
	for i := range 2 * receivingFrames {
		binary.LittleEndian.PutUint32(forged[4:], uint32(i)*2654435761)
		if _, err := c.Write(forged); err != nil {
			t.Fatal(err)
		}
		if i%receivingFrames == 0 {
			w.hosts["robot0"].out <- p
			if got := w.hosts["gateway0"].receive(t, within); !bytes.Equal(got, p) {
				t.Fatalf("got %x", got)
			}
		}
	}
	w.hosts["robot0"].out <- p
	w.hosts["gateway0"].receive(t, within)
	if n := inside.Load(); n > receivingFrames/4 {
		t.Errorf("%d frames are thought to be inside the gateway's device", n)
	}
}
