package tunnel

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/fogplr/fogplr/hello"
	"github.com/fogplr/fogplr/path"
)

// RobotConfig describes a robot's end of the tunnel. All but Carriers, Gateways
// and Deadline stays as it was at the start.
type RobotConfig struct {
	Common
	Carriers []Carrier
	Gateways []GatewayPeer
}

// Carrier is one uplink of a robot.
type Carrier struct {
	// Interface is its present name; SetUplink may tell another.
	Interface string
	Slot      int // 0 to replicate.MaxSlot
	// ID tells it apart from others that have had the slot, whatever it is called.
	ID  string
	Key Key // private
	// Port is the UDP port that its sockets take if it is free, 0 for any: with
	// the same one after a restart, NATs and gateways find the carrier where it
	// was.
	Port uint16
	// Label is what people call it, or empty. Metered has its paths probed less.
	Label   string
	Metered bool
}

// GatewayPeer is what a robot knows of a gateway.
type GatewayPeer struct {
	Name      string
	Addresses []netip.Addr // on the overlay
	Key       Key          // public
	// Endpoints are where every carrier looks for it until SetEndpoints says
	// otherwise, best first.
	Endpoints []netip.AddrPort
}

// Uplink is what the kernel says of a carrier now.
type Uplink struct {
	// Interface is the carrier's present name and Index its index, 0 if there is
	// none.
	Interface string
	Index     int
	// Reached has the addresses of gateways that the carrier has a route to.
	Reached map[netip.Addr]bool
	// Network tells one network that the interface is in from another: its
	// addresses, in a fixed order.
	Network []netip.Prefix
	// Problem and Warning are sentences for status; a carrier with a Problem
	// reaches nobody.
	Problem, Warning string
}

// Robot is a robot's end of the tunnel. Its methods may be called by several
// goroutines.
type Robot struct {
	*node
	self    uint32
	members sync.Mutex // held by Configure; taken before all other locks
	kick    chan struct{}
	changed chan struct{} // has room for one
	metered chan struct{} // has room for one
	// greetings bounds how often STUN messages wake the prober.
	greetings rateLimit
	plain     []byte // STUN request
	plainID   hello.TransactionID
	carriers  []*carrier // guarded by node.mu
	ended     bool       // guarded by members
}

// carrier is one uplink with its WireGuard device.
type carrier struct {
	Carrier
	wg      *wireguard
	applied atomic.Uint64 // see link.applied
	start   time.Time

	// Guarded by node.mu.
	links   []*link   // in the order of the peers
	looked  time.Time // when the device was last asked for its sessions
	uplink  Uplink
	bound   int            // interface index that the sockets are bound to, 0 if none
	network []netip.Prefix // that it was last seen in
	tooBig  uint64         // what the kernel had refused as too big when that was last looked at
	own     ownRate
}

// NewRobot starts a robot's WireGuard devices on host, which it owns from then
// on. No carrier is used before SetUplink says that it is there.
func NewRobot(cfg RobotConfig, host tun.Device) (*Robot, error) {
	self, err := cfg.number()
	if err != nil {
		return nil, err
	}
	r := &Robot{self: self, kick: make(chan struct{}, 1), changed: make(chan struct{}, 1), metered: make(chan struct{}, 1)}
	_, _ = rand.Read(r.plainID[:]) // never fails: it ends the program instead
	r.plain = hello.PlainRequest(r.plainID)
	r.node = newNode(cfg.Common, host)
	woken := func() { r.stir(); r.wake() }
	r.out.woken, r.in.woken = woken, woken
	r.in.onProbe = func(*link, path.Probe, int, time.Time) {}
	r.in.onReply = r.replied
	r.in.heard = func(l *link, now time.Time) {
		l.heard.Store(int64(now.Sub(r.start)))
		if l.farewells.Load() > 0 {
			r.again(l, now)
		}
	}
	r.in.begun = func(l *link) {
		r.mu.Lock()
		defer r.mu.Unlock()
		l.machine.Restarted()
	}
	if err := r.Configure(cfg); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// Run walks packets until ctx ends, then closes everything, the TUN device
// included.
func (r *Robot) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.walkOut(ctx) })
	g.Go(func() error { r.prober(ctx); return nil })
	g.Go(func() error { return r.keeps.run(ctx, r.start, r.quiet, r.upkeep) })
	g.Go(func() error { return r.heart(ctx, r.woke) })
	g.Go(func() error {
		<-ctx.Done()
		r.close()
		return nil
	})
	return g.Wait()
}

// close ends Out first, so that nothing enters the devices while they stop.
func (r *Robot) close() {
	r.members.Lock()
	defer r.members.Unlock()
	r.ended = true
	_ = r.host.Close()
	for _, c := range r.present() {
		c.wg.close()
	}
}

// present returns the carriers there are.
func (r *Robot) present() []*carrier {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.carriers)
}

// SetUplink tells what has become of the carrier in that slot. Sockets are opened
// anew when its interface is another one than before.
func (r *Robot) SetUplink(slot int, u Uplink) {
	now := time.Now()
	r.mu.Lock()
	for _, c := range r.carriers {
		if c.Slot == slot {
			r.setUplink(c, u, now)
		}
	}
	r.mu.Unlock()
	r.wake()
}

// setUplink is SetUplink for one carrier. The caller holds node.mu.
func (r *Robot) setUplink(c *carrier, u Uplink, now time.Time) {
	if u.Interface != c.Interface {
		r.cfg.Log.Info("The carrier's interface has another name.", "carrier", u.Interface, "was", c.Interface)
		c.Interface = u.Interface
		for _, l := range c.links {
			l.carrier = u.Interface
		}
	}
	rebound := false
	switch {
	case u.Index == 0:
		c.wg.bind.detach()
		c.bound = 0
	case u.Index != c.bound:
		c.bound = 0
		if err := c.wg.bind.attach(u.Interface); err != nil {
			u.Problem = fmt.Sprintf("No socket could be opened on %s: %v.", c.Interface, err)
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
	moved := c.bound != 0 && !slices.Equal(u.Network, c.network)
	if moved {
		c.network = slices.Clone(u.Network)
	}
	if c.bound != 0 && u.Problem != "" && c.uplink.Problem == "" {
		r.leave(c, now)
	}
	c.uplink = u
	for _, l := range c.links {
		if u.Problem == "" {
			l.farewells.Store(0)
		}
		l.ways.route(u.Reached)
		c.routeLink(l, now)
		switch {
		case moved:
			l.machine.Moved(now)
		case rebound: // the gateway must learn the new sockets' ports
			l.machine.Kick(now)
		}
	}
	r.choose(now)
}

// routeLink tells a path whether its carrier can send to its gateway. The caller
// holds node.mu.
func (c *carrier) routeLink(l *link, now time.Time) {
	l.machine.Route(c.bound != 0 && c.uplink.Problem == "" && l.ways.usable(), now)
}

// listen has the carrier's sockets listen to its gateways, and to no others. The
// caller holds node.mu.
func (c *carrier) listen() {
	var all []netip.AddrPort
	for _, l := range c.links {
		all = append(all, l.ways.listen()...)
	}
	c.wg.bind.options.from.set(all)
}

// SetEndpoints tells where the carrier in that slot may find the gateway of that
// name, best first. A path that is up stays where it is.
func (r *Robot) SetEndpoints(slot int, gateway string, endpoints []netip.AddrPort) {
	now := time.Now()
	r.mu.Lock()
	for _, c := range r.carriers {
		for _, l := range c.links {
			if c.Slot == slot && l.peer.name == gateway {
				l.ways.set(endpoints, c.uplink.Reached)
				c.routeLink(l, now)
			}
		}
		c.listen()
	}
	r.mu.Unlock()
	r.wake()
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
		for l := range p.paths() {
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

// Reaches reports whether the carriers in those slots have a path up to every gateway
// that any carrier has one to.
func (r *Robot) Reaches(slots []int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.peers {
		others, up := false, false
		for l := range p.paths() {
			others = others || l.machine.Up()
			up = up || l.machine.Up() && slices.Contains(slots, l.slot)
		}
		if others && !up {
			return false
		}
	}
	return true
}

// replied takes an authenticated probe reply. The caller holds inward.mu.
func (r *Robot) replied(l *link, m path.Reply, size int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wake := l.machine.Answered(m, size, now)
	r.settle(l, now)
	r.choose(now)
	if wake {
		r.wake()
	}
}
