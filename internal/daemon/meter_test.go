package daemon

import (
	"testing"

	"github.com/fogplr/fogplr/internal/usage"
	"github.com/fogplr/fogplr/resolve"
	"github.com/fogplr/fogplr/tunnel"
)

// The status tells the carriers whose caps are used up from others.
func TestSpentIsTold(t *testing.T) {
	d := &robot{
		tunnel: new(tunnel.Robot), names: resolve.NewRunner(resolve.Config{}),
		used: map[int]metered{
			1: {state: usage.State{Month: "2026-11", Used: 7, Cap: 9}},
			3: {state: usage.State{Month: "2026-11", Used: 9, Cap: 9, Spent: true}},
		},
	}
	s := tunnel.Status{Carriers: []tunnel.CarrierStatus{{Slot: 0}, {Slot: 1}, {Slot: 3}}}
	d.decorate(&s)
	if u := s.Carriers[0].Usage; u != nil {
		t.Errorf("without a cap: %+v", u)
	}
	for i, want := range []tunnel.UsageStatus{{Month: "2026-11", Used: 7, Cap: 9}, {Month: "2026-11", Used: 9, Cap: 9, Spent: true}} {
		if u := s.Carriers[i+1].Usage; u == nil || *u != want {
			t.Errorf("carrier %d: %+v, want %+v", i+1, u, want)
		}
	}
}
