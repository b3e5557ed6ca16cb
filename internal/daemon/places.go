package daemon

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/config"
)

// slotsUnread is the error of slots that are there and cannot be read.
func slotsUnread(cfg *config.Node, err error) error {
	return fmt.Errorf("%w. The file must be one that the user of fogplr may read; if it is not fogplr's, remove it or give another state_dir in %s", err, cfg.File)
}

// slotsUnkept is the note for slots that could not be written.
func slotsUnkept(cfg *config.Node, err error) string {
	remedy := "Let the user of fogplr write to " + cfg.StateDir
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		remedy = "Free some space for " + cfg.StateDir
	}
	return fmt.Sprintf("%v. This run goes on, but after a restart the slots are given anew in the order of the configuration, so a carrier "+
		"may get another key, which a gateway without all eight of this robot's carrier_keys refuses. %s, or give another state_dir, "+
		"and restart fogplr.", err, remedy)
}
