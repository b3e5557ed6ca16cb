package tunnel

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestCandidates(t *testing.T) {
	six, four, port := netip.MustParseAddrPort("[2001:db8::1]:51820"), netip.MustParseAddrPort("192.0.2.1:51820"), netip.MustParseAddrPort("192.0.2.1:443")
	both := map[netip.Addr]bool{six.Addr(): true, four.Addr(): true}
	start := time.Now()
	// A step happens at some milliseconds; after it the one in use is want.
	type step struct {
		at     int
		do     func(c *candidates, now time.Time)
		want   netip.AddrPort
		turned bool
	}
	ask := func(c *candidates, now time.Time) { c.ask(true, now) }
	answer := func(from netip.AddrPort) func(*candidates, time.Time) {
		return func(c *candidates, _ time.Time) { c.answer(from) }
	}
	try := func(c *candidates, _ time.Time) { c.tries++ }
	route := func(reached map[netip.Addr]bool) func(*candidates, time.Time) {
		return func(c *candidates, _ time.Time) { c.route(reached) }
	}
	nothing := func(*candidates, time.Time) {}
	for name, steps := range map[string][]step{
		"the preferred answers":           {{0, ask, six, false}, {30, answer(six), six, false}, {40, answer(four), six, false}, {5000, nothing, six, false}},
		"another answers alone":           {{0, ask, six, false}, {30, answer(four), six, false}, {249, nothing, six, false}, {250, nothing, four, true}},
		"the preferred answers late":      {{0, ask, six, false}, {30, answer(four), six, false}, {200, answer(six), six, false}, {300, nothing, six, false}},
		"nobody answers":                  {{0, ask, six, false}, {1, try, six, false}, {1000, try, four, true}, {2000, try, four, false}, {3000, try, port, true}, {5000, nothing, port, false}},
		"answers, but no handshake works": {{0, ask, six, false}, {1, try, six, false}, {30, answer(six), six, false}, {31, answer(port), six, false}, {1000, try, port, true}},
		"no route to the preferred":       {{0, route(map[netip.Addr]bool{four.Addr(): true}), four, true}},
		"no route at all":                 {{0, route(nil), six, false}},
		"a path that is up stays": {{0, ask, six, false}, {5, func(c *candidates, _ time.Time) { c.up(true) }, six, false},
			{30, answer(four), six, false}, {300, func(c *candidates, _ time.Time) { c.set([]netip.AddrPort{four}, both) }, six, false}},
		"what has gone is left when the path is down": {{0, ask, six, false}, {5, func(c *candidates, _ time.Time) { c.set([]netip.AddrPort{four}, both) }, four, true}},
	} {
		c := candidates{searching: true}
		c.set([]netip.AddrPort{six, four, port}, both)
		c.choose(start)
		for i, s := range steps {
			now := start.Add(time.Duration(s.at) * time.Millisecond)
			s.do(&c, now)
			turned, next := c.choose(now)
			if c.used != s.want || turned != s.turned {
				t.Errorf("%s, step %d: %v in use (turned %v), want %v (%v)", name, i, c.used, turned, s.want, s.turned)
			}
			if !next.IsZero() && !next.After(now) {
				t.Errorf("%s, step %d: wants to be asked again %v ago", name, i, now.Sub(next))
			}
		}
	}
	var many []netip.AddrPort
	for i := range 20 {
		many = append(many, netip.AddrPortFrom(four.Addr(), uint16(1+i)))
	}
	var c candidates
	c.set(many, both)
	if len(c.all) != maxCandidates || c.has(many[19]) || !c.has(many[0]) {
		t.Errorf("%d candidates of 20, want %d", len(c.all), maxCandidates)
	}
}

// A path that is up and bad for long moves to another candidate, stays where a
// proof comes, goes back where none does, and does not turn in circles.
func TestBadPathsMove(t *testing.T) {
	a, b := netip.MustParseAddrPort("192.0.2.1:443"), netip.MustParseAddrPort("192.0.2.1:51820")
	both := map[netip.Addr]bool{a.Addr(): true}
	start := time.Now()
	var none netip.AddrPort
	for name, steps := range map[string][]struct {
		at    float64 // seconds
		bad   bool
		proof float64 // when the last one was
		to    netip.AddrPort
		used  netip.AddrPort
	}{
		"a good path stays":         {{0, false, 0, none, a}, {60, false, 60, none, a}},
		"bad for a while":           {{0, true, 0, none, a}, {9, true, 9, none, a}, {9.5, false, 9, none, a}, {15, true, 15, none, a}, {24, true, 24, none, a}},
		"better there":              {{0, true, 0, none, a}, {10, true, 10, b, b}, {10.2, true, 10.1, none, b}, {12, false, 12, none, b}, {60, false, 60, none, b}},
		"nothing there":             {{0, true, 0, none, a}, {10, true, 10, b, b}, {11, true, 10.04, none, b}, {12, true, 10.04, a, a}, {30, true, 30, none, a}, {60, true, 60, none, a}},
		"as bad there":              {{0, true, 0, none, a}, {10, true, 10, b, b}, {10.2, true, 10.1, none, b}, {30, true, 30, none, b}, {500, true, 500, none, b}},
		"and worse after some time": {{0, true, 0, none, a}, {10, true, 10, b, b}, {10.2, true, 10.1, none, b}, {10.3, false, 10.1, none, b}, {900, true, 900, none, b}, {910, true, 910, a, a}},
	} {
		c := candidates{searching: true}
		c.set([]netip.AddrPort{a, b}, both)
		c.choose(start)
		c.up(true)
		for i, s := range steps {
			at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
			to, next := c.better(s.bad, at(s.proof), at(s.at))
			if to != s.to || c.used != s.used {
				t.Errorf("%s, step %d: to %v, in use %v, want %v and %v", name, i, to, c.used, s.to, s.used)
			}
			if !next.IsZero() && !next.After(at(s.at)) {
				t.Errorf("%s, step %d: wants to be asked again in the past", name, i)
			}
			if listened := c.listen(); c.used == b && slices.Contains(listened, a) {
				t.Errorf("%s, step %d: what comes from %v would draw the path back", name, i, a)
			}
		}
		c.up(false)
		if !slices.Contains(c.listen(), a) || !slices.Contains(c.listen(), b) {
			t.Errorf("%s: a search listens to %v alone", name, c.listen())
		}
	}
}

// What comes while others have been asked already is asked at once, and once.
func TestCandidatesThatComeLate(t *testing.T) {
	six, four := netip.MustParseAddrPort("[2001:db8::1]:51820"), netip.MustParseAddrPort("192.0.2.1:51820")
	both := map[netip.Addr]bool{six.Addr(): true, four.Addr(): true}
	only6 := map[netip.Addr]bool{six.Addr(): true}
	now := time.Now()
	c := candidates{searching: true}
	wants := func(what string, round bool, want ...netip.AddrPort) {
		t.Helper()
		now = now.Add(10 * time.Millisecond)
		if got := c.ask(round, now); !slices.Equal(got, want) {
			t.Errorf("%s: asks %v, want %v", what, got, want)
		}
	}
	c.set([]netip.AddrPort{six}, both)
	c.choose(now)
	wants("before a round is due", false)
	wants("the first round", true, six)
	wants("nothing new", false)
	c.set([]netip.AddrPort{six, four}, only6)
	wants("there is no route to the new one", false)
	c.route(both)
	wants("a new one", false, four)
	wants("nothing new", false)
	c.answer(four)
	if turned, _ := c.choose(now.Add(headStart)); !turned || c.used != four {
		t.Errorf("%v is used", c.used)
	}
	wants("the next round", true, six, four)
	c.up(true)
	c.up(false)
	wants("a new search", false)
	wants("its first round", true, six, four)
}
