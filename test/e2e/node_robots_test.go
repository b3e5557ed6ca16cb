package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// A robot reaches gateways alone: not another robot, though the gateway's kernel
// would forward; and what it sends in another's name is refused.
func TestNodeRobotsApart(t *testing.T) {
	t.Parallel()
	w := build(t, options{Options: lab.Options{Robots: 2, Gateways: []string{"west"}}})
	bad, victim, g := w.robots[0], w.robots[1], w.gateways[0]
	// The bad robot takes the victim's addresses for the gateway's, so that its
	// own daemon lets packets to them out.
	edit(t, bad.Member, `"10.77.0.11"`, fmt.Sprintf(`"10.77.0.11", %q, %q`, victim.ip, victim.ip6))
	must(t, g.lab.Sysctl("net.ipv4.ip_forward", "1"))
	must(t, g.lab.Sysctl("net.ipv6.conf.all.forwarding", "1"))
	must(t, w.fleet.Start(lasting(t)))
	for _, r := range w.robots {
		must(t, r.WaitUp(t.Context()))
		for _, a := range []netip.Addr{g.ip, g.ip6} {
			output(t, r.lab.Node, "ping", "-c", "1", "-W", "2", a.String())
		}
	}
	received := make(chan string, 100)
	spyOn(t, victim.lab.Node, received)
	capture := w.file("victim.pcap")
	c, err := victim.lab.Capture("plr0", capture)
	must(t, err)
	refused := status(t, g.Member).In.NotAllowed

	for _, to := range []netip.Addr{victim.ip, victim.ip6} {
		if p := try(t, bad.lab.Node, "ping", "-c", "2", "-i", "0.1", "-W", "1", to.String()); p.code == 0 {
			t.Errorf("ping reaches %v:\n%s", to, p.all)
		}
		must(t, bad.lab.Do(func() error {
			target := netip.AddrPortFrom(to, spyPort).String()
			if conn, err := net.DialTimeout("tcp", target, time.Second); err == nil {
				_ = conn.Close()
				t.Errorf("TCP reaches %s", target)
			}
			conn, err := net.Dial("udp", target)
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write([]byte("hello"))
			return err
		}))
	}
	eventually(t, "the gateway counts what it refuses", func() error {
		// Two pings, a SYN and a datagram at least, twice; copies count too.
		if n := status(t, g.Member).In.NotAllowed - refused; n < 8 {
			return fmt.Errorf("only %d packets were refused", n)
		}
		return nil
	})

	// In the victim's name to the gateway.
	must(t, bad.Stop())
	edit(t, bad.Member, fmt.Sprintf(`"%v/64"`, bad.ip6), fmt.Sprintf(`"%v/64"`, victim.ip6))
	edit(t, bad.Member, fmt.Sprintf(", %q, %q", victim.ip, victim.ip6), "")
	must(t, bad.Start(lasting(t)))
	must(t, bad.WaitUp(t.Context()))
	refused = status(t, g.Member).In.NotAllowed
	if p := try(t, bad.lab.Node, "ping", "-c", "2", "-i", "0.1", "-W", "1", "-I", victim.ip6.String(), g.ip6.String()); p.code == 0 {
		t.Errorf("ping in the name of %v is answered:\n%s", victim.ip6, p.all)
	}
	if n := status(t, g.Member).In.NotAllowed - refused; n < 2 {
		t.Errorf("only %d forged packets were refused", n)
	}
	must(t, c.Stop())
	if n := countFrom(t, capture, bad.ip, bad.ip6); n > 0 {
		t.Errorf("%d packets of the bad robot arrived at the victim", n)
	}
	select {
	case what := <-received:
		t.Errorf("the victim was reached: %s", what)
	default:
	}
	// The victim is as well as before.
	output(t, victim.lab.Node, "ping", "-c", "1", "-W", "2", g.ip.String())
}

// spyPort is where a victim listens.
const spyPort = 7777

// spyOn tells what comes to spyPort by UDP and TCP, of both families.
func spyOn(t *testing.T, n *lab.Node, received chan<- string) {
	t.Helper()
	must(t, n.Do(func() error {
		udp, err := net.ListenPacket("udp", fmt.Sprintf(":%d", spyPort))
		if err != nil {
			return err
		}
		tcp, err := net.Listen("tcp", fmt.Sprintf(":%d", spyPort))
		if err != nil {
			return err
		}
		t.Cleanup(func() { _, _ = udp.Close(), tcp.Close() })
		go func() {
			buf := make([]byte, 100)
			for {
				k, from, err := udp.ReadFrom(buf)
				if err != nil {
					return
				}
				received <- fmt.Sprintf("UDP from %v: %q", from, buf[:k])
			}
		}()
		go func() {
			for {
				conn, err := tcp.Accept()
				if err != nil {
					return
				}
				received <- fmt.Sprintf("TCP from %v", conn.RemoteAddr())
				_ = conn.Close()
			}
		}()
		return nil
	}))
}
