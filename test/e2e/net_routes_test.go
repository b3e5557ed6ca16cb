package e2e

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// Three modems that all gave out the same address: each is a carrier of its own.
// And whatever that took in rules, routes and settings is gone afterwards, in
// whichever way the daemon ended.
func TestModemsWithOneAddress(t *testing.T) {
	w := build(t, options{Options: lab.Options{
		Gateways: []string{"west"}, Modems: true, Carriers: make([]lab.CarrierOptions, 3),
	}})
	r, g := w.robots[0], w.gateways[0]
	for _, c := range r.lab.Carriers {
		must(t, r.lab.Sysctl("net.ipv4.conf."+c.Interface+".rp_filter", "1"))
	}
	eventually(t, "usable IPv6 addresses", func() error {
		if out := output(t, r.lab.Node, "ip", "-6", "addr", "show", "tentative"); out != "" {
			return errors.New(out)
		}
		return nil
	})
	before := network(t, r.lab.Node)
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	var files []string
	var stops []func()
	for _, c := range r.lab.Carriers {
		if c.Address != r.lab.Carriers[0].Address {
			t.Fatalf("%s has the address %v", c.Interface, c.Address)
		}
		// Behind the modem, where each datagram is by itself: on the veth pair
		// in front of it several may travel as one (UDP_SEGMENT).
		f, stop := capture(t, c.Modem, "wan", w.file(c.Interface))
		files, stops = append(files, f), append(stops, stop)
	}
	const packets = 300
	sendBoth(t.Context(), r.end(), g.end(), load{rate: 200, count: packets, size: 200, linger: 500 * time.Millisecond}).
		wait(t).complete(t, "three modems")
	for i, f := range files {
		stops[i]()
		c, err := lab.CountWireGuard(f)
		must(t, err)
		if c.Data < 2*packets || c.Data > 2*packets*11/10 {
			t.Errorf("%s: %d data messages, expected a copy of each of %d packets", f, c.Data, 2*packets)
		}
	}
	allCarry(t, r, g)

	member := r.Member
	differs := func() {
		t.Helper()
		if len(difference(before, network(t, r.lab.Node))) == 0 {
			t.Error("a running robot has no rules here, so this test shows nothing")
		}
	}
	differs()
	must(t, member.Stop())
	same(t, "after a stop", before, network(t, r.lab.Node))

	run(t, member)
	must(t, member.WaitUp(t.Context()))
	must(t, member.Kill())
	differs()
	cleanup(t, r)
	same(t, "after kill -9 and fogplr cleanup", before, network(t, r.lab.Node))

	run(t, member)
	must(t, member.WaitUp(t.Context()))
	must(t, member.Kill())
	run(t, member)
	must(t, member.WaitUp(t.Context()))
	must(t, member.Stop())
	same(t, "after kill -9, a start and a stop", before, network(t, r.lab.Node))

	cleanup(t, r, "--all")
	for _, line := range networkLines(t, r.lab.Node) {
		if strings.Contains(line, "plr0") || strings.Contains(line, "blackhole") {
			t.Errorf("fogplr cleanup --all left %q", line)
		}
	}
	same(t, "after fogplr cleanup --all", before, network(t, r.lab.Node))
}

// allCarry fails the test unless all paths of a robot are up and carry.
func allCarry(t testing.TB, r *robot, g *gateway) {
	t.Helper()
	for _, c := range r.lab.Carriers {
		if p := pathOf(t, status(t, r.Member), g.Name, c.Interface); !p.Up || !p.Carries {
			t.Errorf("path by %s: up=%v carries=%v %s", c.Interface, p.Up, p.Carries, p.Stage)
		}
	}
}

// cleanup runs fogplr cleanup on a robot.
func cleanup(t testing.TB, r *robot, args ...string) {
	t.Helper()
	out, err := r.CLI(context.WithoutCancel(t.Context()), append([]string{"cleanup", "--config", r.Config()}, args...)...)
	if err != nil {
		t.Fatalf("fogplr cleanup: %v\n%s", err, out)
	}
}

// network is what fogplr must leave as it was: rules, routes and rp_filter, but
// for plr0 and the blackhole routes that keep the overlay from leaking.
func network(t testing.TB, n *lab.Node) []string {
	t.Helper()
	return slices.DeleteFunc(networkLines(t, n), func(line string) bool {
		return strings.Contains(line, "plr0") || strings.Contains(line, "blackhole")
	})
}

// expiry is in routes that the kernel keeps for a while.
var expiry = regexp.MustCompile(` expires \d+sec`)

func networkLines(t testing.TB, n *lab.Node) []string {
	t.Helper()
	var all []string
	for _, command := range []string{
		"ip rule", "ip -6 rule", "ip route show table all", "ip -6 route show table all", "ip -o link show",
		"cd /proc/sys/net/ipv4/conf && grep . */rp_filter */src_valid_mark",
	} {
		for _, line := range strings.Split(output(t, n, "sh", "-c", command), "\n") {
			if line = strings.TrimSpace(expiry.ReplaceAllString(line, "")); line != "" {
				all = append(all, line)
			}
		}
	}
	return all
}

// difference lists the lines that one of two listings has and the other has not.
func difference(before, after []string) []string {
	var lines []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return lines
}

func same(t testing.TB, when string, before, after []string) {
	t.Helper()
	if d := difference(before, after); len(d) > 0 {
		t.Errorf("%s the kernel's network configuration is not as before:\n%s", when, strings.Join(d, "\n"))
	}
	if len(before) != len(after) {
		t.Errorf("%s there are %d lines, before %d", when, len(after), len(before))
	}
}
