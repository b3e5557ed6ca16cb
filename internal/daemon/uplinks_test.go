package daemon

import (
	"net/netip"
	"testing"
	"time"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/resolve"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// A path that was up has been silent for long when it is given up; a new one gets
// as much time.
func TestFails(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		up, died bool
		since    time.Duration
		want     bool
	}{
		{up: true, since: time.Hour},
		{up: true, since: 0},
		{since: failsAfter - time.Millisecond},
		{since: failsAfter, want: true},
		{died: true, since: 0, want: true},
		{died: true, since: time.Hour, want: true},
	} {
		if got := fails(tunnel.PathState{Up: c.up, Died: c.died, Since: now.Add(-c.since)}, now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// The resolver is told again as long as anything is not well: of a path that is
// tried for long, and of carriers that are not there yet.
func TestTellPaths(t *testing.T) {
	d := &robot{names: resolve.NewRunner(resolve.Config{})}
	d.names.SetCarriers([]resolve.Carrier{{IPv4: true}})
	at := netip.MustParseAddr("192.0.2.1")
	d.names.SetGateways([]resolve.Gateway{{Name: "gw", Endpoints: []resolve.Endpoint{{Addr: at, Port: 51820}}}})
	up, down := tunnel.PathState{Gateway: "gw", Up: true}, tunnel.PathState{Gateway: "gw"}
	for _, c := range []struct {
		paths []tunnel.PathState
		well  bool
	}{{nil, false}, {[]tunnel.PathState{up}, true}, {[]tunnel.PathState{up, down}, false}, {[]tunnel.PathState{down}, false}} {
		if got := d.tellPaths(c.paths, time.Now()); got != c.well {
			t.Errorf("%+v: %v", c.paths, got)
		}
	}
}

// What is known of a carrier outlives its link.
func TestAskKeepsCarriersThatAreDown(t *testing.T) {
	d := &robot{
		names: resolve.NewRunner(resolve.Config{}), cfg: &config.Robot{},
		chosen:     []carriers.Carrier{{Interface: "wwan0", Index: 7}},
		interfaces: []routing.Interface{{Name: "wwan0", Index: 7, Up: true}},
	}
	for _, change := range []func(){
		func() {},
		func() { d.interfaces[0].Up = false },
		func() { d.interfaces, d.chosen[0].Index = nil, 0 },
	} {
		change()
		if d.ask(); len(d.names.Status()) != 1 {
			t.Errorf("%+v: the resolver has no carrier", d.chosen)
		}
	}
}

func TestGone(t *testing.T) {
	d := &robot{chosen: []carriers.Carrier{{Slot: 1, Interface: "usb0", Problem: "It has gone."}, {Slot: 3, Interface: "usb0", Index: 7}}}
	for slot, want := range map[int]bool{0: false, 1: true, 3: false} { // 0: on its way out of the configuration
		if got, problem := d.gone(slot), d.missing(slot); got != want || (problem != "") != want {
			t.Errorf("slot %d: gone %v, %q", slot, got, problem)
		}
	}
}
