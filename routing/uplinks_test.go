package routing

import (
	"net/netip"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

func TestUplinks(t *testing.T) {
	way := func(table, oif int, dst string, metric uint32) route {
		return route{table: table, oif: oif, dst: netip.MustParsePrefix(dst), kind: unix.RTN_UNICAST, metric: metric}
	}
	on := func(index int, ip string, pending bool) address {
		return address{index: index, ip: netip.MustParseAddr(ip), pending: pending}
	}
	preferred := way(unix.RT_TABLE_MAIN, 3, "0.0.0.0/0", 20)
	preferred.src = netip.MustParseAddr("192.0.2.99")
	dead := way(unix.RT_TABLE_MAIN, 7, "0.0.0.0/0", 1)
	dead.dead = true
	v := &view{
		links: []link{
			{index: 1, name: "lo", loopback: true}, {index: 2, name: "wwan0"}, {index: 3, name: "wlan0"}, {index: 4, name: "eth0"},
			{index: 5, name: "wg0", kind: "wireguard"}, {index: 6, name: "only6"}, {index: 7, name: "dead"},
		},
		addresses: []address{
			on(2, "198.51.100.2", false), on(3, "192.0.2.3", false), on(4, "203.0.113.4", false),
			on(6, "fe80::6", false), on(6, "2001:db8::5", true), on(6, "2001:db8::6", false), on(2, "2001:db8::2", false),
		},
		routes: []route{
			way(unix.RT_TABLE_MAIN, 6, "::/0", 10), way(unix.RT_TABLE_MAIN, 2, "::/0", 5),
			way(unix.RT_TABLE_MAIN, 2, "0.0.0.0/0", 700), preferred,
			way(unix.RT_TABLE_MAIN, 4, "10.0.0.0/8", 0), way(TableBase, 4, "0.0.0.0/0", 0),
			way(unix.RT_TABLE_MAIN, 5, "0.0.0.0/0", 0), dead,
		},
	}
	want := []Uplink{
		{"wlan0", netip.MustParseAddr("192.0.2.99")},
		{"wwan0", netip.MustParseAddr("198.51.100.2")},
		{"only6", netip.MustParseAddr("2001:db8::6")},
	}
	if got := uplinks(v); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
