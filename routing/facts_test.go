package routing

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFacts(t *testing.T) {
	p := netip.MustParsePrefix
	way := func(oif int, dst string, metric uint32, kind int) route {
		return route{table: unix.RT_TABLE_MAIN, oif: oif, dst: p(dst), metric: metric, kind: kind}
	}
	on := func(index int, with string) address {
		return address{index: index, ip: p(with).Addr(), subnet: p(with).Masked()}
	}
	v := &view{
		links: []link{
			{index: 1, name: "lo", loopback: true, up: true, carrier: true},
			{index: 2, name: "wwan0", up: true, running: true, carrier: true, mtu: 1428},
			{index: 3, name: "wlan0", up: true, running: true, carrier: true, multicast: true, mtu: 1500},
			{index: 4, name: "wg0", kind: "wireguard", up: true, carrier: true},
			{index: 5, name: "plr0", kind: "tun", alias: aliasPrefix + "robot stretch", up: true},
			{index: 6, name: "tap0", kind: "tun", tap: true},
		},
		addresses: []address{on(2, "192.0.2.2/24"), on(3, "198.51.100.2/24"), on(3, "10.77.9.9/24"), on(5, "10.77.0.2/16")},
		routes: []route{
			way(2, "0.0.0.0/0", 100, unix.RTN_UNICAST), way(3, "0.0.0.0/0", 200, unix.RTN_UNICAST),
			way(4, "128.0.0.0/1", 0, unix.RTN_UNICAST), way(5, "10.77.0.0/16", 0, unix.RTN_UNICAST), way(0, "0.0.0.0/0", 9000, unix.RTN_BLACKHOLE),
		},
		rules:    []rule{{pref: 32766, table: unix.RT_TABLE_MAIN, suppress: -1}, {v6: true, pref: 32766, table: unix.RT_TABLE_MAIN, suppress: -1}},
		rpFilter: map[string]int{"all": 1, "wwan0": 0, "wlan0": 2},
		noRules6: true,
	}
	gateway := netip.MustParseAddr("203.0.113.1")
	want := []Want{{Interface: "wwan0", Endpoints: []netip.Addr{gateway}}, {Interface: "wlan0", Slot: 1, Endpoints: []netip.Addr{gateway}},
		{Interface: "eth9", Slot: 2, Endpoints: []netip.Addr{gateway}}, {Interface: "tap0", Slot: 3, Endpoints: []netip.Addr{gateway}}}
	f := facts(v, "plr0", []netip.Prefix{p("10.77.0.2/16")}, want, map[int]time.Duration{5: time.Minute})
	if f.NoRules4 || !f.NoRules6 {
		t.Errorf("policy routing: %+v", f)
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "wlan0 has the address 10.77.9.9/24") {
		t.Errorf("warnings %q", f.Warnings)
	}
	links := []LinkFacts{
		{Name: "lo", Up: true},
		{Name: "wwan0", MTU: 1428, Up: true, Addresses: []netip.Prefix{p("192.0.2.2/24")}, Default: true},
		{Name: "wlan0", MTU: 1500, Up: true, Multicast: true, Addresses: []netip.Prefix{p("198.51.100.2/24"), p("10.77.9.9/24")}, Default: true},
		{Name: "wg0", Kind: "wireguard", Up: true, Default: true},
		{Name: "plr0", Kind: "tun", TUN: true, Ours: true, Owner: "robot stretch", Addresses: []netip.Prefix{p("10.77.0.2/16")}, Addressed: time.Minute},
		{Name: "tap0", Kind: "tun"},
	}
	if !reflect.DeepEqual(f.Links, links) {
		t.Errorf("links\n%+v, want\n%+v", f.Links, links)
	}
	// wg0 takes the way to the gateway, so strict hurts; loose does not.
	for i, c := range []struct {
		strict, needsLoose, reached bool
		problem, repair             string
	}{{true, true, true, "", ""}, {false, false, true, "", ""}, {true, false, false, "There is no interface eth9", ""},
		{true, false, false, "tap0 is down", "ip link set tap0 up"}} {
		got := f.Carriers[i]
		if got.Strict != c.strict || got.NeedsLoose != c.needsLoose || got.Reached[gateway] != c.reached || !strings.Contains(got.Problem, c.problem) ||
			(got.Problem == "") != (c.problem == "") || got.Repair != c.repair || got.RPFilter != "net.ipv4.conf."+want[i].Interface+".rp_filter" {
			t.Errorf("%s: %+v", want[i].Interface, got)
		}
	}
}

// Look reads what is there, tells when plr0 got its address, and changes nothing.
func TestKernelLook(t *testing.T) {
	l := newLab(t)
	l.router("eth0", "up0", "ip addr add 192.168.1.1/24 dev up0")
	l.run("ip addr add 192.168.1.5/24 dev eth0\nip route add default via 192.168.1.1 dev eth0")
	before := uptime(t)
	l.persistentTUN("plr0")
	l.run("ip addr add 10.77.0.2/16 dev plr0")
	after := uptime(t)
	time.Sleep(50 * time.Millisecond)
	l.run("ip -6 addr add fd77::2/64 dev plr0 nodad\nip link set plr0 up")
	snapshot := l.snapshot()
	f, err := Look("plr0", overlayTUN().Addresses, []Want{{Interface: "eth0", Endpoints: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}})
	l.must(err)
	l.unchanged(snapshot, l.snapshot())
	if len(f.Carriers) != 1 || !f.Carriers[0].Usable4 || f.Carriers[0].Problem != "" {
		t.Errorf("carriers %+v", f.Carriers)
	}
	for _, link := range f.Links {
		if link.Name != "plr0" {
			continue
		}
		// The kernel counts its ticks, which lag behind its clock, never ahead.
		const lag = 5 * time.Second
		if link.Addressed < before-lag || link.Addressed > after || !link.TUN || !link.Up {
			t.Errorf("plr0 was made between %v and %v: %+v", before, after, link)
		}
		return
	}
	t.Errorf("no plr0 in %+v", f.Links)
}

// uptime is the time since the machine's start, without the time it slept.
func uptime(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
