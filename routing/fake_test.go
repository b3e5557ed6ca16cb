package routing

import (
	"cmp"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeKernel keeps a view and changes it as the kernel would.
type fakeKernel struct {
	v       view
	devices map[int]device
	genNone map[string]bool
	events  *fakeEvents
	writes  int
	// refuse returns the error for a change, by its line; nil: none.
	refuse func(line string) error
}

func newFake(v view) *fakeKernel {
	if v.rpFilter == nil {
		v.rpFilter = map[string]int{"all": 0}
	}
	return &fakeKernel{v: v, genNone: map[string]bool{}, events: newFakeEvents()}
}

func (k *fakeKernel) denied(line string) error {
	k.writes++
	if k.refuse == nil {
		return nil
	}
	return k.refuse(line)
}

func (k *fakeKernel) view([]string) (*view, error) {
	v := k.v
	v.links = slices.Clone(v.links)
	v.addresses = slices.Clone(v.addresses)
	v.routes = slices.Clone(v.routes)
	v.rules = slices.Clone(v.rules)
	v.rpFilter = maps.Clone(v.rpFilter)
	return &v, nil
}

func (k *fakeKernel) device(l link) device { return k.devices[l.index] }

func (k *fakeKernel) addRule(r rule) error {
	if err := k.denied(op{verb: addRule, rule: r}.String()); err != nil {
		return err
	}
	if slices.Contains(k.v.rules, r) {
		return unix.EEXIST
	}
	k.v.rules = append(k.v.rules, r)
	slices.SortStableFunc(k.v.rules, func(a, b rule) int {
		return cmp.Or(boolCompare(a.v6, b.v6), cmp.Compare(a.pref, b.pref))
	})
	return nil
}

func (k *fakeKernel) delRule(r rule) error {
	if err := k.denied(op{verb: delRule, rule: r}.String()); err != nil {
		return err
	}
	i := slices.Index(k.v.rules, r)
	if i < 0 {
		return unix.ENOENT
	}
	k.v.rules = slices.Delete(k.v.rules, i, i+1)
	return nil
}

func (k *fakeKernel) line(v verb, r route) string {
	return op{verb: v, route: r, name: k.v.linkName(r.oif)}.String()
}

func (k *fakeKernel) addRoute(r route, replace bool) error {
	v := addRoute
	if replace {
		v = replaceRoute
	}
	if err := k.denied(k.line(v, r)); err != nil {
		return err
	}
	i := slices.IndexFunc(k.v.routes, func(o route) bool { return o.key() == r.key() })
	switch {
	case i >= 0 && !replace:
		return unix.EEXIST
	case r.oif != 0 && k.v.linkName(r.oif) == "":
		return unix.ENODEV
	case r.gateway.IsValid() && !r.onlink && !r.gateway.IsLinkLocalUnicast() && !k.onLink(r):
		return unix.EINVAL // "Nexthop has invalid gateway"
	}
	if i >= 0 {
		k.v.routes = slices.Delete(k.v.routes, i, i+1)
	}
	k.v.routes = append(k.v.routes, r)
	return nil
}

func (k *fakeKernel) onLink(r route) bool {
	return slices.ContainsFunc(k.v.routes, func(o route) bool {
		return o.table == r.table && o.oif == r.oif && !o.gateway.IsValid() && o.dst.Contains(r.gateway)
	})
}

func (k *fakeKernel) delRoute(r route) error {
	if err := k.denied(k.line(delRoute, r)); err != nil {
		return err
	}
	i := slices.Index(k.v.routes, r)
	if i < 0 {
		return unix.ESRCH
	}
	k.v.routes = slices.Delete(k.v.routes, i, i+1)
	return nil
}

func (k *fakeKernel) setRPFilter(index, value int) error {
	name := k.v.linkName(index)
	if err := k.denied(op{verb: loosen, name: name}.String()); err != nil {
		return err
	}
	if _, ok := k.v.rpFilter[name]; !ok {
		return unix.ENODEV
	}
	k.v.rpFilter[name] = value
	return nil
}

func (k *fakeKernel) edit(index int, f func(*link)) error {
	k.writes++
	for i := range k.v.links {
		if k.v.links[i].index == index {
			f(&k.v.links[i])
			return nil
		}
	}
	return unix.ENODEV
}

func (k *fakeKernel) setMTU(index, mtu int) error {
	return k.edit(index, func(l *link) { l.mtu = mtu })
}

func (k *fakeKernel) setTxQueueLen(index, n int) error {
	return k.edit(index, func(l *link) { l.txQueueLen = n })
}

func (k *fakeKernel) setMulticast(index int) error {
	return k.edit(index, func(l *link) { l.multicast = true })
}

func (k *fakeKernel) setUp(index int) error {
	return k.edit(index, func(l *link) { l.up = true })
}

func (k *fakeKernel) setAlias(index int, alias string) error {
	return k.edit(index, func(l *link) { l.alias = alias })
}

func (k *fakeKernel) addrGenNone(name string) bool { return k.genNone[name] }

func (k *fakeKernel) setAddrGenNone(index int) error {
	k.genNone[k.v.linkName(index)] = true
	return k.edit(index, func(*link) {})
}

func (k *fakeKernel) addAddress(index int, p netip.Prefix) error {
	k.writes++
	k.v.addresses = append(k.v.addresses, address{index: index, ip: p.Addr(), subnet: p.Masked()})
	if r := connectedRoute(index, p); !slices.Contains(k.v.routes, r) {
		k.v.routes = append(k.v.routes, r)
	}
	return nil
}

// delAddress takes the later IPv4 addresses of the same network with it.
func (k *fakeKernel) delAddress(a address) error {
	k.writes++
	i := slices.Index(k.v.addresses, a)
	if i < 0 {
		return unix.EADDRNOTAVAIL
	}
	first := slices.IndexFunc(k.v.addresses, func(o address) bool { return o.index == a.index && o.subnet == a.subnet })
	k.v.addresses = slices.DeleteFunc(k.v.addresses, func(o address) bool {
		return o == a || (first == i && a.ip.Is4() && o.index == a.index && o.subnet == a.subnet)
	})
	return nil
}

func (k *fakeKernel) delLink(index int) error {
	k.writes++
	if k.v.linkName(index) == "" {
		return unix.ENODEV
	}
	k.v.links = slices.DeleteFunc(k.v.links, func(l link) bool { return l.index == index })
	k.v.addresses = slices.DeleteFunc(k.v.addresses, func(a address) bool { return a.index == index })
	k.v.routes = slices.DeleteFunc(k.v.routes, func(r route) bool { return r.oif == index })
	return nil
}

func (k *fakeKernel) namespace() uint64               { return 4026531840 }
func (k *fakeKernel) subscriber() (subscriber, error) { return k.events, nil }
func (k *fakeKernel) close()                          {}

// fakeEvents is a subscription whose messages the test sends.
type fakeEvents struct {
	messages chan error
	opened   int
	released bool
	deaf     atomic.Bool // subscribe is refused
}

func newFakeEvents() *fakeEvents { return &fakeEvents{messages: make(chan error)} }

func (e *fakeEvents) subscribe() (subscription, error) {
	if e.deaf.Load() {
		return nil, unix.EPERM
	}
	e.opened++
	return &fakeSubscription{e, make(chan struct{}, 2)}, nil
}
func (e *fakeEvents) close() { e.released = true }

type fakeSubscription struct {
	events *fakeEvents
	ended  chan struct{}
}

func (s *fakeSubscription) receive() error {
	select {
	case err := <-s.events.messages:
		return err
	case <-s.ended:
		return os.ErrClosed
	}
}

func (s *fakeSubscription) close() {
	select {
	case s.ended <- struct{}{}:
	default:
	}
}

// The following build views in as few words as the scenario needs.

func pfx(s string) netip.Prefix {
	switch s {
	case "default":
		return netip.MustParsePrefix("0.0.0.0/0")
	case "default6":
		return netip.MustParsePrefix("::/0")
	}
	return netip.MustParsePrefix(s)
}

func addr(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

func addrs(all ...string) []netip.Addr {
	var parsed []netip.Addr
	for _, s := range all {
		parsed = append(parsed, addr(s))
	}
	return parsed
}

// world starts with what every namespace has.
func world() view {
	return view{
		links: []link{{index: 1, name: "lo", up: true, running: true, loopback: true}},
		rules: []rule{
			kernelRule(false, 0, unix.RT_TABLE_LOCAL), kernelRule(false, 32766, unix.RT_TABLE_MAIN),
			kernelRule(false, 32767, unix.RT_TABLE_DEFAULT),
			kernelRule(true, 0, unix.RT_TABLE_LOCAL), kernelRule(true, 32766, unix.RT_TABLE_MAIN),
		},
		rpFilter: map[string]int{"all": 0},
	}
}

func kernelRule(v6 bool, pref, table int) rule {
	return rule{v6: v6, pref: pref, table: table, suppress: -1, protocol: unix.RTPROT_KERNEL}
}

// ether adds an Ethernet-like interface that is up, with addresses and the
// kernel's routes for them.
func (v *view) ether(index int, name string, addresses ...string) {
	v.links = append(v.links, link{index: index, name: name, up: true, running: true, multicast: true, mtu: 1500})
	v.rpFilter[name] = 0
	for _, s := range addresses {
		p := pfx(s)
		v.addresses = append(v.addresses, address{index: index, ip: p.Addr(), subnet: p.Masked()})
		r := route{table: unix.RT_TABLE_MAIN, dst: p.Masked(), kind: unix.RTN_UNICAST, oif: index, protocol: unix.RTPROT_KERNEL}
		if p.Addr().Is4() {
			r.scope, r.src = unix.RT_SCOPE_LINK, p.Addr()
		} else {
			r.metric = 256
		}
		v.routes = append(v.routes, r)
	}
}

func (v *view) modify(name string, f func(*link)) {
	for i := range v.links {
		if v.links[i].name == name {
			f(&v.links[i])
		}
	}
}

func (v *view) route(table int, dst, via string, oif int, metric uint32) *route {
	v.routes = append(v.routes, route{table: table, dst: pfx(dst), kind: unix.RTN_UNICAST, gateway: addr(via), oif: oif,
		metric: metric, protocol: unix.RTPROT_STATIC})
	return &v.routes[len(v.routes)-1]
}

// rule adds somebody else's rule.
func (v *view) rule(pref, table int, edit func(*rule)) {
	for _, v6 := range []bool{false, true} {
		r := rule{v6: v6, pref: pref, table: table, suppress: -1, protocol: unix.RTPROT_BOOT}
		if edit != nil {
			edit(&r)
		}
		v.rules = append(v.rules, r)
	}
	slices.SortStableFunc(v.rules, func(a, b rule) int {
		return cmp.Or(boolCompare(a.v6, b.v6), cmp.Compare(a.pref, b.pref))
	})
}

func manage(t *testing.T, k kernel) (*Manager, *strings.Builder) {
	t.Helper()
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	m, err := newManager(k, t.TempDir(), "plr0", log)
	if err != nil {
		t.Fatal(err)
	}
	return m, &out
}
