package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/usage"
	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/tunnel"
)

// meterEvery is how often metered carriers are looked at when they have not moved
// enough to ask for it: a month may have begun.
const meterEvery = time.Minute

// metered is what is known of a metered carrier.
type metered struct {
	id    string
	state usage.State
	at    uint64 // what the tunnel had moved then
}

// meter holds metered carriers to their caps until ctx ends. Robots without any
// are not woken.
func (d *robot) meter(ctx context.Context) error {
	defer func() {
		d.count()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.usage == nil {
			return
		}
		if err := d.usage.Close(); err != nil {
			d.opts.Log.Warn("What metered carriers have used is counted too high by a little.", "err", err)
		}
	}()
	for {
		var again <-chan time.Time
		if d.count() {
			again = time.After(meterEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again:
		case <-d.rechosen:
		case <-d.tunnel.Metered():
		}
	}
}

// count takes what metered carriers have moved, and stops those whose cap is used
// up. It reports whether there are any.
func (d *robot) count() bool {
	d.mu.Lock() // all the while, so that the tunnel's carriers are those chosen
	defer d.mu.Unlock()
	var all []carriers.Carrier
	for _, c := range d.chosen {
		if c.Metered() {
			all = append(all, c)
		}
	}
	if d.usage == nil {
		if len(all) == 0 {
			return false
		}
		d.openUsage()
	}
	now := d.clocks()
	used, spent := map[int]metered{}, map[int]string{}
	for _, c := range all {
		if !d.holds(c.Slot, c.ID) { // it was refused, and is not used
			continue
		}
		m := d.countOne(c.Slot, c.ID, c.MonthlyCap, now)
		used[c.Slot] = m
		if m.state.Spent {
			spent[c.Slot] = fmt.Sprintf("Its monthly cap of %s is used up but for a small reserve, so %s rests until %s is over. "+
				"To use it nevertheless, raise monthly_cap and run `%s`.", usage.Bytes(m.state.Cap), c.Interface, m.state.Month, d.base.cfg.Command("reload"))
			d.tunnel.Rest(c.Slot, spent[c.Slot])
		}
	}
	if d.noteUse(used, spent) {
		d.kick()
	}
	unkept := ""
	if err := d.usage.Keep(); err != nil {
		unkept = fmt.Sprintf("After a crash or a loss of power, metered carriers may move more than their caps: %v.", err)
	}
	d.note("usage unkept", unkept)
	return len(all) > 0
}

func (d *robot) openUsage() {
	var err error
	d.usage, err = usage.Open(d.base.cfg.StateDir) // as it was at the start
	unread := ""
	if err != nil {
		unread = fmt.Sprintf("What metered carriers have used in this month is not known, so their caps are counted from now on: %v.", err)
	}
	d.note("usage", unread)
}

func (d *robot) clocks() usage.Clock {
	return usage.Clock{Wall: time.Now(), Up: time.Since(d.began), Sure: clockSure()}
}

// holds says whether the tunnel has that carrier in that slot.
func (d *robot) holds(slot int, id string) bool {
	return slices.ContainsFunc(d.set.Carriers, func(c tunnel.Carrier) bool { return c.Slot == slot && c.ID == id })
}

// countOne counts one carrier, and has the tunnel tell when to do so again.
func (d *robot) countOne(slot int, id string, limit uint64, now usage.Clock) metered {
	moved := d.tunnel.Moved(slot)
	s := d.usage.Count(id, moved, limit, now)
	d.tunnel.Meter(slot, s.Again, s.Most)
	return metered{id, s, moved}
}

// countLast counts what metered carriers have moved, before the tunnel closes some of
// them and their counters go. The caller holds mu.
func (d *robot) countLast() {
	now := d.clocks()
	for slot, m := range d.used {
		if d.holds(slot, m.id) {
			d.countOne(slot, m.id, m.state.Cap, now)
		}
	}
}

// noteUse notes what was counted, and reports whether another carrier may be used
// or must rest now. The caller holds mu.
func (d *robot) noteUse(used map[int]metered, spent map[int]string) (changed bool) {
	changed = len(spent) != len(d.spent)
	for slot := range spent {
		changed = changed || d.spent[slot] == ""
	}
	for slot, m := range used {
		changed = changed || d.used[slot].id != m.id
	}
	for slot := range d.used {
		if _, still := used[slot]; !still { // it has no cap any more
			d.tunnel.Meter(slot, 0, 0)
		}
	}
	d.spent, d.used = spent, used
	return changed
}

// resting says why a carrier must not be used because of its cap, if that is so. The
// caller holds mu.
func (d *robot) resting(c carriers.Carrier) string {
	if c.Metered() && d.used[c.Slot].id != c.ID {
		return "What it has used in this month is being looked up."
	}
	return d.spent[c.Slot]
}

// status says what a carrier has used when the tunnel has moved that much by it.
func (m metered) status(moved uint64) *tunnel.UsageStatus {
	return &tunnel.UsageStatus{Month: m.state.Month, Used: m.state.Used + max(moved, m.at) - m.at, Cap: m.state.Cap, Spent: m.state.Spent}
}

// decorate adds to the tunnel's status what only the daemon knows.
func (d *robot) decorate(s *tunnel.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range s.Carriers {
		c := &s.Carriers[i]
		c.Gone = d.gone(c.Slot)
		if m, ok := d.used[c.Slot]; ok && d.holds(c.Slot, m.id) {
			c.Usage = m.status(d.tunnel.Moved(c.Slot))
		}
		if spent := d.spent[c.Slot]; spent != "" && c.Problem == spent {
			rests(s, c.Slot)
		}
	}
	meant := map[place][]netip.AddrPort{}
	for _, r := range d.names.Status() {
		for gateway, addresses := range r.Meant {
			meant[place{r.Slot, gateway}] = addresses
		}
		s.Warnings = append(s.Warnings, r.Sentences...)
		for i := range s.Carriers {
			if s.Carriers[i].Slot == r.Slot {
				s.Carriers[i].Captive = r.Captive
			}
		}
	}
	s.Warnings = append(s.Warnings, oldAddresses(d.cfg, meant, d.tunnel.Paths())...)
}

// rests says of a carrier's paths what the tunnel, which only does not use it, takes
// for a lack of routes.
func rests(s *tunnel.Status, slot int) {
	for i := range s.Peers {
		for n := range s.Peers[i].Paths {
			if p := &s.Peers[i].Paths[n]; p.Slot == slot && !p.Up {
				p.Stage, p.Hint = path.StageResting.String(), "This carrier rests, since its monthly cap is used up."
			}
		}
	}
}

// clockSure says whether this machine's clock was set by others: by the kernel, or
// by systemd-timesyncd where the unit's sandbox hides the kernel's answer.
func clockSure() bool {
	var t unix.Timex // no modes: nothing is set
	if _, err := unix.Adjtimex(&t); err == nil {
		return t.Status&unix.STA_UNSYNC == 0
	}
	_, err := os.Stat("/run/systemd/timesync/synchronized")
	return err == nil
}
