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
			Text: fmt.Sprintf("The clock says %s, which is before this program was made (%s). WireGuard refuses handshakes of the past; fogplr then has the gateway start them, so paths come up some seconds later. What ROS 2 stamps or signs with the time is wrong.",
				c.Now.UTC().Format(time.DateOnly), c.Built.UTC().Format(time.DateOnly))}}
	case c.Free != nil && *c.Free:
		return []Finding{{ID: "clock.unsynchronised", Level: Note, Repair: correct,
			Text: "Nothing keeps the clock right (the kernel calls it unsynchronised). fogplr does not need the exact time, but ROS 2 on several machines does, for stamps and transforms."}}
	}
	return nil
}
