package carriers

import (
	"fmt"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/routing"
)

// Reason says in a few words why an interface that was not chosen is no carrier.
func Reason(cfg *config.Robot, i routing.Interface) string {
	denied, kept := (&round{cfg: cfg}).denied(&i)
	switch {
	case kept:
		return fmt.Sprintf("deny of [discovery] has %q", denied.String())
	case len(cfg.Carriers) > 0:
		return "no [[carrier]] matches it"
	case i.Excluded != "":
		return i.Excluded
	case !i.Up:
		return "it is down or not connected"
	case !i.Leads:
		return "no route leads from it to the internet"
	}
	return "all slots are taken"
}
