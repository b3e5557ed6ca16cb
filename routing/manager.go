package routing

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

var errClosed = errors.New("routing: Manager is closed")

// Manager keeps the kernel's network configuration as the daemon wants it. Its
// methods may be called by several goroutines; they run one after another. All
// calls must come from the network namespace in which New was called, because
// /proc/sys shows that of the caller.
type Manager struct {
	mu      sync.Mutex
	kernel  kernel
	store   rpStore
	log     *slog.Logger
	tun     string
	own     ownership
	added   []route           // blackhole routes that were not there before
	refused map[string]string // what the last Apply complained of, and why
	said    map[string]string // the same of the Apply that runs
	noRules map[bool]bool     // by v6: the kernel refused policy rules as such
	lacking string            // what SetupTUN had to leave out, for Warnings
	keeper  keeper
	closed  bool

	watchers watchers
	warnings atomic.Pointer[[]string]
}

// leftBehind is what the log says of each change that removes such.
const leftBehind = "removed what an earlier run left behind"

// New opens the configuration of the current network namespace, and removes the
// rules and routes that a daemon which was killed left behind; its TUN device,
// the blackhole routes and the loose rp_filter settings are taken over. tun is the
// name of this node's device, by which it is told from other nodes that run in the
// namespace: at most one robot, and gateways.
// runtimeDir is where the old rp_filter values are remembered, /run/fogplr by
// default.
func New(runtimeDir, tun string, log *slog.Logger) (*Manager, error) {
	k, err := openKernel()
	if err != nil {
		return nil, err
	}
	m, err := newManager(k, runtimeDir, tun, log)
	if err != nil {
		k.close()
		return nil, err
	}
	return m, nil
}

func newManager(k kernel, runtimeDir, tun string, log *slog.Logger) (*Manager, error) {
	m := &Manager{kernel: k, store: newRPStore(runtimeDir, k), log: log,
		noRules: map[bool]bool{}, keeper: newKeeper()}
	v, err := k.view(nil)
	if err != nil {
		return nil, err
	}
	removed, err := sweep(k, v, v.others(tun), false, nil)
	for _, line := range removed {
		log.Info(leftBehind, "change", line)
	}
	if err != nil {
		return nil, fmt.Errorf("removing what an earlier run left behind: %w", err)
	}
	return m, nil
}

// Apply makes the rules, routes and rp_filter settings what the wants need:
// it looks at the kernel, compares, changes what differs, and removes what
// earlier wants needed. It reports on each want, in their order. A refusal by the
// kernel concerns the carrier it was for and stands in that report; an error
// means that nothing could be looked at, or that the wants contradict each other.
// Applied again without a change outside, it changes nothing.
// What another program keeps removing is put back at a bounded pace: what must
// wait is not reported, and Watch kicks when it is due.
func (m *Manager) Apply(want []Want) ([]Carrier, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	if err := m.claim(want); err != nil {
		return nil, err
	}
	m.said = map[string]string{}
	defer func() { m.refused = m.said }()
	names := make([]string, len(want))
	for i, w := range want {
		names[i] = w.Interface
	}
	v, p, failed, err := m.converge(names, want)
	if err != nil {
		return nil, err
	}
	if err := m.blackhole(v); err != nil {
		m.complain("blackhole", err.Error())
	}
	m.keeper.settle(v, p.rules, append(p.routes, blackholes(m.own.overlay)...))
	m.warn(m.warningsOf(v, p))
	reports := make([]Carrier, len(p.carriers))
	for i, c := range p.carriers {
		reports[i] = c.report(v, failed)
	}
	return reports, nil
}

// converge looks, plans and changes; a second time when it thereby learnt that
// the kernel has no policy routing.
func (m *Manager) converge(names []string, want []Want) (*view, plan, failures, error) {
	for {
		v, err := m.kernel.view(names)
		if err != nil {
			return nil, plan{}, failures{}, err
		}
		v.noRules4 = v.noRules4 || m.noRules[false]
		v.noRules6 = v.noRules6 || m.noRules[true]
		known := len(m.noRules)
		p := desired(v, m.tun, m.own.overlay, want)
		failed := m.change(v, changes(v, p, &m.own))
		if len(m.noRules) == known {
			return v, p, failed, nil
		}
	}
}

func (m *Manager) warningsOf(v *view, p plan) []string {
	all := append(p.warnings, v.conflicts(m.tun, m.own.overlay)...)
	if m.lacking != "" {
		all = append(all, m.lacking)
	}
	if m.keeper.dispute() {
		all = append(all, m.keeper.quarrel)
	}
	return all
}

// claim checks the wants and takes their tables as ours.
func (m *Manager) claim(want []Want) error {
	slots := map[int]string{}
	names := map[string]bool{}
	for _, w := range want {
		if w.Slot < 0 || w.Slot > maxSlot {
			return fmt.Errorf("carrier %s: slot %d is not in 0 to %d", w.Interface, w.Slot, maxSlot)
		}
		if other, taken := slots[w.Slot]; taken {
			return fmt.Errorf("carriers %s and %s have the same slot %d", other, w.Interface, w.Slot)
		}
		if names[w.Interface] {
			return fmt.Errorf("carrier %s is given twice", w.Interface)
		}
		slots[w.Slot], names[w.Interface] = w.Interface, true
	}
	for slot := range slots {
		m.own.slots[slot] = true
	}
	return nil
}

// familyKey names one carrier's table in one family.
type familyKey struct {
	table int
	v6    bool
}

// failures is what could not be done.
type failures struct {
	tables map[familyKey]error
	loose  map[string]error // by interface
}

// change applies the changes one by one and goes on after a refusal.
func (m *Manager) change(v *view, ops []op) failures {
	failed := failures{tables: map[familyKey]error{}, loose: map[string]error{}}
	for _, o := range ops {
		table, v6 := o.carrier()
		key := familyKey{table, v6}
		if o.verb == addRule && failed.tables[key] != nil {
			continue // a rule without its routes would only divert
		}
		restore := m.keeper.lost(o)
		if restore && !m.mayRestore(o) {
			continue
		}
		err := m.do(v, o)
		line := o.String()
		if err == nil {
			m.done(o, restore)
			continue
		}
		switch {
		case o.verb == loosen:
			failed.loose[o.name] = err
		case o.verb == delRule || o.verb == delRoute:
		case failed.tables[key] == nil:
			failed.tables[key] = err
		}
		if o.verb == addRule && unsupported(err) {
			m.noRules[v6] = true // and the next look plans without
			continue
		}
		m.complain(line, why(err).Error())
	}
	return failed
}

func (m *Manager) do(v *view, o op) error {
	var err error
	switch o.verb {
	case addRoute, replaceRoute:
		return m.kernel.addRoute(o.route, o.verb == replaceRoute)
	case delRoute:
		err = m.kernel.delRoute(o.route)
	case addRule:
		if err = m.kernel.addRule(o.rule); errors.Is(err, unix.EEXIST) {
			return nil
		}
		return err
	case delRule:
		err = m.kernel.delRule(o.rule)
	case loosen:
		l, ok := v.link(o.name)
		if !ok {
			return unix.ENODEV
		}
		return m.store.loosen(m.kernel, v, l)
	}
	if gone(err) {
		return nil
	}
	return err
}

// complain logs a refusal, unless the last Apply already did.
func (m *Manager) complain(what, reason string) {
	known := m.refused[what] == reason || m.said[what] == reason
	m.said[what] = reason
	if known {
		return
	}
	m.log.Warn("network configuration refused", "change", what, "reason", reason)
}

// Close removes the rules and routes that Apply added and puts rp_filter back.
// The TUN device, its addresses and the blackhole routes stay, so that programs
// keep their sockets and nothing leaks while no daemon runs. An error leaves work
// for Cleanup. A second call does nothing.
func (m *Manager) Close() error { return m.end(false) }

// Abandon is Close after a start that failed: when the TUN device has gone with
// it, because it was new, the blackhole routes that are new go, too.
func (m *Manager) Abandon() error { return m.end(true) }

func (m *Manager) end(failed bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.watchers.stop()
	defer m.kernel.close()
	v, err := m.kernel.view(nil)
	if err != nil {
		return err
	}
	var errs []error
	beside := v.others(m.tun)
	own := m.own
	own.overlay = slices.DeleteFunc(slices.Clone(own.overlay), func(p netip.Prefix) bool { return slices.Contains(beside.overlays, p) })
	for _, o := range changes(v, plan{}, &own) {
		if err := m.do(v, o); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o, why(err)))
			continue
		}
		m.log.Info("network configuration changed", "change", o.String())
	}
	if failed {
		errs = append(errs, m.dropUnused(v))
	}
	if m.own.slots == [maxSlot + 1]bool{} {
		return errors.Join(errs...) // a gateway: rp_filter is not its affair
	}
	done, err := m.store.restore(m.kernel)
	for _, line := range done {
		m.log.Info("network configuration changed", "change", line)
	}
	return errors.Join(append(errs, err)...)
}
