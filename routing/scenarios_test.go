package routing

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// wgQuick is what wg-quick(8) sets up for AllowedIPs 0.0.0.0/0.
func wgQuick(v *view) {
	v.links = append(v.links, link{index: 90, name: "wg0", kind: "wireguard", up: true, running: true, pointToPoint: true})
	v.addresses = append(v.addresses, address{index: 90, ip: addr("10.200.0.2"), subnet: pfx("10.200.0.2/32")})
	v.rule(32764, unix.RT_TABLE_MAIN, func(r *rule) { r.suppress = 0 })
	v.rule(32765, 51820, func(r *rule) { r.invert, r.mark, r.mask = true, 0xca6c, 0xffffffff })
	v.route(51820, "default", "", 90, 0).scope = unix.RT_SCOPE_LINK
}

var scenarios = []scenario{{
	name: "binding suffices",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
		v.ether(3, "wlan0", "192.168.2.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.2.1", 3, 600)
	},
	wants: []Want{carrier("eth0", 0, gw1, gw2), carrier("wlan0", 1, gw1, gw2)},
	check: func(t *testing.T, c []Carrier) {
		usable4(t, c)
		if c[0].Table != 0 || c[1].Table != 0 || c[0].Index != 2 || c[0].Usable6 {
			t.Errorf("%+v", c)
		}
	},
}, {
	name: "no default route in main, one in the modem's own table",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
		v.ether(3, "wwan0", "10.8.7.6/29")
		r := v.route(300, "default", "10.8.7.1", 3, 0)
		r.src, r.mtu = addr("10.8.7.6"), 1420
	},
	wants: []Want{carrier("eth0", 0, gw1), carrier("wwan0", 1, gw1)},
	changes: `
		ip route add 10.8.7.0/29 dev wwan0 scope link table 15701 proto 157
		ip route add default via 10.8.7.1 dev wwan0 src 10.8.7.6 mtu 1420 table 15701 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif wwan0 lookup 15701 proto 157`,
	check: func(t *testing.T, c []Carrier) {
		usable4(t, c)
		if c[0].Table != 0 || c[1].Table != 15701 {
			t.Errorf("tables %d, %d", c[0].Table, c[1].Table)
		}
	},
}, {
	name: "gateway outside the interface's network",
	view: func(v *view) {
		v.ether(2, "eth0", "10.1.1.5/32")
		v.route(301, "default", "10.9.9.1", 2, 0)
	},
	wants: []Want{carrier("eth0", 0, gw1)},
	changes: `
		ip route add default via 10.9.9.1 dev eth0 onlink table 15700 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif eth0 lookup 15700 proto 157`,
	check: usable4,
}, {
	name: "point-to-point modem without any route",
	view: func(v *view) {
		v.ether(2, "wwan0")
		v.modify("wwan0", func(l *link) { l.pointToPoint = true })
		v.addresses = append(v.addresses, address{index: 2, ip: addr("10.64.3.2"), subnet: pfx("10.64.3.2/32")})
	},
	wants: []Want{carrier("wwan0", 0, gw1)},
	changes: `
		ip route add default dev wwan0 scope link table 15700 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif wwan0 lookup 15700 proto 157`,
	check: usable4,
}, {
	name: "peer address makes a link point-to-point",
	view: func(v *view) {
		v.ether(2, "ppp0")
		v.addresses = append(v.addresses, address{index: 2, ip: addr("100.64.0.9"), subnet: pfx("100.64.0.1/32"), peer: true})
	},
	wants: []Want{carrier("ppp0", 3, gw1)},
	changes: `
		ip route add 100.64.0.1/32 dev ppp0 scope link table 15703 proto 157
		ip route add default dev ppp0 scope link table 15703 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif ppp0 lookup 15703 proto 157`,
	check: usable4,
}, {
	name: "three modems with the very same address",
	view: func(v *view) {
		v.rpFilter["all"] = 1
		for i, name := range []string{"usb0", "usb1", "usb2"} {
			v.ether(2+i, name, "192.168.8.100/24")
			v.route(unix.RT_TABLE_MAIN, "default", "192.168.8.1", 2+i, uint32(100+i))
		}
	},
	wants: []Want{carrier("usb0", 0, gw1), carrier("usb1", 1, gw1), carrier("usb2", 2, gw1)},
	// usb0 is loose too: 192.168.8.1 itself could be any of the three.
	changes: `
		sysctl -w net.ipv4.conf.usb0.rp_filter=2
		sysctl -w net.ipv4.conf.usb1.rp_filter=2
		sysctl -w net.ipv4.conf.usb2.rp_filter=2`,
	check: usable4,
}, {
	name: "strict, but the way back is the same: nothing to loosen",
	view: func(v *view) {
		v.rpFilter["all"] = 1
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
	},
	wants: []Want{carrier("eth0", 0, gw1)},
	check: usable4,
}, {
	name: "strict on the second of two uplinks only; its name has a dot",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
		v.ether(3, "eth0.7", "192.168.2.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.2.1", 3, 200)
		v.rpFilter["eth0"], v.rpFilter["eth0.7"] = 1, 1
	},
	wants:   []Want{carrier("eth0", 0, gw1), carrier("eth0.7", 1, gw1)},
	changes: `sysctl -w net.ipv4.conf.eth0/7.rp_filter=2`,
	check:   usable4,
}, {
	name: "loose, but no rule at all has a way back",
	view: func(v *view) {
		v.ether(2, "wwan0", "10.8.7.6/29")
		v.route(300, "default", "10.8.7.1", 2, 0)
		v.rpFilter["wwan0"] = 2
	},
	wants: []Want{carrier("wwan0", 0, gw1, gw2)},
	changes: `
		ip route add 10.8.7.0/29 dev wwan0 scope link table 15700 proto 157
		ip route add default via 10.8.7.1 dev wwan0 table 15700 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif wwan0 lookup 15700 proto 157
		ip rule add pref 32800 from 10.8.7.6/32 to 203.0.113.1/32 lookup 15700 proto 157
		ip rule add pref 32800 from 10.8.7.6/32 to 198.51.100.10/32 lookup 15700 proto 157`,
	check: usable4,
}, {
	name: "way back refused by another program's route",
	view: func(v *view) {
		v.ether(2, "wwan0", "10.8.7.6/29")
		v.route(300, "default", "10.8.7.1", 2, 0)
		v.route(unix.RT_TABLE_MAIN, "default", "", 0, 1000).kind = unix.RTN_UNREACHABLE
		v.rpFilter["all"] = 2
	},
	wants: []Want{carrier("wwan0", 0, gw1)},
	changes: `
		ip route add 10.8.7.0/29 dev wwan0 scope link table 15700 proto 157
		ip route add default via 10.8.7.1 dev wwan0 table 15700 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif wwan0 lookup 15700 proto 157`,
	check: func(t *testing.T, c []Carrier) {
		usable4(t, c)
		if !strings.Contains(c[0].Warning, "sysctl -w net.ipv4.conf.all.rp_filter=0") {
			t.Errorf("warning %q", c[0].Warning)
		}
	},
}, {
	name: "wg-quick's default route",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
		wgQuick(v)
	},
	overlay: []string{"10.77.0.0/16"},
	wants:   []Want{carrier("eth0", 0, gw1)},
	changes: `
		ip route add 192.168.1.0/24 dev eth0 scope link table 15700 proto 157
		ip route add default via 192.168.1.1 dev eth0 table 15700 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif eth0 lookup 15700 proto 157`,
	check: usable4,
}, {
	name: "foreign rules before our usual priority, overlay diverted",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
		v.links = append(v.links, link{index: 91, name: "tun9", kind: "tun", up: true, running: true, pointToPoint: true})
		v.rule(70, 99, func(r *rule) { r.iif = "docker0" })                             // not our traffic
		v.rule(80, 99, func(r *rule) { r.mark, r.mask = 0x80000, 0xff0000 })            // not our mark
		v.rule(90, 99, func(r *rule) { r.oif = "eth7" })                                // not our interface
		v.rule(100, 52, nil)                                                            // everything
		v.rule(110, 99, func(r *rule) { r.ipProto, r.opaque = unix.IPPROTO_TCP, true }) // not UDP
		v.route(52, "default", "", 91, 0)
	},
	overlay: []string{"10.77.0.0/16"},
	wants:   []Want{carrier("eth0", 2, gw1)},
	changes: `
		ip route add 192.168.1.0/24 dev eth0 scope link table 15702 proto 157
		ip route add default via 192.168.1.1 dev eth0 table 15702 proto 157
		ip rule add pref 99 to 10.77.0.0/16 lookup main proto 157
		ip rule add pref 99 fwmark 0x666f67 oif eth0 lookup 15702 proto 157`,
	check: usable4,
}, {
	name: "a foreign rule ahead of all places",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
		v.rule(0, 99, nil)
	},
	wants: []Want{carrier("eth0", 0, gw1)},
	changes: `
		ip route add 192.168.1.0/24 dev eth0 scope link table 15700 proto 157
		ip route add default via 192.168.1.1 dev eth0 table 15700 proto 157
		ip rule add pref 1 fwmark 0x666f67 oif eth0 lookup 15700 proto 157`,
	check: func(t *testing.T, c []Carrier) {
		if !strings.Contains(c[0].Warning, "Give that rule a priority above 1") {
			t.Errorf("warning %q", c[0].Warning)
		}
	},
}, {
	name: "a rule for other destinations does not matter",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
		v.rules = slices.Insert(v.rules, 1, rule{pref: 100, dst: pfx("172.16.0.0/12"), table: 77, suppress: -1})
	},
	wants: []Want{carrier("eth0", 0, gw1)},
	check: usable4,
}, {
	name: "kill switch in the main table",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
		v.route(unix.RT_TABLE_MAIN, "default", "", 0, 1).kind = unix.RTN_BLACKHOLE
		v.route(301, "default", "192.168.1.1", 2, 0)
	},
	wants: []Want{carrier("eth0", 0, gw1)},
	changes: `
		ip route add 192.168.1.0/24 dev eth0 scope link table 15700 proto 157
		ip route add default via 192.168.1.1 dev eth0 table 15700 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif eth0 lookup 15700 proto 157`,
	check: usable4,
}, {
	name: "host routes, halves of the internet, several next hops",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, gw1+"/32", "192.168.1.7", 2, 0)
		v.route(unix.RT_TABLE_MAIN, "128.0.0.0/1", "192.168.1.1", 2, 0)
		v.ether(3, "eth1", "192.168.2.5/24")
		v.route(302, "default", "192.168.9.9", 9, 5)
		v.route(302, "default", "192.168.2.1", 3, 5)
		v.route(303, gw2+"/32", "192.168.2.3", 3, 5)
	},
	wants: []Want{carrier("eth0", 0, gw1, gw2), carrier("eth1", 1, gw1, gw2)},
	changes: `
		ip route add 192.168.2.0/24 dev eth1 scope link table 15701 proto 157
		ip route add 198.51.100.10/32 via 192.168.2.3 dev eth1 table 15701 proto 157
		ip route add default via 192.168.2.1 dev eth1 table 15701 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif eth1 lookup 15701 proto 157`,
	check: usable4,
}, {
	name: "IPv6 by router advertisement, the default only in another table",
	view: func(v *view) {
		v.ether(2, "wlan0", "fe80::5/64", "2001:db8:1::5/64")
		v.route(400, "default6", "fe80::1", 2, 1024)
	},
	wants: []Want{carrier("wlan0", 0, gw6, gw1)},
	changes: `
		ip -6 route add 2001:db8:1::/64 dev wlan0 metric 1024 table 15700 proto 157
		ip -6 route add default via fe80::1 dev wlan0 metric 1024 table 15700 proto 157
		ip -6 rule add pref 5210 fwmark 0x666f67 oif wlan0 lookup 15700 proto 157
		ip -6 rule add pref 5210 from 2001:db8:1::5/128 to 2001:db8:99::1/128 lookup 15700 proto 157`,
	check: func(t *testing.T, c []Carrier) {
		if !c[0].Usable6 || c[0].Usable4 || c[0].Problem != "" || !c[0].Reached[addr(gw6)] || c[0].Reached[addr(gw1)] {
			t.Errorf("%+v", c[0])
		}
	},
}, {
	name: "two IPv6 carriers in one prefix: the second one's way back, and their routers'",
	view: func(v *view) {
		v.ether(2, "eth0", "2001:db8:1::5/64")
		v.route(unix.RT_TABLE_MAIN, "default6", "2001:db8:1::1", 2, 100)
		v.ether(3, "wlan0", "2001:db8:1::6/64")
		v.route(unix.RT_TABLE_MAIN, "default6", "2001:db8:1::2", 3, 600)
	},
	wants: []Want{carrier("eth0", 0, gw6), carrier("wlan0", 1, gw6)},
	changes: `
		ip -6 route add 2001:db8:1::/64 dev eth0 metric 1024 table 15700 proto 157
		ip -6 route add default via 2001:db8:1::1 dev eth0 metric 1024 table 15700 proto 157
		ip -6 route add 2001:db8:1::/64 dev wlan0 metric 1024 table 15701 proto 157
		ip -6 route add default via 2001:db8:1::2 dev wlan0 metric 1024 table 15701 proto 157
		ip -6 rule add pref 5210 from 2001:db8:1::5/128 to 2001:db8:1::1/128 lookup 15700 proto 157
		ip -6 rule add pref 5210 from 2001:db8:1::6/128 to 2001:db8:99::1/128 lookup 15701 proto 157
		ip -6 rule add pref 5210 from 2001:db8:1::6/128 to 2001:db8:1::2/128 lookup 15701 proto 157`,
	check: func(t *testing.T, c []Carrier) {
		if !c[0].Usable6 || !c[1].Usable6 || c[0].Table != 15700 || c[1].Table != 15701 {
			t.Errorf("%+v", c)
		}
	},
}, {
	name: "two IPv6 carriers with the very same address",
	view: func(v *view) {
		v.ether(2, "eth0", "2001:db8:1::5/64")
		v.route(unix.RT_TABLE_MAIN, "default6", "2001:db8:1::1", 2, 100)
		v.ether(3, "wlan0", "2001:db8:1::5/64")
		v.route(unix.RT_TABLE_MAIN, "default6", "2001:db8:1::1", 3, 600)
	},
	wants: []Want{carrier("eth0", 0, gw6), carrier("wlan0", 1, gw6)},
	check: func(t *testing.T, c []Carrier) {
		if !c[0].Usable6 || !c[1].Usable6 {
			t.Errorf("%+v", c)
		}
	},
}, {
	name: "IPv4 by an IPv6 gateway",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(400, "default", "fe80::1", 2, 0)
	},
	wants: []Want{carrier("eth0", 0, gw1)},
	changes: `
		ip route add 192.168.1.0/24 dev eth0 scope link table 15700 proto 157
		ip route add default via inet6 fe80::1 dev eth0 table 15700 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif eth0 lookup 15700 proto 157`,
	check: usable4,
}, {
	name: "another VPN's interface named outright",
	view: func(v *view) {
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
		wgQuick(v)
	},
	wants: []Want{carrier("wg0", 0, gw1)},
	changes: `
		ip route add default dev wg0 scope link table 15700 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif wg0 lookup 15700 proto 157`,
	check: usable4,
}, {
	name: "on the link without a route for it",
	view: func(v *view) {
		v.ether(2, "eth0", "203.0.113.200/24")
		v.routes = nil // noprefixroute
	},
	wants: []Want{carrier("eth0", 0, gw1)},
	changes: `
		ip route add 203.0.113.0/24 dev eth0 scope link table 15700 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif eth0 lookup 15700 proto 157`,
	check: usable4,
}, {
	name: "nothing to reach yet",
	view: func(v *view) {
		v.ether(2, "eth0", "10.0.0.2/24")
		v.route(unix.RT_TABLE_MAIN, "default", "10.0.0.1", 2, 0)
	},
	wants: []Want{carrier("eth0", 0)},
	check: usable4,
}, {
	name: "reached in part",
	view: func(v *view) {
		v.ether(2, "eth0", "10.0.0.2/24")
		v.route(unix.RT_TABLE_MAIN, gw1+"/32", "10.0.0.1", 2, 0)
	},
	wants: []Want{carrier("eth0", 0, gw1, gw2)},
	check: func(t *testing.T, c []Carrier) {
		if !c[0].Usable4 || c[0].Problem != "" || !c[0].Reached[addr(gw1)] || c[0].Reached[addr(gw2)] {
			t.Errorf("%+v", c[0])
		}
	},
}, {
	name:  "no route: no pretending that it is on the link",
	view:  func(v *view) { v.ether(2, "eth0", "10.0.0.2/24") },
	wants: []Want{carrier("eth0", 0, gw1)},
	check: problem("no route through eth0 to "+gw1, "ip route add default"),
}, {
	name: "a default route into another VPN is no route for a carrier",
	view: func(v *view) {
		v.ether(2, "eth0", "10.0.0.2/24")
		wgQuick(v)
		v.route(unix.RT_TABLE_MAIN, "default", "", 90, 0)
	},
	wants: []Want{carrier("eth0", 0, gw1)},
	check: problem("no route through eth0"),
}, {
	name:  "no such interface",
	wants: []Want{carrier("wwan7", 0, gw1)},
	check: problem("no interface wwan7", "as soon as it appears"),
}, {
	name:  "down",
	view:  func(v *view) { v.ether(2, "eth0", "10.0.0.2/24"); v.modify("eth0", func(l *link) { l.up = false }) },
	wants: []Want{carrier("eth0", 0, gw1)},
	check: problem("eth0 is down", "ip link set eth0 up"),
}, {
	name: "no link",
	view: func(v *view) {
		v.ether(2, "eth0", "10.0.0.2/24")
		v.modify("eth0", func(l *link) { l.running = false })
	},
	wants: []Want{carrier("eth0", 0, gw1)},
	check: problem("no link"),
}, {
	name:  "no address",
	view:  func(v *view) { v.ether(2, "eth0", "fe80::2/64") },
	wants: []Want{carrier("eth0", 0, gw1, gw6)},
	check: problem("no IPv4 or IPv6 address"),
}, {
	name: "no address of the family",
	view: func(v *view) {
		v.ether(2, "eth0", "2001:db8::2/64")
		v.route(unix.RT_TABLE_MAIN, "default6", "fe80::1", 2, 1024)
	},
	wants: []Want{carrier("eth0", 0, gw1)},
	check: problem("no IPv4 address"),
}, {
	name: "address not ready",
	view: func(v *view) {
		v.ether(2, "eth0", "2001:db8::2/64")
		v.route(unix.RT_TABLE_MAIN, "default6", "fe80::1", 2, 1024)
		v.addresses[0].pending = true
	},
	wants: []Want{carrier("eth0", 0, gw6)},
	check: problem("no IPv6 address"),
}, {
	name:  "loopback",
	wants: []Want{carrier("lo", 0, gw1)},
	check: problem("loopback"),
}, {
	name: "the overlay itself",
	view: func(v *view) {
		v.ether(2, "plr0", "10.77.0.2/16")
		v.route(unix.RT_TABLE_MAIN, "default", "10.77.0.1", 2, 0)
	},
	wants: []Want{carrier("plr0", 0, gw1)},
	check: problem("overlay device"),
}, {
	name: "a carrier that is not there does not keep the others",
	view: func(v *view) {
		v.ether(3, "wwan0", "10.8.7.6/29")
		v.route(300, "default", "10.8.7.1", 3, 0)
	},
	wants: []Want{carrier("wwan0", 1, gw1), carrier("wwan7", 0, gw1)},
	changes: `
		ip route add 10.8.7.0/29 dev wwan0 scope link table 15701 proto 157
		ip route add default via 10.8.7.1 dev wwan0 table 15701 proto 157
		ip rule add pref 5210 fwmark 0x666f67 oif wwan0 lookup 15701 proto 157`,
	check: func(t *testing.T, c []Carrier) {
		usable4(t, c[:1])
		problem("wwan7")(t, c)
	},
}, {
	name: "kernel without policy routing",
	view: func(v *view) {
		v.rules, v.noRules4, v.noRules6 = nil, true, true
		v.ether(2, "eth0", "192.168.1.5/24")
		v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
		v.ether(3, "wwan0", "10.8.7.6/29")
	},
	wants: []Want{carrier("eth0", 0, gw1), carrier("wwan0", 1, gw1)},
	check: func(t *testing.T, c []Carrier) {
		usable4(t, c[:1])
		problem("main table", "no policy routing")(t, c)
	},
}}
