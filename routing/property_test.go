package routing

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// drawView draws a network configuration: a few interfaces with addresses from
// a small pool (so that they collide), routes in several tables, and rules of
// other programs.
func drawView(t *rapid.T) view {
	v := world()
	v.rpFilter["all"] = rapid.IntRange(0, 2).Draw(t, "all")
	n := rapid.IntRange(1, 4).Draw(t, "interfaces")
	for i := range n {
		name := fmt.Sprintf("if%d", i)
		v.ether(2+i, name, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"192.168.8.100/24", "192.168.8.101/24", "10.0.0.2/8", "100.64.0.2/32", "2001:db8:1::2/64", "2001:db8:1::3/64", "fe80::2/64",
		}), 0, 4, rapid.ID).Draw(t, name)...)
		v.rpFilter[name] = rapid.IntRange(0, 2).Draw(t, name+" rp_filter")
		v.modify(name, func(l *link) {
			l.pointToPoint = rapid.IntRange(0, 5).Draw(t, name+" point-to-point") == 0
			l.running = rapid.IntRange(0, 9).Draw(t, name+" running") > 0
		})
	}
	kinds := []int{unix.RTN_UNICAST, unix.RTN_UNICAST, unix.RTN_UNICAST, unix.RTN_BLACKHOLE, unix.RTN_THROW}
	for range rapid.IntRange(0, 8).Draw(t, "routes") {
		dst := rapid.SampledFrom([]string{"default", "default", "default6", "128.0.0.0/1", gw1 + "/32", "203.0.113.0/24", "2001:db8:99::/48"}).Draw(t, "dst")
		via := rapid.SampledFrom([]string{"", "192.168.8.1", "10.9.9.9"}).Draw(t, "via")
		if !pfx(dst).Addr().Is4() {
			via = rapid.SampledFrom([]string{"", "fe80::1", "2001:db8:1::1"}).Draw(t, "via6")
		}
		r := v.route(rapid.SampledFrom([]int{unix.RT_TABLE_MAIN, unix.RT_TABLE_MAIN, 100, 101}).Draw(t, "table"),
			dst, via, 2+rapid.IntRange(0, n-1).Draw(t, "oif"), rapid.Uint32Range(0, 3).Draw(t, "metric"))
		if r.kind = rapid.SampledFrom(kinds).Draw(t, "kind"); r.kind != unix.RTN_UNICAST {
			r.oif, r.gateway = 0, netip.Addr{}
		}
		// A table has one kind of route for one prefix and metric.
		last := *r
		if slices.ContainsFunc(v.routes, func(o route) bool { return o.key() == last.key() && o.kind != last.kind }) {
			v.routes = v.routes[:len(v.routes)-1]
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "rules") {
		v.rule(rapid.IntRange(2, 40000).Draw(t, "pref"), rapid.SampledFrom([]int{unix.RT_TABLE_MAIN, 100, 101}).Draw(t, "lookup"), func(r *rule) {
			switch rapid.IntRange(0, 5).Draw(t, "selector") {
			case 0:
				r.mark, r.mask = 0xca6c, 0xffffffff
			case 1:
				r.oif = "if0"
			case 2:
				r.suppress = 0
			case 3:
				r.opaque = true
			case 4:
				r.iif = "docker0"
			}
			r.invert = rapid.IntRange(0, 3).Draw(t, "not") == 0
		})
	}
	return v
}

func drawWants(t *rapid.T) []Want {
	var all []Want
	for i := range rapid.IntRange(1, 4).Draw(t, "wants") {
		all = append(all, carrier(fmt.Sprintf("if%d", i), i, rapid.SliceOfNDistinct(
			rapid.SampledFrom([]string{gw1, gw2, gw6}), 0, 3, rapid.ID).Draw(t, "endpoints")...))
	}
	return all
}

// packet is what the naive twin of the kernel routes.
type packet struct {
	src, dst netip.Addr
	mark     uint32
	oif      int
	opaque   bool // what rules do that cannot be judged
}

// kernelRoutes is a twin of the kernel's look-up (fib_rules_lookup,
// fib_table_lookup), in the plainest words.
func kernelRoutes(v *view, p packet) (route, bool) {
	for _, r := range v.rules {
		if r.v6 == p.dst.Is4() || !kernelMatches(v, r, p) {
			continue
		}
		var chosen *route
		for i, c := range v.routes {
			if c.table != r.table || c.v6() == p.dst.Is4() || !c.dst.Contains(p.dst) {
				continue
			}
			if c.kind == unix.RTN_UNICAST && p.oif != 0 && c.oif != p.oif {
				continue
			}
			if chosen == nil || c.dst.Bits() > chosen.dst.Bits() || (c.dst.Bits() == chosen.dst.Bits() && c.metric < chosen.metric) {
				chosen = &v.routes[i]
			}
		}
		if chosen == nil || chosen.kind == unix.RTN_THROW {
			continue
		}
		if chosen.kind == unix.RTN_BLACKHOLE {
			return route{}, false
		}
		if chosen.dst.Bits() <= r.suppress {
			continue
		}
		return *chosen, true
	}
	return route{}, false
}

func kernelMatches(v *view, r rule, p packet) bool {
	ok := (r.mask == 0 || p.mark&r.mask == r.mark) && (r.iif == "" || r.iif == "lo") &&
		(r.oif == "" || r.oif == v.linkName(p.oif)) && (!r.dst.IsValid() || r.dst.Contains(p.dst)) &&
		(!r.src.IsValid() || r.src.Contains(p.src))
	if r.opaque {
		ok = p.opaque
	}
	return ok != r.invert
}

// kernelAccepts is a twin of the reverse-path check (__fib_validate_source).
func kernelAccepts(v *view, name string, index int, local, from netip.Addr, opaque bool) bool {
	mode := max(v.rpFilter["all"], v.rpFilter[name])
	if mode == 0 {
		return true
	}
	back, ok := kernelRoutes(v, packet{src: local, dst: from, opaque: opaque})
	if !ok {
		return false
	}
	return back.oif == index || mode == rpLoose
}

func TestProperties(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		k := newFake(drawView(t))
		before, _ := k.view(nil)
		wants := drawWants(t)
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		m, err := newManager(k, dir, "plr0", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		reports, err := m.Apply(wants)
		if err != nil {
			t.Fatal(err)
		}
		checkReports(t, before, &k.v, wants, reports)
		writes := k.writes
		again, err := m.Apply(wants)
		if err != nil || k.writes != writes {
			t.Fatalf("no fixpoint: %d changes, %v", k.writes-writes, err)
		}
		for i := range again {
			if fmt.Sprint(again[i]) != fmt.Sprint(reports[i]) {
				t.Fatalf("report changed: %v, was %v", again[i], reports[i])
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(before.rules, k.v.rules) || !slices.Equal(before.routes, k.v.routes) {
			t.Fatalf("rules %v\nwere %v\nroutes %v\nwere %v", k.v.rules, before.rules, k.v.routes, before.routes)
		}
		for name, value := range before.rpFilter {
			if k.v.rpFilter[name] != value {
				t.Fatalf("rp_filter of %s is %d, was %d", name, k.v.rpFilter[name], value)
			}
		}
	})
}

// TestConverges: whatever the network was when fogplr last looked, what it makes
// of the present one is the same.
func TestConverges(t *testing.T) {
	base := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	rapid.Check(t, func(t *rapid.T) {
		first, second := drawView(t), drawView(t)
		wants := drawWants(t)
		apply := func(k *fakeKernel, m *Manager, wants []Want) []Carrier {
			got, err := m.Apply(wants)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		start := func(v view) (*fakeKernel, *Manager) {
			k := newFake(v)
			dir, err := os.MkdirTemp(base, "")
			if err != nil {
				t.Fatal(err)
			}
			m, err := newManager(k, dir, "plr0", log)
			if err != nil {
				t.Fatal(err)
			}
			return k, m
		}
		k, m := start(first)
		apply(k, m, wants)
		ours := slices.DeleteFunc(slices.Clone(k.v.routes), func(r route) bool { return r.protocol != Protocol })
		for _, r := range k.v.rules {
			if r.protocol == Protocol {
				second.rules = append(second.rules, r)
			}
		}
		copied, _ := newFake(second).view(nil)
		k.v = *copied
		fresh, other := start(second) // sweeps what the first left
		for _, r := range ours {
			if second.linkName(r.oif) != "" { // else the kernel flushed it
				k.v.routes = append(k.v.routes, r)
			}
		}
		got, want := apply(k, m, wants), apply(fresh, other, wants)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("reports %v, want %v", got, want)
		}
		for _, d := range []struct{ a, b *view }{{&k.v, &fresh.v}, {&fresh.v, &k.v}} {
			for _, r := range d.a.routes {
				if !slices.Contains(d.b.routes, r) {
					t.Fatalf("only in one: %s", r.line(""))
				}
			}
			for _, r := range d.a.rules {
				if !slices.Contains(d.b.rules, r) {
					t.Fatalf("only in one: %s", r)
				}
			}
		}
	})
}

// checkReports holds what Apply says against what the twin of the kernel does.
func checkReports(t *rapid.T, before, v *view, wants []Want, reports []Carrier) {
	for i, c := range reports {
		if (c.Problem == "") != (c.Usable4 || c.Usable6) {
			t.Fatalf("%+v: problem and use contradict each other", c)
		}
		l, up := v.link(wants[i].Interface)
		up = up && l.running
		for _, e := range wants[i].Endpoints {
			for _, opaque := range []bool{false, true} {
				p := packet{dst: e, mark: Mark, oif: c.Index, opaque: opaque}
				got, ok := kernelRoutes(v, p)
				if c.Reached[e] && (!ok || got.oif != c.Index) {
					t.Fatalf("%s: %s is said to be reached, the kernel has %v %v", c.Interface, e, ok, got.line(""))
				}
				_, without := kernelRoutes(before, p)
				if !c.Reached[e] && without && up && len(sending(v.addressesOf(l.index, !e.Is4()))) > 0 {
					t.Fatalf("%s: %s is said not to be reached, the kernel did", c.Interface, e)
				}
				if c.Reached[e] && e.Is4() && c.Warning == "" {
					for _, a := range sending(v.addressesOf(l.index, false)) {
						if !kernelAccepts(v, c.Interface, c.Index, a.ip, e, opaque) {
							t.Fatalf("%s: answers from %s are dropped", c.Interface, e)
						}
					}
				}
				if c.Reached[e] && !e.Is4() && c.Warning == "" {
					for _, a := range sending(v.addressesOf(l.index, true)) {
						back, ok := kernelRoutes(v, packet{src: a.ip, dst: e, opaque: opaque})
						if !v.shared(a) && (!ok || back.oif != c.Index) {
							t.Fatalf("%s: a strict firewall drops answers from %s to %s", c.Interface, e, a.ip)
						}
					}
				}
				checkUnmarked(t, before, v, p)
			}
		}
	}
}

// checkUnmarked: other programs' packets go where they went before, unless they
// are from a carrier's address to an endpoint.
func checkUnmarked(t *rapid.T, before, v *view, p packet) {
	p.mark = 0
	for _, oif := range []int{0, p.oif} {
		p.oif = oif
		was, had := kernelRoutes(before, p)
		is, has := kernelRoutes(v, p)
		if had != has || was != is {
			t.Fatalf("another program's packet to %s went by %v %q, goes by %v %q", p.dst, had, was.line(""), has, is.line(""))
		}
	}
}
