package routing

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// netlinkKernel is the kernel of one network namespace. Its /proc/sys files are
// those of the calling thread's namespace, which must be the same.
type netlinkKernel struct {
	handle *netlink.Handle
	ns     netns.NsHandle
	inode  uint64
}

// currentNamespace returns the calling thread's network namespace.
func currentNamespace() (ns netns.NsHandle, inode uint64, err error) {
	if ns, err = netns.Get(); err != nil {
		return ns, 0, fmt.Errorf("network namespace: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(ns), &st); err != nil {
		return ns, 0, errors.Join(fmt.Errorf("network namespace: %w", err), ns.Close())
	}
	return ns, st.Ino, nil
}

func openKernel() (*netlinkKernel, error) {
	ns, inode, err := currentNamespace()
	if err != nil {
		return nil, err
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("netlink socket: %w", err), ns.Close())
	}
	if err := h.SetSocketTimeout(netlinkTimeout); err != nil {
		h.Close()
		return nil, errors.Join(fmt.Errorf("netlink socket: %w", err), ns.Close())
	}
	return &netlinkKernel{handle: h, ns: ns, inode: inode}, nil
}

func (k *netlinkKernel) namespace() uint64 { return k.inode }

func (k *netlinkKernel) close() {
	k.handle.Close()
	k.ns.Close()
}

// dump repeats a dump that the kernel marked as interrupted by a change.
func dump[T any](what string, list func() ([]T, error)) ([]T, error) {
	for try := 1; ; try++ {
		got, err := list()
		if err == nil {
			return got, nil
		}
		if !errors.Is(err, netlink.ErrDumpInterrupted) || try == maxDumpTries {
			return nil, fmt.Errorf("reading the kernel's %s: %w", what, err)
		}
	}
}

func (k *netlinkKernel) view(names []string) (*view, error) {
	v := &view{rpFilter: map[string]int{}}
	links, err := dump("interfaces", k.handle.LinkList)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		v.links = append(v.links, readLink(l))
	}
	addresses, err := dump("addresses", func() ([]netlink.Addr, error) {
		return k.handle.AddrList(nil, netlink.FAMILY_ALL)
	})
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if r, ok := readAddress(a); ok {
			v.addresses = append(v.addresses, r)
		}
	}
	routes, err := dump("routes", func() ([]netlink.Route, error) {
		return k.handle.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		v.routes = append(v.routes, readRoute(r)...)
	}
	if v.noRules4, err = k.readRules(v, netlink.FAMILY_V4); err != nil {
		return nil, err
	}
	if v.noRules6, err = k.readRules(v, netlink.FAMILY_V6); err != nil {
		return nil, err
	}
	for _, name := range append([]string{"all"}, names...) {
		if value, err := readRPFilter(name); err == nil {
			v.rpFilter[name] = value
		}
	}
	return v, nil
}

func (k *netlinkKernel) device(l link) device { return readDevice("/sys", l) }

func (k *netlinkKernel) readRules(v *view, family int) (none bool, err error) {
	rules, err := dump("rules", func() ([]netlink.Rule, error) { return k.handle.RuleList(family) })
	if unsupported(err) {
		return true, nil
	}
	for _, r := range rules {
		v.rules = append(v.rules, readRule(r))
	}
	return false, err
}

func readLink(l netlink.Link) link {
	a := l.Attrs()
	read := link{
		index: a.Index, name: a.Name, alias: a.Alias, kind: l.Type(), mtu: a.MTU, txQueueLen: a.TxQLen,
		up:           a.RawFlags&unix.IFF_UP != 0,
		running:      a.RawFlags&unix.IFF_RUNNING != 0,
		carrier:      a.RawFlags&unix.IFF_LOWER_UP != 0,
		loopback:     a.RawFlags&unix.IFF_LOOPBACK != 0,
		multicast:    a.RawFlags&unix.IFF_MULTICAST != 0,
		pointToPoint: a.RawFlags&(unix.IFF_POINTOPOINT|unix.IFF_NOARP) != 0,
		encap:        a.EncapType,
		address:      macOf(a.HardwareAddr),
		mac:          cmp.Or(macOf(a.PermHWAddr), macOf(a.HardwareAddr)),
		master:       a.MasterIndex,
		lower:        a.ParentIndex,
		elsewhere:    a.NetNsID != -1,
		parent:       a.ParentDev,
	}
	if _, ok := l.(*netlink.Device); ok {
		read.kind = "" // the library's word for none
	}
	if t, ok := l.(*netlink.Tuntap); ok {
		read.kind = "tun"
		read.tap = t.Mode == netlink.TUNTAP_MODE_TAP
	}
	return read
}

// macOf is empty for link-layer addresses of other sizes, such as the IPv4
// address of a tunnel.
func macOf(a net.HardwareAddr) string {
	if len(a) != 6 {
		return ""
	}
	return a.String()
}

func readAddress(a netlink.Addr) (address, bool) {
	if a.IPNet == nil {
		return address{}, false
	}
	local, ok := prefixOf(a.IPNet)
	if !ok {
		return address{}, false
	}
	read := address{index: a.LinkIndex, ip: local.Addr(), subnet: local.Masked(),
		pending: a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0}
	if a.Flags&unix.IFA_F_OPTIMISTIC != 0 && a.Flags&unix.IFA_F_DADFAILED == 0 {
		read.pending = false // RFC 4429: used while it is checked
	}
	if a.Peer != nil {
		peer, ok := prefixOf(a.Peer)
		if ok && peer.Addr() != read.ip {
			read.peer, read.subnet = true, peer.Masked()
		}
	}
	return read, true
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	a, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if !ok || (ones == 0 && bits == 0) {
		return netip.Prefix{}, false
	}
	if a.Is4In6() && bits == 32 {
		a = a.Unmap()
	}
	return netip.PrefixFrom(a, ones), true
}

func readRoute(r netlink.Route) []route {
	if r.Dst == nil {
		return nil
	}
	dst, ok := prefixOf(r.Dst)
	if !ok {
		return nil
	}
	base := route{table: r.Table, dst: dst.Masked(), kind: r.Type, metric: uint32(r.Priority), src: addrOf(r.Src, nil),
		mtu: uint32(r.MTU), protocol: uint8(r.Protocol), tos: uint8(r.Tos)}
	if !base.v6() {
		base.scope = uint8(r.Scope)
	}
	if len(r.MultiPath) == 0 {
		base.oif = r.LinkIndex
		base.gateway = addrOf(r.Gw, r.Via)
		base.onlink = r.Flags&unix.RTNH_F_ONLINK != 0
		base.dead = r.Flags&unix.RTNH_F_DEAD != 0
		if base.kind != unix.RTN_UNICAST && base.v6() {
			base.oif = 0 // IPv6 shows lo for routes that reject
		}
		return []route{base}
	}
	var hops []route
	for _, nh := range r.MultiPath {
		hop := base
		hop.oif = nh.LinkIndex
		hop.gateway = addrOf(nh.Gw, nh.Via)
		hop.onlink = nh.Flags&unix.RTNH_F_ONLINK != 0
		hop.dead = nh.Flags&unix.RTNH_F_DEAD != 0
		hops = append(hops, hop)
	}
	return hops
}

// addrOf returns the address, or else that of an IPv4 route's IPv6 gateway.
func addrOf(ip net.IP, via netlink.Destination) netip.Addr {
	if v, ok := via.(*netlink.Via); ok && len(ip) == 0 {
		ip = v.Addr
	}
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

func readRule(r netlink.Rule) rule {
	read := rule{v6: r.Family == netlink.FAMILY_V6, pref: r.Priority, mark: r.Mark, iif: r.IifName, oif: r.OifName,
		ipProto: r.IPProto, invert: r.Invert, table: r.Table, suppress: r.SuppressPrefixlen, protocol: r.Protocol}
	switch {
	case r.Mask != nil:
		read.mask = *r.Mask
	case r.Mark != 0:
		read.mask = 0xffffffff
	}
	if r.Src != nil {
		read.src, _ = prefixOf(r.Src)
	}
	if r.Dst != nil {
		read.dst, _ = prefixOf(r.Dst)
	}
	// Table 0 stands for an action other than a look-up, or for a VRF.
	read.opaque = r.Tos != 0 || r.TunID != 0 || r.Goto >= 0 || r.SuppressIfgroup >= 0 || r.Dport != nil || r.Sport != nil ||
		r.UIDRange != nil || r.Table == 0
	return read
}

func (k *netlinkKernel) addRule(r rule) error { return k.handle.RuleAdd(writeRule(r)) }
func (k *netlinkKernel) delRule(r rule) error { return k.handle.RuleDel(writeRule(r)) }

func writeRule(r rule) *netlink.Rule {
	n := netlink.NewRule()
	n.Family = family(r.v6)
	n.Priority = r.pref
	n.Table = r.table
	n.Protocol = r.protocol
	n.OifName, n.IifName = r.oif, r.iif
	n.SuppressPrefixlen = r.suppress
	if r.mask != 0 {
		n.Mark, n.Mask = r.mark, &r.mask
	}
	if r.src.IsValid() {
		n.Src = netOf(r.src)
	}
	if r.dst.IsValid() {
		n.Dst = netOf(r.dst)
	}
	return n
}

func family(v6 bool) int {
	if v6 {
		return netlink.FAMILY_V6
	}
	return netlink.FAMILY_V4
}

func netOf(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func (k *netlinkKernel) addRoute(r route, replace bool) error {
	if replace {
		return k.handle.RouteReplace(writeRoute(r))
	}
	return k.handle.RouteAdd(writeRoute(r))
}

func (k *netlinkKernel) delRoute(r route) error { return k.handle.RouteDel(writeRoute(r)) }

func writeRoute(r route) *netlink.Route {
	n := &netlink.Route{Table: r.table, Dst: netOf(r.dst), Type: r.kind, LinkIndex: r.oif, Priority: int(r.metric),
		Scope: netlink.Scope(r.scope), MTU: int(r.mtu), Protocol: netlink.RouteProtocol(r.protocol), Family: family(r.v6())}
	if r.onlink {
		n.Flags = unix.RTNH_F_ONLINK
	}
	if r.src.IsValid() {
		n.Src = r.src.AsSlice()
	}
	switch {
	case !r.gateway.IsValid():
	case r.gateway.Is4() == r.dst.Addr().Is4():
		n.Gw = r.gateway.AsSlice()
	default:
		n.Via = &netlink.Via{AddrFamily: unix.AF_INET6, Addr: r.gateway.AsSlice()}
	}
	return n
}

// at is a link for the library's calls that need nothing but the index.
func at(index int) netlink.Link {
	return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

func (k *netlinkKernel) setMTU(index, mtu int) error { return k.handle.LinkSetMTU(at(index), mtu) }

func (k *netlinkKernel) setTxQueueLen(index, packets int) error {
	return k.handle.LinkSetTxQLen(at(index), packets)
}

func (k *netlinkKernel) setMulticast(index int) error { return k.handle.LinkSetMulticastOn(at(index)) }
func (k *netlinkKernel) setUp(index int) error        { return k.handle.LinkSetUp(at(index)) }

func (k *netlinkKernel) setAlias(index int, alias string) error {
	return k.handle.LinkSetAlias(at(index), alias)
}

func (k *netlinkKernel) addrGenNone(name string) bool { return readAddrGenNone(name) }

func (k *netlinkKernel) setAddrGenNone(index int) error {
	err := k.handle.LinkSetIP6AddrGenMode(at(index), addrGenModeNone)
	if unsupported(err) {
		return nil // no IPv6, no addresses of its own
	}
	return err
}

func (k *netlinkKernel) addAddress(index int, p netip.Prefix) error {
	a := &netlink.Addr{IPNet: netOf(p)}
	if !p.Addr().Is4() {
		a.Flags = unix.IFA_F_NODAD
	}
	return k.handle.AddrAdd(at(index), a)
}

func (k *netlinkKernel) delAddress(a address) error {
	n := &netlink.Addr{IPNet: netOf(a.prefix())}
	if a.peer {
		n.Peer = netOf(a.subnet)
	}
	return k.handle.AddrDel(at(a.index), n)
}

func (k *netlinkKernel) delLink(index int) error { return k.handle.LinkDel(at(index)) }
