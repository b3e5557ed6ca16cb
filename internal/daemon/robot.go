package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/internal/slots"
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
	if err := checkFolder(cfg.File, "state_dir", cfg.StateDir); err != nil {
		return err
	}
	b, err := newBase(o, "robot", &cfg.Node)
	if err != nil {
		return err
	}
	b.note("key", keyWarning)
	d := &robot{base: b, key: key}
	if err := d.start(cfg); err != nil {
		return b.fail(err)
	}
	l := &live[config.Robot]{
		file: o.ConfigFile, role: "robot", level: o.Level, started: cfg, key: key,
		load: config.LoadRobot, node: func(c *config.Robot) *config.Node { return &c.Node },
		more:  func(_, _ *config.Robot) []string { return nil },
		apply: d.apply,
	}
	return b.run(ctx, d.tunnel, l.reload, func(ctx context.Context) error { return b.follow(ctx, d.keep) })
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
	absent  map[int]string     // why a carrier, by slot, has no interface
	set     tunnel.RobotConfig // what the tunnel has, with
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
	if err == nil {
		d.kick()
	}
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
		if err := d.tunnel.Configure(set); err != nil {
			return err
		}
	}
	d.set, d.leaving = set, len(leaving)
	return nil
}

func same(a, b tunnel.RobotConfig) bool {
	return a.Deadline == b.Deadline && slices.Equal(a.Carriers, b.Carriers) &&
		slices.EqualFunc(a.Gateways, b.Gateways, func(x, y tunnel.GatewayPeer) bool {
			return x.Name == y.Name && x.Key == y.Key && slices.Equal(x.Addresses, y.Addresses) && slices.Equal(x.Endpoints, y.Endpoints)
		})
}

// choose returns what the tunnel is to be.
func (d *robot) choose(cfg *config.Robot) (tunnel.RobotConfig, error) {
	set := tunnel.RobotConfig{Common: d.common()}
	set.Deadline = cfg.Deadline
	chosen, err := d.chooseCarriers(cfg)
	if err != nil {
		return set, err
	}
	for _, c := range chosen {
		carrierKey := keys.CarrierKey(d.key, uint8(c.Slot))
		set.Carriers = append(set.Carriers, tunnel.Carrier{
			Interface: c.Interface, Slot: c.Slot, Key: tunnel.Key(carrierKey), Port: keys.CarrierPort(carrierKey.PublicKey()),
		})
	}
	for _, g := range cfg.Gateways {
		p := tunnel.GatewayPeer{Name: g.Name, Addresses: g.Addresses, Key: tunnel.Key(g.PublicKey)}
		for _, e := range g.Endpoints {
			a, ok := e.AddrPort()
			if !ok {
				return set, fmt.Errorf("the endpoint %v of gateway %s is a DNS name, which is not looked up yet: give its address", e, g.Name)
			}
			p.Endpoints = append(p.Endpoints, a)
		}
		set.Gateways = append(set.Gateways, p)
	}
	return set, nil
}

// chooseCarriers returns what the carriers are now, and keeps their slots.
func (d *robot) chooseCarriers(cfg *config.Robot) ([]carriers.Carrier, error) {
	if d.chooser == nil {
		book, notes, err := slots.Load(cfg.StateDir)
		if err != nil {
			return nil, slotsUnread(&cfg.Node, err)
		}
		d.note("slots", strings.Join(notes, " "))
		d.book, d.chooser = book, carriers.New(book)
	}
	interfaces, err := d.net.Interfaces()
	if err != nil {
		return nil, err
	}
	choice := d.chooser.Choose(cfg, interfaces)
	d.note("carriers", strings.Join(append(choice.Notes, choice.Missing...), " "))
	unkept := ""
	if err := d.book.Save(); err != nil {
		unkept = slotsUnkept(&cfg.Node, err)
	}
	d.note("unkept", unkept)
	d.absent = map[int]string{}
	for _, c := range choice.Carriers {
		if c.Index == 0 {
			d.absent[c.Slot] = c.Problem
		}
	}
	return choice.Carriers, nil
}

// keep tells the tunnel what has become of its carriers, and the kernel what they
// need. It wants to be called again after the time that it returns.
func (d *robot) keep() (again time.Duration, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	tun := d.setupTUN()
	var errs []error
	if err := d.reconfigure(); err != nil {
		errs = append(errs, err)
	}
	var endpoints []netip.Addr
	for _, g := range d.set.Gateways {
		for _, e := range g.Endpoints {
			endpoints = append(endpoints, e.Addr())
		}
	}
	var want []routing.Want
	for _, c := range d.set.Carriers {
		if problem := d.absent[c.Slot]; problem != "" {
			d.tunnel.SetUplink(c.Slot, tunnel.Uplink{Interface: c.Interface, Problem: problem})
			continue
		}
		want = append(want, routing.Want{Interface: c.Interface, Slot: c.Slot, Endpoints: endpoints})
	}
	uplinks, err := d.net.Apply(want)
	for _, c := range uplinks {
		d.tunnel.SetUplink(c.Slot, tunnel.Uplink{Interface: c.Interface, Index: c.Index, Reached: c.Reached, Problem: c.Problem, Warning: c.Warning})
	}
	if d.leaving > 0 {
		again = leaveEvery
	}
	return again, errors.Join(append(errs, tun, err)...)
}
