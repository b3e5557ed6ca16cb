package daemon

import (
	"testing"
	"time"

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
