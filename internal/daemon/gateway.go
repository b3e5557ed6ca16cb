package daemon

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/contacts"
	"github.com/fogplr/fogplr/internal/keys"
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
	b, err := newBase(ctx, o, "gateway", &cfg.Node)
	if err != nil {
		return err
	}
	b.note("key", keyWarning)
	b.note("robots", cfg.Warning())
	tc := tunnel.GatewayConfig{Common: b.common(), Key: tunnel.Key(key), ListenPort: cfg.ListenPorts[0], MorePorts: cfg.ListenPorts[1:], Robots: robotPeers(cfg)}
	if tc.Contacts, err = contacts.Load(contactsFile(cfg)); err != nil { // it only costs time
		o.Log.Warn("Where the robots were last is not known, so after this start they take some seconds to come back.", "err", err)
	}
	g, err := tunnel.NewGateway(tc, b.host)
	if err != nil {
		return b.fail(err)
	}
	l := &live[config.Gateway]{
		file: o.ConfigFile, role: "gateway", level: o.Level, started: cfg, current: cfg, key: key,
		load: config.LoadGateway, node: func(c *config.Gateway) *config.Node { return &c.Node },
		more: func(started, fresh *config.Gateway) (keys []string) {
			if !slices.Equal(started.ListenPorts, fresh.ListenPorts) {
				keys = append(keys, "listen_port")
			}
			return keys
		},
		changes: gatewayChanges, log: o.Log,
		apply: func(c *config.Gateway) error {
			err := g.Configure(tunnel.GatewayConfig{Robots: robotPeers(c)})
			if err == nil {
				b.note("robots", c.Warning())
			}
			return err
		},
	}
	return b.run(ctx, g, l.reload, func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return b.follow(ctx, b.keepOverlay) })
		group.Go(func() error { return b.keepContacts(ctx, g, cfg, tc.Contacts) })
		return group.Wait()
	})
}

// robotPeers returns the configuration's robots as the tunnel takes them.
func robotPeers(cfg *config.Gateway) (peers []tunnel.RobotPeer) {
	for _, r := range cfg.Robots {
		p := tunnel.RobotPeer{Name: r.Name, Addresses: r.Addresses}
		for _, k := range r.CarrierKeys {
			p.Keys = append(p.Keys, tunnel.Key(k))
		}
		peers = append(peers, p)
	}
	return peers
}

// contactsEvery is how often a gateway looks where its robots are, and
// contactsPerKey what is added for each carrier key: the look takes some
// microseconds for each.
const (
	contactsEvery  = time.Second
	contactsPerKey = time.Millisecond
)

// contactsFile is beside the control socket, where it lasts until the reboot.
func contactsFile(cfg *config.Gateway) string {
	return strings.TrimSuffix(cfg.ControlSocket, filepath.Ext(cfg.ControlSocket)) + ".contacts.json"
}

// keepContacts writes down where the robots are, whenever that is not what the
// file has, which is kept at first. After a sign of a change it looks sooner.
func (b *base) keepContacts(ctx context.Context, g *tunnel.Gateway, cfg *config.Gateway, kept []tunnel.Contact) error {
	every := contactsEvery + time.Duration(len(cfg.Robots))*keys.Slots*contactsPerKey
	told := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		case <-g.Moved():
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(every / 10):
			}
		}
		all, ok := g.Contacts()
		if !ok || slices.Equal(all, kept) {
			continue
		}
		err := contacts.Save(contactsFile(cfg), all)
		if err == nil {
			kept = all
		} else if !told {
			b.opts.Log.Warn("After a restart of this gateway the robots will take some seconds to come back.", "err", err)
		}
		told = err != nil
	}
}
