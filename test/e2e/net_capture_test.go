package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/replicate"
	"github.com/fogplr/fogplr/test/lab"
)

// Every packet leaves once on each carrier, as a WireGuard data message, and
// nothing of it can be read there.
func TestCopiesOnEveryCarrierAndNothingInClear(t *testing.T) {
	t.Parallel()
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	inside, stopInside := capture(t, r.lab.Node, "plr0", w.file("inside"))
	var files []string
	var stops []func()
	for _, c := range r.lab.Carriers {
		f, stop := capture(t, r.lab.Node, c.Interface, w.file(c.Interface))
		files, stops = append(files, f), append(stops, stop)
	}
	const packets = 2000
	flows := sendBoth(t.Context(), r.end(), g.end(), load{rate: 500, count: packets, size: 200, linger: time.Second})
	flows6 := sendBoth(t.Context(), r.end6(), g.end6(), load{rate: 50, count: packets / 10, size: 200, linger: time.Second})
	sendRTPS(t, r.end(), g.end(), packets/10)
	sendRTPS(t, g.end(), r.end(), packets/10)
	flows.wait(t).complete(t, "IPv4")
	flows6.wait(t).complete(t, "IPv6")
	for _, stop := range append(stops, stopInside) {
		stop()
	}

	var counts []int
	for _, f := range files {
		c, err := lab.CountWireGuard(f)
		must(t, err)
		t.Logf("%s: %+v", f, c)
		if least := 2 * (packets + packets/10 + packets/10); c.Data < least {
			t.Errorf("%s: %d WireGuard data messages, expected a copy of each of the %d packets", f, c.Data, least)
		}
		counts = append(counts, c.Data)
	}
	if a, b := float64(counts[0]), float64(counts[1]); a/b < 0.98 || b/a < 0.98 {
		t.Errorf("the carriers had %v data messages; they should have the same", counts)
	}
	plain := plainTexts(r, g)
	for what, text := range plain {
		found, err := lab.FindPlain(inside, text)
		must(t, err)
		if len(found) == 0 && what != "tag" {
			t.Errorf("%s is not even on plr0, so this test would not see it leak", what)
		}
		for _, f := range files {
			nowhere(t, f, what, text)
		}
	}
	for _, f := range files {
		noOverlayPackets(t, f)
	}
}

// plainTexts are what must not be seen outside: payloads, and the addresses of
// packets and tags.
func plainTexts(r *robot, g *gateway) map[string]string {
	bytes := func(a netip.Addr) string { return string(a.AsSlice()) }
	node, err := replicate.NodeOf(netip.PrefixFrom(r.ip, 16))
	if err != nil {
		panic(err)
	}
	return map[string]string{
		"the payload":             lab.FlowText,
		"RTPS":                    lab.RTPSMagic,
		"robot and gateway":       bytes(r.ip) + bytes(g.ip),
		"gateway and robot":       bytes(g.ip) + bytes(r.ip),
		"robot's IPv6 address":    bytes(r.ip6),
		"gateway's IPv6 address":  bytes(g.ip6),
		"robot's address alone":   bytes(r.ip),
		"gateway's address alone": bytes(g.ip),
		"tag":                     bytes(replicate.MakeAddress(node, 1).Addr()),
	}
}

// nowhere fails the test when the text is in the capture. Four bytes turn up in
// encrypted data by chance once in a thousand of these captures; a leak would
// show in every packet.
func nowhere(t testing.TB, file, what, text string) {
	t.Helper()
	found, err := lab.FindPlain(file, text)
	must(t, err)
	chance := 0
	if len(text) <= 4 {
		chance = 2
	}
	if len(found) > chance {
		t.Errorf("%s: %s can be read in %d packets, first\n%s", file, what, len(found), found[0].Dump)
	}
}

// overlayPrefixes hold the inner addresses of all worlds.
var overlayPrefixes = []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16"), netip.MustParsePrefix("fd77::/64")}

// overlayPackets counts the packets of a capture that come from or go to an
// overlay address, or ask for one (ARP, neighbour discovery).
func overlayPackets(t testing.TB, file string) (n int) {
	t.Helper()
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		for _, a := range addressesIn(p) {
			for _, o := range overlayPrefixes {
				if o.Contains(a) {
					n++
					return nil
				}
			}
		}
		return nil
	}))
	return n
}

func noOverlayPackets(t testing.TB, file string) {
	t.Helper()
	if n := overlayPackets(t, file); n > 0 {
		t.Errorf("%s: %d packets with overlay addresses in clear", file, n)
	}
}

// addressesIn are the addresses that a packet's headers name.
func addressesIn(p gopacket.Packet) []netip.Addr {
	var raw [][]byte
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.IPv4:
			raw = append(raw, l.SrcIP.To4(), l.DstIP.To4())
		case *layers.IPv6:
			raw = append(raw, l.SrcIP, l.DstIP)
		case *layers.ARP:
			raw = append(raw, l.SourceProtAddress, l.DstProtAddress)
		case *layers.ICMPv6NeighborSolicitation:
			raw = append(raw, l.TargetAddress)
		}
	}
	var all []netip.Addr
	for _, b := range raw {
		if a, ok := netip.AddrFromSlice(b); ok {
			all = append(all, a)
		}
	}
	return all
}

// capture starts one and returns the file, and what ends it.
func capture(t testing.TB, n *lab.Node, iface, base string) (file string, stop func()) {
	t.Helper()
	file = fmt.Sprintf("%s-%d.pcap", base, newPort())
	c, err := n.Capture(iface, file)
	must(t, err)
	return file, func() {
		t.Helper()
		must(t, c.Stop())
	}
}

// sendRTPS sends count messages that look like RTPS, and waits until all have
// arrived.
func sendRTPS(t testing.TB, from, to end, count int) {
	t.Helper()
	got := listen(t, to.node, netip.AddrPortFrom(to.ip, 7410), nil)
	message := []byte(lab.RTPSMagic + "\x03 and a writer's data")
	must(t, from.node.Do(func() error {
		c, err := net.DialUDP("udp", udpAddr(from.ip, 0), udpAddr(to.ip, 7410))
		if err != nil {
			return err
		}
		defer c.Close()
		for range count {
			if _, err := c.Write(message); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	}))
	for i := range count {
		select {
		case <-got:
		case <-time.After(patience):
			t.Fatalf("only %d of %d RTPS messages arrived at %s", i, count, to.node.Name())
		}
	}
}

func udpAddr(a netip.Addr, port uint16) *net.UDPAddr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, port))
}

// packet is what a listener got.
type packet struct {
	from netip.Addr
	data string
}

// listen receives UDP packets on a node until the test ends. When group is
// given, it joins that multicast group on plr0.
func listen(t testing.TB, n *lab.Node, at netip.AddrPort, group net.IP) <-chan packet {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var conn *net.UDPConn
	must(t, n.Do(func() (err error) {
		lc := net.ListenConfig{Control: reuse}
		pc, err := lc.ListenPacket(ctx, "udp", at.String())
		if err != nil {
			return err
		}
		conn = pc.(*net.UDPConn)
		if group == nil {
			return nil
		}
		plr0, err := net.InterfaceByName("plr0")
		if err != nil {
			return err
		}
		return ipv4.NewPacketConn(conn).JoinGroup(plr0, &net.UDPAddr{IP: group})
	}))
	packets := make(chan packet, 1<<14)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 1<<16)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
			if err == nil {
				packets <- packet{from.Addr().Unmap(), string(b[:n])}
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = conn.Close()
		<-ended
	})
	return packets
}

// reuse lets several listeners of one node share a multicast group's port.
func reuse(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) }); e != nil {
		return e
	}
	return err
}
