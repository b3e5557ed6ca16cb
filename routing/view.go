package routing

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// view is what the kernel has, as plain data. desired reads nothing else.
type view struct {
	links     []link
	addresses []address
	routes    []route // all tables, one entry for each next hop
	rules     []rule  // both families, in the kernel's order
	// rpFilter is net.ipv4.conf.NAME.rp_filter by interface name, and "all".
	rpFilter map[string]int
	// noRules4 and noRules6 mean that the kernel has no policy routing for the
	// family (CONFIG_IP_MULTIPLE_TABLES, CONFIG_IPV6_MULTIPLE_TABLES).
	noRules4, noRules6 bool
}

type link struct {
	index      int
	name       string
	alias      string
	kind       string // IFLA_INFO_KIND: "tun", "wireguard", "veth"; empty for hardware
	tap        bool   // kind is "tun", mode is TAP
	mtu        int    // bytes
	txQueueLen int    // packets
	up         bool   // IFF_UP: somebody set it up
	running    bool   // IFF_RUNNING: it has a link
	carrier    bool   // IFF_LOWER_UP: the same, without delay; of a TUN device: somebody has it open
	loopback   bool
	multicast  bool
	// pointToPoint means that the other end needs no link-layer address:
	// IFF_POINTOPOINT or IFF_NOARP.
	pointToPoint bool

	encap   string // ARPHRD_* in the netlink library's words: "ether", "ppp"
	address string // IFLA_ADDRESS if that is a MAC address; all zeros are none
	mac     string // IFLA_PERM_ADDRESS, or else the same as address
	master  int    // index of the bridge, bond or VRF that it is a member of; 0: none
	// lower is IFLA_LINK: what a VLAN or macvlan lies on, 0 for none. elsewhere
	// means that it is in another namespace.
	lower     int
	elsewhere bool
	parent    string // IFLA_PARENT_DEV_NAME, from Linux 5.14 on: the hardware, like "1-3:1.0"
}

// encapRawIP is ARPHRD_RAWIP, which the netlink library has no word for.
const encapRawIP = "unknown519"

type address struct {
	index int
	ip    netip.Addr
	// subnet is what is on the link: the address's network, or the peer's.
	subnet netip.Prefix
	peer   bool // the address has a peer (IFA_ADDRESS differs from IFA_LOCAL)
	// pending means that the kernel does not send from it: duplicate address
	// detection has not ended, or found a duplicate.
	pending bool
}

// prefix is the address with the length of its network.
func (a address) prefix() netip.Prefix { return netip.PrefixFrom(a.ip, a.subnet.Bits()) }

// route is one next hop of one route. It is comparable: two equal values are the
// same route.
type route struct {
	table    int
	dst      netip.Prefix // masked; decides the family
	kind     int          // unix.RTN_UNICAST and so on
	gateway  netip.Addr   // invalid when the destination is on the link
	oif      int          // interface index; 0 for a blackhole
	metric   uint32
	src      netip.Addr // preferred source, may be invalid
	scope    uint8      // IPv4 only
	onlink   bool       // the gateway is on the link whatever the addresses say
	mtu      uint32     // bytes, 0: the interface's
	protocol uint8
	tos      uint8
	dead     bool // the next hop's interface is down (RTNH_F_DEAD)
}

func (r route) v6() bool { return !r.dst.Addr().Is4() }

// routeKey is what a routing table allows once.
type routeKey struct {
	table  int
	dst    netip.Prefix
	metric uint32
}

func (r route) key() routeKey { return routeKey{r.table, r.dst, r.metric} }

// rejects says that the route ends a look-up with an error, whatever interface
// the look-up was for.
func (r route) rejects() bool {
	switch r.kind {
	case unix.RTN_BLACKHOLE, unix.RTN_UNREACHABLE, unix.RTN_PROHIBIT:
		return true
	}
	return false
}

// rule is one policy rule. It is comparable: two equal values are the same rule.
type rule struct {
	v6       bool
	pref     int
	src, dst netip.Prefix // invalid: all
	mark     uint32
	mask     uint32 // 0: any mark
	iif, oif string // empty: any
	ipProto  int    // 0: any
	invert   bool
	table    int
	// suppress is suppress_prefixlength: routes with so many bits or fewer do
	// not count. -1: none.
	suppress int
	// opaque means that the rule has a selector or an action that cannot be
	// judged from here: ports, user, TOS, goto, prohibit, VRF.
	opaque   bool
	protocol uint8
}

func (v *view) link(name string) (link, bool) {
	for _, l := range v.links {
		if l.name == name {
			return l, true
		}
	}
	return link{}, false
}

func (v *view) linkName(index int) string {
	for _, l := range v.links {
		if l.index == index {
			return l.name
		}
	}
	return ""
}

func (v *view) addressesOf(index int, v6 bool) []address {
	var found []address
	for _, a := range v.addresses {
		if a.index == index && a.ip.Is4() != v6 {
			found = append(found, a)
		}
	}
	return found
}

// noRules says whether the kernel lacks policy routing for the family.
func (v *view) noRules(v6 bool) bool {
	if v6 {
		return v.noRules6
	}
	return v.noRules4
}
