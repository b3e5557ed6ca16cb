package routing

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// modems has three carriers that each need a table of their own.
func modems() view {
	v := world()
	for i, name := range []string{"usb0", "usb1", "usb2"} {
		v.ether(2+i, name, "192.168.8.100/24")
		v.route(300+i, "default", "192.168.8.1", 2+i, 0)
	}
	return v
}

func modemWants() []Want {
	return []Want{carrier("usb0", 0, gw1), carrier("usb1", 1, gw1), carrier("usb2", 2, gw1)}
}

func apply(t *testing.T, m *Manager, want []Want) []Carrier {
	t.Helper()
	c, err := m.Apply(want)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRefusalConcernsOneCarrier(t *testing.T) {
	for _, tc := range []struct {
		name, line string
		err        error
		warning    string
	}{
		{"rule", "ip rule add pref 5210 fwmark 0x666f67 oif usb1", unix.EPERM, "CAP_NET_ADMIN"},
		{"route", "ip route add default via 192.168.8.1 dev usb1", unix.EINVAL, "invalid argument"},
		{"interface gone meanwhile", "ip route add 192.168.8.0/24 dev usb1", unix.ENODEV, "just gone"},
		{"table of another program", "ip route add default via 192.168.8.1 dev usb1", unix.EEXIST, "another program's routes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newFake(modems())
			k.refuse = func(line string) error {
				if strings.HasPrefix(line, tc.line) {
					return tc.err
				}
				return nil
			}
			m, out := manage(t, k)
			c := apply(t, m, modemWants())
			usable4(t, []Carrier{c[0], c[2]})
			if c[1].Usable4 || c[1].Reached[addr(gw1)] || c[1].Problem == "" || !strings.Contains(c[1].Warning, tc.warning) {
				t.Errorf("%+v", c[1])
			}
			said := out.Len()
			apply(t, m, modemWants())
			if out.Len() != said {
				t.Errorf("said again:\n%s", out.String()[said:])
			}
			k.refuse = nil
			usable4(t, apply(t, m, modemWants()))
		})
	}
}

// same compares without regard to the order of the routes.
func same(t *testing.T, a, b *view) {
	t.Helper()
	if len(a.routes) != len(b.routes) || len(a.rules) != len(b.rules) {
		t.Fatalf("%d routes and %d rules, want %d and %d", len(b.routes), len(b.rules), len(a.routes), len(a.rules))
	}
	for _, r := range a.routes {
		if !slices.Contains(b.routes, r) {
			t.Errorf("missing: %s", r.line(a.linkName(r.oif)))
		}
	}
	for _, r := range a.rules {
		if !slices.Contains(b.rules, r) {
			t.Errorf("missing: %s", r)
		}
	}
}

func TestGatewayChangesInPlace(t *testing.T) {
	k := newFake(modems())
	m, _ := manage(t, k)
	apply(t, m, modemWants())
	for i, r := range k.v.routes {
		if r.table == 301 {
			k.v.routes[i].gateway = addr("192.168.8.254")
		}
	}
	var lines []string
	k.refuse = func(line string) error { lines = append(lines, line); return nil }
	usable4(t, apply(t, m, modemWants()))
	want := []string{"ip route replace default via 192.168.8.254 dev usb1 table 15701 proto 157"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}

func TestWantsThatContradict(t *testing.T) {
	m, _ := manage(t, newFake(modems()))
	for name, want := range map[string][]Want{
		"slot too high":  {carrier("usb0", 8, gw1)},
		"slot negative":  {carrier("usb0", -1, gw1)},
		"slot twice":     {carrier("usb0", 1, gw1), carrier("usb1", 1, gw1)},
		"carrier twice":  {carrier("usb0", 1, gw1), carrier("usb0", 2, gw1)},
		"carrier no one": {carrier("", 9, gw1)},
	} {
		if _, err := m.Apply(want); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestReachedKeepsTheCallersAddress(t *testing.T) {
	v := modems()
	m, _ := manage(t, newFake(v))
	mapped := addr("::ffff:" + gw1)
	c := apply(t, m, []Want{{Interface: "usb0", Endpoints: addrs(gw1)}})
	c2 := apply(t, m, []Want{{Interface: "usb0", Endpoints: append(addrs(), mapped)}})
	if !c[0].Reached[addr(gw1)] || !c2[0].Reached[mapped] || !c2[0].Usable4 {
		t.Errorf("%+v %+v", c, c2)
	}
}

func TestRPFilter(t *testing.T) {
	strict := func() *fakeKernel {
		v := world()
		v.rpFilter["all"] = 1
		for i, name := range []string{"eth0", "wlan0"} {
			v.ether(2+i, name, []string{"192.168.1.5/24", "192.168.2.5/24"}[i])
			v.route(unix.RT_TABLE_MAIN, "default", []string{"192.168.1.1", "192.168.2.1"}[i], 2+i, uint32(i))
		}
		return newFake(v)
	}
	wants := []Want{carrier("eth0", 0, gw1), carrier("wlan0", 1, gw1)}
	start := func(t *testing.T, k kernel, dir string) *Manager {
		m, _ := manage(t, k)
		m.store = newRPStore(dir, k)
		return m
	}

	t.Run("crash, restart, stop", func(t *testing.T) {
		k, dir := strict(), t.TempDir()
		k.v.rpFilter["wlan0"] = 1
		apply(t, start(t, k, dir), wants)
		m := start(t, k, dir) // the first was killed
		apply(t, m, wants)
		if k.v.rpFilter["wlan0"] != rpLoose || k.v.rpFilter["eth0"] != 0 {
			t.Fatalf("%v", k.v.rpFilter)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if k.v.rpFilter["wlan0"] != 1 {
			t.Errorf("%v", k.v.rpFilter)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("left in the runtime directory: %v", left)
		}
	})
	t.Run("refused: a warning with the command, until it was run", func(t *testing.T) {
		k, dir := strict(), t.TempDir()
		refuse := func(line string) error {
			if strings.HasPrefix(line, "sysctl") {
				return unix.EPERM
			}
			return nil
		}
		k.refuse = refuse
		m := start(t, k, dir)
		c := apply(t, m, wants)
		usable4(t, c)
		if !strings.Contains(c[1].Warning, "CAP_NET_ADMIN") || !strings.Contains(c[1].Warning, "sysctl -w net.ipv4.conf.wlan0.rp_filter=2") {
			t.Errorf("warning %q", c[1].Warning)
		}
		k.v.rpFilter["wlan0"] = rpLoose
		if c := apply(t, m, wants); c[1].Warning != "" {
			t.Errorf("warning %q", c[1].Warning)
		}
		k.v.rpFilter["wlan0"], k.refuse = 1, nil
		apply(t, m, wants)
		k.refuse = refuse
		if err := m.Close(); err == nil || k.v.rpFilter["wlan0"] != rpLoose {
			t.Fatal(err)
		}
		k.refuse = nil
		report, err := cleanup(k, dir, "plr0", false, m.log)
		if err != nil || len(report.Changes) != 1 || k.v.rpFilter["wlan0"] != 1 {
			t.Errorf("%v %v %v", report, err, k.v.rpFilter)
		}
	})
	t.Run("changed by others since, or another device of that name", func(t *testing.T) {
		k, dir := strict(), t.TempDir()
		m := start(t, k, dir)
		apply(t, m, wants)
		k.v.rpFilter["wlan0"] = 0
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if k.v.rpFilter["wlan0"] != 0 {
			t.Errorf("%v", k.v.rpFilter)
		}
		m = start(t, k, dir)
		apply(t, m, wants)
		k.v.modify("wlan0", func(l *link) { l.index = 44 })
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if k.v.rpFilter["wlan0"] != rpLoose {
			t.Errorf("%v", k.v.rpFilter)
		}
	})
	t.Run("a file from somebody else", func(t *testing.T) {
		k, dir := strict(), t.TempDir()
		s := newRPStore(dir, k)
		for _, text := range []string{
			`[{"interface":"../../kernel","index":2,"value":1}]`,
			`[{"interface":"wlan0","index":3,"value":77}]`,
		} {
			if err := os.WriteFile(s.path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := s.load(); err != nil || len(got) != 0 {
				t.Errorf("%s: %v, %v", text, got, err)
			}
		}
		if err := os.WriteFile(s.path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.load(); err == nil {
			t.Error("half a file accepted")
		}
	})
	t.Run("nothing is changed that cannot be remembered", func(t *testing.T) {
		k := strict()
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c := apply(t, start(t, k, file), wants)
		if k.v.rpFilter["wlan0"] != 0 || c[1].Warning == "" {
			t.Errorf("%v %q", k.v.rpFilter, c[1].Warning)
		}
	})
}

func overlayTUN() TUN {
	return TUN{Name: "plr0", MTU: 1280, TxQueueLen: 1000, Addresses: []netip.Prefix{pfx("10.77.0.2/16"), pfx("fd77::2/64")}}
}

func TestSetupTUN(t *testing.T) {
	v := world()
	v.links = append(v.links, link{index: 7, name: "plr0", kind: "tun", mtu: 1500, txQueueLen: 500, pointToPoint: true})
	v.addresses = append(v.addresses,
		address{index: 7, ip: addr("10.77.0.9"), subnet: pfx("10.77.0.0/16")},
		address{index: 7, ip: addr("10.77.0.2"), subnet: pfx("10.77.0.0/16")},
		address{index: 7, ip: addr("fe80::7"), subnet: pfx("fe80::/64")})
	k := newFake(v)
	m, _ := manage(t, k)
	if err := m.SetupTUN(overlayTUN()); err != nil {
		t.Fatal(err)
	}
	l, _ := k.v.link("plr0")
	if l.mtu != 1280 || l.txQueueLen != 1000 || !l.multicast || !l.up || !k.genNone["plr0"] {
		t.Errorf("%+v", l)
	}
	var got []string
	for _, a := range k.v.addresses {
		got = append(got, a.prefix().String())
	}
	if want := []string{"10.77.0.2/16", "fd77::2/64"}; !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	for _, p := range []string{"10.77.0.0/16", "fd77::/64"} {
		if !slices.Contains(k.v.routes, blackholeRoute(pfx(p))) {
			t.Errorf("no blackhole route for %s", p)
		}
	}
	writes := k.writes
	if err := m.SetupTUN(overlayTUN()); err != nil || k.writes != writes {
		t.Errorf("again: %v, %d changes", err, k.writes-writes)
	}
	// Apply puts a lost blackhole route back.
	if err := k.delRoute(blackholeRoute(pfx("10.77.0.0/16"))); err != nil {
		t.Fatal(err)
	}
	apply(t, m, nil)
	if !slices.Contains(k.v.routes, blackholeRoute(pfx("10.77.0.0/16"))) {
		t.Error("blackhole route is not restored")
	}
}

func TestSetupTUNRefuses(t *testing.T) {
	v := world()
	v.ether(2, "eth0")
	v.links = append(v.links, link{index: 3, name: "tap0", kind: "tun", tap: true}, link{index: 4, name: "plr0", kind: "tun"})
	m, _ := manage(t, newFake(v))
	with := func(edit func(*TUN)) TUN { u := overlayTUN(); edit(&u); return u }
	for name, u := range map[string]TUN{
		"not there":        with(func(u *TUN) { u.Name = "plr9" }),
		"no TUN device":    with(func(u *TUN) { u.Name = "eth0" }),
		"TAP device":       with(func(u *TUN) { u.Name = "tap0" }),
		"no address":       with(func(u *TUN) { u.Addresses = nil }),
		"MTU too small":    with(func(u *TUN) { u.MTU = 1279 }),
		"no prefix at all": with(func(u *TUN) { u.Addresses = append(u.Addresses, netip.Prefix{}) }),
		"IPv4 inside IPv6": with(func(u *TUN) { u.Addresses = append(u.Addresses, pfx("::ffff:10.0.0.1/120")) }),
	} {
		if err := m.SetupTUN(u); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCleanup(t *testing.T) {
	build := func(t *testing.T) (*fakeKernel, *view) {
		v := modems()
		v.links = append(v.links, link{index: 7, name: "plr0", kind: "tun", up: true, running: true})
		k := newFake(v)
		before, _ := k.view(nil)
		m, _ := manage(t, k)
		if err := m.SetupTUN(overlayTUN()); err != nil {
			t.Fatal(err)
		}
		apply(t, m, modemWants())
		return k, before
	}
	t.Run("keeps the overlay", func(t *testing.T) {
		k, before := build(t)
		report, err := cleanup(k, t.TempDir(), "plr0", false, slog.New(slog.DiscardHandler))
		if err != nil || len(report.Changes) != 9 {
			t.Errorf("%v %v", report.Changes, err)
		}
		for _, p := range overlayTUN().Addresses {
			before.routes = append(before.routes, connectedRoute(7, p))
		}
		sameBut(t, before, &k.v, prefixes(overlayTUN().Addresses))
		if _, ok := k.v.link("plr0"); !ok {
			t.Error("plr0 is gone")
		}
		again, err := cleanup(k, t.TempDir(), "plr0", false, slog.New(slog.DiscardHandler))
		if err != nil || len(again.Changes) != 0 {
			t.Errorf("again: %v %v", again, err)
		}
	})
	t.Run("all", func(t *testing.T) {
		k, before := build(t)
		if _, err := cleanup(k, t.TempDir(), "plr0", true, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		sameBut(t, before, &k.v, nil)
		if _, ok := k.v.link("plr0"); ok {
			t.Error("plr0 is still there")
		}
	})
	t.Run("all, but the name is somebody else's", func(t *testing.T) {
		k, _ := build(t)
		_, err := cleanup(k, t.TempDir(), "usb0", true, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "usb0 is no TUN device") {
			t.Errorf("%v", err)
		}
		if !slices.Contains(k.v.routes, blackholeRoute(pfx("10.77.0.0/16"))) {
			t.Error("blackhole went though the device stayed")
		}
	})
	t.Run("what is refused does not keep the rest", func(t *testing.T) {
		k, _ := build(t)
		k.refuse = func(line string) error {
			if strings.Contains(line, "usb1") {
				return unix.EPERM
			}
			return nil
		}
		report, err := cleanup(k, t.TempDir(), "plr0", false, slog.New(slog.DiscardHandler))
		if err == nil || len(report.Changes) != 6 {
			t.Errorf("%v %v", report.Changes, err)
		}
	})
}

func TestNewSweeps(t *testing.T) {
	k := newFake(modems())
	before, _ := k.view(nil)
	m, _ := manage(t, k)
	apply(t, m, modemWants())
	_, out := manage(t, k) // the first was killed
	sameBut(t, before, &k.v, nil)
	if !strings.Contains(out.String(), "earlier run") {
		t.Errorf("said %q", out)
	}
}

func TestClosed(t *testing.T) {
	m, _ := manage(t, newFake(modems()))
	for range 2 {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := m.Apply(nil)
	_, werr := m.Watch(t.Context())
	if !errors.Is(err, errClosed) || !errors.Is(werr, errClosed) || !errors.Is(m.SetupTUN(overlayTUN()), errClosed) {
		t.Errorf("%v %v", err, werr)
	}
}
