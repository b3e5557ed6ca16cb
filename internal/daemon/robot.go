package daemon

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/internal/usage"
	"github.com/fogplr/fogplr/resolve"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// Robot runs a robot's daemon until ctx ends.
func Robot(ctx context.Context, o Options) error {
	cfg, err := config.LoadRobot(o.ConfigFile)
	if err != nil {
		return err
	}
	key, keyWarning, err := cfg.ReadKey()
	if err != nil {
		return err
	}
	if err := cfg.CheckStateDir(); err != nil {
		return err
	}
	b, err := newBase(ctx, o, "robot", &cfg.Node)
	if err != nil {
		return err
	}
	b.note("key", keyWarning)
	d := &robot{base: b, key: key, found: map[place][]netip.AddrPort{}, spent: map[int]string{}, rechosen: make(chan struct{}, 1), began: time.Now()}
	b.decorate = d.decorate
	d.names = resolve.NewRunner(resolve.Config{Mark: routing.Mark, Found: d.learnt, Moved: d.asked, Log: o.Log})
	if err := d.start(cfg); err != nil {
		return b.fail(err)
	}
	d.count() // before any carrier is used
	l := &live[config.Robot]{
		file: o.ConfigFile, role: "robot", level: o.Level, started: cfg, current: cfg, key: key,
		load: config.LoadRobot, node: func(c *config.Robot) *config.Node { return &c.Node },
		more:  func(_, _ *config.Robot) []string { return nil },
		apply: d.apply, changes: robotChanges, log: o.Log,
	}
	return b.run(ctx, d.tunnel, l.reload, func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return b.follow(ctx, d.keep) })
		group.Go(func() error { d.names.Run(ctx); return nil })
		group.Go(func() error { d.watchPaths(ctx); return nil })
		group.Go(func() error { return d.meter(ctx) })
		return group.Wait()
	})
}

// robot is the part of a robot's daemon that follows its carriers.
type robot struct {
	*base
	key    keys.Private
	tunnel *tunnel.Robot

	mu      sync.Mutex // held while carriers are looked at
	cfg     *config.Robot
	book    *slots.Book
	chooser *carriers.Chooser
	chosen  []carriers.Carrier
	// interfaces are what the kernel had when they were chosen.
	interfaces []routing.Interface
	names      *resolve.Runner
	found      map[place][]netip.AddrPort // by names
	spent      map[int]string             // why a metered carrier, by slot, must rest
	used       map[int]metered            // what metered carriers have moved, by slot
	rechosen   chan struct{}              // tells meter; has room for one
	usage      *usage.Book                // nil until there is a cap
	began      time.Time
	set        tunnel.RobotConfig // what the tunnel has, with
	// leaving, those at the end of its carriers that are not wanted any more and
	// go at a time, or as soon as the others reach every gateway.
	leaving int
	until   time.Time
}

// Carriers that are taken out of a configuration go on until the others reach
// every gateway, but not for longer than leaveWithin; leaveEvery is how often
// that is looked at.
const (
	leaveWithin = 5 * time.Second
	leaveEvery  = 100 * time.Millisecond
)

// start makes the tunnel.
func (d *robot) start(cfg *config.Robot) error {
	set, err := d.choose(cfg)
	if err != nil {
		return err
	}
	if d.tunnel, err = tunnel.NewRobot(set, d.host); err != nil {
		return err
	}
	d.cfg, d.set = cfg, set
	return nil
}

// apply takes over another configuration.
func (d *robot) apply(cfg *config.Robot) error {
	d.mu.Lock()
	old := d.cfg
	d.cfg = cfg
	err := d.reconfigure()
	if err != nil {
		d.cfg = old
	}
	d.mu.Unlock()
	d.kick() // after an error, to choose again by the old one
	return err
}

// reconfigure gives the tunnel the carriers and gateways that the configuration
// now means. The caller holds mu.
func (d *robot) reconfigure() error {
	set, err := d.choose(d.cfg)
	if err != nil {
		return err
	}
	var staying []int
	for _, c := range set.Carriers {
		staying = append(staying, c.Slot)
	}
	var leaving []tunnel.Carrier
	if len(staying) > 0 && !d.tunnel.Reaches(staying) {
		leaving = slices.DeleteFunc(slices.Clone(d.set.Carriers), func(c tunnel.Carrier) bool { return slices.Contains(staying, c.Slot) })
	}
	now := time.Now()
	switch {
	case len(leaving) == 0:
	case d.leaving == 0:
		d.until = now.Add(leaveWithin)
	case now.After(d.until):
		leaving = nil
	}
	set.Carriers = append(set.Carriers, leaving...)
	if !same(set, d.set) {
		if err := d.install(set); err != nil {
			return err
		}
	}
	d.set, d.leaving = set, len(leaving)
	return nil
}

// install gives the tunnel its configuration. The caller holds mu.
func (d *robot) install(set tunnel.RobotConfig) error {
	d.countLast()
	if err := d.tunnel.Configure(set); err != nil {
		return err
	}
	d.set = set
	return nil
}
