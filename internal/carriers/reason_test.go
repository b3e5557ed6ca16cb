package carriers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/routing"
)

func TestReason(t *testing.T) {
	const (
		deny    = "[discovery]\ndeny = ['kind:wifi', 'name:e*']"
		allow   = "[discovery]\nallow = ['name:wg*']"
		one     = "[[carrier]]\ninterface = 'wlan0'"
		glob    = "[[carrier]]\ninterface = 'eth*'"
		tunnel  = "a WireGuard tunnel, which itself needs an uplink"
		down    = "it is down or not connected"
		noRoute = "no route leads from it to the internet"
		denies  = `deny of [discovery] has "name:e*"`
		full    = "all 8 slots are taken"
		noBlock = "no [[carrier]] matches it"
		notYet  = "fogplr has not taken it yet; a reload takes over changes of the configuration"
	)
	for _, c := range []struct {
		config, name string
		carriers     int
		want         string
		candidate    bool
	}{
		{"", "eth1", 1, "a member of br0, which has its addresses", false},
		{"", "wg0", 1, tunnel, false},
		{"", "wg0", 8, tunnel, false},
		{"", "ppp0", 8, noRoute, true},
		{"", "down0", 8, down, true},
		{"", "lo", 1, "the loopback device, which leads nowhere", false},
		{"", "eth0", 8, full, true},
		{"", "eth0", 7, notYet, true},
		{deny, "eth0", 8, denies, true},
		{deny, "eth1", 8, denies, false},
		{deny, "wlan0", 1, `deny of [discovery] has "kind:wifi"`, true},
		{allow, "wg1", 1, down, true},
		{allow, "wg0", 1, notYet, true},
		{allow, "wg0", 8, full, true},
		{one, "eth0", 1, noBlock, false},
		{one, "wg0", 8, noBlock, false},
		{one, "wlan0", 0, notYet, true},
		{glob, "eth0", 8, full, true},
		{glob, "eth1", 8, full, true},
		{glob, "eth1", 2, notYet, true},
		{glob + "\n" + deny, "eth1", 1, denies, false},
		{"[[carrier]]\ninterface = 'eth0'\n" + deny, "eth0", 8, full, true}, // named outright, so deny does not count
	} {
		m := machine()
		unplugged, idle := *m["ppp0"], *m["wg0"]
		unplugged.Name, unplugged.Up = "down0", false
		idle.Name, idle.Up, idle.Leads = "wg1", false, false
		m["down0"], m["wg1"] = &unplugged, &idle
		if got, candidate := Reason(robot(t, c.config), *m[c.name], c.carriers); got != c.want || candidate != c.candidate {
			t.Errorf("%s with %q and %d carriers: %q, %v, want %q", c.name, c.config, c.carriers, got, candidate, c.want)
		}
	}
}

// The reason fits what the choice leaves out: of nine that a [[carrier]] matches, and
// of nine that discovery finds, the ninth.
func TestReasonOfTheNinth(t *testing.T) {
	for _, blocks := range []string{"", "[[carrier]]\ninterface = 'n*'"} {
		cfg, w := robot(t, blocks), many(9)
		choice := New(new(slots.Book)).Choose(cfg, w)
		left := 0
		for _, i := range w {
			if slices.ContainsFunc(choice.Carriers, func(c Carrier) bool { return c.Index == i.Index }) {
				continue
			}
			left++
			if why, candidate := Reason(cfg, i, len(choice.Carriers)); why != "all 8 slots are taken" || !candidate {
				t.Errorf("%q: %s: %q, %v", blocks, i.Name, why, candidate)
			}
		}
		if left != 1 {
			t.Errorf("%q: %d of 9 are left out", blocks, left)
		}
	}
}

func many(n int) (list []routing.Interface) {
	for i := range n {
		list = append(list, routing.Interface{Index: i + 2, Name: fmt.Sprintf("n%d", i), Kind: "ethernet", Up: true, Leads: true})
	}
	return list
}
