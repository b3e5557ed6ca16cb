package tunnels

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/test/lab"
)

const (
	wgInterface = "wg0"
	// wgOverhead is what wg-quick takes off the carrier's MTU, in bytes: what
	// WireGuard adds to a packet in IPv6.
	wgOverhead = 80
)

//go:embed wireguard.sh
var wireguardScript string

// wireguard is plain wireguard-go, set up as by wg-quick: the robot has one
// interface for all gateways, and each gateway one for the robot. It uses the
// first carrier alone or, with failover, the one that failover.sh chooses.
type wireguard struct {
	program  string
	failover bool

	world     *lab.World
	carriers  []string
	addresses map[*lab.Node]netip.Addr
	ends      map[*lab.Node]*wgEnd
}

// wgEnd is the tunnel in one node.
type wgEnd struct {
	node    *lab.Node
	command []string // that runs wireguard-go
	env     []string // of DDS programs
	router  []string // the command that keeps the routes; nil on gateways
	running []*lab.Cmd
}

func (t *wireguard) Name() string {
	if t.failover {
		return "failover"
	}
	return "wireguard"
}

func (t *wireguard) Start(ctx context.Context, w *lab.World, carriers []*lab.Carrier) error {
	if len(carriers) == 0 {
		return errors.New("WireGuard needs a carrier")
	}
	if !t.failover {
		carriers = carriers[:1]
	}
	t.world, t.addresses, t.carriers = w, inside(w), nil
	for _, c := range carriers {
		t.carriers = append(t.carriers, c.Interface)
	}
	if err := t.prepare(); err != nil {
		return err
	}
	for _, g := range w.Gateways {
		if err := t.start(ctx, t.ends[g.Node]); err != nil {
			return err
		}
	}
	if err := t.start(ctx, t.ends[w.Robots[0].Node]); err != nil {
		return err
	}
	return t.Whole(ctx)
}

// prepare writes scripts, keys, configurations and DDS profiles.
func (t *wireguard) prepare() error {
	path, err := binary(t.program, "wireguard-go", "go build -o bin/wireguard-go golang.zx2c4.com/wireguard")
	if err != nil {
		return err
	}
	dir := filepath.Join(t.world.Dir(), t.Name())
	script := filepath.Join(dir, "wireguard.sh")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(script, []byte(wireguardScript), 0o755); err != nil {
		return err
	}
	mtu, err := t.mtu()
	if err != nil {
		return err
	}
	t.ends = map[*lab.Node]*wgEnd{}
	for node, config := range t.configs() {
		home := filepath.Join(dir, node.Name())
		e := &wgEnd{node: node}
		if e.env, err = config.profile(mtu).write(filepath.Join(home, "dds")); err != nil {
			return err
		}
		file := filepath.Join(home, wgInterface+".conf")
		if err := os.WriteFile(file, []byte(render("wireguard.conf.tmpl", config)), 0o600); err != nil {
			return err
		}
		e.command = []string{"unshare", "--mount", "sh", script, path, file,
			netip.PrefixFrom(config.Address, insideBits).String(), fmt.Sprint(mtu)}
		t.ends[node] = e
	}
	robot := t.ends[t.world.Robots[0].Node]
	robot.router, err = t.routerCommand(dir)
	return err
}

// mtu is what fits through all carriers, in bytes.
func (t *wireguard) mtu() (int, error) {
	least := 1500
	node := t.world.Robots[0].Node
	for _, c := range t.carriers {
		k, err := node.Netlink().LinkByName(c)
		if err != nil {
			return 0, fmt.Errorf("carrier %s: %w", c, err)
		}
		least = min(least, k.Attrs().MTU)
	}
	return least - wgOverhead, nil
}

// wgConfig is one end's configuration file.
type wgConfig struct {
	Key     keys.Private
	Address netip.Addr // inside
	Listen  int        // 0 for any port
	Peers   []wgPeer
}

// wgPeer is another end.
type wgPeer struct {
	Key      keys.Public
	Address  netip.Addr
	Endpoint netip.AddrPort // none: it calls
}

// configs makes keys and says who knows whom.
func (t *wireguard) configs() map[*lab.Node]*wgConfig {
	node := t.world.Robots[0].Node
	robot := &wgConfig{Key: keys.Generate(), Address: t.addresses[node]}
	all := map[*lab.Node]*wgConfig{node: robot}
	for _, g := range t.world.Gateways {
		c := &wgConfig{Key: keys.Generate(), Address: t.addresses[g.Node], Listen: port}
		c.Peers = []wgPeer{{Key: robot.Key.PublicKey(), Address: robot.Address}}
		robot.Peers = append(robot.Peers, wgPeer{c.Key.PublicKey(), c.Address, netip.AddrPortFrom(g.Address, port)})
		all[g.Node] = c
	}
	return all
}

// profile is the DDS of this end. It knows itself as well, so that programs of
// one node find each other.
func (c *wgConfig) profile(mtu int) unicast {
	u := unicast{Interface: wgInterface, Address: c.Address, MTU: mtu, Peers: []netip.Addr{c.Address}}
	for _, p := range c.Peers {
		u.Peers = append(u.Peers, p.Address)
	}
	return u
}

// start starts an end's programs and waits until its interface is up.
func (t *wireguard) start(ctx context.Context, e *wgEnd) error {
	if e.router != nil {
		router, err := e.run(ctx, e.router)
		if err != nil {
			return err
		}
		if err := t.awaitRoutes(ctx, router); err != nil {
			return err
		}
	}
	daemon, err := e.run(ctx, e.command)
	if err != nil {
		return err
	}
	return await(ctx, func() error {
		k, err := e.node.Netlink().LinkByName(wgInterface)
		if err == nil && k.Attrs().Flags&net.FlagUp != 0 {
			return nil
		}
		return fmt.Errorf("wireguard-go on %s does not get ready (its log is %s)", e.node.Name(), daemon.Log())
	})
}

func (e *wgEnd) run(ctx context.Context, command []string) (*lab.Cmd, error) {
	c := e.node.Command(ctx, command[0], command[1:]...)
	if err := c.Start(); err != nil {
		return nil, err
	}
	e.running = append(e.running, c)
	return c, nil
}

// awaitReply waits until the gateway answers through the tunnel.
func (t *wireguard) awaitReply(ctx context.Context, g *lab.Gateway) error {
	return await(ctx, func() error {
		ping := t.world.Robots[0].Command(ctx, "ping", "-n", "-q", "-c", "1", "-W", "1", t.addresses[g.Node].String())
		if err := ping.Run(); err != nil {
			return fmt.Errorf("gateway %s does not answer through WireGuard: %w", g.Name(), err)
		}
		return nil
	})
}

func (t *wireguard) Command(ctx context.Context, n *lab.Node, name string, args ...string) (*lab.Cmd, error) {
	e, err := t.end(n)
	if err != nil {
		return nil, err
	}
	path, err := program(name)
	if err != nil {
		return nil, err
	}
	c := n.Command(ctx, path, args...)
	c.Env = append(c.Env, e.env...)
	return c, nil
}

func (t *wireguard) Address(n *lab.Node) netip.Addr { return t.addresses[n] }

func (t *wireguard) end(n *lab.Node) (*wgEnd, error) {
	if e := t.ends[n]; e != nil {
		return e, nil
	}
	return nil, stranger(n)
}

func (t *wireguard) Kill(n *lab.Node) error {
	e, err := t.end(n)
	if err != nil {
		return err
	}
	return e.kill()
}

func (e *wgEnd) kill() error {
	var errs []error
	for _, c := range e.running {
		errs = append(errs, c.Kill())
	}
	e.running = nil
	return errors.Join(errs...)
}

func (t *wireguard) Restart(ctx context.Context, n *lab.Node) error {
	e, err := t.end(n)
	if err != nil {
		return err
	}
	if err := e.kill(); err != nil {
		return err
	}
	return t.start(ctx, e)
}

func (t *wireguard) Pause(n *lab.Node, stopped bool) error {
	e, err := t.end(n)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range e.running {
		select {
		case <-c.Done():
		default:
			errs = append(errs, pause(c.Pid(), stopped))
		}
	}
	return errors.Join(errs...)
}

// Whole waits until every gateway answers; a single carrier is nothing that
// WireGuard knows of.
func (t *wireguard) Whole(ctx context.Context) error {
	for _, g := range t.world.Gateways {
		if err := t.awaitReply(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// Stop also removes the host routes.
func (t *wireguard) Stop() error {
	if t.world == nil {
		return nil
	}
	var errs []error
	for _, e := range t.ends {
		errs = append(errs, e.kill())
	}
	errs = append(errs, t.removeRoutes())
	t.world, t.ends, t.addresses = nil, nil, nil
	return errors.Join(errs...)
}
