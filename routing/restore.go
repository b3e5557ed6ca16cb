package routing

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Restored returns how many rules and routes were put back since New because
// somebody else had removed or changed them. When an interface went down and up
// again between two looks, its routes count, too: the kernel removed them. It
// never waits for the kernel.
func (m *Manager) Restored() uint64 { return m.keeper.count.Load() }

// keeper remembers what this Manager has put into the kernel, so that it can
// tell what somebody else removed from what is new, and paces putting it back.
type keeper struct {
	now    func() time.Time
	rules  map[rule]bool
	routes map[route]bool
	count  atomic.Uint64
	pace   pace

	// quarrel is a sentence about a program that removes faster than pace
	// allows to put back; latest is when something was last missing.
	quarrel string
	latest  time.Time
}

func newKeeper() keeper {
	return keeper{now: time.Now, rules: map[rule]bool{}, routes: map[route]bool{}}
}

// lost says that the change would put back what is gone without our doing.
func (k *keeper) lost(o op) bool {
	switch o.verb {
	case addRule:
		return k.rules[o.rule]
	case addRoute, replaceRoute:
		return k.routes[o.route]
	}
	return false
}

// did takes note of a change that was made.
func (k *keeper) did(o op) {
	switch o.verb {
	case addRule:
		k.rules[o.rule] = true
	case delRule:
		delete(k.rules, o.rule)
	case addRoute, replaceRoute:
		k.routes[o.route] = true
	case delRoute:
		delete(k.routes, o.route)
	}
}

// settle forgets what is no longer wanted, and takes over what was there.
func (k *keeper) settle(v *view, rules []rule, routes []route) {
	k.rules = kept(k.rules, v.rules, rules)
	k.routes = kept(k.routes, v.routes, routes)
}

func kept[T comparable](before map[T]bool, have, want []T) map[T]bool {
	there := map[T]bool{}
	for _, x := range have {
		there[x] = true
	}
	after := map[T]bool{}
	for _, x := range want {
		if before[x] || there[x] {
			after[x] = true
		}
	}
	return after
}

// dispute says that a quarrel is going on.
func (k *keeper) dispute() bool {
	if k.quarrel != "" && k.now().Sub(k.latest) > quarrelMemory {
		k.quarrel = ""
	}
	return k.quarrel != ""
}

// mayRestore says whether the change, which lost named, may be made now; if
// not, every Watch kicks when it may.
func (m *Manager) mayRestore(o op) bool {
	k := &m.keeper
	now := k.now()
	k.dispute()
	k.latest = now
	wait := k.pace.wait(now)
	if wait == 0 {
		return true
	}
	if k.quarrel == "" {
		k.quarrel = fmt.Sprintf("Another program keeps removing rules or routes of fogplr's, such as this: %s. fogplr puts them back, but "+
			"no more than %d times a second, and carriers may stand still in between. Find the program and stop it from that; "+
			"systemd-networkd leaves them alone with ManageForeignRoutingPolicyRules=no and ManageForeignRoutes=no in "+
			"/etc/systemd/networkd.conf.", o, time.Second/restoreEvery)
	}
	m.watchers.kickAfter(wait)
	return false
}

// done logs a change that was made. In a quarrel the one warning is enough.
func (m *Manager) done(o op, restored bool) {
	m.keeper.did(o)
	if !restored {
		m.log.Info("network configuration changed", "change", o.String())
		return
	}
	m.keeper.count.Add(1)
	level := slog.LevelInfo
	if m.keeper.dispute() {
		level = slog.LevelDebug
	}
	m.log.Log(context.Background(), level, "put back what another program removed", "change", o.String())
}

// pace allows rounds of putting back: restoreBurst at once, then one each
// restoreEvery. All that is missing goes into one round.
type pace struct {
	due  time.Time // when the burst is unused again
	open time.Time // end of the round that was allowed last
}

// wait returns 0 when a round may begin now, or has just begun, or else how long
// to wait.
func (p *pace) wait(now time.Time) time.Duration {
	if now.Before(p.open) {
		return 0
	}
	if p.due.Before(now) {
		p.due = now
	}
	if early := p.due.Sub(now) - (restoreBurst-1)*restoreEvery; early > 0 {
		return early
	}
	p.due = p.due.Add(restoreEvery)
	p.open = now.Add(settleTime)
	return 0
}
