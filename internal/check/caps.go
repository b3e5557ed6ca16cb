package check

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/usage"
)

// Cap is what a metered carrier has used of its monthly cap.
type Cap struct {
	Carrier string // its interface
	Unknown bool   // this user may not see it, so State is of no use
	usage.State
}

// caps looks up what metered carriers have used, for when no daemon tells; hidden
// says that this user may not know who they are.
func (h Host) caps(f *Facts, robot *config.Robot, all []carriers.Carrier, hidden bool) {
	book, err := usage.Open(h.path(robot.StateDir))
	hidden = hidden || errors.Is(err, fs.ErrPermission)
	if err != nil && !hidden {
		return // the daemon will warn, and count from nothing
	}
	now, free, err := h.Clock()
	if err != nil {
		return
	}
	for _, c := range all {
		if c.Metered() {
			f.Caps = append(f.Caps, Cap{c.Interface, hidden, book.Look(c.ID, c.MonthlyCap, usage.Clock{Wall: now, Sure: !free})})
		}
	}
}

// unused is why a carrier is not used, although its interface could be.
type unused struct{ id, problem string }

// unused returns the carriers that are not used, although their interfaces could be.
func (f *Facts) unused() map[string]unused {
	out := map[string]unused{}
	if s := f.Daemon.Status; s != nil {
		for i := range s.Carriers {
			c := &s.Carriers[i]
			// The name of one that is gone may be another carrier's by now.
			if c.Problem == "" || c.Gone || f.lacking(c.Interface) {
				continue
			}
			id := idUnusable
			if c.Usage != nil && c.Usage.Spent {
				id = idResting
			}
			out[c.Interface] = unused{id, c.Interface + ": " + c.Problem}
		}
		return out
	}
	for _, c := range f.Caps {
		if c.Spent && !c.Unknown && !f.lacking(c.Carrier) {
			out[c.Carrier] = unused{idResting, fmt.Sprintf("%s has used %s of its monthly cap of %s, which leaves but a small reserve, so it rests until %s is over. "+
				"To use it nevertheless, raise monthly_cap in %s.", c.Carrier, usage.Bytes(c.Used), usage.Bytes(c.State.Cap), c.Month, f.Config.File)}
		}
	}
	return out
}

// lacking says that an interface cannot be used as it is now, which is told
// elsewhere.
func (f *Facts) lacking(iface string) bool {
	for i := range f.Network.Carriers {
		if c := &f.Network.Carriers[i]; c.Interface == iface && c.Problem != "" {
			return true
		}
	}
	return false
}
