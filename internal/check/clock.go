package check

import (
	"fmt"
	"time"
)

// judgeClock looks at the time of day.
func judgeClock(f *Facts) []Finding {
	const correct = "timedatectl set-ntp true"
	c := f.Clock
	switch {
	case c.Now.IsZero():
		return nil
	case c.Now.Before(c.Built):
		return []Finding{{ID: "clock.past", Level: Warning, Repair: correct,
			Text: fmt.Sprintf("The clock says %s, which is before this program was made (%s). The other side of a WireGuard session takes handshakes that are older than the last one for repeated ones and refuses them, so after a run with the right time paths may not come up until the clock is right.",
				c.Now.UTC().Format(time.DateOnly), c.Built.UTC().Format(time.DateOnly))}}
	case c.Free != nil && *c.Free:
		return []Finding{{ID: "clock.unsynchronised", Level: Note, Repair: correct,
			Text: "Nothing keeps the clock right (the kernel calls it unsynchronised). fogplr does not need the exact time, but a clock that is set back between two starts can keep paths down."}}
	}
	return nil
}
