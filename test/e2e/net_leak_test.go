package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/test/lab"
)

// What goes to the overlay never leaves by a carrier in clear: not when the
// gateways are gone, nor the daemon, nor its interface.
func TestOverlayNeverLeaksInClear(t *testing.T) {
	w := start(t, options{Options: lab.Options{IPv6: true}})
	r := w.robots[0]
	type tap struct {
		file string
		stop func()
	}
	var taps []tap
	watch := func() {
		for _, c := range r.lab.Carriers {
			f, stop := capture(t, r.lab.Node, c.Interface, w.file(c.Interface))
			taps = append(taps, tap{f, stop})
		}
	}
	watch()
	for _, g := range w.gateways {
		must(t, g.Stop())
	}
	chatter(t, r)
	must(t, r.Stop())
	chatter(t, r)
	run(t, r.Member)
	must(t, r.Kill())
	chatter(t, r)
	must(t, r.lab.Command(t.Context(), "ip", "link", "del", "plr0").Run())
	chatter(t, r)
	for _, c := range taps {
		c.stop()
		noOverlayPackets(t, c.file)
		nowhere(t, c.file, "the payload", lab.FlowText)
		nowhere(t, c.file, "RTPS", lab.RTPSMagic)
	}

	// Without the blackhole routes the same chatter does leave, so that this
	// test sees it.
	taps = nil
	watch()
	for _, family := range []string{"-4", "-6"} {
		must(t, r.lab.Command(t.Context(), "ip", family, "route", "flush", "type", "blackhole").Run())
	}
	chatter(t, r)
	leaked := 0
	for _, c := range taps {
		c.stop()
		leaked += overlayPackets(t, c.file)
	}
	if leaked == 0 {
		t.Error("nothing leaks even without the blackhole routes: this test sees nothing")
	}
}

// chatter has a robot send to the overlay: to gateways, to nobody, and to a
// multicast group from its overlay address. Whether the kernel takes it is no
// matter.
func chatter(t testing.TB, r *robot) {
	t.Helper()
	group := netip.MustParseAddr("239.255.0.1")
	must(t, r.lab.Do(func() error {
		for _, to := range []struct{ source, target netip.Addr }{
			{netip.Addr{}, netip.MustParseAddr("10.77.0.11")}, {netip.Addr{}, netip.MustParseAddr("10.77.0.12")},
			{netip.Addr{}, netip.MustParseAddr("10.77.200.9")}, {netip.Addr{}, netip.MustParseAddr("fd77::b")},
			{r.ip, netip.MustParseAddr("10.77.0.11")}, {r.ip, group}, {r.ip6, netip.MustParseAddr("fd77::b")},
		} {
			var from *net.UDPAddr
			if to.source.IsValid() {
				from = udpAddr(to.source, 0)
			}
			c, err := net.DialUDP("udp", from, udpAddr(to.target, 7400))
			if err != nil {
				continue
			}
			for range 3 {
				_, _ = c.Write([]byte(lab.RTPSMagic + lab.FlowText))
			}
			_ = c.Close()
		}
		return nil
	}))
	time.Sleep(200 * time.Millisecond)
}

// Another VPN that takes all traffic, the overlay's own included if it could, is
// no carrier and makes no loop.
func TestAnotherVPNIsNoCarrier(t *testing.T) {
	var vpn *foreignTUN
	w := start(t, options{
		Options: lab.Options{Gateways: []string{"west"}},
		Prepare: func(w *world) {
			n := w.robots[0].lab.Node
			vpn = openForeignTUN(t, n, "vpn0")
			must(t, n.AddAddress("vpn0", "10.8.0.2/24"))
			must(t, n.Up("vpn0"))
			must(t, n.AddRoute("default", "", "vpn0", 50))
			// A gateway's address falls to it too.
			must(t, n.AddRoute("198.51.100.0/24", "", "vpn0", 50))
		},
	})
	r, g := w.robots[0], w.gateways[0]
	check := func(how string) {
		t.Helper()
		flow := sendBoth(t.Context(), r.end(), g.end(), steady(1500*time.Millisecond))
		_ = r.lab.Command(t.Context(), "ping", "-c", "1", "-W", "1", g.lab.Address.String()).Run() // the VPN does not answer
		flow.wait(t).complete(t, how)
		allCarry(t, r, g)
		if n := vpn.tunnelled.Load(); n > 0 {
			t.Errorf("%s: %d of our own datagrams went into the other VPN", how, n)
		}
		if vpn.other.Swap(0) == 0 {
			t.Errorf("%s: not even ping goes into the other VPN, so it takes nothing", how)
		}
		if c := status(t, r.Member).Carriers; len(c) != 2 {
			t.Errorf("%s: carriers %+v", how, c)
		}
	}
	check("a VPN with a default route")
	// As wg-quick does it: everything without its own mark goes to its table.
	for _, command := range [][]string{
		{"route", "add", "default", "dev", "vpn0", "table", "51820"},
		{"rule", "add", "not", "fwmark", "51820", "table", "51820", "pref", "100"},
		{"rule", "add", "table", "main", "suppress_prefixlength", "0", "pref", "99"},
	} {
		must(t, r.lab.Command(t.Context(), "ip", command...).Run())
	}
	check("a VPN with a rule for everything")
}

// foreignTUN is another program's TUN device, which swallows what it gets.
type foreignTUN struct {
	tunnelled, other atomic.Int64 // datagrams to a gateway's port, and the rest
}

func openForeignTUN(t testing.TB, n *lab.Node, name string) *foreignTUN {
	t.Helper()
	v := &foreignTUN{}
	var file *os.File
	must(t, n.Do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		request, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
		file = os.NewFile(uintptr(fd), name)
		return nil
	}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 1<<16)
		for {
			k, err := file.Read(b)
			if err != nil {
				return
			}
			v.count(b[:k])
		}
	}()
	t.Cleanup(func() {
		_ = file.Close()
		<-ended
	})
	return v
}

func (v *foreignTUN) count(b []byte) {
	p := gopacket.NewPacket(b, layers.LayerTypeIPv4, gopacket.NoCopy)
	if udp, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP); ok && udp.DstPort == wgPort {
		v.tunnelled.Add(1)
		return
	}
	v.other.Add(1)
}
