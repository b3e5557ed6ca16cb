package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/internal/check"
	"github.com/fogplr/fogplr/test/lab"
)

// A robot's daemon as the systemd unit runs it: not root, CAP_NET_ADMIN alone,
// /proc/sys read-only. The kernel checks senders strictly, which would leave nothing
// of what arrives by the second carrier; that comes anew while the daemon runs. All
// of it works, with CAP_NET_RAW and without, and is put back at the end. What takes
// CAP_NET_ADMIN is refused in plain words without.
func TestUnprivilegedRobot(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	w := build(t, options{Program: u.program, Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	a, b := r.lab.Carriers[0], r.lab.Carriers[1]
	must(t, r.lab.Sysctl("net.ipv4.conf.all.rp_filter", "1"))
	before := append(withoutOverlay(ownNet(t, r.lab.Node)), filters(t, r)...)
	for _, caps := range []string{"+net_admin", "+net_admin,+net_raw"} {
		u.may(t, caps)
		w.startAll(t)
		must(t, r.WaitUp(t.Context()))
		wantFilter(t, r, a, "0")
		wantFilter(t, r, b, "2")
		if uid := u.of(t, r.Pid()); uid == "0" {
			t.Error("the robot runs as root, so this shows nothing")
		}
		flow := startTraffic(t, r.end(), g.end())
		must(t, w.Replug(b, b.Interface))
		waitPath(t, r, g.Name, b.Interface, true)
		wantFilter(t, r, b, "2")
		flow.halt(t).complete(t, "while a carrier is plugged in anew")
		if s := status(t, r.Member); strings.Contains(fmt.Sprint(s.Warnings, s.Carriers), "rp_filter") {
			t.Errorf("a warning of what is well: %v %+v", s.Warnings, s.Carriers)
		}
		examine(t, r.lab.Node, r.Member).lacks(t, "carrier.rp_filter")
		must(t, w.fleet.Stop())
		same(t, "after a stop with "+caps, before, append(withoutOverlay(ownNet(t, r.lab.Node)), filters(t, r)...))
	}
	u.may(t, "+net_raw")
	try(t, r.lab.Node, u.program, "robot", "--config", r.Config()).wants(t, "a robot with CAP_NET_RAW alone", 1, "CAP_NET_ADMIN")
	u.may(t, "+net_admin")
	edit(t, g.Member, fmt.Sprintf("listen_port = %d", wgPort), "listen_port = 443")
	try(t, g.lab.Node, u.program, "gateway", "--config", g.Config()).wants(t, "a gateway on port 443", 1, "443", "CAP_NET_BIND_SERVICE")
}

// filters are the carriers' rp_filter.
func filters(t testing.TB, r *robot) (all []string) {
	t.Helper()
	for _, c := range r.lab.Carriers {
		all = append(all, c.Interface+": "+filter(t, r, c))
	}
	return all
}

func filter(t testing.TB, r *robot, c *lab.Carrier) string {
	t.Helper()
	return strings.TrimSpace(output(t, r.lab.Node, "cat", "/proc/sys/net/ipv4/conf/"+c.Interface+"/rp_filter"))
}

// wantFilter wants a carrier's rp_filter to be that.
func wantFilter(t testing.TB, r *robot, c *lab.Carrier, want string) {
	t.Helper()
	eventually(t, "rp_filter of "+c.Interface, func() error {
		if got := filter(t, r, c); got != want {
			return fmt.Errorf("it is %s, want %s", got, want)
		}
		return nil
	})
}

// user runs fogplr's daemons as a user that is not root.
type user struct{ dir, program string }

// newUser makes a program that runs fogplr's daemons as nobody, with the rights that
// may gives, and anything else of fogplr as root.
func newUser(t testing.TB) *user {
	t.Helper()
	dir, err := os.MkdirTemp("", "fogplr-user-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	u := &user{dir, filepath.Join(dir, "run")}
	must(t, os.WriteFile(filepath.Join(dir, "fogplr"), []byte(read(t, program(t))), 0o755)) // nobody may not look into the checkout
	must(t, os.WriteFile(u.program, []byte(`#!/bin/sh
dir=`+dir+`
case $1 in robot|gateway) ;; *) exec $dir/fogplr "$@" ;; esac
home=$(dirname "$3")
chmod a+x "$(dirname "$home")" && mkdir -p "$home/state" && chown -R nobody "$home" || exit 9
caps=$(cat $dir/caps)
exec unshare --mount sh -c 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys &&
	mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$@"' - \
	setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs \
	--inh-caps=-all,$caps --ambient-caps=-all,$caps --bounding-set=-all,$caps $dir/fogplr "$@"
`), 0o755))
	return u
}

// may gives the daemons that start next the capabilities, as setpriv(1) takes them.
func (u *user) may(t testing.TB, caps string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(u.dir, "caps"), []byte(caps), 0o644))
}

// of is the user of a process.
func (u *user) of(t testing.TB, pid int) string {
	t.Helper()
	for line := range strings.Lines(read(t, fmt.Sprintf("/proc/%d/status", pid))) {
		if fields := strings.Fields(line); fields[0] == "Uid:" {
			return fields[1]
		}
	}
	t.Fatal("a process of nobody at all")
	return ""
}

// Two carriers have IPv6 addresses of one network, and so have their routers. A
// packet filter that checks senders as firewalld does (IPv6_rpfilter=strict) drops
// what arrives by the second carrier, its router's neighbour advertisements too.
// fogplr answers that with rules; the check says so before the start.
func TestIPv6RoutersInOnePrefix(t *testing.T) {
	t.Parallel()
	w := build(t, options{Endpoint6: true, Options: lab.Options{Gateways: []string{"west"}, IPv6: true}})
	r, g := w.robots[0], w.gateways[0]
	oneNetwork(t, w, r)
	n := r.lab.Node
	must(t, n.NFT(`table inet firewalld {
	chain filter_PREROUTING {
		type filter hook prerouting priority raw + 10;
		icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept
		meta nfproto ipv6 fib saddr . mark . iif oif missing drop
	}
}`))
	heard := func(carrier string) bool {
		return try(t, n, "ping", "-6", "-c", "1", "-W", "1", "-I", carrier, g.lab.Address6.String()).code == 0
	}
	eventually(t, "an answer by the first carrier", func() error {
		if !heard("cell-a") {
			return errors.New("none")
		}
		return nil
	})
	if heard("cell-b") {
		t.Fatal("the filter does not keep out what arrives by the second carrier, so this shows nothing")
	}
	examine(t, n, r.Member).finds(t, check.Note, "carrier.ipv6_rpfilter", "inet firewalld filter_PREROUTING", "cell-a, cell-b", "nothing to repair")
	before := network(t, n)
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	sendBoth(t.Context(), r.end(), g.end(), steady(time.Second)).wait(t).complete(t, "two carriers of one IPv6 network")
	allCarry(t, r, g)
	examine(t, n, r.Member).finds(t, check.Note, "carrier.ipv6_rpfilter")
	must(t, w.fleet.Stop())
	same(t, "after a stop", before, network(t, n))
}

// oneNetwork gives both carriers of a robot IPv6 addresses of the same network. Each
// has a router of its own there.
func oneNetwork(t testing.TB, w *world, r *robot) {
	t.Helper()
	for i, c := range r.lab.Carriers {
		port := upstream(0, i)
		ip(t, r.lab.Node, "-6", "route", "del", "default", "dev", c.Interface)
		ip(t, r.lab.Node, "-6", "addr", "flush", "dev", c.Interface, "scope", "global")
		ip(t, w.Inet, "-6", "addr", "flush", "dev", port, "scope", "global")
		mine, router := fmt.Sprintf("2001:db8:77::%x", 0xa+i), fmt.Sprintf("2001:db8:77::%x", 1+i)
		must(t, w.Inet.AddAddress(port, router+"/128"))
		must(t, w.Inet.AddRoute(mine+"/128", "", port, 0))
		must(t, r.lab.AddAddress(c.Interface, mine+"/64"))
		must(t, r.lab.AddRoute("default", router, c.Interface, 100+i))
		c.Address6 = netip.MustParsePrefix(mine + "/64")
	}
}

// Somebody switched IPv6 off on a robot whose overlay has addresses of both
// families, before the start and again later: it goes on with IPv4, and says so once.
func TestIPv6SwitchedOff(t *testing.T) {
	t.Parallel()
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	off := func(value string) {
		for _, key := range []string{"all", "default"} {
			must(t, r.lab.Sysctl("net.ipv6.conf."+key+".disable_ipv6", value))
		}
	}
	const sentence = "only IPv4 works on the overlay"
	warned := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("a warning: %v", want), func() error {
			if err := warns(status(t, r.Member), sentence); (err == nil) != want {
				return fmt.Errorf("%v", status(t, r.Member).Warnings)
			}
			return nil
		})
	}
	off("1")
	examine(t, r.lab.Node, r.Member).finds(t, check.Warning, "kernel.ipv6", "Only IPv4 works", "sysctl -w")
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	warned(true)
	flow := startTraffic(t, r.end(), g.end())
	off("0")
	warned(false)
	off("1")
	warned(true)
	flow.halt(t).complete(t, "while IPv6 comes and goes")
	if n := strings.Count(read(t, r.Log()), sentence); n != 2 {
		t.Errorf("the log says it %d times, want 2", n)
	}
}
