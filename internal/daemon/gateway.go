package daemon

import (
	"context"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// Gateway runs a gateway's daemon until ctx ends.
func Gateway(ctx context.Context, o Options) error {
	cfg, err := config.LoadGateway(o.ConfigFile)
	if err != nil {
		return err
	}
	key, keyWarning, err := cfg.ReadKey()
	if err != nil {
		return err
	}
	b, err := newBase(o, "gateway", &cfg.Node)
	if err != nil {
		return err
	}
	b.note(keyWarning)
	b.note(cfg.Warning())
	tc := tunnel.GatewayConfig{Common: b.common(), Key: tunnel.Key(key), ListenPort: cfg.ListenPort}
	for _, r := range cfg.Robots {
		p := tunnel.RobotPeer{Name: r.Name, Addresses: r.Addresses}
		for _, k := range r.CarrierKeys {
			p.Keys = append(p.Keys, tunnel.Key(k))
		}
		tc.Robots = append(tc.Robots, p)
	}
	g, err := tunnel.NewGateway(tc, b.host)
	if err != nil {
		return b.fail(err)
	}
	reload := reloader(o, cfg, config.LoadGateway, func(c *config.Gateway) *config.Node { return &c.Node })
	return b.run(ctx, g, reload, func(ctx context.Context) error {
		return b.follow(ctx, nil, func(routing.Carrier) {})
	})
}
