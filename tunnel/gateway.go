package tunnel

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/fogplr/fogplr/hello"
	"github.com/fogplr/fogplr/path"
)

// GatewayConfig describes a gateway's end of the tunnel. All but Robots stays as it
// was at the start.
type GatewayConfig struct {
	Common
	Key        Key // private
	ListenPort uint16
	// MorePorts are UDP ports beside ListenPort; a robot is answered from the one
	// that it uses.
	MorePorts []uint16
	Robots    []RobotPeer
	// Contacts are what Contacts returned when the gateway last ran.
	Contacts []Contact
}

// RobotPeer is what a gateway knows of a robot.
type RobotPeer struct {
	Name      string
	Addresses []netip.Addr // on the overlay
	// Keys are the public keys of its carriers, by slot.
	Keys []Key
}

// Gateway is a gateway's end of the tunnel. Its methods may be called by several
// goroutines.
type Gateway struct {
	*node
	self    uint32
	members sync.Mutex // held by Configure; taken before all other locks
	ended   bool       // guarded by members
	queue   *queue
	wg      *wireguard    // it is up before this is set: In must not need it
	moved   chan struct{} // has room for one
	later   chan answer   // replies that tell where the robot is seen

	greeter   *hello.Greeter
	known     *hello.Table
	guests    chan guest
	strangers chan struct{} // has room for one
	wakes     chan woken    // has room for one

	// Guarded by node.mu.
	// byPeer has the links by WireGuard peer, to name who claimed a wrong address.
	byPeer map[*device.Peer]*link
	// calls are the carriers that the last run's contacts name, and where.
	calls map[Key]netip.AddrPort
}

// NewGateway opens the gateway's port and starts its WireGuard device on host,
// which it owns from then on.
func NewGateway(cfg GatewayConfig, host tun.Device) (*Gateway, error) {
	self, err := cfg.number()
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		self: self, moved: make(chan struct{}, 1), calls: make(map[Key]netip.AddrPort),
		guests: make(chan guest, guestsWaiting), strangers: make(chan struct{}, 1), wakes: make(chan woken, 1),
		later: make(chan answer, mappingQueue),
	}
	if g.known, err = hello.NewTable(cfg.Key); err != nil {
		return nil, err
	}
	g.greeter = hello.NewGreeter(g.known, time.Now())
	for _, c := range cfg.Contacts {
		g.calls[c.Key] = c.Endpoint
	}
	g.node = newNode(cfg.Common, host)
	g.in.onProbe = g.probed
	g.in.onReply = func(*link, path.Reply, int, time.Time) {}
	g.in.heard, g.in.begun = g.heard, func(*link) { g.signal() }
	if _, err := g.meetRobots(cfg.Robots); err != nil {
		return nil, err
	}
	g.queue = newQueue(&g.pool, g.still, 0xff, cfg.MTU, cfg.Deadline)
	b := newBind(socketOptions{mark: cfg.Mark, morePorts: cfg.MorePorts, probeMTU: true}, true, g.greet)
	b.still = g.still
	for _, c := range cfg.Contacts {
		b.peers.note(newSourced(c.Endpoint, c.Local, 0))
	}
	g.wg, err = newWireguard("fogplr-gw", cfg.Key, cfg.ListenPort,
		newMemTUN("fogplr-gw", cfg.frameMTU(), g.queue, g.in.deliver), b,
		complaints{disallowed: g.refused, replayed: g.replayed}, cfg.Log)
	if err != nil {
		return nil, err
	}
	if err := g.Configure(cfg); err != nil {
		g.wg.close()
		return nil, err
	}
	return g, nil
}

// Run walks packets until ctx ends, then closes everything, the TUN device
// included.
func (g *Gateway) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.walkOut(ctx) })
	group.Go(func() error { return g.recall(ctx) })
	group.Go(func() error { return g.answerLater(ctx) })
	group.Go(func() error { return g.welcome(ctx) })
	group.Go(func() error { return g.getToKnow(ctx) })
	group.Go(func() error { return g.recallAfterWake(ctx) })
	group.Go(func() error { return g.heart(ctx, g.woke) })
	group.Go(func() error {
		return g.keeps.run(ctx, g.start, g.quiet, func() {
			g.upkeep()
			g.mu.Lock()
			defer g.mu.Unlock()
			now := time.Now()
			for _, p := range g.peers {
				g.choose(p, now)
			}
		})
	})
	group.Go(func() error {
		<-ctx.Done()
		g.members.Lock()
		defer g.members.Unlock()
		g.ended = true
		_ = g.host.Close()
		g.wg.close()
		return nil
	})
	return group.Wait()
}

// heard takes note of a path that brought an authenticated frame; one that comes
// to life carries at once. The caller holds inward.mu.
func (g *Gateway) heard(l *link, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !l.hearing.Live(now)
	l.hearing.Heard(now)
	if l.peer.wrongAddress {
		l.peer.wrongAddress = false
		g.cfg.Log.Info("The robot sends from its own overlay address now.", "robot", l.peer.name)
	}
	if first {
		l.loss.Renew()
		g.choose(l.peer, now)
		g.signal()
	}
}

// choose decides which paths to a robot carry: those that were heard within
// their trust time, or if there is none, those that may still have a session.
// The caller holds node.mu.
func (g *Gateway) choose(p *peer, now time.Time) {
	var live, recent uint32
	for l := range p.paths() {
		up := l.hearing.Live(now)
		if up {
			live |= 1 << l.slot
		}
		if up != l.live {
			l.live = up
			told := "Path down."
			if up {
				told = "Path up."
			}
			g.cfg.Log.Info(told, "robot", p.name, "carrier", l.carrier)
		}
		if l.hearing.Recent(now) {
			recent |= 1 << l.slot
		}
	}
	if live == 0 {
		live = recent
	}
	p.carries.Store(live)
}

// refused takes note of a robot whose frames claim another node's address. One
// that does so by turns must not fill the log.
func (g *Gateway) refused(from *device.Peer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.byPeer[from]
	if l == nil || l.peer.wrongAddress || !l.peer.told.allow(warningsPerSecond, time.Now()) {
		return
	}
	l.peer.wrongAddress = true
	g.cfg.Log.Warn(g.wrongAddressWarning(l.peer))
}

func (g *Gateway) wrongAddressWarning(p *peer) string {
	return fmt.Sprintf("Robot %s sends from another overlay address than %v, so all it sends is refused. "+
		"Make `address` in its robot.toml and in its [[robot]] block here the same, with the same prefix length.", p.name, p.addrs[0])
}

// Status tells how the gateway is.
func (g *Gateway) Status() Status {
	now := time.Now()
	sessions := g.wg.sessions()
	s := g.status("gateway", func(l *link, st *PathStatus) {
		st.Up, st.LastProof = l.hearing.Live(now), ago(l.hearing.Last(), now)
		st.Endpoint = sessions[l.key].endpoint
		switch {
		case st.Up:
			st.Largest = int(l.largest.Load())
		case l.peer.wrongAddress:
			st.Stage, st.Hint = path.StageAddressNotAllowed.String(), g.wrongAddressWarning(l.peer)
		case l.hearing.Left():
			st.Stage, st.Hint = path.StageResting.String(), path.StageResting.Hint()
		case st.LastProof >= 0: // a slot that was never heard need not be in use
			st.Stage = path.StageNoReply.String()
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.peers {
		if p.wrongAddress {
			s.Warnings = append(s.Warnings, g.wrongAddressWarning(p))
		}
	}
	s.Ready = true
	socket := g.wg.bind.stats.status()
	s.Socket = &socket
	return s
}
