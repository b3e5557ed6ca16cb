package routing

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKernelReadsBack: what is written is what the kernel shows, and can be
// deleted; and the transcript lines are what ip(8) understands.
func TestKernelReadsBack(t *testing.T) {
	l := newLab(t)
	l.router("eth0", "", "")
	l.run(`ip addr add 192.168.1.5/24 dev eth0
		ip addr add 192.168.1.6/24 dev eth0
		ip -6 addr add 2001:db8:1::5/64 dev eth0 nodad`)
	k, err := openKernel()
	l.must(err)
	defer k.close()
	v, err := k.view(nil)
	l.must(err)
	eth0, _ := v.link("eth0")
	route4 := route{table: 15700, dst: pfx("default"), kind: unix.RTN_UNICAST, gateway: addr("192.168.1.1"), oif: eth0.index, protocol: Protocol}
	with := func(r route, edit func(*route)) route { edit(&r); return r }
	route6 := with(route4, func(r *route) { r.dst, r.gateway, r.metric = pfx("default6"), addr("fe80::1"), carrierMetric6 })
	routes := []route{
		route4,
		with(route4, func(r *route) { r.dst, r.gateway, r.scope = pfx("192.168.1.0/24"), netip.Addr{}, unix.RT_SCOPE_LINK }),
		with(route4, func(r *route) { r.dst, r.src, r.mtu = pfx("10.1.0.0/16"), addr("192.168.1.6"), 1400 }),
		with(route4, func(r *route) { r.dst, r.gateway, r.onlink = pfx("10.2.0.0/16"), addr("172.16.0.1"), true }),
		with(route4, func(r *route) { r.dst, r.gateway = pfx("10.3.0.0/16"), addr("fe80::1") }),
		route6,
		with(route6, func(r *route) { r.dst, r.gateway = pfx("2001:db8:1::/64"), netip.Addr{} }),
		with(route6, func(r *route) { r.dst, r.gateway, r.onlink = pfx("2001:db8:2::/64"), addr("2001:db8:9::1"), true }),
		with(route6, func(r *route) { r.dst, r.src, r.mtu = pfx("2001:db8:3::/64"), addr("2001:db8:1::5"), 1400 }),
		blackholeRoute(pfx("10.77.0.0/16")),
		blackholeRoute(pfx("fd77::/64")),
	}
	rules := []rule{
		{pref: 5210, mark: Mark, mask: 0xffffffff, oif: "eth0", table: 15700, suppress: -1, protocol: Protocol},
		{v6: true, pref: 5210, mark: Mark, mask: 0xffffffff, oif: "eth0", table: 15700, suppress: -1, protocol: Protocol},
		{pref: 99, dst: pfx("10.77.0.0/16"), table: unix.RT_TABLE_MAIN, suppress: -1, protocol: Protocol},
		{v6: true, pref: 99, dst: pfx("fd77::/64"), table: unix.RT_TABLE_MAIN, suppress: -1, protocol: Protocol},
		{pref: returnPref, src: pfx("192.168.1.5/32"), dst: pfx(gw1 + "/32"), table: 15700, suppress: -1, protocol: Protocol},
	}
	present := func(how string) {
		v, err := k.view(nil)
		l.must(err)
		for _, r := range routes {
			if !slices.Contains(v.routes, r) {
				t.Errorf("%s: not read back: %s", how, r.line("eth0"))
			}
		}
		for _, r := range rules {
			if !slices.Contains(v.rules, r) {
				t.Errorf("%s: not read back: %s", how, r)
			}
		}
	}
	empty := func() {
		v, err := k.view(nil)
		l.must(err)
		for _, r := range v.routes {
			if r.protocol == Protocol {
				t.Errorf("not deleted: %s", r.line("eth0"))
			}
		}
		for _, r := range v.rules {
			if r.protocol == Protocol {
				t.Errorf("not deleted: %s", r)
			}
		}
	}
	for _, r := range routes {
		if err := k.addRoute(r, false); err != nil {
			t.Errorf("%s: %v", r.line("eth0"), err)
		}
		if err := k.addRoute(r, false); !errors.Is(err, unix.EEXIST) {
			t.Errorf("%s: added twice: %v", r.line("eth0"), err)
		}
		if err := k.addRoute(r, true); err != nil {
			t.Errorf("%s: replaced: %v", r.line("eth0"), err)
		}
	}
	for _, r := range rules {
		l.must(k.addRule(r))
		if err := k.addRule(r); !errors.Is(err, unix.EEXIST) {
			t.Errorf("%s: added twice: %v", r, err)
		}
	}
	present("netlink")
	for _, r := range routes {
		l.must(k.delRoute(r))
		if err := k.delRoute(r); !gone(err) {
			t.Errorf("%s: deleted twice: %v", r.line("eth0"), err)
		}
	}
	for _, r := range rules {
		l.must(k.delRule(r))
		if err := k.delRule(r); !gone(err) {
			t.Errorf("%s: deleted twice: %v", r, err)
		}
	}
	empty()

	for _, r := range routes {
		l.run(op{verb: addRoute, route: r, name: "eth0"}.String())
	}
	for _, r := range rules {
		l.run(op{verb: addRule, rule: r}.String())
	}
	present("ip(8)")
	for _, r := range routes {
		l.run(op{verb: delRoute, route: r, name: "eth0"}.String())
	}
	for _, r := range rules {
		l.run(op{verb: delRule, rule: r}.String())
	}
	empty()
}
