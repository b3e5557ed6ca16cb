package routing

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

// TestKernelStrictFirewall: two IPv6 carriers in one prefix behind a firewall
// that checks the way back as firewalld does (IPv6_rpfilter=strict). Without
// fogplr's rules the second one hears nothing.
func TestKernelStrictFirewall(t *testing.T) {
	l := newLab(t)
	for i, name := range []string{"eth0", "eth1"} {
		n := []string{"1", "2"}[i]
		l.router(name, name, "ip -6 addr add 2001:db8:1::"+n+"/64 dev up0 nodad\nip -6 addr add "+gw6+"/128 dev lo nodad", gw6)
		l.run("ip -6 addr add 2001:db8:1::" + []string{"5", "6"}[i] + "/64 dev " + name + " nodad")
		l.run("ip -6 route add default via 2001:db8:1::" + n + " dev " + name + " metric 10" + n)
	}
	l.answers("eth1", gw6, "eth1")
	l.run(`nft add table inet firewall
		nft add chain inet firewall first { type filter hook prerouting priority -290; }
		nft add rule inet firewall first icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept
		nft add rule inet firewall first meta nfproto ipv6 fib saddr . mark . iif oif missing drop`)
	l.answers("eth0", gw6, "eth0")
	l.silent("eth1", gw6)

	before := l.snapshot()
	m := l.manager(t.TempDir())
	wants := []Want{carrier("eth0", 0, gw6), carrier("eth1", 1, gw6)}
	// The routers' advertisements must pass, too.
	l.run("ip -6 neigh flush dev eth0\nip -6 neigh flush dev eth1")
	for _, c := range apply(t, m, wants) {
		if !c.Usable6 || c.Problem != "" || c.Warning != "" {
			t.Errorf("%+v", c)
		}
	}
	l.answers("eth0", gw6, "eth0")
	l.answers("eth1", gw6, "eth1")
	for from, dev := range map[string]string{"2001:db8:1::5": "eth0", "2001:db8:1::6": "eth1"} {
		out, err := l.try("ip -6 route get " + gw6 + " from " + from)
		if err != nil || !strings.Contains(out, " dev "+dev+" ") {
			t.Errorf("from %s: %s %v", from, out, err)
		}
	}
	l.must(m.Close())
	l.unchanged(before, l.snapshot())
}

// drains collects whatever leaves by a TUN device until the test ends, and says
// whether any of it was for the address.
func (l *lab) drains(tun *os.File) func(dst string) bool {
	got := make(chan netip.Addr, 1024)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for {
			n, err := tun.Read(buf)
			if err != nil {
				return
			}
			if n >= 20 && buf[0]>>4 == 4 {
				select {
				case got <- netip.AddrFrom4([4]byte(buf[16:20])):
				default:
				}
			}
		}
	}()
	l.t.Cleanup(func() { tun.Close(); <-done })
	return func(dst string) bool {
		for {
			select {
			case a := <-got:
				if a == addr(dst) {
					return true
				}
			case <-time.After(100 * time.Millisecond):
				return false
			}
		}
	}
}

// TestKernelOtherVPNs: another VPN has the default route, in the ways that VPNs
// have it. Everybody's traffic goes into it but that of fogplr's sockets, which
// would go round in circles; and it is no carrier itself.
func TestKernelOtherVPNs(t *testing.T) {
	for name, setup := range map[string]string{
		"wg-quick": `ip route add default dev wg9 table 51820
			ip rule add not fwmark 51820 table 51820
			ip rule add table main suppress_prefixlength 0
			sysctl -qw net.ipv4.conf.all.src_valid_mark=1`,
		"OpenVPN's halves":       "ip route add 0.0.0.0/1 dev wg9\nip route add 128.0.0.0/1 dev wg9",
		"a smaller metric":       "ip route add default dev wg9 metric 50",
		"a rule for everything":  "ip route add default dev wg9 table 52\nip rule add pref 10 lookup 52",
		"a route to the gateway": "ip route add " + gw1 + "/32 dev wg9",
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.run("sysctl -qw net.ipv4.conf.all.rp_filter=1")
			wants := l.modems(2, "dev %s metric 10%d")
			vpn := l.persistentTUN("wg9")
			l.run("ip link set wg9 addrgenmode none\nip addr add 10.200.0.2/32 dev wg9\nip link set wg9 up\n" + setup)
			intoVPN := l.drains(vpn)
			app, err := net.ListenPacket("udp4", ":0")
			l.must(err)
			defer app.Close()
			send := func() {
				_, err := app.WriteTo([]byte("x"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr(gw1), 9)))
				l.must(err)
			}
			if send(); !intoVPN(gw1) {
				t.Fatal("the VPN does not take the traffic: the test proves nothing")
			}
			m := l.manager(t.TempDir())
			usable4(t, apply(t, m, wants))
			for _, w := range wants {
				l.answers(w.Interface, gw1, w.Interface)
			}
			if intoVPN(gw1) {
				t.Error("a carrier's datagram went into the VPN")
			}
			if send(); !intoVPN(gw1) {
				t.Error("fogplr took another program's traffic out of the VPN")
			}
			all, err := m.Interfaces()
			l.must(err)
			for _, i := range all {
				if (i.Name == "wg9") == (i.Excluded == "") && i.Name != "lo" {
					t.Errorf("%+v", i)
				}
			}
		})
	}
}

// TestKernelSeveralNextHops: the default route has two next hops, and one of them
// leads nowhere any more, though its link is up.
func TestKernelSeveralNextHops(t *testing.T) {
	l := newLab(t)
	var routers []*router
	for i, name := range []string{"eth0", "eth1"} {
		net := "192.168." + []string{"1", "2"}[i]
		routers = append(routers, l.router(name, name, "ip addr add "+net+".1/24 dev up0\nip addr add "+gw1+"/32 dev lo", gw1))
		l.run("ip addr add " + net + ".5/24 dev " + name)
	}
	l.run("ip route add default nexthop via 192.168.1.1 dev eth0 nexthop via 192.168.2.1 dev eth1")
	m := l.manager(t.TempDir())
	wants := []Want{carrier("eth0", 0, gw1), carrier("eth1", 1, gw1)}
	usable4(t, apply(t, m, wants))
	l.answers("eth0", gw1, "eth0")
	c := l.bound("eth1")
	l.in(routers[0].ns, func() { l.run("ip addr del " + gw1 + "/32 dev lo") })
	for range 20 {
		if got, err := l.ask(c, gw1, soon); err != nil || got != "eth1" {
			t.Fatalf("%q %v", got, err)
		}
	}
	l.silent("eth0", gw1)
}
