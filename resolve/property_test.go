package resolve

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBookProperties: whatever happens in whatever order,
//
//   - no carrier asks more than its bound in any minute, and only what is of use,
//   - Due and Next agree (sim checks that at every step),
//   - what a gateway is told is what its carrier can send to, from that carrier's
//     own DNS, eight at most, and never twice the same,
//   - a path that was well and fails has its name asked for within ten seconds.
func TestBookProperties(t *testing.T) {
	gateways := []Gateway{
		gateway("named", "named.example.org:51820"),
		gateway("both", "both.example.org:51820", "203.0.113.20:51820", "[2001:db8::20]:443"),
		gateway("literal", "198.51.100.10:51820"),
	}
	rapid.Check(t, func(t *rapid.T) {
		carriers := map[int]Carrier{}
		draw := func(slot int) Carrier {
			return Carrier{
				Slot: slot, Interface: fmt.Sprint("wwan", slot), Index: rapid.IntRange(1, 3).Draw(t, "index"),
				IPv4: rapid.Bool().Draw(t, "IPv4"), IPv6: rapid.Bool().Draw(t, "IPv6"), Metered: rapid.Bool().Draw(t, "metered"),
			}
		}
		s := newSim(t)
		have := gateways
		s.b.SetGateways(have)
		set := func() {
			var all []Carrier
			for _, slot := range []int{0, 1} {
				if c, ok := carriers[slot]; ok {
					all = append(all, c)
				}
			}
			s.b.SetCarriers(all, s.now)
		}
		well := map[string]time.Time{} // since when paths answer
		slot := rapid.IntRange(0, 1)
		pick := rapid.SampledFrom(gateways)
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { checkTold(s, carriers) },
			"carrier": func(*rapid.T) {
				n := slot.Draw(t, "slot")
				carriers[n] = draw(n)
				set()
			},
			"gone": func(*rapid.T) {
				n := slot.Draw(t, "slot")
				delete(carriers, n)
				for _, g := range gateways {
					delete(well, fmt.Sprint(n, g.Name))
					delete(s.told, fmt.Sprintf("%d %s", n, g.Name))
				}
				set()
			},
			"gateways": func(*rapid.T) {
				have = slices.DeleteFunc(slices.Clone(gateways), func(Gateway) bool { return rapid.Bool().Draw(t, "without") })
				clear(well)
				clear(s.told)
				s.b.SetGateways(nil)
				s.b.SetGateways(have)
			},
			"changed": func(*rapid.T) { s.b.Changed(slot.Draw(t, "slot"), s.now) },
			"dns": func(*rapid.T) {
				name := rapid.SampledFrom([]string{"named.example.org", "both.example.org", ipv4only}).Draw(t, "name")
				n, octet := slot.Draw(t, "slot"), rapid.IntRange(1, 3).Draw(t, "octet")
				s.answers(fmt.Sprintf("%d %s A", n, name), fmt.Sprintf("192.0.%d.%d", n+10, octet))
				s.answers(fmt.Sprintf("%d %s AAAA", n, name), fmt.Sprintf("2001:db8:%d::%d", n+10, octet))
				if rapid.Bool().Draw(t, "dead") {
					s.fails(fmt.Sprintf("%d %s A", n, name), errDead)
				}
				if rapid.Bool().Draw(t, "none") {
					delete(s.dns, fmt.Sprintf("%d %s AAAA", n, name))
				}
			},
			"answers": func(*rapid.T) {
				n, g := slot.Draw(t, "slot"), pick.Draw(t, "gateway")
				if told := s.told[fmt.Sprintf("%d %s", n, g.Name)]; len(told) > 0 {
					s.b.Answers(n, g.Name, rapid.SampledFrom(told).Draw(t, "at"), s.now)
					if _, ok := well[fmt.Sprint(n, g.Name)]; !ok {
						well[fmt.Sprint(n, g.Name)] = s.now
					}
				}
			},
			"fails": func(*rapid.T) {
				n, g := slot.Draw(t, "slot"), pick.Draw(t, "gateway")
				since, was := well[fmt.Sprint(n, g.Name)]
				delete(well, fmt.Sprint(n, g.Name))
				s.b.Failing(n, g.Name, s.now)
				c, there := carriers[n]
				if !was || s.now.Sub(since) < calm || !there || !c.IPv4 || g.Endpoints[0].Name == "" || s.b.room(s.b.carriers[n]).After(s.now) {
					return
				}
				before := len(s.asks)
				s.run(10 * time.Second)
				if what := fmt.Sprintf("%d %s A", n, g.Endpoints[0].Name); !slices.ContainsFunc(s.asks[before:], func(a asking) bool { return a.what == what }) {
					t.Fatalf("%s was not asked for after a failure", what)
				}
			},
			"time":      func(*rapid.T) { s.run(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond) },
			"long time": func(*rapid.T) { s.run(time.Duration(rapid.IntRange(1, 30).Draw(t, "minutes")) * time.Minute) },
		})
		for n := range 2 {
			if most := s.busiest(n); most > perMinute {
				t.Fatalf("%d questions in a minute", most)
			}
		}
	})
}

// checkTold looks at what the tunnel was told last.
func checkTold(s *sim, carriers map[int]Carrier) {
	for path, told := range s.told {
		var slot int
		var gateway string
		if _, err := fmt.Sscan(path, &slot, &gateway); err != nil {
			s.t.Fatalf("%v", err)
		}
		if len(told) > maxCandidates {
			s.t.Fatalf("%s: %v", path, told)
		}
		for i, ap := range told {
			other := fmt.Sprintf("192.0.%d.", 11-slot)
			if slices.Contains(told[:i], ap) || strings.HasPrefix(ap.Addr().String(), other) ||
				netip.MustParsePrefix(fmt.Sprintf("2001:db8:%d::/48", 11-slot)).Contains(ap.Addr()) {
				s.t.Fatalf("%s: %v", path, told)
			}
		}
	}
	for _, st := range s.b.Status(s.now) {
		for _, sentence := range st.Sentences {
			if sentence[len(sentence)-1] != '.' || strings.Contains(sentence, "%!") || strings.Contains(sentence, "\n") {
				s.t.Fatalf("%q", sentence)
			}
		}
		if c := carriers[st.Slot]; st.Captive && !c.IPv4 && !c.IPv6 {
			s.t.Fatalf("captive without an address: %+v", st)
		}
	}
}
