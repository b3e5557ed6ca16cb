package daemon

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// The tunnel is told when a slot goes to another carrier, and that a renamed one is
// still the same.
func TestTunnelTellsCarriersOfASlotApart(t *testing.T) {
	book, _, err := slots.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	chooser := carriers.New(book)
	only := func(n int, name string) tunnel.Carrier {
		t.Helper()
		choice := chooser.Choose(&config.Robot{}, []routing.Interface{{
			Index: n, Name: name, Kind: "usb", MAC: fmt.Sprintf("00:11:22:33:44:%02d", n), Bus: fmt.Sprintf("pci0000:00/usb1/1-%d", n),
			Up: true, Leads: true, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/24")},
		}})
		for _, c := range choice.Carriers {
			if c.Index == n {
				return tunnelled(c, keys.Private{1})
			}
		}
		t.Fatalf("%s is no carrier: %+v", name, choice)
		return tunnel.Carrier{}
	}
	first := only(1, "modem1")
	renamed := only(1, "u1")
	if renamed.ID != first.ID || renamed.ID == "" || renamed.Interface != "u1" || renamed.Slot != first.Slot {
		t.Errorf("%+v became %+v", first, renamed)
	}
	taken := map[int]string{first.Slot: first.ID}
	for n := 2; n <= slots.Count+1; n++ {
		c := only(n, fmt.Sprintf("u%d", n))
		if was, ok := taken[c.Slot]; ok != (n > slots.Count) || was == c.ID {
			t.Errorf("%+v has the slot of %q", c, was)
		}
		taken[c.Slot] = c.ID
	}
}
