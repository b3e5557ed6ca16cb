package daemon

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/fogplr/fogplr/internal/config"
)

// errRestart is the answer to a reload that changes what a running daemon keeps.
var errRestart = errors.New("the new configuration has no mistakes, but it changes more than log_level, which is all that a running daemon takes over")

// reloader returns what a reload does: it reads the configuration anew, tells
// what is wrong with it, and takes over what can be while running.
func reloader[C any](o Options, old *C, load func(string) (*C, error), node func(*C) *config.Node) func() error {
	return func() error {
		fresh, err := load(o.ConfigFile)
		if err != nil {
			return fmt.Errorf("the daemon goes on with the configuration that it has, since the new one has mistakes:\n%w", err)
		}
		o.Level.Set(node(fresh).LogLevel)
		same := *old
		node(&same).TakeOver(node(fresh))
		if !reflect.DeepEqual(&same, fresh) {
			service := "fogplr-gateway"
			if _, robot := any(old).(*config.Robot); robot {
				service = "fogplr-robot"
			}
			return fmt.Errorf("%w. Restart the service for the rest (systemctl restart %s): programs on %s do not notice", errRestart, service, node(old).Interface)
		}
		return nil
	}
}
