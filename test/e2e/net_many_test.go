package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket"
	"golang.org/x/net/ipv4"

	"github.com/fogplr/fogplr/test/lab"
)

// Ten robots on one port of one gateway: each is served, none sees what is not
// for it, and multicast goes from the gateway to all and from a robot to the
// gateway alone.
func TestTenRobotsOnOnePort(t *testing.T) {
	t.Parallel()
	const robots, packets = 10, 50
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, Robots: robots}})
	g := w.gateways[0]
	var files []string
	var stops []func()
	for _, r := range w.robots {
		f, stop := capture(t, r.lab.Node, "plr0", w.file(r.Name))
		files, stops = append(files, f), append(stops, stop)
	}
	l := load{rate: 25, count: packets, size: 100, linger: time.Second}
	var flows []duplex
	for _, r := range w.robots {
		flows = append(flows, sendBoth(t.Context(), r.end(), g.end(), l))
	}
	for _, f := range flows {
		f.wait(t).complete(t, f[0].name)
	}

	group := netip.AddrPortFrom(netip.MustParseAddr("239.255.0.1"), 7400)
	var ears []<-chan packet
	for _, r := range w.robots {
		ears = append(ears, listen(t, r.lab.Node, group, group.Addr().AsSlice()))
	}
	atGateway := listen(t, g.lab.Node, group, group.Addr().AsSlice())
	multicast(t, g.end(), group, "from the gateway")
	for i, ear := range ears {
		hears(t, w.robots[i].end(), ear, g.ip, "from the gateway")
	}
	for _, r := range w.robots {
		multicast(t, r.end(), group, "from "+r.Name)
		hears(t, g.end(), atGateway, r.ip, "from "+r.Name)
	}
	// A robot cannot reach another one through the gateway.
	if out, err := w.robots[0].lab.Command(t.Context(), "ping", "-c", "2", "-i", "0.1", "-W", "1", w.robots[1].ip.String()).Output(); err == nil {
		t.Errorf("a robot is answered by another one:\n%s", out)
	}
	time.Sleep(200 * time.Millisecond)
	for i, r := range w.robots {
		for len(ears[i]) > 0 {
			if p := <-ears[i]; p.from != r.ip {
				t.Errorf("%s hears %q of %v", r.Name, p.data, p.from)
			}
		}
		stops[i]()
		onlyBetween(t, files[i], r, g)
	}
	status := status(t, g.Member)
	if len(status.Peers) != robots {
		t.Errorf("the gateway tells of %d robots", len(status.Peers))
	}
	for _, p := range status.Peers {
		// Each robot sent its flow, and one packet to the group.
		if p.Elimination.Passed < packets+1 || p.Elimination.Passed > packets+20 || p.Elimination.Lost > 0 || p.Elimination.Rogue > 0 {
			t.Errorf("the gateway counts for %s: %+v", p.Name, p.Elimination)
		}
	}
}

// onlyBetween fails the test when a packet passed plr0 that is not between the
// robot and its gateway or to a multicast group.
func onlyBetween(t testing.TB, file string, r *robot, g *gateway) {
	t.Helper()
	mine := map[netip.Addr]bool{r.ip: true, r.ip6: true, g.ip: true, g.ip6: true}
	n := 0
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		n++
		a := addressesIn(p)
		switch {
		case len(a) != 2:
			return fmt.Errorf("%s: a packet with the addresses %v", file, a)
		case !mine[a[0]]:
			t.Errorf("%s got a packet from %v to %v", r.Name, a[0], a[1])
		case a[0] != r.ip && a[0] != r.ip6 && !mine[a[1]] && !a[1].IsMulticast():
			t.Errorf("%s got a packet from %v to %v", r.Name, a[0], a[1])
		}
		return nil
	}))
	if n == 0 {
		t.Errorf("%s: nothing passed plr0", r.Name)
	}
}

// multicast sends one packet to a group from an overlay address.
func multicast(t testing.TB, from end, group netip.AddrPort, text string) {
	t.Helper()
	must(t, from.node.Do(func() error {
		c, err := net.ListenUDP("udp4", udpAddr(from.ip, 0))
		if err != nil {
			return err
		}
		defer c.Close()
		if err := ipv4.NewPacketConn(c).SetMulticastTTL(1); err != nil { // as DDS discovery does
			return err
		}
		_, err = c.WriteToUDPAddrPort([]byte(text), group)
		return err
	}))
}

// hears fails the test unless the text from that address is the next to arrive
// at a node from another one: what it sends itself loops back in its own kernel.
func hears(t testing.TB, at end, ear <-chan packet, from netip.Addr, text string) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case p := <-ear:
			if p.from == at.ip {
				continue
			}
			if p.from != from || p.data != text {
				t.Errorf("%s hears %q of %v instead of %q of %v", at.node.Name(), p.data, p.from, text, from)
			}
			return
		case <-limit:
			t.Errorf("%s does not hear %q", at.node.Name(), text)
			return
		}
	}
}
