package e2e

import (
	"fmt"
	"testing"

	"github.com/fogplr/fogplr/test/lab"
)

// Without [[carrier]] the robot finds its carriers, and a carrier keeps its slot,
// and so its keys, under whatever name: renamed, swapped with another, and swapped
// between two runs.
func TestCarriersAreDiscovered(t *testing.T) {
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r := w.robots[0]
	a, b := r.lab.Carriers[0], r.lab.Carriers[1]
	edit(t, r.Member, "[[carrier]]\ninterface = \"cell-a\"\n[[carrier]]\ninterface = \"cell-b\"\n",
		"[discovery]\nallow = [\"kind:tap\"]\n") // as the laboratory's carriers are
	run(t, w.gateways[0].Member)
	run(t, r.Member)
	// The addresses tell which device a name is.
	check := func(what, nameA, nameB string) {
		t.Helper()
		took := eventually(t, what, func() error {
			s, err := r.Status(t.Context())
			if err != nil {
				return err
			}
			if len(s.Carriers) != 2 || len(s.Peers) != 1 {
				return fmt.Errorf("carriers %+v, peers %+v", s.Carriers, s.Peers)
			}
			for slot, want := range []string{nameA, nameB} {
				if c := s.Carriers[slot]; c.Slot != slot || c.Interface != want {
					return fmt.Errorf("carrier %+v, want %s in slot %d", c, want, slot)
				}
			}
			for _, p := range s.Peers[0].Paths {
				if !p.Up {
					return fmt.Errorf("path %+v", p)
				}
			}
			return nil
		})
		t.Logf("%s: up after %v", what, took)
	}
	check("at the start", "cell-a", "cell-b")
	must(t, a.Rename("usb0"))
	check("renamed", "usb0", "cell-b")
	must(t, b.Rename("usb1"))
	check("both renamed", "usb0", "usb1")
	swap := func() {
		t.Helper()
		was := []string{a.Interface, b.Interface}
		must(t, a.Rename("between"))
		must(t, b.Rename(was[0]))
		must(t, a.Rename(was[1]))
	}
	swap()
	check("swapped", "usb1", "usb0")
	must(t, r.Stop())
	swap()
	run(t, r.Member)
	check("swapped between two runs", "usb0", "usb1")
}
