package tunnel

import (
	"fmt"
	"time"
)

// earliestClock is a time before which no clock can be right: before any version
// of this program.
var earliestClock = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// wallClock remembers that the wall clock was found to be behind what it was.
type wallClock struct {
	noted time.Time // when, zero for never
}

// behind says that it was found so.
func (w *wallClock) behind(now time.Time) { w.noted = now }

// warning says in plain words what is wrong with the clock, empty for nothing that
// is known. A clock that was set since it was found to be behind is believed.
func (w *wallClock) warning(now time.Time) string {
	const means = "Whatever goes by the time (certificates, logs, time stamps in ROS 2) is wrong until the clock is set. " +
		"See `timedatectl`; NTP may use the tunnel, which works all the same."
	said := now.UTC().Format(time.DateTime)
	switch {
	case now.Before(earliestClock):
		return fmt.Sprintf("This machine's clock says %s UTC, which cannot be. %s", said, means)
	case !w.noted.IsZero() && stepped(w.noted, now) < clockSet:
		return fmt.Sprintf("This machine's clock says %s UTC, and was ahead of that before: gateways refused its handshakes, and started them instead. %s", said, means)
	}
	return ""
}

// stepped returns by how much the wall clock was set forward between two times.
func stepped(from, to time.Time) time.Duration {
	return to.Round(0).Sub(from.Round(0)) - to.Sub(from)
}
