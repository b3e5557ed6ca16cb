package routing

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// SetupTUN brings the TUN device, which must exist, into the state t: MTU, queue
// length, multicast, exactly the addresses of t, up. For each overlay prefix it
// adds a blackhole route behind all others, so that overlay traffic never leaves
// by an uplink while the device is down or gone. The first call removes what an
// earlier start of this node with another configuration left: its device of
// another name, and blackhole routes that nobody on this machine needs. Called
// again it changes only what differs, so it may be called for every kick of
// Watch. Without IPv6 its IPv6 addresses are left out, of which Warnings tells, if
// there are others. Close leaves all of it in place.
func (m *Manager) SetupTUN(t TUN) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosed
	}
	if err := t.check(); err != nil {
		return err
	}
	v, err := m.kernel.view(nil)
	if err != nil {
		return err
	}
	l, ok := v.link(t.Name)
	if !ok {
		return fmt.Errorf("there is no interface %s: %w", t.Name, unix.ENODEV)
	}
	if !l.isTUN() {
		return fmt.Errorf("%s exists but is no TUN device. Choose another name for the overlay's interface, or remove that one", t.Name)
	}
	if m.tun == "" {
		if v, err = m.dropLeftovers(v, t); err != nil {
			return err
		}
	}
	m.tun = t.Name
	m.own.overlay = prefixes(t.Addresses)
	// The blackhole first: from here on nothing leaks.
	if err := m.blackhole(v); err != nil {
		return err
	}
	if err := m.setupLink(l, t); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return nil
}

func (t TUN) check() error {
	if len(t.Addresses) == 0 {
		return fmt.Errorf("%s: no address given", t.Name)
	}
	for _, a := range t.Addresses {
		if !a.IsValid() || a.Addr().Is4In6() || a.Addr().Zone() != "" {
			return fmt.Errorf("%s: %s is not an address with a prefix length", t.Name, a)
		}
		if !a.Addr().Is4() && t.MTU < 1280 {
			return fmt.Errorf("%s: an MTU of %d bytes is too small for the IPv6 address %s: give 1280 or more", t.Name, t.MTU, a)
		}
	}
	if len(t.alias()) > maxAlias {
		return fmt.Errorf("%s: the owner's name is too long for an alias, which has at most %d bytes", t.Name, maxAlias)
	}
	return nil
}

// prefixes returns the networks of the addresses, each once.
func prefixes(addresses []netip.Prefix) []netip.Prefix {
	var found []netip.Prefix
	for _, a := range addresses {
		if p := a.Masked(); !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	return found
}

func (m *Manager) setupLink(l link, t TUN) error {
	// v6 addresses of a device that goes up come from the kernel: first forbid that.
	if !m.kernel.addrGenNone(t.Name) {
		if err := m.kernel.setAddrGenNone(l.index); err != nil {
			return fmt.Errorf("no IPv6 address of the kernel's own: %w", why(err))
		}
	}
	// An alias that somebody else gave the device stays.
	if l.alias != t.alias() && (l.alias == "" || l.ours()) {
		if err := m.kernel.setAlias(l.index, t.alias()); err != nil {
			return fmt.Errorf("alias: %w", why(err))
		}
	}
	if l.mtu != t.MTU {
		if err := m.kernel.setMTU(l.index, t.MTU); err != nil {
			return fmt.Errorf("MTU %d: %w", t.MTU, why(err))
		}
	}
	if t.TxQueueLen != 0 && l.txQueueLen != t.TxQueueLen {
		if err := m.kernel.setTxQueueLen(l.index, t.TxQueueLen); err != nil {
			return fmt.Errorf("queue length %d: %w", t.TxQueueLen, why(err))
		}
	}
	if !l.multicast {
		if err := m.kernel.setMulticast(l.index); err != nil {
			return fmt.Errorf("multicast: %w", why(err))
		}
	}
	if !l.up {
		if err := m.kernel.setUp(l.index); err != nil {
			return fmt.Errorf("up: %w", why(err))
		}
	}
	// Read again: going up and another MTU change the addresses.
	v, err := m.kernel.view(nil)
	if err != nil {
		return err
	}
	return m.setupAddresses(v, l, t.Addresses)
}

func (m *Manager) setupAddresses(v *view, l link, want []netip.Prefix) error {
	removed := false
	for _, a := range v.addresses {
		p := a.prefix()
		if a.index != l.index || (!a.peer && slices.Contains(want, p)) {
			continue
		}
		if err := m.kernel.delAddress(a); err != nil && !gone(err) {
			return fmt.Errorf("removing address %s: %w", p, why(err))
		}
		removed = true
	}
	if removed {
		// An IPv4 address takes the later ones of its network with it.
		var err error
		if v, err = m.kernel.view(nil); err != nil {
			return err
		}
	}
	var lacking []netip.Prefix
	for _, p := range want {
		if slices.ContainsFunc(v.addresses, func(a address) bool {
			return a.index == l.index && !a.peer && a.prefix() == p
		}) {
			if err := m.connect(v, l, p); err != nil {
				return err
			}
			continue
		}
		err := m.kernel.addAddress(l.index, p)
		switch {
		case err == nil || errors.Is(err, unix.EEXIST):
		case !p.Addr().Is4() && (unsupported(err) || errors.Is(err, unix.EACCES)):
			lacking = append(lacking, p)
		default:
			return fmt.Errorf("address %s: %w", p, why(err))
		}
	}
	return m.without6(l.name, want, lacking)
}

// without6 notes that overlay addresses could not be set since there is no IPv6
// here, which is an error only if no other address is left.
func (m *Manager) without6(tun string, want, lacking []netip.Prefix) error {
	m.lacking = ""
	if len(lacking) == 0 {
		return nil
	}
	if len(lacking) == len(want) {
		return fmt.Errorf("address %s: IPv6 is switched off here. Switch it on (sysctl -w %s=0), or give this node an IPv4 overlay address",
			lacking[0], disableIPv6Key(tun))
	}
	m.lacking = fmt.Sprintf("IPv6 is switched off here, so %s has not the overlay address %s, and only IPv4 works on the overlay. "+
		"Switch it on (sysctl -w %s=0), or leave that address out of the configuration.", tun, lacking[0], disableIPv6Key(tun))
	return nil
}

// disableIPv6Key is as rpFilterKey.
func disableIPv6Key(name string) string {
	return "net.ipv6.conf." + strings.ReplaceAll(name, ".", "/") + ".disable_ipv6"
}

// connect adds the route to the network of address p, which the kernel made
// with the address, if somebody deleted it since.
func (m *Manager) connect(v *view, l link, p netip.Prefix) error {
	r := connectedRoute(l.index, p)
	if p.IsSingleIP() || slices.ContainsFunc(v.routes, func(have route) bool {
		return have.table == r.table && have.dst == r.dst && have.oif == r.oif && have.kind == r.kind
	}) {
		return nil
	}
	v.routes = append(v.routes, r) // for another address of the same network
	o := op{verb: addRoute, route: r, name: l.name}
	if !m.mayRestore(o) {
		return nil
	}
	switch err := m.kernel.addRoute(r, false); {
	case err == nil:
		m.done(o, true)
		return nil
	case errors.Is(err, unix.EEXIST):
		return nil // by another interface: Warnings tells
	default:
		return fmt.Errorf("%s: %w", o, why(err))
	}
}

// connectedRoute is what the kernel makes with an address.
func connectedRoute(index int, p netip.Prefix) route {
	r := route{table: unix.RT_TABLE_MAIN, dst: p.Masked(), kind: unix.RTN_UNICAST, oif: index, protocol: unix.RTPROT_KERNEL}
	if r.v6() {
		r.metric = connectedMetric6
		return r
	}
	r.scope, r.src = unix.RT_SCOPE_LINK, p.Addr()
	return r
}

// blackhole adds the overlay's blackhole routes where they are missing.
func (m *Manager) blackhole(v *view) error {
	for _, r := range blackholes(m.own.overlay) {
		o := op{verb: addRoute, route: r}
		restore := m.keeper.lost(o)
		if slices.Contains(v.routes, r) {
			m.keeper.did(o)
			continue
		}
		if restore && !m.mayRestore(o) {
			continue
		}
		err := m.kernel.addRoute(r, false)
		switch {
		case err == nil:
			if !restore {
				m.added = append(m.added, r)
			}
			m.done(o, restore)
		case errors.Is(err, unix.EEXIST):
		case r.v6() && unsupported(err):
		default:
			return fmt.Errorf("blackhole route for %s: %w", r.dst, why(err))
		}
	}
	return nil
}

func blackholes(overlay []netip.Prefix) []route {
	var all []route
	for _, p := range overlay {
		all = append(all, blackholeRoute(p))
	}
	return all
}

func blackholeRoute(p netip.Prefix) route {
	return route{table: unix.RT_TABLE_MAIN, dst: p, kind: unix.RTN_BLACKHOLE, metric: blackholeMetric, protocol: Protocol}
}
