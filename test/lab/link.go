package lab

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// LinkParams are the parameters of a link's two directions.
type LinkParams struct {
	AB, BA Params
	// Seed decides all luck: with the same seed the same packet (by number, in
	// its direction) meets the same delay and loss.
	Seed uint64
}

// Both returns the parameters of a link that is the same in both directions.
func Both(p Params, seed uint64) LinkParams { return LinkParams{AB: p, BA: p, Seed: seed} }

// Link is an emulated link between two nodes.
type Link struct {
	AB *Direction // from the first node to the second
	BA *Direction
	a  end
	b  end
}

// end is one end of a link.
type end struct {
	node  *Node
	iface string
	fd    int
}

// Link joins node a to node b with an emulated link and brings both interfaces
// up. ifA and ifB are the names of the interfaces it makes. The devices are
// ordinary Ethernet ones with an MTU of 1500.
func (l *Lab) Link(a *Node, ifA string, b *Node, ifB string, p LinkParams) (*Link, error) {
	k := &Link{a: end{a, ifA, -1}, b: end{b, ifB, -1}}
	if err := k.open(p); err != nil {
		return nil, errors.Join(fmt.Errorf("link %s/%s to %s/%s: %w", a.name, ifA, b.name, ifB, err), k.close())
	}
	l.mu.Lock()
	l.links[k] = struct{}{}
	l.mu.Unlock()
	return k, nil
}

func (k *Link) open(p LinkParams) error {
	for _, e := range []*end{&k.a, &k.b} {
		err := e.node.Do(func() (err error) {
			e.fd, err = openTAP(e.iface)
			return err
		})
		if err != nil {
			return err
		}
		if err := e.node.Up(e.iface); err != nil {
			return err
		}
	}
	var err error
	if k.AB, err = startDirection(k.a.fd, k.b.fd, mix(p.Seed), p.AB); err != nil {
		return err
	}
	k.BA, err = startDirection(k.b.fd, k.a.fd, mix(p.Seed+1), p.BA)
	return err
}

// BlackHole switches the black hole on or off in both directions. Nobody gets a
// link event.
func (k *Link) BlackHole(on bool) {
	k.AB.BlackHole(on)
	k.BA.BlackHole(on)
}

// Set changes the parameters of both directions.
func (k *Link) Set(p Params) error {
	if err := k.AB.Set(p); err != nil {
		return err
	}
	return k.BA.Set(p)
}

// Plug puts the cable in (true) or pulls it (false) at the first node: its
// interface stays up but loses its carrier, and the node gets a link event.
func (k *Link) Plug(in bool) error { return setCarrier(k.a.fd, in) }

// Remove takes the link away, interfaces included, as when a modem is unplugged.
// The same names may be used again afterwards.
func (l *Lab) Remove(k *Link) error {
	l.mu.Lock()
	delete(l.links, k)
	l.mu.Unlock()
	return k.close()
}

// close stops the emulators and removes the devices. It must be called once.
func (k *Link) close() error {
	for _, d := range []*Direction{k.AB, k.BA} {
		if d != nil {
			d.halt()
		}
	}
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
