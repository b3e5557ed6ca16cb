package tunnel

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// RobotConfig describes a robot's end of the tunnel.
type RobotConfig struct {
	Common
	Carriers []Carrier
	Gateways []GatewayPeer
}

// Carrier is one uplink of a robot.
type Carrier struct {
	Interface string
	Slot      int // 0 to replicate.MaxSlot
	Key       Key // private
	// Port is the UDP port that its sockets take if it is free, 0 for any: with
	// the same one after a restart, NATs and gateways find the carrier where it
	// was.
	Port uint16
}

// GatewayPeer is what a robot knows of a gateway.
type GatewayPeer struct {
	Name      string
	Addresses []netip.Addr // on the overlay
	Key       Key          // public
	Endpoint  netip.AddrPort
}

// Uplink is what the kernel says of a carrier now.
type Uplink struct {
	Index int // of the interface, 0 if there is none
	// Reaches tells for each gateway, in the order of RobotConfig.Gateways,
	// whether the carrier has a route to its endpoint.
	Reaches []bool
	// Problem and Warning are sentences for status; a carrier with a Problem
	// reaches nobody.
	Problem, Warning string
}

// Robot is a robot's end of the tunnel.
type Robot struct {
	*node
	cfg      RobotConfig
	carriers []*carrier
	kick     chan struct{}
	hello    []byte // STUN request
	helloID  [12]byte
}

// carrier is one uplink with its WireGuard device.
type carrier struct {
	Carrier
	wg    *wireguard
	links []*link // by gateway

	// Guarded by node.mu.
	uplink Uplink
	bound  int // interface index that the sockets are bound to, 0 if none
}

// NewRobot starts a robot's WireGuard devices on host, which it owns from then
// on. No carrier is used before SetUplink says that it is there.
func NewRobot(cfg RobotConfig, host tun.Device) (*Robot, error) {
	self, err := cfg.number()
	if err != nil {
		return nil, err
	}
	r := &Robot{cfg: cfg, kick: make(chan struct{}, 1)}
	if r.hello, r.helloID, err = stunRequest(); err != nil {
		return nil, fmt.Errorf("make a STUN request: %w", err)
	}
	for _, c := range cfg.Carriers {
		r.carriers = append(r.carriers, &carrier{Carrier: c})
	}
	now := time.Now()
	var peers []*peer
	for _, g := range cfg.Gateways {
		p, err := newPeer(g.Name, g.Addresses, cfg.Addresses)
		if err != nil {
			return nil, err
		}
		for _, c := range r.carriers {
			l := p.addLink(c.Slot, c.Interface, replicate.MakeAddress(self, uint8(c.Slot)), replicate.MakeAddress(p.node, uint8(c.Slot)))
			l.machine = path.New(path.DefaultConfig(), now)
			c.links = append(c.links, l)
		}
		peers = append(peers, p)
	}
	if r.node, err = newNode(cfg.Common, host, peers); err != nil {
		return nil, err
	}
	r.out.woken, r.in.woken = r.wake, r.wake
	r.in.onProbe = func(*link, path.Probe, time.Time) {}
	r.in.onReply = r.replied
	r.in.heard = func(l *link, now time.Time) { l.heard.Store(int64(now.Sub(r.start))) }
	for _, c := range r.carriers {
		if err := r.startCarrier(c, self); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

func (r *Robot) startCarrier(c *carrier, self uint32) error {
	q := newQueue(&r.pool, 1<<c.Slot, r.epoch, r.cfg.MTU, r.cfg.Deadline)
	r.out.queues = append(r.out.queues, q)
	name := "fogplr-" + c.Interface
	b := newBind(socketOptions{device: c.Interface, mark: r.cfg.Mark, port: c.Port}, false, r.greeted)
	var peers []wgPeer
	for i, g := range r.cfg.Gateways {
		peers = append(peers, wgPeer{key: g.Key, allowed: c.links[i].remote, endpoint: g.Endpoint})
	}
	var err error
	c.wg, err = newWireguard(name, c.Key, 0, peers, newMemTUN(name, r.cfg.frameMTU(), q, r.in.deliver), b,
		func(*device.Peer) {}, r.cfg.Log)
	return err
}

// Run walks packets until ctx ends, then closes everything, the TUN device
// included.
func (r *Robot) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.walkOut(ctx) })
	g.Go(func() error { r.prober(ctx); return nil })
	g.Go(func() error { return every(ctx, upkeepInterval, r.upkeep) })
	g.Go(func() error {
		<-ctx.Done()
		r.close()
		return nil
	})
	return g.Wait()
}

// close ends Out first, so that nothing enters the devices while they stop.
func (r *Robot) close() {
	_ = r.host.Close()
	for _, c := range r.carriers {
		if c.wg != nil {
			c.wg.close()
		}
	}
}

// SetUplink tells what has become of the carrier with that interface. Sockets
// are opened anew when its interface is another one than before.
func (r *Robot) SetUplink(iface string, u Uplink) {
	now := time.Now()
	for _, c := range r.carriers {
		if c.Interface == iface {
			r.setUplink(c, u, now)
		}
	}
	r.wake()
}

func (r *Robot) setUplink(c *carrier, u Uplink, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rebound := false
	switch {
	case u.Index == 0:
		c.wg.bind.detach()
		c.bound = 0
	case u.Index != c.bound:
		c.bound = 0
		if err := c.wg.bind.attach(); err != nil {
			u.Problem = fmt.Sprintf("no socket could be opened on %s: %v", c.Interface, err)
		} else {
			c.bound = u.Index
			rebound = true
		}
	}
	if u.Problem != c.uplink.Problem && u.Problem != "" {
		r.cfg.Log.Warn("Carrier not usable.", "carrier", c.Interface, "problem", u.Problem)
	} else if u.Problem == "" && c.uplink.Problem != "" {
		r.cfg.Log.Info("Carrier usable.", "carrier", c.Interface)
	}
	if u.Warning != c.uplink.Warning && u.Warning != "" {
		r.cfg.Log.Warn("Carrier needs attention.", "carrier", c.Interface, "warning", u.Warning)
	}
	c.uplink = u
	for i, l := range c.links {
		ok := c.bound != 0 && u.Problem == "" && i < len(u.Reaches) && u.Reaches[i]
		l.machine.Route(ok, now)
		if rebound { // the gateway must learn the new sockets' ports
			l.machine.Kick(now)
		}
	}
	r.choose(now)
}

// wake makes the prober look at all paths now.
func (r *Robot) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// choose decides which paths carry. The caller holds node.mu.
func (r *Robot) choose(now time.Time) {
	for _, p := range r.peers {
		var proven, possible uint32
		for _, l := range p.links {
			if l == nil {
				continue
			}
			if l.machine.Up() {
				proven |= 1 << l.slot
			}
			if l.machine.HasSession(now) {
				possible |= 1 << l.slot
			}
		}
		if proven == 0 { // in doubt, try them all
			proven = possible
		}
		p.carries.Store(proven)
	}
}

// replied takes an authenticated probe reply. The caller holds inward.mu.
func (r *Robot) replied(l *link, m path.Reply, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := l.machine.Up()
	l.machine.Reply(m.ID, now)
	l.lossOut = m.LossOut
	r.choose(now)
	if !was && l.machine.Up() {
		r.cfg.Log.Info("Path up.", "carrier", l.carrier, "gateway", l.peer.name)
		r.wake()
	}
}

// greeted takes an answer to the STUN request. It is not authenticated and is
// used for nothing but status.
func (r *Robot) greeted(b *bind, msg []byte, from netip.AddrPort) {
	if id, ok := stunTransaction(msg); !ok || id != r.helloID {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.carriers {
		if c.wg == nil || c.wg.bind != b {
			continue
		}
		for i, l := range c.links {
			if r.cfg.Gateways[i].Endpoint == from {
				l.machine.Reachable(now)
			}
		}
	}
}

// Status tells how the robot is.
func (r *Robot) Status() Status {
	now := time.Now()
	s := r.status("robot", func(l *link, st *PathStatus) {
		snap := l.machine.Snapshot(now)
		st.Up, st.RTTms, st.LastProof = snap.Up, float64(snap.RTT)/float64(time.Millisecond), ago(snap.LastProof, now)
		if !snap.Up {
			st.Stage, st.Hint = snap.Stage.String(), snap.Stage.Hint()
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.carriers {
		s.Carriers = append(s.Carriers, CarrierStatus{
			Interface: c.Interface, Slot: c.Slot, Usable: c.bound != 0 && c.uplink.Problem == "",
			Problem: c.uplink.Problem, Socket: c.wg.bind.stats.status(),
		})
		if c.uplink.Warning != "" {
			s.Warnings = append(s.Warnings, c.uplink.Warning)
		}
	}
	s.Ready = len(s.Peers) > 0
	for i := range s.Peers {
		up := false
		for j := range s.Peers[i].Paths {
			p := &s.Peers[i].Paths[j]
			p.Endpoint = r.cfg.Gateways[i].Endpoint.String()
			up = up || p.Up
		}
		s.Ready = s.Ready && up
	}
	return s
}

// every calls f until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) error {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			f()
		}
	}
}
