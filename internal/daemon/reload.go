package daemon

import (
	"errors"
	"reflect"

	"github.com/fogplr/fogplr/internal/config"
)

// errRestart is the answer to a reload that changes what a running daemon keeps.
var errRestart = errors.New("the new configuration is sound, but a running daemon takes over only log_level. " +
	"Restart the service for the rest: plr0 and the programs on it go on")

// reloader returns what a reload does: it reads the configuration anew, tells
// what is wrong with it, and takes over what can be while running.
func reloader[C any](o Options, old *C, load func(string) (*C, error), node func(*C) *config.Node) func() error {
	return func() error {
		fresh, err := load(o.ConfigFile)
		if err != nil {
			return err
		}
		o.Level.Set(node(fresh).LogLevel)
		same := *old
		node(&same).TakeOver(node(fresh))
		if !reflect.DeepEqual(&same, fresh) {
			return errRestart
		}
		return nil
	}
}
