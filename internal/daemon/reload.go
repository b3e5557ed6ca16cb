package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
)

// live is a configuration that may change while the daemon runs.
type live[C any] struct {
	file  string
	role  string
	level *slog.LevelVar
	load  func(string) (*C, error)
	node  func(*C) *config.Node
	// more returns the keys besides the node's that only a start takes over.
	more func(started, fresh *C) []string
	// apply takes over the rest; an error changes nothing.
	apply func(*C) error

	// changes returns what differs, for log.
	changes func(old, fresh *C) []slog.Attr
	log     *slog.Logger

	mu      sync.Mutex
	started *C
	current *C           // started at first, then what was taken over last
	key     keys.Private // at the start
}

// reload reads the configuration anew, takes over what can be while running, and
// tells what is wrong or takes a restart. It logs what it did.
func (l *live[C]) reload() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	changes, late, err := l.takeOver()
	if err != nil {
		l.log.Warn("The configuration was read again, and is refused.", "reason", err)
		return err
	}
	level, text := slog.LevelInfo, "The configuration was read again, and is in use."
	if len(late) > 0 {
		level, text = slog.LevelWarn, "The configuration was read again, and is in use but for what takes a restart."
		what := strings.Join(late, " and ")
		changes = append(changes, slog.String("restart", what))
		err = fmt.Errorf("the new configuration is in use but for %s, which takes a restart: %s. %s",
			what, config.RestartAdvice(l.role, l.file), meansFor(late, l.node(l.started).Interface))
	}
	if len(changes) == 0 {
		changes = append(changes, slog.String("changes", "none"))
	}
	l.log.LogAttrs(context.Background(), level, text, changes...)
	return err
}

// meansFor says what a restart means for programs, which know an interface and its
// addresses from their own start.
func meansFor(late []string, iface string) string {
	if slices.Contains(late, "address") || slices.Contains(late, "interface") {
		return "Programs that use " + iface + " must then be restarted, too"
	}
	return "Programs that use " + iface + " do not notice it"
}

// takeOver takes over what can be while running. It returns what that changed, and
// what takes a restart. An error changes nothing.
func (l *live[C]) takeOver() (changes []slog.Attr, late []string, err error) {
	fresh, err := l.load(l.file)
	var key keys.Private
	if err == nil {
		key, _, err = l.node(fresh).ReadKey()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the daemon goes on with the configuration that it has, since the new one has mistakes:\n%w", err)
	}
	if err := l.apply(fresh); err != nil {
		return nil, nil, fmt.Errorf("the daemon goes on with the configuration that it has, since the new one cannot be used: %w", err)
	}
	changes = l.changes(l.current, fresh)
	l.current = fresh
	node := l.node(fresh)
	l.level.Set(node.LogLevel)
	restart := append(restartKeys(l.node(l.started), node), l.more(l.started, fresh)...)
	if key != l.key {
		restart = append(restart, "the private key")
	}
	return changes, restart, nil
}

// restartKeys returns the keys of all nodes that have changed and that only a start
// takes over.
func restartKeys(old, fresh *config.Node) (changed []string) {
	for _, k := range []struct {
		name string
		same bool
	}{
		{"name", old.Name == fresh.Name},
		{"address", slices.Equal(old.Addresses, fresh.Addresses)},
		{"interface", old.Interface == fresh.Interface},
		{"mtu", old.MTU == fresh.MTU},
		{"control_socket", old.ControlSocket == fresh.ControlSocket},
		{"state_dir", old.StateDir == fresh.StateDir},
	} {
		if !k.same {
			changed = append(changed, k.name)
		}
	}
	return changed
}
