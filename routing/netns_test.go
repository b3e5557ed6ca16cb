package routing

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestKernelSetupTUN(t *testing.T) {
	l := newLab(t)
	l.persistentTUN("plr0")
	l.run("ip addr add 10.77.0.9/16 dev plr0\nip addr add 172.16.0.1/24 dev plr0\nip link set plr0 up") // an fe80 address too
	m := l.manager(t.TempDir())
	l.must(m.SetupTUN(overlayTUN()))

	link, err := netlink.LinkByName("plr0")
	l.must(err)
	a := link.Attrs()
	if a.MTU != 1280 || a.TxQLen != 1000 || a.RawFlags&unix.IFF_MULTICAST == 0 || a.RawFlags&unix.IFF_UP == 0 {
		t.Errorf("%+v", a)
	}
	if mode := l.sysctl("net.ipv6.conf.plr0.addr_gen_mode"); mode != "1" {
		t.Errorf("addr_gen_mode %s", mode)
	}
	found, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	l.must(err)
	var got []string
	for _, f := range found {
		got = append(got, f.IPNet.String())
		if f.IP.To4() == nil && f.Flags&unix.IFA_F_NODAD == 0 {
			t.Errorf("%s: duplicate address detection on a TUN device", f.IPNet)
		}
	}
	if want := []string{"10.77.0.2/16", "fd77::2/64"}; !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	want := []string{
		"ip -4 route show table all: blackhole 10.77.0.0/16 proto 157 metric 2147483647",
		"ip -6 route show table all: blackhole fd77::/64 dev lo proto 157 metric 2147483647 pref medium",
		"ip -4 route show table all: 10.77.0.0/16 dev plr0 proto kernel scope link src 10.77.0.2",
	}
	first := l.snapshot()
	for _, line := range want {
		if !slices.Contains(first, line) {
			t.Errorf("missing: %s", line)
		}
	}

	// Again: nothing happens, not even a message.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kicks, err := m.Watch(ctx)
	l.must(err)
	l.must(m.SetupTUN(overlayTUN()))
	quiet(t, kicks, 4*settleTime)
	l.unchanged(first, l.snapshot())
	cancel()
	ended(t, kicks)
}

// TestKernelBlackhole: a server that the overlay's traffic would reach by the
// carrier never hears of it, whatever becomes of the TUN device.
func TestKernelBlackhole(t *testing.T) {
	l := newLab(t)
	r := l.router("eth0", "leak", "ip addr add 192.168.1.1/24 dev up0\nip addr add 10.77.0.11/32 dev lo\nip -6 addr add 2001:db8:1::1/64 dev up0 nodad\nip -6 addr add fd77::11/128 dev lo nodad",
		"10.77.0.11", "fd77::11")
	l.run(`ip addr add 192.168.1.5/24 dev eth0
		ip route add default via 192.168.1.1 dev eth0
		ip -6 addr add 2001:db8:1::5/64 dev eth0 nodad
		ip -6 route add default via 2001:db8:1::1 dev eth0`)
	app, err := net.ListenPacket("udp", ":0")
	l.must(err)
	defer app.Close()
	for _, to := range []string{"10.77.0.11", "fd77::11"} {
		if got, err := l.ask(app, to, soon); err != nil {
			t.Fatalf("without an overlay %s must be reachable by the carrier, or the test proves nothing: %q %v", to, got, err)
		}
	}
	heard := r.heard()

	tun := l.persistentTUN("plr0")
	m := l.manager(t.TempDir())
	l.must(m.SetupTUN(overlayTUN()))
	if got, err := l.ask(app, "10.77.0.11", time.Second); err == nil {
		t.Errorf("answered: %q", got)
	}
	l.sees(tun, "10.77.0.11")

	check := func(state string) {
		for _, to := range []string{"10.77.0.11", "fd77::11"} {
			if got, err := l.ask(app, to, 200*time.Millisecond); !errors.Is(err, unix.EINVAL) {
				t.Errorf("%s: sending to %s: %q, %v; want the blackhole's EINVAL", state, to, got, err)
			}
		}
		if n := r.heard() - heard; n != 0 {
			t.Errorf("%s: %d packets left by the carrier", state, n)
		}
	}
	l.run("ip link set plr0 down")
	check("down")
	l.must(m.SetupTUN(overlayTUN()))
	l.must(m.Close())
	l.run("ip link del plr0")
	check("deleted")
}

// sees waits for a packet to the destination on a TUN device.
func (l *lab) sees(tun *os.File, dst string) {
	l.t.Helper()
	l.must(tun.SetReadDeadline(time.Now().Add(soon)))
	buf := make([]byte, 2048)
	want := addr(dst).As4()
	for {
		n, err := tun.Read(buf)
		if err != nil {
			l.t.Errorf("%s: no packet to %s: %v", tun.Name(), dst, err)
			return
		}
		if n >= 20 && buf[0]>>4 == 4 && [4]byte(buf[16:20]) == want {
			return
		}
	}
}

func TestKernelSameAddressModems(t *testing.T) {
	l := newLab(t)
	l.run("sysctl -qw net.ipv4.conf.all.rp_filter=1")
	wants := l.modems(3, "dev %s metric 10%d")
	l.silent("usb2", gw1)
	m := l.manager(t.TempDir())
	reports := apply(t, m, wants)
	usable4(t, reports)
	for _, w := range wants {
		l.answers(w.Interface, gw1, w.Interface)
		if v := l.sysctl("net.ipv4.conf." + w.Interface + ".rp_filter"); v != "2" {
			t.Errorf("rp_filter of %s is %s", w.Interface, v)
		}
	}
	writes := l.snapshot()
	apply(t, m, wants)
	l.unchanged(writes, l.snapshot())
}

// TestKernelModemsWithTheirOwnTables: no default route in the main table at all,
// and therefore no way back for the reverse-path check either.
func TestKernelModemsWithTheirOwnTables(t *testing.T) {
	for _, mode := range []string{"0", "1", "2"} {
		l := newLab(t)
		l.run("sysctl -qw net.ipv4.conf.all.rp_filter=" + mode)
		wants := l.modems(3, "dev %s table 30%d")
		l.silent("usb1", gw1)
		before := l.snapshot()
		m := l.manager(t.TempDir())
		usable4(t, apply(t, m, wants))
		for _, w := range wants {
			l.answers(w.Interface, gw1, w.Interface)
		}
		l.must(m.Close())
		l.unchanged(before, l.snapshot())
	}
}

func TestKernelIPv6(t *testing.T) {
	l := newLab(t)
	for i, name := range []string{"eth0", "eth1"} {
		gw := []string{"2001:db8:1::1", "fe80::1"}[i]
		l.router(name, name, "ip -6 addr add 2001:db8:1::1/64 dev up0 nodad\nip -6 addr add fe80::1/64 dev up0 nodad\nip -6 addr add "+gw6+"/128 dev lo nodad", gw6)
		l.run("ip -6 addr add 2001:db8:1::" + []string{"5", "6"}[i] + "/64 dev " + name + " nodad")
		l.run("ip -6 route add default via " + gw + " dev " + name + " table 40" + []string{"0", "1"}[i])
	}
	l.silent("eth1", gw6)
	m := l.manager(t.TempDir())
	for _, c := range apply(t, m, []Want{carrier("eth0", 0, gw6), carrier("eth1", 1, gw6)}) {
		if !c.Usable6 || !c.Reached[addr(gw6)] {
			t.Errorf("%+v", c)
		}
	}
	l.answers("eth0", gw6, "eth0")
	l.answers("eth1", gw6, "eth1")
}

// TestKernelPointToPoint: a link with a peer address and no default route.
func TestKernelPointToPoint(t *testing.T) {
	l := newLab(t)
	l.run("sysctl -qw net.ipv4.conf.all.rp_filter=2")
	// The far end answers ARP for all that it has, as a raw-IP modem needs none.
	l.router("wwan0", "modem", "ip addr add 100.64.0.1 peer 100.64.0.9/32 dev up0\nip addr add "+gw1+"/32 dev lo\nsysctl -qw net.ipv4.conf.up0.arp_ignore=0", gw1)
	l.run("ip addr add 100.64.0.9 peer 100.64.0.1/32 dev wwan0")
	m := l.manager(t.TempDir())
	c := apply(t, m, []Want{carrier("wwan0", 0, gw1)})
	usable4(t, c)
	if c[0].Table != TableBase {
		t.Errorf("table %d", c[0].Table)
	}
	l.answers("wwan0", gw1, "modem")
}

// TestKernelForeignVPN: rules and routes as a VPN with a kill switch sets them.
func TestKernelForeignVPN(t *testing.T) {
	l := newLab(t)
	l.run("sysctl -qw net.ipv4.conf.all.rp_filter=1")
	l.router("eth0", "eth0", "ip addr add 192.168.1.1/24 dev up0\nip addr add "+gw1+"/32 dev lo", gw1)
	l.run("ip addr add 192.168.1.5/24 dev eth0\nip route add default via 192.168.1.1 dev eth0")
	vpn := l.persistentTUN("tun9")
	overlay := l.persistentTUN("plr0")
	l.run(`ip addr add 10.200.0.2/24 dev tun9
		ip link set tun9 addrgenmode none
		ip link set tun9 up
		ip route add default dev tun9 table 52
		ip route add unreachable default metric 1000 table 52
		ip rule add pref 100 lookup 52`)
	l.silent("eth0", gw1)
	before := l.snapshot()

	m := l.manager(t.TempDir())
	l.must(m.SetupTUN(overlayTUN()))
	c := apply(t, m, []Want{carrier("eth0", 0, gw1)})
	usable4(t, c)
	l.answers("eth0", gw1, "eth0")

	// The overlay's own traffic goes to the overlay, everything else to the VPN.
	app, err := net.ListenPacket("udp4", ":0")
	l.must(err)
	defer app.Close()
	_, err = app.WriteTo([]byte("x"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.77.0.11:9")))
	l.must(err)
	l.sees(overlay, "10.77.0.11")
	_, err = app.WriteTo([]byte("x"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("198.51.100.10:9")))
	l.must(err)
	l.sees(vpn, gw2)

	// A rule without a priority of its own comes before ours: ours moves.
	l.run("ip rule add from all lookup 52")
	c = apply(t, m, []Want{carrier("eth0", 0, gw1)})
	usable4(t, c)
	l.answers("eth0", gw1, "eth0")
	l.run("ip rule del from all lookup 52") // the later one
	l.must(m.Close())
	l.unchanged(before, l.snapshot(), "plr0", "10.77.", "fd77:")
}

func TestKernelKilled(t *testing.T) {
	l := newLab(t)
	l.run("sysctl -qw net.ipv4.conf.all.rp_filter=1")
	wants := l.modems(3, "dev %s table 30%d")
	pristine := l.snapshot()
	dir := t.TempDir()
	tun := l.persistentTUN("plr0")
	start := func() *Manager {
		m, err := New(dir, "plr0", slog.New(slog.DiscardHandler))
		l.must(err)
		t.Cleanup(m.kernel.close)
		return m
	}
	overlayOnly := []string{"plr0", "10.77.", "fd77:"}

	m := start()
	l.must(m.SetupTUN(overlayTUN()))
	usable4(t, apply(t, m, wants)) // and killed
	m = start()
	l.unchanged(pristine, l.snapshot(), append(overlayOnly, "rp_filter")...)
	usable4(t, apply(t, m, wants)) // and killed
	tun.Close()

	report, err := Cleanup(dir, "plr0", false, slog.New(slog.DiscardHandler))
	l.must(err)
	if len(report.Changes) == 0 {
		t.Error("nothing reported")
	}
	l.unchanged(pristine, l.snapshot(), overlayOnly...)
	if after := l.snapshot(); !slices.ContainsFunc(after, func(s string) bool { return strings.Contains(s, "blackhole 10.77.0.0/16") }) {
		t.Error("the blackhole route went with the rest")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left in the runtime directory: %v", left)
	}

	m = start()
	usable4(t, apply(t, m, wants)) // and killed; a carrier goes too
	l.run("ip link del usb1")
	if _, err := Cleanup(dir, "plr0", true, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	l.unchanged(pristine, l.snapshot(), "usb1", "192.168.8.")
	report, err = Cleanup(dir, "plr0", true, slog.New(slog.DiscardHandler))
	if err != nil || len(report.Changes) != 0 {
		t.Errorf("again: %v %v", report, err)
	}
}

// TestKernelOverrun: a subscription that is not read loses messages, says so,
// and goes on.
func TestKernelOverrun(t *testing.T) {
	l := newLab(t)
	k, err := openKernel()
	l.must(err)
	defer k.close()
	source, err := k.subscriber()
	l.must(err)
	defer source.close()
	sub, err := source.subscribe()
	l.must(err)
	defer sub.close()
	l.must(sub.(netlinkSubscription).socket.SetReceiveBufferSize(4096, false))
	for i := range 300 {
		r := blackholeRoute(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 32))
		l.must(k.addRoute(r, false))
	}
	lost := 0
	for range 300 {
		err := sub.receive()
		if errors.Is(err, unix.ENOBUFS) {
			lost++
			break
		}
		l.must(err)
	}
	if lost == 0 {
		t.Fatal("no message was lost")
	}
	l.must(sub.(netlinkSubscription).socket.SetReceiveBufferSize(watchBuffer, false))
	l.run("ip rule add pref 9 lookup 77")
	l.must(sub.receive())
}

// TestKernelSwappedNames: modems come up in another order and swap their names;
// a carrier is its name, whatever device has it.
func TestKernelSwappedNames(t *testing.T) {
	l := newLab(t)
	wants := l.modems(2, "dev %s table 30%d")
	m := l.manager(t.TempDir())
	usable4(t, apply(t, m, wants))
	l.answers("usb0", gw1, "usb0")
	l.run(`ip link set usb0 down
		ip link set usb1 down
		ip link set usb0 name swap0
		ip link set usb1 name usb0
		ip link set swap0 name usb1
		ip link set usb0 up
		ip link set usb1 up
		ip route add default via 192.168.8.1 dev usb0 table 300
		ip route add default via 192.168.8.1 dev usb1 table 301`)
	usable4(t, apply(t, m, wants))
	l.answers("usb0", gw1, "usb1")
	l.answers("usb1", gw1, "usb0")
}

// TestKernelRenamed: a carrier gets another name in the middle of its life, and
// later swaps names with another. Its rules follow, its routes stay, and at the
// end rp_filter is put back under the new name.
func TestKernelRenamed(t *testing.T) {
	l := newLab(t)
	l.run("sysctl -qw net.ipv4.conf.all.rp_filter=1")
	l.modems(2, "dev %s table 30%d")
	l.run("sysctl -qw net.ipv4.conf.usb0.rp_filter=1")
	var log strings.Builder
	m, err := New(t.TempDir(), "plr0", slog.New(slog.NewTextHandler(&log, nil)))
	l.must(err)
	defer m.Close()
	changes := func(wants ...Want) []string {
		log.Reset()
		usable4(t, apply(t, m, wants))
		var found []string
		for line := range strings.Lines(log.String()) {
			if _, change, ok := strings.Cut(strings.TrimSpace(line), "change="); ok {
				found = append(found, strings.Trim(change, `"`))
			}
		}
		return found
	}
	same := func(got []string, want ...string) {
		t.Helper()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	changes(carrier("usb0", 0, gw1), carrier("usb1", 1, gw1))
	open := l.bound("usb0")
	l.run("ip link set usb0 name lte0")
	same(changes(carrier("lte0", 0, gw1), carrier("usb1", 1, gw1)),
		"ip rule add pref 5210 fwmark 0x666f67 oif lte0 lookup 15700 proto 157",
		"ip rule del pref 5210 fwmark 0x666f67 oif usb0 lookup 15700 proto 157")
	l.answers("lte0", gw1, "usb0")
	if got, err := l.ask(open, gw1, soon); err != nil || got != "usb0" {
		t.Errorf("the socket that was open: %q %v", got, err)
	}

	l.run("ip link set lte0 name swap0\nip link set usb1 name lte0\nip link set swap0 name usb1")
	same(changes(carrier("usb1", 0, gw1), carrier("lte0", 1, gw1)),
		"ip rule add pref 5210 fwmark 0x666f67 oif usb1 lookup 15700 proto 157",
		"ip rule add pref 5210 fwmark 0x666f67 oif lte0 lookup 15701 proto 157",
		"ip rule del pref 5210 fwmark 0x666f67 oif lte0 lookup 15700 proto 157",
		"ip rule del pref 5210 fwmark 0x666f67 oif usb1 lookup 15701 proto 157")
	l.answers("usb1", gw1, "usb0")
	l.answers("lte0", gw1, "usb1")
	if n := m.Restored(); n != 0 {
		t.Errorf("%d said to be put back", n)
	}
	if usb1, lte0 := l.sysctl("net.ipv4.conf.usb1.rp_filter"), l.sysctl("net.ipv4.conf.lte0.rp_filter"); usb1 != "2" || lte0 != "2" {
		t.Errorf("rp_filter %s and %s", usb1, lte0)
	}
	l.must(m.Close())
	if usb1, lte0 := l.sysctl("net.ipv4.conf.usb1.rp_filter"), l.sysctl("net.ipv4.conf.lte0.rp_filter"); usb1 != "1" || lte0 != "0" {
		t.Errorf("rp_filter %s and %s after the end", usb1, lte0)
	}
}
