package routing

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLeads(t *testing.T) {
	for _, tc := range []struct {
		what string
		edit func(v *view)
		want bool
	}{
		{"nothing", func(v *view) {}, false},
		{"default route", func(v *view) { v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 700) }, true},
		{"default route in another table", func(v *view) { v.route(300, "default", "192.168.1.1", 2, 0) }, true},
		{"default route of IPv6 without gateway", func(v *view) { v.route(unix.RT_TABLE_MAIN, "default6", "", 2, 0) }, true},
		{"half of the Internet", func(v *view) { v.route(unix.RT_TABLE_MAIN, "128.0.0.0/1", "192.168.1.1", 2, 0) }, true},
		{"one server", func(v *view) { v.route(unix.RT_TABLE_MAIN, gw1+"/32", "192.168.1.1", 2, 0) }, true},
		{"another private network", func(v *view) { v.route(unix.RT_TABLE_MAIN, "10.0.0.0/8", "192.168.1.1", 2, 0) }, false},
		{"another site's network", func(v *view) { v.route(unix.RT_TABLE_MAIN, "fd00:1::/48", "fe80::1", 2, 0) }, false},
		{"public addresses on the link", func(v *view) { v.route(unix.RT_TABLE_MAIN, "203.0.113.0/24", "", 2, 0) }, false},
		{"default route that refuses", func(v *view) { v.route(unix.RT_TABLE_MAIN, "default", "", 2, 0).kind = unix.RTN_UNREACHABLE }, false},
		{"default route that is dead", func(v *view) { v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 0).dead = true }, false},
		{"our own", func(v *view) { v.route(TableBase, "default", "192.168.1.1", 2, 0).protocol = Protocol }, false},
		{"somebody else's", func(v *view) { v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 3, 0) }, false},
		{"point-to-point", func(v *view) { v.modify("eth0", func(l *link) { l.pointToPoint, l.carrier = true, true }) }, true},
		{"point-to-point, no link", func(v *view) { v.modify("eth0", func(l *link) { l.pointToPoint = true }) }, false},
		{"point-to-point, no address", func(v *view) {
			v.addresses = nil
			v.modify("eth0", func(l *link) { l.pointToPoint, l.carrier = true, true })
		}, false},
		{"an address with a peer", func(v *view) { v.addresses[0].peer = true }, true},
	} {
		v := world()
		v.ether(2, "eth0", "192.168.1.5/24")
		tc.edit(&v)
		if got := v.leading(); (got[2] != families{}) != tc.want || got[1] != (families{}) {
			t.Errorf("%s: %v", tc.what, got)
		}
	}
}

func TestInterfaces(t *testing.T) {
	v := world()
	v.ether(3, "usb0", "192.168.42.10/24", "fe80::1/64")
	v.modify("usb0", func(l *link) { l.encap, l.mac, l.carrier, l.parent = "ether", "0c:5b:8f:27:9a:64", true, "1-3:1.0" })
	v.route(unix.RT_TABLE_MAIN, "default", "192.168.42.1", 3, 0)
	v.ether(2, "plr0", "10.77.0.2/16")
	v.modify("plr0", func(l *link) { l.kind = "tun" })
	k := newFake(v)
	k.devices = map[int]device{3: {known: true, driver: "rndis_host", bus: "pci0000:00/0000:00:14.0/usb1/1-3"}}
	m, _ := manage(t, k)
	m.tun = "plr0"
	got, err := m.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	want := []Interface{
		{Index: 1, Name: "lo", Kind: "loopback", Excluded: "the loopback device, which leads nowhere"},
		{Index: 2, Name: "plr0", Kind: "tun", Addresses: []netip.Prefix{pfx("10.77.0.2/16")}, Excluded: ownDevice},
		{Index: 3, Name: "usb0", Kind: "usb", MAC: "0c:5b:8f:27:9a:64", Driver: "rndis_host", Bus: "pci0000:00/0000:00:14.0/usb1/1-3",
			Addresses: []netip.Prefix{pfx("192.168.42.10/24"), pfx("fe80::1/64")}, Up: true, Leads: true, Leads4: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	if k.writes != 0 {
		t.Errorf("%d changes", k.writes)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Interfaces(); err != errClosed {
		t.Errorf("after Close: %v", err)
	}
}

// TestKernelInterfaces: a container's namespace, by its own and by foreign eyes.
// The test's /sys is that of the machine: nothing of it may be believed.
func TestKernelInterfaces(t *testing.T) {
	l := newLab(t)
	l.router("eth0", "", "ip addr add 192.168.1.1/24 dev up0")
	l.router("veth9", "", "")
	overlay := l.persistentTUN("plr0")
	l.persistentTUN("tun9")
	l.run(`ip addr add 192.168.1.5/24 dev eth0
		ip route add default via 192.168.1.1 dev eth0
		ip tuntap add tap9 mode tap
		ip link add docker0 type bridge
		ip link set veth9 master docker0
		ip link add mac0 link eth0 type macvlan
		ip link set mac0 address 02:00:00:00:00:99
		ip link set tun9 up
		ip route add default dev tun9 metric 5`)
	m := l.manager(t.TempDir())
	l.must(m.SetupTUN(overlayTUN()))
	defer overlay.Close()
	all, err := m.Interfaces()
	l.must(err)
	other, err := Interfaces()
	l.must(err)
	if !reflect.DeepEqual(all, other) {
		t.Errorf("without a Manager: %+v", other)
	}
	for name, want := range map[string]struct {
		kind, excluded string
		up, leads      bool
	}{
		"lo":      {"loopback", "loopback", true, false},
		"eth0":    {"veth", "", true, true},
		"veth9":   {"veth", "a member of docker0", true, false},
		"docker0": {"bridge", "no physical member", false, false},
		"mac0":    {"macvlan", "", false, false},
		"tap9":    {"tap", "a TAP device", false, false},
		"tun9":    {"tun", "a TUN device", true, true},
		"plr0":    {"tun", "fogplr's own", true, true},
	} {
		i := slices.IndexFunc(all, func(i Interface) bool { return i.Name == name })
		if i < 0 {
			t.Errorf("no %s", name)
			continue
		}
		got := all[i]
		if got.Kind != want.kind || !strings.Contains(got.Excluded, want.excluded) || (got.Excluded == "") != (want.excluded == "") ||
			got.Up != want.up || got.Leads != want.leads || got.Driver != "" || got.Bus != "" {
			t.Errorf("%+v, want %+v", got, want)
		}
		if name == "mac0" && got.MAC != "02:00:00:00:00:99" || name == "tun9" && got.MAC != "" {
			t.Errorf("%s: MAC %q", name, got.MAC)
		}
		if name == "eth0" && !slices.Equal(got.Addresses, []netip.Prefix{pfx("192.168.1.5/24")}) {
			t.Errorf("addresses %v", got.Addresses)
		}
	}
	l.run("ip link set eth0 down")
	all, err = m.Interfaces()
	l.must(err)
	for _, i := range all {
		if i.Name == "eth0" && (i.Up || i.Leads) {
			t.Errorf("down: %+v", i)
		}
	}
}

// TestVLANs: two VLANs of one Ethernet interface, which has no address itself,
// are two carriers with different gateways.
func TestVLANs(t *testing.T) {
	v := world()
	v.ether(2, "eth0")
	v.ether(5, "eth0.7", "10.7.0.5/24")
	v.ether(6, "eth0.471", "10.71.0.5/24")
	for _, name := range []string{"eth0", "eth0.7", "eth0.471"} {
		v.modify(name, func(l *link) {
			l.encap, l.mac, l.carrier = "ether", "02:00:00:00:00:07", true
			if l.index == 2 {
				l.parent = "0000:02:00.0"
			} else {
				l.kind, l.lower = "vlan", 2
			}
		})
	}
	v.route(unix.RT_TABLE_MAIN, "default", "10.7.0.1", 5, 100)
	v.route(300, "default", "10.71.0.1", 6, 0)
	m, _ := manage(t, newFake(v))
	all, err := m.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var chosen []Want
	for _, i := range all {
		if i.Excluded == "" && i.Leads && i.Up {
			chosen = append(chosen, carrier(i.Name, len(chosen), gw1))
			if i.Kind != "vlan" || i.MAC != "02:00:00:00:00:07" {
				t.Errorf("%+v", i)
			}
		}
	}
	if len(chosen) != 2 {
		t.Fatalf("chosen %+v of %+v", chosen, all)
	}
	c := apply(t, m, chosen)
	usable4(t, c)
	if c[0].Table != 0 || c[1].Table != TableBase+1 {
		t.Errorf("%+v", c)
	}
}
