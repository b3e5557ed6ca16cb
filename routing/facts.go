package routing

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Facts is what the kernel's network configuration means for a node.
type Facts struct {
	Links []LinkFacts
	// Carriers has an entry for each Want, in their order.
	Carriers []CarrierFacts
	// NoRules4 and NoRules6 say that the kernel has no policy routing for the
	// family (CONFIG_IP_MULTIPLE_TABLES, CONFIG_IPV6_MULTIPLE_TABLES).
	NoRules4, NoRules6 bool
	// Warnings are plain sentences about the overlay's prefix, as
	// Manager.Warnings has them.
	Warnings []string
}

// LinkFacts is one interface.
type LinkFacts struct {
	Name string
	// Kind is the kernel's name for a device that is not hardware, such as "tun",
	// "wireguard" or "bridge" (IFLA_INFO_KIND).
	Kind string
	MTU  int  // bytes
	Up   bool // somebody set it up and it has a link; of a TUN device: somebody has it open
	TUN  bool // as OpenHostTUN makes one
	Ours bool // a fogplr node's TUN device
	// Owner is TUN.Owner of one of Ours.
	Owner     string
	Multicast bool
	Addresses []netip.Prefix
	// Default says that a route to everywhere, or to one half of everywhere, leads
	// through it, in any table.
	Default bool
	// Addressed is when it got the oldest of its addresses, since the machine's
	// start without the time that it slept; 0 when that is not known. It is the
	// kernel's count of ticks, which may be some tenths of a second too small,
	// never too large.
	Addressed time.Duration
}

// CarrierFacts is one carrier as Apply would find it.
type CarrierFacts struct {
	Carrier
	// Repair is a command for a shell that does away with Problem and nothing else,
	// empty where there is none or it is for the reader to decide.
	Repair string
	// Strict says that the kernel checks the way back strictly (rp_filter=1),
	// and NeedsLoose that it would therefore drop answers.
	Strict, NeedsLoose bool
	// RPFilter is the setting's name for sysctl(8).
	RPFilter string
}

// Look reads the network configuration and says what it means for a node with
// these overlay addresses on the interface tun and these wants. Unlike Manager it
// changes nothing, and it needs no privilege.
func Look(tun string, overlay []netip.Prefix, want []Want) (*Facts, error) {
	k, err := openKernel()
	if err != nil {
		return nil, err
	}
	defer k.close()
	names := make([]string, len(want))
	for i, w := range want {
		names[i] = w.Interface
	}
	v, err := k.view(names)
	if err != nil {
		return nil, err
	}
	ages, err := addressed()
	if err != nil {
		return nil, err
	}
	return facts(v, tun, overlay, want, ages), nil
}

// facts is pure; addressed are the times of LinkFacts.Addressed by index.
func facts(v *view, tun string, overlay []netip.Prefix, want []Want, addressed map[int]time.Duration) *Facts {
	p := desired(v, tun, prefixes(overlay), want)
	f := &Facts{NoRules4: v.noRules4, NoRules6: v.noRules6, Warnings: append(p.warnings, v.conflicts(tun, prefixes(overlay))...)}
	for _, c := range p.carriers {
		name := c.want.Interface
		f.Carriers = append(f.Carriers, CarrierFacts{
			Carrier: c.report(v, failures{}), Repair: c.repair, RPFilter: rpFilterKey(name),
			Strict: max(v.rpFilter["all"], v.rpFilter[name]) == 1, NeedsLoose: c.loose,
		})
	}
	for _, l := range v.links {
		f.Links = append(f.Links, v.linkFacts(l, addressed[l.index]))
	}
	return f
}

func (v *view) linkFacts(l link, addressed time.Duration) LinkFacts {
	f := LinkFacts{Name: l.name, Kind: l.kind, MTU: l.mtu, Up: l.up && l.carrier, TUN: l.isTUN(), Ours: l.ours(), Owner: l.owner(),
		Multicast: l.multicast, Addressed: addressed}
	for _, a := range v.addresses {
		if a.index == l.index {
			f.Addresses = append(f.Addresses, a.prefix())
		}
	}
	f.Default = slices.ContainsFunc(v.routes, func(r route) bool {
		return r.oif == l.index && r.kind == unix.RTN_UNICAST && r.protocol != Protocol && !r.dead && r.dst.Bits() <= 1
	})
	return f
}

// addressed tells when each interface got the oldest of its addresses
// (ifa_cacheinfo.cstamp, hundredths of seconds), which the netlink library does
// not pass on.
func addressed() (map[int]time.Duration, error) {
	messages, err := dump("addresses", func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(unix.RTM_GETADDR, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		return req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWADDR)
	})
	if err != nil {
		return nil, err
	}
	found := map[int]time.Duration{}
	for _, m := range messages {
		if len(m) < unix.SizeofIfAddrmsg {
			continue
		}
		attributes, err := nl.ParseRouteAttr(m[unix.SizeofIfAddrmsg:])
		if err != nil {
			return nil, fmt.Errorf("reading the kernel's addresses: %w", err)
		}
		index := int(nl.DeserializeIfAddrmsg(m).Index)
		for _, a := range attributes {
			if a.Attr.Type != unix.IFA_CACHEINFO || len(a.Value) < unix.SizeofIfaCacheinfo {
				continue
			}
			at := time.Duration(nl.DeserializeIfaCacheInfo(a.Value).Cstamp) * 10 * time.Millisecond
			if old, ok := found[index]; !ok || at < old {
				found[index] = at
			}
		}
	}
	return found, nil
}
