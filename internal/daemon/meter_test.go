package daemon

import (
	"strings"
	"testing"

	"github.com/fogplr/fogplr/internal/usage"
	"github.com/fogplr/fogplr/tunnel"
)

// The status has what was moved since the last count, and tells the carriers whose
// caps are used up from others.
func TestMeteredStatus(t *testing.T) {
	const month = "2026-11"
	for _, c := range []struct {
		state     usage.State
		at, moved uint64
		want      tunnel.UsageStatus
	}{
		{usage.State{Month: month, Used: 5, Cap: 9}, 3, 4, tunnel.UsageStatus{Month: month, Used: 6, Cap: 9}},
		{usage.State{Month: month, Used: 5, Cap: 9}, 3, 0, tunnel.UsageStatus{Month: month, Used: 5, Cap: 9}}, // configured anew
		{usage.State{Month: month, Used: 9, Cap: 9, Spent: true}, 3, 3, tunnel.UsageStatus{Month: month, Used: 9, Cap: 9, Spent: true}},
	} {
		if got := (metered{state: c.state, at: c.at}).status(c.moved); *got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.state, *got, c.want)
		}
	}
}

// Paths of a carrier that rests say so, and others what they said.
func TestPathsOfRestingCarriers(t *testing.T) {
	s := tunnel.Status{Peers: []tunnel.PeerStatus{
		{Name: "west", Paths: []tunnel.PathStatus{{Slot: 0, Stage: "no route", Hint: "no way"}, {Slot: 1, Stage: "no route", Hint: "no way"}}},
		{Name: "east", Paths: []tunnel.PathStatus{{Slot: 1, Up: true, Stage: "lossy"}, {Slot: 0, Stage: "no reply"}}},
	}}
	rests(&s, 0)
	for _, got := range []tunnel.PathStatus{s.Peers[0].Paths[0], s.Peers[1].Paths[1]} {
		if got.Stage != "resting" || !strings.Contains(got.Hint, "monthly cap") {
			t.Errorf("%+v", got)
		}
	}
	if got := s.Peers[0].Paths[1]; got.Stage != "no route" || got.Hint != "no way" {
		t.Errorf("%+v", got)
	}
	if got := s.Peers[1].Paths[0]; !got.Up || got.Stage != "lossy" {
		t.Errorf("%+v", got)
	}
}
