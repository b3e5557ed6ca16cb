package routing

import (
	"path"
	"slices"
	"strings"
)

// The reasons for which discovery leaves an interface alone.
const (
	ownDevice      = "fogplr's own overlay device"
	noUplink       = "not a kind of link that leads to the Internet"
	nothingBehind  = "a virtual device with no hardware behind it"
	otherOverlay   = "named like another overlay's device, which itself needs an uplink"
	containerLink  = "a virtual cable to a container"
	noPhysicalPort = "it has no physical member: containers or virtual machines hang on it"
	tunnelReason   = "which itself needs an uplink"
)

// kinds translates IFLA_INFO_KIND, which only virtual devices have. The mode of
// a TUN/TAP device comes beside it.
var kinds = map[string]string{
	"tun": "tun", "wireguard": "wireguard", "amneziawg": "wireguard",
	"vlan": "vlan", "macvlan": "macvlan", "macvtap": "macvlan", "ipvlan": "macvlan", "ipvtap": "macvlan",
	"bridge": "bridge", "bond": "bond", "team": "bond", "veth": "veth", "netkit": "veth",
	"ppp": "ppp", "wwan": "wwan", "rmnet": "wwan",
	"gre": "tunnel", "gretap": "tunnel", "erspan": "tunnel", "ip6gre": "tunnel", "ip6gretap": "tunnel", "ip6erspan": "tunnel",
	"sit": "tunnel", "ipip": "tunnel", "ip6tnl": "tunnel", "vti": "tunnel", "vti6": "tunnel", "xfrm": "tunnel", "l2tpeth": "tunnel",
	"vxlan": "tunnel", "geneve": "tunnel", "bareudp": "tunnel", "gtp": "tunnel", "amt": "tunnel", "ovpn": "tunnel",
}

// cellularDrivers are those of modems that do not all say DEVTYPE=wwan;
// tetherDrivers speak to a phone or modem that poses as an Ethernet adapter.
var (
	cellularDrivers = []string{"qmi_wwan", "qmi_wwan_q", "GobiNet", "cdc_mbim", "huawei_cdc_ncm", "sierra_net", "hso", "mhi_net", "ipa"}
	tetherDrivers   = []string{"cdc_ether", "cdc_eem", "cdc_ncm", "rndis_host", "ipheth"}
)

// overlayNames are of ZeroTier, Tailscale and NetBird; containerBridges of
// Docker, libvirt, LXC, LXD, Podman and Kubernetes.
var (
	overlayNames     = []string{"zt*", "tailscale*", "wt[0-9]*"}
	containerBridges = []string{"docker*", "br-*", "virbr*", "lxcbr*", "lxdbr*", "incusbr*", "podman*", "cni*", "kube-*", "cbr*"}
)

func named(name string, globs []string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { hit, _ := path.Match(g, name); return hit })
}

// mayBeHardware says that sysfs may know of hardware behind the link.
func (l link) mayBeHardware() bool { return !l.loopback && (l.kind == "" || l.kind == "wwan") }

// neighbours are the interfaces among which one is judged.
type neighbours struct {
	links   map[int]link
	members map[int][]link // by the index of their bridge, bond or the like
	devices map[int]device
	// inside means that there is no hardware at all: the namespace is a
	// container's, and a virtual cable is its way out.
	inside bool
}

func newNeighbours(links []link, devices map[int]device) *neighbours {
	n := &neighbours{links: map[int]link{}, members: map[int][]link{}, devices: devices, inside: true}
	for _, l := range links {
		n.links[l.index] = l
		if l.master != 0 {
			n.members[l.master] = append(n.members[l.master], l)
		}
		if n.hardware(l) {
			n.inside = false
		}
	}
	return n
}

// hardware says that the link is a device of its own. Where sysfs is silent and
// the kernel is too old to name the device itself, an Ethernet link without a
// kind is taken for one.
func (n *neighbours) hardware(l link) bool {
	d := n.devices[l.index]
	return l.mayBeHardware() && (l.parent != "" || d.bus != "" || (!d.known && l.encap == "ether"))
}

// classify returns the kind of an interface and, unless discovery may take it,
// the reason.
func (n *neighbours) classify(l link) (kind, excluded string) {
	kind, excluded = n.nature(l, maxNesting)
	if master, ok := n.links[l.master]; ok && excluded == "" && master.kind != "vrf" {
		excluded = "a member of " + master.name + ", which has its addresses"
	}
	return kind, excluded
}

// nature is classify without regard to a master. depth bounds the look through
// interfaces on top of each other.
func (n *neighbours) nature(l link, depth int) (kind, excluded string) {
	kind = n.kind(l)
	switch {
	case l.ours():
		return kind, ownDevice
	case kind != "loopback" && !n.hardware(l) && named(l.name, overlayNames):
		return kind, otherOverlay
	}
	switch kind {
	case "loopback":
		excluded = "the loopback device, which leads nowhere"
	case "tun", "tap":
		excluded = "a " + strings.ToUpper(kind) + " device of another program, " + tunnelReason
	case "wireguard":
		excluded = "a WireGuard tunnel, " + tunnelReason
	case "tunnel":
		excluded = "a tunnel, " + tunnelReason
	case "other":
		if excluded = noUplink; l.kind == "" && l.encap == "ether" {
			excluded = nothingBehind
		}
	case "veth":
		if !n.inside {
			excluded = containerLink
		}
	case "vlan", "macvlan":
		excluded = n.lower(l, depth)
	case "bridge", "bond":
		if !n.leadsOut(l, depth) {
			excluded = noPhysicalPort
		}
	}
	return kind, excluded
}

func (n *neighbours) kind(l link) string {
	d := n.devices[l.index]
	switch {
	case l.loopback:
		return "loopback"
	case l.kind == "tun" && l.tap:
		return "tap"
	case kinds[l.kind] != "":
		return kinds[l.kind]
	case l.kind != "":
		return "other"
	case d.devtype == "wlan":
		return "wifi"
	case d.devtype == "wwan" || l.encap == encapRawIP || slices.Contains(cellularDrivers, d.driver):
		return "wwan"
	case l.encap == "ppp":
		return "ppp"
	case l.encap != "ether" || !n.hardware(l):
		return "other"
	case onUSB(d.bus) && slices.Contains(tetherDrivers, d.driver):
		return "usb"
	}
	return "ethernet"
}

// lower is why the interface below a VLAN or macvlan keeps it from being taken.
// Below one in a container lies another namespace's, whose business it is.
func (n *neighbours) lower(l link, depth int) string {
	below, ok := n.links[l.lower]
	if l.elsewhere || !ok || depth == 0 {
		return ""
	}
	_, excluded := n.nature(below, depth-1)
	if excluded == "" {
		return ""
	}
	return "on top of " + below.name + ": " + excluded
}

// leadsOut says that a bridge or bond has a member that could be a carrier
// itself. One that containers hang on needs hardware.
func (n *neighbours) leadsOut(l link, depth int) bool {
	if depth == 0 {
		return false
	}
	needed := l.kind == "bridge" && named(l.name, containerBridges)
	return slices.ContainsFunc(n.members[l.index], func(m link) bool {
		_, excluded := n.nature(m, depth-1)
		return excluded == "" && !(needed && n.kind(m) == "veth")
	})
}
