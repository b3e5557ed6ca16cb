package routing

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// promised is the time within which the network is to be as it should be again.
const promised = time.Second

// rest waits until kicks have come to rest.
func rest(kicks <-chan struct{}) {
	for {
		select {
		case <-kicks:
		case <-time.After(3 * settleTime):
			return
		}
	}
}

// TestKernelEvents: every kind of change is a kick, soon.
func TestKernelEvents(t *testing.T) {
	l := newLab(t)
	r := l.router("eth0", "", "")
	l.run("sysctl -qw net.ipv4.conf.eth0.rp_filter=0")
	m := l.manager(t.TempDir())
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kicks, err := m.Watch(ctx)
	l.must(err)
	var delays []time.Duration
	for _, change := range []struct{ what, command string }{
		{"address", "ip addr add 192.168.1.5/24 dev eth0"},
		{"another prefix", "ip addr add 192.168.1.5/25 dev eth0"},
		{"address gone", "ip addr del 192.168.1.5/25 dev eth0"},
		{"IPv6 address", "ip -6 addr add 2001:db8::5/64 dev eth0 nodad"},
		{"default route", "ip route add default via 192.168.1.1 dev eth0"},
		{"another gateway", "ip route replace default via 192.168.1.2 dev eth0"},
		{"another gateway of IPv6", "ip -6 route add default via fe80::1 dev eth0"},
		{"route in a table", "ip route add 10.0.0.0/8 via 192.168.1.1 table 77"},
		{"route gone", "ip route del 10.0.0.0/8 table 77"},
		{"route of IPv6 gone", "ip -6 route del default via fe80::1 dev eth0"},
		{"rule", "ip rule add pref 9 lookup 77"},
		{"rule of IPv6", "ip -6 rule add pref 9 lookup 77"},
		{"rule gone", "ip rule del pref 9"},
		{"rule of IPv6 gone", "ip -6 rule del pref 9"},
		{"rp_filter", "sysctl -qw net.ipv4.conf.eth0.rp_filter=1"},
		{"rp_filter of all", "sysctl -qw net.ipv4.conf.all.rp_filter=1"},
		{"MTU", "ip link set eth0 mtu 1400"},
		{"link lost", "far ip link set up0 down"},
		{"link back", "far ip link set up0 up"},
		{"down", "ip link set eth0 down"},
		{"renamed", "ip link set eth0 name lte0"},
		{"up", "ip link set lte0 up"},
		{"renamed while up", "ip link set lte0 name usb0"},
		{"vanished", "ip link del usb0"},
		{"appeared", "ip link add tap0 type veth"},
	} {
		rest(kicks)
		began := time.Now()
		if far, ok := strings.CutPrefix(change.command, "far "); ok {
			l.in(r.ns, func() { l.run(far) })
		} else {
			l.run(change.command)
		}
		kicked(t, kicks)
		d := time.Since(began)
		if delays = append(delays, d); d > promised {
			t.Errorf("%s: kick after %s", change.what, d)
		}
	}
	slices.Sort(delays)
	t.Logf("from before the command to the kick: median %s, longest %s", delays[len(delays)/2], delays[len(delays)-1])

	// A burst is few kicks.
	rest(kicks)
	k, err := openKernel()
	l.must(err)
	defer k.close()
	burst := time.Now()
	for i := range 500 {
		l.must(k.addRoute(route{table: 77, dst: host(addr("10.0.0.0").Next()), kind: unix.RTN_BLACKHOLE, metric: uint32(i + 1), protocol: unix.RTPROT_STATIC}, false))
	}
	length, n := time.Since(burst), 0
	for wait := time.After(length + 4*settleTime); ; n++ {
		select {
		case <-kicks:
			continue
		case <-wait:
		}
		break
	}
	if most := int(length/settleTime) + 2; n == 0 || n > most {
		t.Errorf("%d kicks for 500 routes in %s, want 1 to %d", n, length, most)
	}
	cancel()
	ended(t, kicks)
}

// caretaker is a robot's daemon as far as routing goes: it follows the kicks.
type caretaker struct {
	*lab
	m     *Manager
	kicks <-chan struct{}
	wants []Want
	tun   bool
	looks int
}

func (l *lab) caretaker(wants []Want, tun bool) *caretaker {
	l.t.Helper()
	c := &caretaker{lab: l, m: l.manager(l.t.TempDir()), wants: wants, tun: tun}
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	c.kicks, err = c.m.Watch(ctx)
	l.must(err)
	l.t.Cleanup(func() { cancel(); ended(l.t, c.kicks) })
	c.look()
	for c.follow(3 * settleTime) {
	}
	return c
}

func (c *caretaker) look() []Carrier {
	c.t.Helper()
	c.looks++
	if c.tun {
		c.must(c.m.SetupTUN(overlayTUN()))
	}
	return apply(c.t, c.m, c.wants)
}

// follow answers one kick, or returns false when none comes.
func (c *caretaker) follow(patience time.Duration) bool {
	c.t.Helper()
	select {
	case <-c.kicks:
		c.look()
		return true
	case <-time.After(patience):
		return false
	}
}

// until follows kicks until what it waits for is so, and returns how long it took.
func (c *caretaker) until(is func() bool) time.Duration {
	c.t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > soon {
			c.t.Fatal("in vain")
		}
		c.follow(settleTime)
	}
	return time.Since(began)
}

// ours are all rules and routes of the namespace that fogplr answers for.
func (c *caretaker) ours() (rules []rule, routes []route) {
	c.t.Helper()
	k, err := openKernel()
	c.must(err)
	defer k.close()
	v, err := k.view(nil)
	c.must(err)
	tun, _ := v.link("plr0")
	for _, r := range v.rules {
		if r.protocol == Protocol {
			rules = append(rules, r)
		}
	}
	for _, r := range v.routes {
		if r.protocol == Protocol || (c.tun && r == connectedRoute(tun.index, overlayTUN().Addresses[0])) {
			routes = append(routes, r)
		}
	}
	return rules, routes
}

// rich is a namespace in which fogplr needs every kind of rule and route that it
// has: modems with one address and tables of their own, a reverse-path check, two
// IPv6 carriers in one prefix, another VPN.
func (l *lab) rich() []Want {
	l.run("sysctl -qw net.ipv4.conf.all.rp_filter=2")
	wants := l.modems(2, "dev %s table 30%d")
	for i, name := range []string{"eth0", "eth1"} {
		l.router(name, name, "ip -6 addr add fe80::1/64 dev up0 nodad\nip -6 addr add "+gw6+"/128 dev lo nodad", gw6)
		l.run("ip -6 addr add 2001:db8:1::" + []string{"5", "6"}[i] + "/64 dev " + name + " nodad")
		l.run("ip -6 route add default via fe80::1 dev " + name + " metric 10" + []string{"0", "1"}[i])
		wants = append(wants, carrier(name, 2+i, gw6))
	}
	l.persistentTUN("plr0")
	l.run("ip rule add pref 100 to 198.18.0.0/15 lookup 52\nip rule add pref 101 not fwmark 51820 lookup 52")
	return wants
}

// TestKernelOneGone deletes each rule and route of fogplr's, exactly one at a
// time, by ip(8).
func TestKernelOneGone(t *testing.T) {
	l := newLab(t)
	c := l.caretaker(l.rich(), true)
	rules, routes := c.ours()
	var deletions []string
	for _, r := range rules {
		deletions = append(deletions, op{verb: delRule, rule: r}.String())
	}
	k, err := openKernel()
	l.must(err)
	defer k.close()
	v, err := k.view(nil)
	l.must(err)
	for _, r := range routes {
		deletions = append(deletions, op{verb: delRoute, route: r, name: v.linkName(r.oif)}.String())
	}
	if len(rules) < 6 || len(routes) < 9 {
		t.Fatalf("too few kinds of rules and routes:\n%v", deletions)
	}
	full := l.snapshot()
	var longest time.Duration
	for n, deletion := range deletions {
		before := c.m.Restored()
		l.run(deletion)
		took := c.until(func() bool { return c.m.Restored() > before })
		longest = max(longest, took)
		if took > promised {
			t.Errorf("%s: put back after %s", deletion, took)
		}
		for c.follow(2 * settleTime) {
		}
		l.unchanged(full, l.snapshot())
		if got := c.m.Restored(); got != uint64(n+1) {
			t.Errorf("%s: %d put back, want %d", deletion, got, n+1)
		}
	}
	t.Logf("%d deletions, the longest gap %s", len(deletions), longest)

	// All at once, as systemd-networkd does when it starts.
	for _, deletion := range deletions {
		l.run(deletion)
	}
	c.until(func() bool { return c.m.Restored() == uint64(2*len(deletions)) })
	l.unchanged(full, l.snapshot())
}

// TestKernelQuarrel: a program removes one rule whenever it sees it. Looks and
// restores stay few; when it ends, the rule is there again.
func TestKernelQuarrel(t *testing.T) {
	l := newLab(t)
	c := l.caretaker(l.modems(2, "dev %s table 30%d"), false)
	rules, _ := c.ours()
	victim := rules[0]
	enemy, err := openKernel()
	l.must(err)
	defer enemy.close()
	const length = 4 * time.Second
	stop := time.Now().Add(length)
	before := c.looks
	done := make(chan int)
	go func() {
		removed := 0
		for ; time.Now().Before(stop); time.Sleep(time.Millisecond) {
			if enemy.delRule(victim) == nil {
				removed++
			}
		}
		done <- removed
	}()
	for time.Now().Before(stop) {
		c.follow(settleTime)
	}
	removed := <-done
	most := restoreBurst + int(length/restoreEvery) + 1
	if removed < restoreBurst || removed > most {
		t.Errorf("the rule was removed %d times, want %d to %d", removed, restoreBurst, most)
	}
	if n := c.looks - before; n > 4*most {
		t.Errorf("looked %d times", n)
	}
	if w := c.m.Warnings(); len(w) != 1 {
		t.Errorf("warnings %q", w)
	}
	took := c.until(func() bool { r, _ := c.ours(); return slices.Contains(r, victim) })
	if took > promised {
		t.Errorf("put back %s after the quarrel", took)
	}
	t.Logf("removed %d times in %s, looked %d times, back after %s", removed, length, c.looks-before, took)
}
