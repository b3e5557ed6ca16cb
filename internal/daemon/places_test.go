package daemon

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/config"
)

func TestUnkeptSlots(t *testing.T) {
	n := &config.Node{StateDir: "/var/lib/fogplr"}
	for err, remedy := range map[error]string{unix.ENOSPC: "Free some space", unix.EROFS: "Let the user"} {
		s := slotsUnkept(n, fmt.Errorf("cannot keep the carriers' slots: %w", err))
		for _, want := range []string{err.Error(), "in the order of the configuration", remedy, "restart fogplr"} {
			if !strings.Contains(s, want) {
				t.Errorf("%v: no %q in %q", err, want, s)
			}
		}
	}
}
