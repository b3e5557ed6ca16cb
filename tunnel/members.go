package tunnel

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.zx2c4.com/wireguard/device"

	"github.com/fogplr/fogplr/hello"
	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// Configure makes the robot's carriers, gateways and deadline those of cfg; the
// rest of cfg is not looked at. What stays goes on undisturbed: a carrier with
// its slot, ID, key and port, a gateway with its name, addresses and key. A carrier
// that takes the slot of another one begins with counters of 0. An error says what
// was wrong with cfg, and nothing has changed; or else that a carrier's device did
// not start, and that one is missing.
func (r *Robot) Configure(cfg RobotConfig) error {
	r.members.Lock()
	defer r.members.Unlock()
	if r.ended {
		return errEnded
	}
	peers, err := r.meetGateways(cfg.Gateways)
	if err != nil {
		return err
	}
	if err := checkCarriers(cfg.Carriers); err != nil {
		return err
	}
	carriers, arriving, gone, failed := r.exchange(cfg)
	r.forget(peers, arriving)
	leaving := r.link(carriers, peers, cfg.Gateways)
	r.still.setDeadline(cfg.Deadline)
	queues := make([]*queue, len(carriers))
	for i, c := range carriers {
		queues[i] = c.wg.queue
		queues[i].setMaxAge(cfg.Deadline)
	}
	r.admit(peers, queues)
	for _, c := range gone {
		c.wg.close()
	}
	for _, l := range leaving {
		for _, c := range carriers {
			if c.Slot == l.slot {
				c.wg.remove(l.key)
			}
		}
	}
	for _, c := range carriers {
		failed = append(failed, c.wg.expect(c.links))
	}
	r.route(carriers)
	r.wake()
	return errors.Join(failed...)
}

// exchange makes the robot's carriers those of cfg, and returns those that are new as
// well, and gone ones that are to be closed once nothing is sent by them any more. One
// whose slot or interface a new one takes is closed before that starts: one reader at a
// time numbers the frames of a path, and one device at a time has a name.
func (r *Robot) exchange(cfg RobotConfig) (carriers, arriving, gone []*carrier, failed []error) {
	was := r.carriers
	known := func(c Carrier) *carrier {
		i := slices.IndexFunc(was, func(o *carrier) bool {
			return o.Slot == c.Slot && o.ID == c.ID && o.Key == c.Key && o.Port == c.Port
		})
		if i < 0 {
			return nil
		}
		return was[i]
	}
	var staying []*carrier
	for _, c := range cfg.Carriers {
		if o := known(c); o != nil {
			staying = append(staying, o)
			r.describe(o, c)
		}
	}
	r.setCarriers(staying)
	for _, c := range was {
		switch {
		case slices.Contains(staying, c):
		case slices.ContainsFunc(cfg.Carriers, func(n Carrier) bool {
			return known(n) == nil && (n.Slot == c.Slot || deviceName(n.Interface) == c.wg.name)
		}):
			c.wg.close()
		default:
			gone = append(gone, c)
		}
	}
	for _, c := range cfg.Carriers {
		o := known(c)
		if o == nil {
			var err error
			if o, err = r.startCarrier(c, cfg.Deadline); err != nil {
				failed = append(failed, err)
				continue
			}
			arriving = append(arriving, o)
		}
		carriers = append(carriers, o)
	}
	r.setCarriers(carriers)
	return carriers, arriving, gone, failed
}

func (r *Robot) setCarriers(carriers []*carrier) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carriers = carriers
}

// deviceName is what wg(8) calls the device of the carrier on that interface.
func deviceName(iface string) string { return "fogplr-" + iface }

var errEnded = errors.New("fogplr is stopping")

// meetGateways returns the peers that the gateways are.
func (r *Robot) meetGateways(gateways []GatewayPeer) ([]*peer, error) {
	var described []*peer
	keys := map[Key]string{}
	for _, g := range gateways {
		p, err := newPeer(g.Name, g.Addresses, r.cfg.Addresses)
		if err != nil {
			return nil, err
		}
		if other, twice := keys[g.Key]; twice {
			return nil, fmt.Errorf("%s and %s have one key; each gateway needs its own", other, g.Name)
		}
		keys[g.Key] = g.Name
		described = append(described, p)
	}
	return r.meet(described)
}

func checkCarriers(carriers []Carrier) error {
	var taken [replicate.MaxSlot + 1]string
	for _, c := range carriers {
		if c.Slot < 0 || c.Slot > replicate.MaxSlot {
			return fmt.Errorf("%s has slot %d, which is not in 0 to %d", c.Interface, c.Slot, replicate.MaxSlot)
		}
		if taken[c.Slot] != "" {
			return fmt.Errorf("%s and %s have one slot, %d", taken[c.Slot], c.Interface, c.Slot)
		}
		taken[c.Slot] = c.Interface
	}
	return nil
}

// startCarrier starts a carrier's WireGuard device, without peers.
func (r *Robot) startCarrier(c Carrier, deadline time.Duration) (*carrier, error) {
	q := newQueue(&r.pool, r.still, 1<<c.Slot, r.cfg.MTU, deadline)
	name := deviceName(c.Interface)
	b := newBind(socketOptions{mark: r.cfg.Mark, port: c.Port, probeMTU: true, from: new(senders)}, false, r.greeted)
	b.still = r.still
	b.stats.quota.reached = r.reachedMark
	wg, err := newWireguard(name, c.Key, 0, newMemTUN(name, r.cfg.frameMTU(), q, r.in.deliver), b,
		complaints{}, r.cfg.Log)
	if err != nil {
		return nil, err
	}
	return &carrier{Carrier: c, wg: wg, start: time.Now()}, nil
}

// describe takes over what a carrier in use is called and costs.
func (r *Robot) describe(c *carrier, as Carrier) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := c.Metered
	c.Label, c.Metered = as.Label, as.Metered
	if c.Metered == before {
		return
	}
	for _, l := range c.links {
		l.machine.Configure(r.pathConfig(c), time.Now())
	}
}

// pathConfig returns how a carrier's paths are probed.
func (r *Robot) pathConfig(c *carrier) path.Config {
	p := path.DefaultConfig()
	p.Largest = r.cfg.frameMTU()
	if c.Metered {
		p = p.LowData()
	}
	return p
}

// forget drops the latent errors of those that had the slots of carriers before.
func (r *Robot) forget(peers []*peer, carriers []*carrier) {
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	for _, p := range peers {
		for _, c := range carriers {
			p.latent.Forget(c.Slot)
		}
	}
}

// link gives every carrier a path to every peer, and takes away and returns those
// that are not wanted any more.
func (r *Robot) link(carriers []*carrier, peers []*peer, gateways []GatewayPeer) (leaving []*link) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[*link]bool{}
	for _, c := range carriers {
		old := c.links
		c.links = nil
		for i, p := range peers {
			l := p.links[c.Slot].Load()
			if l == nil || l.key != gateways[i].Key || !slices.Contains(old, l) {
				known := old
				if l != nil { // another carrier's, maybe
					leaving, known = append(leaving, l), append(slices.Clip(old), l)
				}
				l = r.newLink(c, p, gateways[i].Key, now)
				for _, o := range known { // with another key or address, it is still where it was found
					if o.peer.name == p.name {
						l.ways = o.ways.heir()
					}
				}
				p.add(l)
			}
			if !slices.Equal(l.ways.configured, gateways[i].Endpoints) {
				l.ways.configured = gateways[i].Endpoints
				l.ways.set(gateways[i].Endpoints, c.uplink.Reached)
			}
			c.links = append(c.links, l)
			wanted[l] = true
		}
		c.listen()
	}
	leaving = append(leaving, unlink(r.peers, wanted)...)
	r.choose(now)
	return leaving
}

// route lets the carriers' paths search, now that their devices know whom for.
func (r *Robot) route(carriers []*carrier) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range carriers {
		for _, l := range c.links {
			c.routeLink(l, now)
		}
	}
}

// newLink returns a path by c to p. The caller holds node.mu.
func (r *Robot) newLink(c *carrier, p *peer, key Key, now time.Time) *link {
	l := p.newLink(c.Slot, c.Interface, replicate.MakeAddress(r.self, uint8(c.Slot)), replicate.MakeAddress(p.node, uint8(c.Slot)))
	l.key = key
	l.machine = path.New(r.pathConfig(c), now)
	l.since = now
	l.applied, l.queue = &c.applied, c.wg.queue
	secret, _ := hello.CarrierSecret(c.Key, key) // without one, WireGuard cannot work either
	l.caller = hello.NewCaller(secret)
	l.ways.searching = true
	return l
}

// Configure makes the gateway's robots those of cfg; the rest of cfg is not looked
// at. What stays goes on undisturbed: a robot with its name and addresses, each
// of its carriers with its key. An error says what was wrong with cfg, and nothing
// has changed.
func (g *Gateway) Configure(cfg GatewayConfig) error {
	g.members.Lock()
	defer g.members.Unlock()
	if g.ended {
		return errEnded
	}
	peers, err := g.meetRobots(cfg.Robots)
	if err != nil {
		return err
	}
	leaving, arriving := g.link(peers, cfg.Robots)
	g.know(cfg.Robots)
	g.admit(peers, []*queue{g.queue})
	var keys []Key
	for _, l := range leaving {
		keys = append(keys, l.key)
	}
	g.wg.remove(keys...)
	err = g.wg.expect(arriving)
	byPeer := make(map[*device.Peer]*link)
	for _, p := range peers {
		for l := range p.paths() {
			byPeer[g.wg.dev.LookupPeer(device.NoisePublicKey(l.key))] = l
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byPeer = byPeer
	return err
}

// meetRobots returns the peers that the robots are.
func (g *Gateway) meetRobots(robots []RobotPeer) ([]*peer, error) {
	var described []*peer
	keys := map[Key]string{}
	for _, rb := range robots {
		p, err := newPeer(rb.Name, rb.Addresses, g.cfg.Addresses)
		if err != nil {
			return nil, err
		}
		if len(rb.Keys) > replicate.MaxSlot+1 {
			return nil, fmt.Errorf("%s has %d carrier keys; a robot has %d slots", rb.Name, len(rb.Keys), replicate.MaxSlot+1)
		}
		for _, k := range rb.Keys {
			if other, twice := keys[k]; twice {
				return nil, fmt.Errorf("%s and %s have one carrier key; each carrier needs its own", other, rb.Name)
			}
			keys[k] = rb.Name
		}
		described = append(described, p)
	}
	return g.meet(described)
}

// link gives every robot a path for each of its keys, and returns those that are
// taken away and those that are new.
func (g *Gateway) link(peers []*peer, robots []RobotPeer) (leaving, arriving []*link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wanted := map[*link]bool{}
	for i, p := range peers {
		for slot, key := range robots[i].Keys {
			l := p.links[slot].Load()
			if l == nil || l.key != key {
				if l != nil {
					leaving = append(leaving, l)
				}
				l = p.newLink(slot, fmt.Sprintf("slot %d", slot),
					replicate.MakeAddress(g.self, uint8(slot)), replicate.MakeAddress(p.node, uint8(slot)))
				l.key = key
				p.add(l)
				arriving = append(arriving, l)
			}
			wanted[l] = true
		}
	}
	return append(leaving, unlink(g.peers, wanted)...), arriving
}

// unlink takes the links that are not wanted away from the peers.
func unlink(peers []*peer, wanted map[*link]bool) (leaving []*link) {
	for _, p := range peers {
		for l := range p.paths() {
			if !wanted[l] {
				p.links[l.slot].Store(nil)
				leaving = append(leaving, l)
			}
		}
	}
	return leaving
}
