package lab

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

// listenIn opens a UDP socket in a node.
func listenIn(t *testing.T, n *Node, address string) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	must(t, n.Do(func() (err error) {
		c, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)))
		return err
	}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t *testing.T, c *net.UDPConn, to string) {
	t.Helper()
	_, err := c.WriteToUDPAddrPort([]byte("x"), netip.MustParseAddrPort(to))
	must(t, err)
}

// from returns where the next datagram comes from, "" if none comes.
func from(t *testing.T, c *net.UDPConn) string {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
	_, a, err := c.ReadFromUDPAddrPort(make([]byte, 100))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ""
	}
	must(t, err)
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String()
}

// natWorld has one carrier behind a translator, and sockets: one on the robot, and
// two on each gateway.
func natWorld(t *testing.T, o CarrierOptions) (c *Carrier, robot, west, westToo, east *net.UDPConn) {
	t.Helper()
	w, err := Test(t, "nat").Standard(Options{Carriers: []CarrierOptions{o}})
	must(t, err)
	c = w.Robots[0].Carriers[0]
	g := w.Gateways
	return c, listenIn(t, w.Robots[0].Node, "10.1.0.2:5000"), listenIn(t, g[0].Node, "198.51.100.10:9000"),
		listenIn(t, g[0].Node, "198.51.100.10:9001"), listenIn(t, g[1].Node, "203.0.113.20:9000")
}

const (
	westAt, westTooAt, eastAt = "198.51.100.10:9000", "198.51.100.10:9001", "203.0.113.20:9000"
)

// Translators map and filter as their kind says (RFC 4787).
func TestTranslators(t *testing.T) {
	for _, c := range []struct {
		kind              NATKind
		raw               bool
		sameForAll, opens bool // one mapping for all destinations; it lets strangers in
	}{
		{kind: FullCone, sameForAll: true, opens: true},
		{kind: PortRestricted, raw: true, sameForAll: true},
		{kind: Symmetric},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			_, robot, west, westToo, east := natWorld(t, CarrierOptions{Raw: c.raw, NAT: NAT{Kind: c.kind}})
			send(t, robot, westAt)
			mapped := from(t, west)
			send(t, robot, eastAt)
			other := from(t, east)
			t.Logf("%s seen as %s and %s", c.kind, mapped, other)
			if mapped == "" || other == "" || (mapped == other) != c.sameForAll {
				t.Fatalf("mapped to %q and %q", mapped, other)
			}
			send(t, west, mapped)
			if got := from(t, robot); got != westAt {
				t.Errorf("the answer came from %q", got)
			}
			send(t, westToo, mapped)
			if got := from(t, robot); (got == westTooAt) != c.opens {
				t.Errorf("a stranger's datagram came from %q, open is %v", got, c.opens)
			}
		})
	}
}

func TestTranslatorForgetsAndIsRebound(t *testing.T) {
	c, robot, west, _, _ := natWorld(t, CarrierOptions{NAT: NAT{Kind: PortRestricted, Idle: time.Second}})
	send(t, robot, westAt)
	first := from(t, west)
	time.Sleep(2500 * time.Millisecond)
	send(t, west, first)
	if got := from(t, robot); got != "" {
		t.Errorf("an idle mapping let a datagram from %s in", got)
	}
	send(t, robot, westAt)
	first = from(t, west)
	must(t, c.Rebind())
	send(t, west, first)
	if got := from(t, robot); got != "" {
		t.Errorf("a mapping from before the rebinding let a datagram from %s in", got)
	}
	send(t, robot, westAt)
	if second := from(t, west); second == "" || second == first {
		t.Errorf("%q before the rebinding, %q after", first, second)
	}
}

// What happens to carriers: after each of it a datagram gets through again.
func TestCarriersChange(t *testing.T) {
	for name, raw := range map[string]bool{"ethernet": false, "raw IP": true} {
		t.Run(name, func(t *testing.T) {
			w, err := Test(t, "change").Standard(Options{Carriers: []CarrierOptions{{Raw: raw}}})
			must(t, err)
			c := w.Robots[0].Carriers[0]
			west := listenIn(t, w.Gateways[0].Node, westAt)
			through := func(what, want string) {
				t.Helper()
				robot := listenIn(t, w.Robots[0].Node, "0.0.0.0:0")
				send(t, robot, westAt)
				got, _, _ := net.SplitHostPort(from(t, west))
				if got != want {
					t.Errorf("%s: a datagram came from %q, want %s", what, got, want)
				}
			}
			through("at first", "10.1.0.2")
			must(t, c.Down())
			must(t, c.Up())
			through("down and up", "10.1.0.2")
			must(t, c.Readdress())
			through("another address", "10.1.0.3")
			must(t, c.SetMTU(1400))
			through("another MTU", "10.1.0.3")
			before, _, err := c.Counters()
			must(t, err)
			must(t, w.Replug(c, "modem9"))
			through("another name", "10.1.0.3")
			if after, _, err := c.Counters(); err != nil || before.Received < 4 || after.Received <= before.Received {
				t.Errorf("%d packets counted before, %d after, %v", before.Received, after.Received, err)
			}
			k, err := w.Robots[0].Netlink().LinkByName("modem9")
			must(t, err)
			if k.Attrs().MTU != 1400 || (len(k.Attrs().HardwareAddr) == 0) != raw {
				t.Errorf("%+v", k.Attrs())
			}
		})
	}
}

// A link that replays traces loses everything in rows without service, and delays
// by half the round trip each way.
func TestLinkReplaysTraces(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/rtt.csv", []byte("x\n40\n-1\n120\n"), 0o600))
	must(t, os.WriteFile(dir+"/capacity", []byte("10\n"), 0o600))
	p := Params{RTT: &RTT{File: dir + "/rtt.csv", Column: "x", Row: 500 * time.Millisecond, Steps: true}}
	a, b, k := pair(t, LinkParams{AB: p, BA: p, Seed: 1})
	must(t, k.Play(time.Now()))
	r := flow(t, a, b, 100, 150, 100)
	t.Logf("%v", r)
	if n := len(r.Lost); n < 40 || n > 60 {
		t.Errorf("%d of 150 packets lost, want those of the row without service, some 50", n)
	}
	if fast, slow := r.Percentile(0.25), r.Percentile(0.75); fast < 20*time.Millisecond || fast > 40*time.Millisecond || slow < 60*time.Millisecond || slow > 90*time.Millisecond {
		t.Errorf("25 %% %v, 75 %% %v, want some 20 and 60 ms", fast, slow)
	}
	// 1,500 bytes every 10 ms: twice as much does not fit.
	must(t, k.Set(Params{Capacity: dir + "/capacity", Queue: 50 * time.Millisecond}, Params{}))
	r = flow(t, a, b, 200, 400, 1400)
	t.Logf("%v", r)
	if n := len(r.Lost); n < 150 || n > 250 {
		t.Errorf("%d of 400 packets lost at twice the capacity", n)
	}
	wrong := Params{RTT: &RTT{File: dir + "/capacity", Column: "x"}}
	if err := k.Set(wrong, wrong); err == nil {
		t.Error("a trace that cannot be read was taken")
	}
}

func TestSelfTestMeasures(t *testing.T) {
	e, err := SelfTest(t.Context())
	must(t, err)
	t.Logf("%v", e)
	if e.Added <= 0 || e.ErrorP99 <= 0 || e.Delivered < 0.9 || e.ErrorP50 > 5*time.Millisecond {
		t.Errorf("%+v", e)
	}
}
