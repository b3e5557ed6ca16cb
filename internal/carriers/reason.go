package carriers

import (
	"fmt"
	"slices"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/routing"
)

// Reason says in a few words why an interface is no carrier while that many others
// are, and whether the configuration lets it be one, so that people may miss it.
func Reason(cfg *config.Robot, i routing.Interface, carriers int) (why string, candidate bool) {
	r := &round{cfg: cfg}
	denied, kept := r.denied(&i)
	_, eligible := r.eligible(&i, config.Selector{})
	blocks := len(cfg.Carriers) > 0
	takes := slices.ContainsFunc(cfg.Carriers, func(b config.Carrier) bool { return r.takes(&b, &i) })
	if candidate = takes; !blocks {
		candidate = eligible || i.Excluded == ""
		takes = eligible && i.Leads
	}
	switch {
	case takes && carriers >= slots.Count:
		why = fmt.Sprintf("all %d slots are taken", slots.Count)
	case takes:
		why = "fogplr has not taken it yet; a reload takes over changes of the configuration"
	case kept:
		why = fmt.Sprintf("deny of [discovery] has %q", denied.String())
	case blocks:
		why = "no [[carrier]] matches it"
	case !eligible:
		why = i.Excluded
	case !i.Up:
		why = "it is down or not connected"
	default:
		why = "no route leads from it to the internet"
	}
	return why, candidate
}
