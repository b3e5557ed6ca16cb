package daemon

import (
	"context"
	"net/netip"

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
	slot, notes, err := slots.Assign(cfg.StateDir, cfg.Carriers)
	if slot == nil {
		return slotsUnread(&cfg.Node, err)
	}
	if err != nil {
		notes = append(notes, slotsUnkept(&cfg.Node, err))
	}
	b, err := newBase(o, "robot", &cfg.Node)
	if err != nil {
		return err
	}
	b.note(keyWarning)
	for _, n := range notes {
		b.note(n)
	}
	tc := tunnel.RobotConfig{Common: b.common()}
	tc.Deadline = cfg.Deadline
	for _, c := range cfg.Carriers {
		carrierKey := keys.CarrierKey(key, uint8(slot[c]))
		tc.Carriers = append(tc.Carriers, tunnel.Carrier{
			Interface: c, Slot: slot[c], Key: tunnel.Key(carrierKey), Port: keys.CarrierPort(carrierKey.PublicKey()),
		})
	}
	for _, g := range cfg.Gateways {
		tc.Gateways = append(tc.Gateways, tunnel.GatewayPeer{
			Name: g.Name, Addresses: g.Addresses, Key: tunnel.Key(g.PublicKey), Endpoints: []netip.AddrPort{g.Endpoint},
		})
	}
	r, err := tunnel.NewRobot(tc, b.host)
	if err != nil {
		return b.fail(err)
	}
	reload := reloader(o, cfg, config.LoadRobot, func(c *config.Robot) *config.Node { return &c.Node })
	return b.run(ctx, r, reload, func(ctx context.Context) error { return b.followCarriers(ctx, tc, r) })
}

// followCarriers tells the tunnel what has become of its carriers, whenever the
// kernel's network changes.
func (b *base) followCarriers(ctx context.Context, tc tunnel.RobotConfig, r *tunnel.Robot) error {
	var endpoints []netip.Addr
	for _, g := range tc.Gateways {
		for _, e := range g.Endpoints {
			endpoints = append(endpoints, e.Addr())
		}
	}
	var want []routing.Want
	for _, c := range tc.Carriers {
		want = append(want, routing.Want{Interface: c.Interface, Slot: c.Slot, Endpoints: endpoints})
	}
	return b.follow(ctx, want, func(c routing.Carrier) {
		r.SetUplink(c.Slot, tunnel.Uplink{Interface: c.Interface, Index: c.Index, Reached: c.Reached, Problem: c.Problem, Warning: c.Warning})
	})
}

// note keeps a sentence for status, and logs it.
func (b *base) note(sentence string) {
	if sentence != "" {
		b.notes = append(b.notes, sentence)
		b.opts.Log.Warn(sentence)
	}
}
