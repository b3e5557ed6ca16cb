package routing

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// node is a TUN device as a robot called stretch wants it.
func node(name string, addresses ...string) TUN {
	t := TUN{Name: name, MTU: 1280, TxQueueLen: 1000, Owner: "robot stretch"}
	for _, a := range addresses {
		t.Addresses = append(t.Addresses, netip.MustParsePrefix(a))
	}
	return t
}

func (l *lab) blackholes() []string {
	l.t.Helper()
	var found []string
	for _, c := range []string{"ip -4 route show type blackhole", "ip -6 route show type blackhole"} {
		out, err := l.try(c)
		l.must(err)
		for _, line := range lines(out) {
			found = append(found, strings.Fields(line)[1])
		}
	}
	return found
}

func (l *lab) wantBlackholes(what string, want ...string) {
	l.t.Helper()
	if got := l.blackholes(); !slices.Equal(got, want) {
		l.t.Errorf("%s: blackholes for %v, want %v", what, got, want)
	}
}

func (l *lab) has(name string) bool {
	_, err := l.try("ip link show " + name)
	return err == nil
}

// TestKernelOtherPrefix: a start with another prefix length takes the old
// blackhole away, but not that of another node on the machine.
func TestKernelOtherPrefix(t *testing.T) {
	l := newLab(t)
	dir := t.TempDir()
	l.persistentTUN("plr1").Close() // the other node does not run now
	other := node("plr1", "10.99.0.101/16", "fd99::101/64")
	other.Owner = "gateway west"
	l.must(l.manager(dir).SetupTUN(other))
	l.run("ip route add blackhole 10.88.0.0/16") // somebody else's
	tun := l.persistentTUN("plr0")
	l.must(l.manager(dir).SetupTUN(node("plr0", "10.77.0.3/24", "fd77::3/96")))
	l.wantBlackholes("first", "10.77.0.0/24", "10.88.0.0/16", "10.99.0.0/16", "fd77::/96", "fd99::/64")
	m := l.manager(dir)
	l.must(m.SetupTUN(node("plr0", "10.77.0.3/16", "fd77::3/64")))
	l.wantBlackholes("longer", "10.77.0.0/16", "10.88.0.0/16", "10.99.0.0/16", "fd77::/64", "fd99::/64")
	if out, err := l.try("ip route get 10.77.0.5"); err != nil || !strings.Contains(out, "dev plr0") {
		t.Errorf("%v %s", err, out)
	}
	m = l.manager(dir)
	l.must(m.SetupTUN(node("plr0", "10.0.0.3/8")))
	m = l.manager(dir)
	l.must(m.SetupTUN(node("plr0", "10.77.0.3/16")))
	l.wantBlackholes("shorter", "10.77.0.0/16", "10.88.0.0/16", "10.99.0.0/16", "fd99::/64")
	// A running node takes nothing from one that comes later.
	l.run("ip route add blackhole 10.66.0.0/16 proto 157")
	l.must(m.SetupTUN(node("plr0", "10.77.0.3/16")))
	l.wantBlackholes("later", "10.66.0.0/16", "10.77.0.0/16", "10.88.0.0/16", "10.99.0.0/16", "fd99::/64")
	tun.Close()
}

// TestKernelOtherName: the device of an earlier start under another name goes if
// it is ours and nobody has it open; of others there is a warning.
func TestKernelOtherName(t *testing.T) {
	l := newLab(t)
	dir := t.TempDir()
	setup := func(u TUN) *Manager {
		f := l.persistentTUN(u.Name)
		m := l.manager(dir)
		l.must(m.SetupTUN(u))
		f.Close()
		return m
	}
	setup(node("plr0", "10.77.0.3/16", "fd77::3/64"))
	setup(node("ovl0", "10.77.0.3/16", "fd77::3/64"))
	if l.has("plr0") {
		t.Error("plr0 of the same node is still there")
	}
	setup(node("ovl1", "10.78.0.3/16")) // of the same node, another address
	if l.has("ovl0") {
		t.Error("ovl0 of the same node is still there")
	}
	renamed := node("ovl2", "10.78.0.3/16")
	renamed.Owner = "robot stretch2"
	setup(renamed)
	if l.has("ovl1") {
		t.Error("ovl1 with this node's address is still there")
	}

	other := node("plr5", "10.55.0.3/16")
	other.Owner = "gateway west"
	setup(other)
	open := l.persistentTUN("plr6")
	l.run("ip link set plr6 alias fogplr.not\nip addr add 10.77.0.9/24 dev plr6\nip link set plr6 up")
	l.persistentTUN("vpn0").Close()
	l.run("ip addr add 10.77.0.3/16 dev vpn0\nip link set vpn0 up")
	m := setup(node("plr0", "10.77.0.3/16"))
	for _, name := range []string{"plr5", "plr6", "vpn0"} {
		if !l.has(name) {
			t.Errorf("%s is gone", name)
		}
	}
	apply(t, m, nil)
	w := m.Warnings()
	if len(w) != 2 || !strings.Contains(w[0], "plr6 has the address 10.77.0.9/24") || !strings.Contains(w[1], "ip link del vpn0") {
		t.Errorf("%q", w)
	}
	l.run("ip link del vpn0")
	open.Close()
	l.run("ip link del plr6")
	apply(t, m, nil)
	if w := m.Warnings(); len(w) > 0 {
		t.Errorf("still warned: %q", w)
	}
}

// TestKernelForeignAlias: what somebody else calls the device stays.
func TestKernelForeignAlias(t *testing.T) {
	l := newLab(t)
	l.persistentTUN("plr0")
	l.run("ip link set plr0 alias mine")
	l.must(l.manager(t.TempDir()).SetupTUN(overlayTUN()))
	if out, err := l.try("ip link show plr0"); err != nil || !strings.Contains(out, "alias mine\n") {
		t.Errorf("%v %s", err, out)
	}
}

// TestKernelAbandon: a start that failed with a new device takes its blackhole
// routes with it, and only those.
func TestKernelAbandon(t *testing.T) {
	l := newLab(t)
	dir := t.TempDir()
	l.persistentTUN("plr0")
	m := l.manager(dir)
	l.must(m.SetupTUN(overlayTUN()))
	l.must(m.Abandon())
	l.wantBlackholes("with the device", "10.77.0.0/16", "fd77::/64")

	l.run("ip -6 route del blackhole fd77::/64 metric 2147483647")
	m = l.manager(dir)
	l.must(m.SetupTUN(overlayTUN()))
	l.run("ip link del plr0")
	l.must(m.Abandon())
	l.wantBlackholes("without", "10.77.0.0/16")
}

// TestKernelConnectedRoute: the route to the overlay comes back.
func TestKernelConnectedRoute(t *testing.T) {
	l := newLab(t)
	l.persistentTUN("plr0")
	m := l.manager(t.TempDir())
	tun := node("plr0", "10.77.0.3/16", "10.77.0.4/16", "10.78.0.1/32", "fd77::3/64")
	l.must(m.SetupTUN(tun))
	full := l.snapshot()
	kicks, err := m.Watch(t.Context())
	l.must(err)
	for _, c := range []string{"ip route del 10.77.0.0/16 dev plr0", "ip -6 route del fd77::/64 dev plr0"} {
		for time.Sleep(2 * settleTime); len(kicks) > 0; {
			<-kicks
		}
		l.run(c)
		kicked(t, kicks)
		l.must(m.SetupTUN(tun))
		l.unchanged(full, l.snapshot())
	}
	// The kernel takes the routes for its own: they go with the addresses.
	l.run("ip addr del 10.77.0.4/16 dev plr0\nip addr del 10.77.0.3/16 dev plr0\nip addr del fd77::3/64 dev plr0")
	for _, line := range l.snapshot() {
		if strings.Contains(line, "dev plr0 proto kernel") && strings.Contains(line, "77") {
			t.Errorf("left: %s", line)
		}
	}
}

// TestKernelOverlap: an uplink with the overlay's network, and what is none.
func TestKernelOverlap(t *testing.T) {
	l := newLab(t)
	l.persistentTUN("plr0")
	l.router("wwan0", "wwan0", "")
	m := l.manager(t.TempDir())
	l.must(m.SetupTUN(node("plr0", "192.168.8.7/24", "fd77::3/64")))
	for _, c := range []struct{ add, del, want string }{
		{"ip addr add 192.168.8.2/24 dev wwan0", "", "192.168.8.2/24"},
		{"ip addr add 192.168.8.130/25 dev wwan0", "", "192.168.8.130/25"},
		{"ip addr add 192.168.8.130/16 dev wwan0", "", "192.168.8.130/16"},
		{"ip addr add 192.168.9.1/16 dev wwan0", "", ""}, // the overlay's route is the longer one
		{"ip addr add 10.0.0.1/8 dev wwan0", "", ""},
		{"ip -6 addr add fd77::9/64 dev wwan0 nodad", "", "fd77::9/64"},
		{"ip route add 192.168.8.0/26 dev wwan0", "ip route del 192.168.8.0/26 dev wwan0", "ip route del 192.168.8.0/26 dev wwan0"},
		{"ip route add default dev wwan0", "ip route del default", ""},
	} {
		if c.del == "" {
			c.del = strings.TrimSuffix(strings.Replace(c.add, " add ", " del ", 1), " nodad")
		}
		l.run(c.add)
		apply(t, m, nil)
		w := m.Warnings()
		if c.want == "" && len(w) > 0 || c.want != "" && (len(w) != 1 || !strings.Contains(w[0], c.want) || !strings.Contains(w[0], "wwan0")) {
			t.Errorf("%s: %q", c.add, w)
		}
		l.run(c.del)
		apply(t, m, nil)
		if w := m.Warnings(); len(w) > 0 {
			t.Errorf("%s: %q", c.del, w)
		}
	}
}

func TestKernelInUse(t *testing.T) {
	l := newLab(t)
	check := func(what string, want bool, owner string) {
		t.Helper()
		if got, by, err := InUse("plr0"); err != nil || got != want || by != owner {
			t.Errorf("%s: %v by %q, %v", what, got, by, err)
		}
	}
	check("not there", false, "")
	f := l.persistentTUN("plr0")
	l.run("ip link set plr0 up")
	check("open", true, "")
	tun := overlayTUN()
	tun.Owner = "robot stretch"
	l.must(l.manager(t.TempDir()).SetupTUN(tun))
	check("a node's", true, "robot stretch")
	f.Close()
	check("closed", false, "")
	l.run("ip link del plr0\nip link add plr0 type veth peer name other\nip link set plr0 up\nip link set other up")
	check("no TUN device", false, "")
}
