package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/usage"
	"github.com/fogplr/fogplr/tunnel"
)

// meterEvery is how often what metered carriers have moved is counted: a reserve
// of a hundredth of the cap is for what is moved meanwhile.
const meterEvery = time.Second

// meter holds metered carriers to their caps until ctx ends. Robots without any
// are not woken.
func (d *robot) meter(ctx context.Context) error {
	var book *usage.Book
	start := time.Now()
	for {
		metered := d.metered()
		if len(metered) > 0 && book == nil {
			var err error
			book, err = usage.Open(d.cfg.StateDir)
			unread := ""
			if err != nil {
				unread = fmt.Sprintf("What metered carriers have used in this month is not known, so their caps are counted from now on: %v.", err)
			}
			d.note("usage", unread)
			defer func() {
				if err := book.Close(); err != nil {
					d.opts.Log.Warn("What metered carriers have used is counted too high by a little.", "err", err)
				}
			}()
		}
		if book != nil {
			d.count(book, metered, usage.Clock{Wall: time.Now(), Up: time.Since(start)})
		}
		var again <-chan time.Time
		if len(metered) > 0 {
			again = time.After(meterEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again:
		case <-d.rechosen:
		}
	}
}

func (d *robot) metered() (all []carriers.Carrier) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.chosen {
		if c.Metered() {
			all = append(all, c)
		}
	}
	return all
}

// count takes what the carriers have moved, and stops those whose cap is used up.
func (d *robot) count(book *usage.Book, metered []carriers.Carrier, now usage.Clock) {
	spent := map[int]string{}
	used := map[int]tunnel.UsageStatus{}
	for _, c := range metered {
		s := book.Count(c.ID, d.tunnel.Moved(c.Slot), c.MonthlyCap, now)
		used[c.Slot] = tunnel.UsageStatus{Month: s.Month, Used: s.Used, Cap: s.Cap}
		if s.Spent {
			spent[c.Slot] = fmt.Sprintf("Its monthly cap of %s is used up but for a small reserve, so %s rests until %s is over. "+
				"To use it nevertheless, raise monthly_cap and run: fogplr reload.", bytes(s.Cap), c.Interface, s.Month)
		}
	}
	unkept := ""
	if err := book.Keep(); err != nil {
		unkept = fmt.Sprintf("After a crash or a loss of power, metered carriers may move more than their caps: %v.", err)
	}
	d.note("usage unkept", unkept)
	d.mu.Lock()
	changed := len(spent) != len(d.spent)
	for slot := range spent {
		changed = changed || d.spent[slot] == ""
	}
	d.spent, d.used = spent, used
	d.mu.Unlock()
	if changed {
		d.kick()
	}
}

// bytes returns n in the unit that people think of caps in.
func bytes(n uint64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.3g GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.3g MB", float64(n)/1e6)
}

// decorate adds to the tunnel's status what only the daemon knows.
func (d *robot) decorate(s *tunnel.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range s.Carriers {
		if u, ok := d.used[s.Carriers[i].Slot]; ok {
			s.Carriers[i].Usage = &u
		}
	}
	for _, r := range d.names.Status() {
		s.Warnings = append(s.Warnings, r.Sentences...)
		for i := range s.Carriers {
			if s.Carriers[i].Slot == r.Slot {
				s.Carriers[i].Captive = r.Captive
			}
		}
	}
}
