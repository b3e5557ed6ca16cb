package daemon

import (
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
