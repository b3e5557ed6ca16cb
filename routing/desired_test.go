package routing

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const gw1, gw2, gw6 = "203.0.113.1", "198.51.100.10", "2001:db8:99::1"

// scenario is a state of the kernel, what is wanted of it, and the changes that
// follow, as one would type them.
type scenario struct {
	name    string
	view    func(v *view)
	overlay []string
	wants   []Want
	changes string
	// check looks at the report of each want after the changes.
	check func(t *testing.T, c []Carrier)
}

func carrier(name string, slot int, endpoints ...string) Want {
	return Want{Interface: name, Slot: slot, Endpoints: addrs(endpoints...)}
}

func usable4(t *testing.T, c []Carrier) {
	t.Helper()
	for _, r := range c {
		if !r.Usable4 || r.Problem != "" {
			t.Errorf("%s: not usable: %q", r.Interface, r.Problem)
		}
		for e, ok := range r.Reached {
			if !ok {
				t.Errorf("%s: %s not reached", r.Interface, e)
			}
		}
	}
}

func problem(words ...string) func(t *testing.T, c []Carrier) {
	return func(t *testing.T, c []Carrier) {
		t.Helper()
		last := c[len(c)-1]
		if last.Usable4 || last.Usable6 || last.Problem == "" {
			t.Errorf("usable (%v, %v) or no problem: %q", last.Usable4, last.Usable6, last.Problem)
		}
		for _, w := range words {
			if !strings.Contains(last.Problem, w) {
				t.Errorf("problem %q does not say %q", last.Problem, w)
			}
		}
		for e, ok := range last.Reached {
			if ok {
				t.Errorf("%s reached by an unusable carrier", e)
			}
		}
	}
}

func lines(text string) []string {
	var all []string
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" {
			all = append(all, l)
		}
	}
	return all
}

func (s scenario) build() view {
	v := world()
	if s.view != nil {
		s.view(&v)
	}
	return v
}

func (s scenario) own() *ownership {
	o := &ownership{}
	for i := range o.slots {
		o.slots[i] = true
	}
	for _, p := range s.overlay {
		o.overlay = append(o.overlay, pfx(p))
	}
	return o
}

func TestGolden(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			v := s.build()
			own := s.own()
			var got []string
			for _, o := range changes(&v, desired(&v, "plr0", own.overlay, s.wants), own) {
				got = append(got, o.String())
			}
			if want := lines(s.changes); !slices.Equal(got, want) {
				t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestApply takes the same scenarios through a Manager: reports, fixpoint, and
// back to the start.
func TestApply(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			k := newFake(s.build())
			before, _ := k.view(nil)
			m, out := manage(t, k)
			m.tun = "plr0"
			m.own.overlay = s.own().overlay
			got, err := m.Apply(s.wants)
			if err != nil {
				t.Fatal(err)
			}
			s.check(t, got)
			writes := k.writes
			again, err := m.Apply(s.wants)
			if err != nil {
				t.Fatal(err)
			}
			if k.writes != writes {
				t.Errorf("applied again, it changed something:\n%s", out)
			}
			s.check(t, again)
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			sameBut(t, before, &k.v, s.own().overlay)
		})
	}
}

// sameBut fails unless both views have the same routes, rules and rp_filter; the
// second may have the overlay's blackhole routes besides.
func sameBut(t *testing.T, before, after *view, overlay []netip.Prefix) {
	t.Helper()
	want := map[route]bool{}
	for _, r := range before.routes {
		want[r] = true
	}
	for _, p := range overlay {
		want[blackholeRoute(p)] = true
	}
	if len(after.routes) != len(want) {
		t.Errorf("%d routes left, want %d", len(after.routes), len(want))
	}
	for _, r := range after.routes {
		if !want[r] {
			t.Errorf("left behind: %s", r.line(after.linkName(r.oif)))
		}
	}
	if !slices.Equal(before.rules, after.rules) {
		t.Errorf("rules before %v, after %v", before.rules, after.rules)
	}
	for name, value := range before.rpFilter {
		if after.rpFilter[name] != value {
			t.Errorf("rp_filter of %s is %d, was %d", name, after.rpFilter[name], value)
		}
	}
}
