package daemon

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/fogplr/fogplr/internal/config"
)

// manyNames is how many names one line of the log has of each kind.
const manyNames = 8

// robotChanges returns what a reload changes, for the log.
func robotChanges(old, fresh *config.Robot) []slog.Attr {
	return slices.Concat(
		listed("carriers", old.Carriers, fresh.Carriers, func(c *config.Carrier) string { return c.Title() }),
		keyed("discovery", !reflect.DeepEqual(old.Discovery, fresh.Discovery), "changed"),
		listed("gateways", old.Gateways, fresh.Gateways, func(g *config.GatewayPeer) string { return g.Name }),
		keyed("deadline", old.Deadline != fresh.Deadline, fresh.Deadline),
		keyed("log_level", old.LogLevel != fresh.LogLevel, fresh.LogLevel),
	)
}

// gatewayChanges is the same for a gateway.
func gatewayChanges(old, fresh *config.Gateway) []slog.Attr {
	return slices.Concat(
		listed("robots", old.Robots, fresh.Robots, func(r *config.RobotPeer) string { return r.Name }),
		keyed("log_level", old.LogLevel != fresh.LogLevel, fresh.LogLevel),
	)
}

// keyed is an attribute if there is a change.
func keyed(key string, changed bool, value any) []slog.Attr {
	if !changed {
		return nil
	}
	return []slog.Attr{slog.Any(key, value)}
}

// listed says how many tables of a kind there are now, and by their names which
// ones came, went, or are no longer the same.
func listed[T any](kind string, old, fresh []T, name func(*T) string) []slog.Attr {
	was := map[string]*T{}
	for i := range old {
		was[name(&old[i])] = &old[i]
	}
	var added, changed, removed []string
	is := map[string]bool{}
	for i := range fresh {
		n := name(&fresh[i])
		is[n] = true
		if before := was[n]; before == nil {
			added = append(added, n)
		} else if !reflect.DeepEqual(*before, fresh[i]) {
			changed = append(changed, n)
		}
	}
	for i := range old {
		if n := name(&old[i]); !is[n] {
			removed = append(removed, n)
		}
	}
	parts := []string{fmt.Sprint(len(fresh))}
	for _, p := range []struct {
		what  string
		names []string
	}{{"added", added}, {"changed", changed}, {"removed", removed}} {
		if n := len(p.names); n > manyNames {
			parts = append(parts, fmt.Sprintf("%s %s and %d more", p.what, strings.Join(p.names[:manyNames], ", "), n-manyNames))
		} else if n > 0 {
			parts = append(parts, p.what+" "+strings.Join(p.names, ", "))
		}
	}
	return keyed(kind, len(parts) > 1, strings.Join(parts, "; "))
}
