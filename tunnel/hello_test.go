package tunnel

import (
	"bytes"
	"crypto/hmac"
	"encoding/binary"
	"hash"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"golang.org/x/crypto/blake2s"
	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/crypto/curve25519"

	"github.com/fogplr/fogplr/hello"
)

// initiation is what WireGuard would send to start a handshake at that time (the
// WireGuard paper, section 5.4.2), since the library goes by the machine's clock.
func initiation(t *testing.T, carrier, gateway Key, at time.Time) []byte {
	t.Helper()
	mac := func(key []byte, parts ...[]byte) []byte {
		m := hmac.New(func() hash.Hash { h, _ := blake2s.New256(nil); return h }, key)
		for _, p := range parts {
			m.Write(p)
		}
		return m.Sum(nil)
	}
	sum := func(parts ...[]byte) []byte { s := blake2s.Sum256(bytes.Join(parts, nil)); return s[:] }
	dh := func(private Key) []byte {
		s, err := curve25519.X25519(private[:], gateway[:])
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var public Key
	curve25519.ScalarBaseMult(&public, &carrier)
	secret, ephemeral := newKey(t)
	chain := sum([]byte("Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"))
	h := sum(sum(chain, []byte("WireGuard v1 zx2c4 Jason@zx2c4.com")), gateway[:])
	chain = mac(mac(chain, ephemeral[:]), []byte{1})
	h = sum(h, ephemeral[:])
	msg := append([]byte{1, 0, 0, 0, 9, 9, 9, 9}, ephemeral[:]...)
	stamp := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(at.Unix())+0x400000000000000a), 0)
	for _, part := range []struct{ shared, clear []byte }{{dh(secret), public[:]}, {dh(carrier), stamp}} {
		first := mac(chain, part.shared)
		chain = mac(first, []byte{1})
		aead, err := chacha20poly1305.New(mac(first, chain, []byte{2}))
		if err != nil {
			t.Fatal(err)
		}
		sealed := aead.Seal(nil, make([]byte, 12), part.clear, h)
		h = sum(h, sealed)
		msg = append(msg, sealed...)
	}
	mac1, err := blake2s.New128(sum([]byte("mac1----"), gateway[:]))
	if err != nil {
		t.Fatal(err)
	}
	mac1.Write(msg)
	return append(mac1.Sum(msg), make([]byte, 16)...)
}

// send brings one datagram to the gateway and returns the answer, nil if there is
// none.
func send(t *testing.T, g *Gateway, msg []byte) []byte {
	t.Helper()
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), g.wg.bind.port())))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(msg); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(within))
	buf := make([]byte, 2000)
	n, err := c.Read(buf)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// A robot whose clock was ahead when it last ran is refused by WireGuard, and is
// called by the gateway instead. This also holds replayedHandshake against the
// library.
func TestRobotWhoseClockWentBackIsCalled(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	w.stop["robot0"]()
	var log bytes.Buffer
	g := w.gateways[0]
	g.mu.Lock()
	g.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	g.mu.Unlock()
	for _, c := range w.robotCfg[0].Carriers {
		time.Sleep(60 * time.Millisecond) // WireGuard takes one initiation of a peer in 50 ms
		if send(t, g, initiation(t, c.Key, w.robotCfg[0].Gateways[0].Key, time.Now().AddDate(50, 0, 0))) == nil {
			t.Fatal("the gateway did not answer the handshake of a clock that is ahead")
		}
	}
	began := time.Now()
	w.startRobot(0)
	w.settle()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("up after %v", took)
	} else {
		t.Logf("up after %v", took)
	}
	p := inner(t, "10.77.0.101", "10.77.0.11", layers.IPProtocolUDP, 7400, []byte("from 1970"))
	w.hosts["robot0"].out <- p
	if got := w.hosts["gateway0"].receive(t, within); !bytes.Equal(got, p) {
		t.Errorf("got %x", got)
	}
	for w.robots[0].Status().ClockBehind < 2 && time.Since(began) < 10*time.Second {
		time.Sleep(10 * time.Millisecond) // the prober has yet to see the second session
	}
	robot, gateway := w.robots[0].Status(), g.Status()
	if robot.ClockBehind != 2 || len(robot.Warnings) != 1 || !strings.Contains(robot.Warnings[0], "clock") {
		t.Errorf("clock_behind %d, warnings %q", robot.ClockBehind, robot.Warnings)
	}
	if gateway.ClockBehind < 2 {
		t.Errorf("clock_behind %d at the gateway", gateway.ClockBehind)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !strings.Contains(log.String(), "robot0") {
		t.Errorf("the gateway says %q", log.String())
	}
}

// A carrier that is called while its session lives goes on carrying.
func TestCallDoesNotInterrupt(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	time.Sleep(5 * time.Second) // WireGuard's least distance between two handshakes
	g, key := w.gateways[0], w.gwCfg[0].Robots[0].Keys[0]
	before := g.wg.sessions()[key]
	g.call(guest{key: key, at: netip.MustParseAddrPort(before.endpoint)}, time.Now())
	deadline := time.Now().Add(within)
	for i := 0; g.wg.sessions()[key].handshake == before.handshake; i++ {
		if time.Now().After(deadline) {
			t.Fatal("no new session")
		}
		if s := w.robots[0].Status(); !s.Peers[0].Paths[0].Up {
			t.Error("the path went down")
		}
		time.Sleep(time.Millisecond)
	}
	if lost := w.robots[0].Status().Peers[0].Paths[0].LossIn; lost > 0 {
		t.Errorf("%v of the frames lost", lost)
	}
	g.call(guest{key: Key{1}}, time.Now()) // somebody who has gone: nothing happens
}

// A gateway with many carriers learns who they are when one says hello.
func TestGatewayGetsToKnowManyRobots(t *testing.T) {
	w := newWorld(t, 1, 1)
	g, cfg := w.gateways[0], w.robotCfg[0]
	robots := w.gwCfg[0].Robots
	for range knowAtOnce/8 + 1 {
		many := RobotPeer{}
		for range 8 {
			_, public := newKey(t)
			many.Keys = append(many.Keys, public)
		}
		robots = append(robots, many)
	}
	g.known.Set(nil)
	g.know(robots)
	secret, err := hello.CarrierSecret(cfg.Carriers[0].Key, cfg.Gateways[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	c := hello.NewCaller(secret)
	start := time.Now()
	c.Handshake(start)
	c.Handshake(start)
	c.Reachable(start.Add(time.Second))
	conn, err := net.Dial("udp4", cfg.Gateways[0].Endpoints[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	now := start
	buf := make([]byte, 2000)
	for tries := 0; c.Called(now).IsZero(); tries++ {
		if tries == 10 {
			t.Fatal("the gateway does not know the robot")
		}
		now = now.Add(time.Second)
		c.Reachable(now)
		msg, _ := c.Poll(now)
		for msg != nil {
			if _, err := conn.Write(msg); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			n, err := conn.Read(buf)
			if err != nil {
				break
			}
			msg = c.Answer(buf[:n], now)
		}
	}
}

func TestWallClock(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		now  time.Time
		note bool
		want string
	}{
		{"right", now, false, ""},
		{"1970", time.Unix(100, 0), false, "says 1970-01-01 00:01:40 UTC, which cannot be"},
		{"behind", now, true, "was ahead of that before"},
	} {
		var w wallClock
		if c.note {
			w.behind(c.now)
		}
		if got := w.warning(c.now); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	if d := stepped(now, now.Add(time.Hour)); d != 0 {
		t.Errorf("an hour that passed is a step of %v", d)
	}
	if d := stepped(now, now.Round(0).Add(time.Hour)); d != 0 {
		t.Errorf("times without a monotonic reading: %v", d)
	}
}
