package lab

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// LinkParams are the parameters of a link's two directions.
type LinkParams struct {
	AB, BA Params
	// Seed decides all luck: with the same seed the same packet (by number, in
	// its direction) meets the same delay and loss.
	Seed uint64
	// Start is when traces begin, on this machine's clock; zero for not yet.
	Start time.Time
	// Raw makes point-to-point devices without Ethernet, as modems have that
	// speak IP alone. It cannot be changed later.
	Raw bool
}

// Both returns the parameters of a link that is the same in both directions.
func Both(p Params, seed uint64) LinkParams { return LinkParams{AB: p, BA: p, Seed: seed} }

func (p *LinkParams) check() error { return errors.Join(p.AB.check(), p.BA.check()) }

// Link is an emulated link between two nodes. Its methods may be called from
// any goroutine, but not after Remove or Close.
type Link struct {
	emulator *emulator
	a, b     end
	id       int

	mu     sync.Mutex
	params LinkParams
}

// end is one end of a link.
type end struct {
	node  *Node
	iface string
	fd    int
}

// Link joins node a to node b with an emulated link and brings both interfaces
// up. ifA and ifB are the names of the interfaces it makes. The devices are
// ordinary Ethernet ones, unless p.Raw, with an MTU of 1500.
func (l *Lab) Link(a *Node, ifA string, b *Node, ifB string, p LinkParams) (*Link, error) {
	k := &Link{emulator: l.emulator, a: end{a, ifA, -1}, b: end{b, ifB, -1}, params: p}
	if err := k.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("link %s/%s to %s/%s: %w", a.name, ifA, b.name, ifB, err), k.closeDevices())
	}
	l.mu.Lock()
	l.links[k] = struct{}{}
	l.mu.Unlock()
	return k, nil
}

func (k *Link) open() (err error) {
	if err := k.params.check(); err != nil {
		return err
	}
	for _, e := range []*end{&k.a, &k.b} {
		err := e.node.Do(func() (err error) {
			e.fd, err = openDevice(e.iface, k.params.Raw)
			return err
		})
		if err != nil {
			return err
		}
		if err := e.node.Up(e.iface); err != nil {
			return err
		}
	}
	k.id, err = k.emulator.open(k.params, k.a.fd, k.b.fd)
	return err
}

// Params returns the parameters in force.
func (k *Link) Params() LinkParams {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.params
}

// Set changes the parameters of both directions, for packets that arrive from
// now on; those in flight keep the time they were given. The seed stays. A value
// out of range is an error and changes nothing.
func (k *Link) Set(ab, ba Params) error {
	return k.change(func(p *LinkParams) { p.AB, p.BA = ab, ba })
}

// Play starts the traces of both directions at a time on this machine's clock.
func (k *Link) Play(start time.Time) error {
	return k.change(func(p *LinkParams) { p.Start = start })
}

// BlackHole switches the black hole on or off in both directions. Nobody gets a
// link event.
func (k *Link) BlackHole(on bool) error {
	return k.change(func(p *LinkParams) { p.AB.BlackHole, p.BA.BlackHole = on, on })
}

// BlackHoleAB switches the black hole from the first node to the second.
func (k *Link) BlackHoleAB(on bool) error {
	return k.change(func(p *LinkParams) { p.AB.BlackHole = on })
}

// BlackHoleBA switches the black hole from the second node to the first.
func (k *Link) BlackHoleBA(on bool) error {
	return k.change(func(p *LinkParams) { p.BA.BlackHole = on })
}

func (k *Link) change(f func(*LinkParams)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.params
	f(&p)
	if err := p.check(); err != nil {
		return err
	}
	if _, err := k.emulator.call(request{Op: opSet, Link: k.id, Params: p}); err != nil {
		return k.wrap(err)
	}
	k.params = p
	return nil
}

// Counters returns what became of the packets so far, from the first node to
// the second and back. It is an error when the emulator has stopped, which it
// does when one of its devices is deleted.
func (k *Link) Counters() (ab, ba Counters, err error) {
	r, err := k.emulator.call(request{Op: opCounters, Link: k.id})
	for _, reason := range r.Stopped {
		if reason != "" {
			err = errors.Join(err, errors.New(reason))
		}
	}
	return r.Counters[0], r.Counters[1], k.wrap(err)
}

func (k *Link) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("link %s/%s to %s/%s: %w", k.a.node.name, k.a.iface, k.b.node.name, k.b.iface, err)
}

// Plug puts the cable in (true) or pulls it (false) at the first node: its
// interface stays up but loses its carrier, and the node gets a link event.
func (k *Link) Plug(in bool) error { return k.wrap(setCarrier(k.a.fd, in)) }

// Remove takes the link away, interfaces included, as when a modem is unplugged.
// The same names may be used again afterwards.
func (l *Lab) Remove(k *Link) error {
	l.mu.Lock()
	delete(l.links, k)
	l.mu.Unlock()
	return k.close()
}

// close stops the emulation and removes the devices. It must be called once.
func (k *Link) close() error {
	_, err := k.emulator.call(request{Op: opClose, Link: k.id})
	return errors.Join(k.wrap(err), k.closeDevices())
}

func (k *Link) closeDevices() error {
	var errs []error
	for _, e := range []end{k.a, k.b} {
		if e.fd >= 0 {
			errs = append(errs, unix.Close(e.fd))
		}
	}
	return errors.Join(errs...)
}

// Veth joins node a to node b with a pair of plain virtual Ethernet devices, for
// tests of speed: no emulation, all kernel offloads. Both ends are up.
func (l *Lab) Veth(a *Node, ifA string, b *Node, ifB string) error {
	pair := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: ifA},
		PeerName:      ifB,
		PeerNamespace: netlink.NsFd(int(b.ns)),
	}
	if err := a.handle.LinkAdd(pair); err != nil {
		return fmt.Errorf("veth %s/%s to %s/%s: %w", a.name, ifA, b.name, ifB, err)
	}
	return errors.Join(a.Up(ifA), b.Up(ifB))
}
