package tunnel

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/device"

	"github.com/fogplr/fogplr/hello"
)

// Somebody on the way who delivers a copy of a gateway's packet from an address
// of his own makes WireGuard send there. Once he has gone, nothing but a new
// search leads back.
func TestSearchGoesToTheConfiguredEndpoint(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	w.stop["gateway0"]()
	gateway := w.robotCfg[0].Gateways[0]
	wg := w.robots[0].carriers[0].wg
	nowhere := newEndpoint(netip.MustParseAddrPort("127.0.0.1:9"))
	wg.dev.LookupPeer(device.NoisePublicKey(gateway.Key)).SetEndpointFromPacket(nowhere)
	wg.handshake(gateway.Key, gateway.Endpoints[0], true)
	if got := wg.sessions()[gateway.Key].endpoint; got != gateway.Endpoints[0].String() {
		t.Errorf("the handshake goes to %s, want %v", got, gateway.Endpoints[0])
	}
}

// A path whose gateway falls silent has died; one whose carrier is taken away has
// not.
func TestPathsTellDeathFromLostRoutes(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	r := w.robots[0]
	r.SetUplink(1, Uplink{Interface: "lo", Index: 1})
	w.stop["gateway0"]()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		paths := r.Paths()
		if !paths[0].Up && !paths[1].Up {
			if !paths[0].Died || paths[1].Died {
				t.Errorf("%+v", paths)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", paths)
		}
	}
}

// Carriers that stay need to reach what others reach, but not a gateway that is
// away.
func TestReaches(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.settle()
	r := w.robots[0]
	r.SetUplink(1, Uplink{Interface: "lo", Index: 1})
	reaches := func(what string, want bool, slots ...int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); r.Reaches(slots) != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: carriers %v reach all: %v", what, slots, !want)
			}
		}
	}
	reaches("one lost its route", false, 1)
	reaches("the other is well", true, 0)
	w.stop["gateway1"]()
	for end := time.Now().Add(20 * time.Second); r.Paths()[1].Up; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the path to a stopped gateway stays up")
		}
	}
	reaches("a gateway is away", true, 0)
	reaches("a gateway is away", false, 1)
	if s := r.Status(); !s.Ready || !s.Peers[0].Reached() || s.Peers[1].Reached() {
		t.Errorf("one of two gateways is away: %+v", s)
	}
	r.SetUplink(0, Uplink{Interface: "lo", Index: 1})
	if s := r.Status(); s.Ready || s.Peers[0].Reached() {
		t.Errorf("no gateway is reached: %+v", s)
	}
}

func TestNodesNeedAnAddress(t *testing.T) {
	if _, err := NewRobot(RobotConfig{}, newFakeHost()); err == nil {
		t.Error("a robot without an overlay address was made")
	}
	if _, err := NewGateway(GatewayConfig{}, newFakeHost()); err == nil {
		t.Error("a gateway without an overlay address was made")
	}
}

// newIdleRobot returns a robot with one carrier and one gateway that was found by
// its name. It does not run.
func newIdleRobot(t *testing.T) (*Robot, RobotConfig, []netip.AddrPort) {
	t.Helper()
	carrier, _ := newKey(t)
	_, gateway := newKey(t)
	c := RobotConfig{
		Common:   common("robot", "10.77.0.101/16"),
		Carriers: []Carrier{{Interface: "lo", Key: carrier}},
		Gateways: []GatewayPeer{{Name: "gw", Addresses: []netip.Addr{netip.MustParseAddr("10.77.0.11")}, Key: gateway}},
	}
	r, err := NewRobot(c, newFakeHost())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	found := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddrPort("127.0.0.1:10")}
	r.SetUplink(0, loopback())
	r.SetEndpoints(0, "gw", found)
	return r, c, found
}

// A gateway that gets another key or overlay address is still where its name led
// to: nobody looks that up again.
func TestAGatewayWithAnotherKeyIsWhereItWasFound(t *testing.T) {
	r, c, found := newIdleRobot(t)
	check := func(what string) {
		t.Helper()
		r.mu.Lock()
		defer r.mu.Unlock()
		l := r.carriers[0].links[0]
		var at []netip.AddrPort
		for _, x := range l.ways.all {
			at = append(at, x.at)
		}
		if !slices.Equal(at, found) || l.key != c.Gateways[0].Key {
			t.Errorf("%s: looked for at %v, want %v", what, at, found)
		}
	}
	c.Gateways = slices.Clone(c.Gateways)
	_, c.Gateways[0].Key = newKey(t)
	if err := r.Configure(c); err != nil {
		t.Fatal(err)
	}
	check("another key")
	c.Gateways[0].Addresses = []netip.Addr{netip.MustParseAddr("10.77.0.12")}
	if err := r.Configure(c); err != nil {
		t.Fatal(err)
	}
	check("another overlay address")
	found = found[1:]
	c.Gateways[0].Endpoints = found
	if err := r.Configure(c); err != nil {
		t.Fatal(err)
	}
	check("an address of its own")
}

// STUN messages that anybody can forge or repeat keep a robot's prober from
// nothing else.
func TestForgedGreetingsDoNotWakeTheProber(t *testing.T) {
	r, _, found := newIdleRobot(t)
	b, from := r.carriers[0].wg.bind, newEndpoint(found[0])
	woken := func() bool {
		select {
		case <-r.kick:
			return true
		default:
			return false
		}
	}
	woken()
	if r.greeted(b, hello.PlainRequest(r.plainID), from); woken() {
		t.Error("a message that says nothing wakes the prober")
	}
	answer := hello.PlainRequest(r.plainID)
	answer[0], answer[1] = 1, 1 // a binding success
	n := 0
	for range 3 * greetingsPerSecond {
		if r.greeted(b, answer, from); woken() {
			n++
		}
	}
	if n == 0 || n > 2*greetingsPerSecond { // a second may pass meanwhile
		t.Errorf("%d answers wake the prober", n)
	}
}

// What does not come from a gateway leaves nothing behind.
func TestForeignSourcesAreNotRemembered(t *testing.T) {
	r, _, found := newIdleRobot(t)
	s := r.carriers[0].wg.bind.ports[0].v4.sock.Load()
	other, err := openSocket("udp4", socketOptions{}, new(socketStats))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.close() }()
	to := newEndpoint(netip.AddrPortFrom(found[0].Addr(), s.port))
	other.transmit([][]byte{{4, 0, 0, 0}}, to)
	stats := &r.carriers[0].wg.bind.stats
	for end := time.Now().Add(within); stats.rxForeign.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing came")
		}
	}
	r.close() // ends the receiver
	if n := len(s.seen.known); n != 0 {
		t.Errorf("%d sources are remembered", n)
	}
}
