package routing

import (
	"strings"
	"testing"
)

// nic is a link with hardware, as a kernel from 5.14 on shows it.
func nic(index int, name string, edit ...func(*link)) link {
	l := link{index: index, name: name, encap: "ether", parent: "0000:00:03.0"}
	for _, e := range edit {
		e(&l)
	}
	return l
}

// virtual is a link with an IFLA_INFO_KIND.
func virtual(index int, name, kind string, edit ...func(*link)) link {
	l := link{index: index, name: name, encap: "ether", kind: kind}
	for _, e := range edit {
		e(&l)
	}
	return l
}

func onTopOf(index int) func(*link)  { return func(l *link) { l.lower = index } }
func memberOf(index int) func(*link) { return func(l *link) { l.master = index } }
func withEncap(e string) func(*link) { return func(l *link) { l.encap = e } }
func withoutParent(l *link)          { l.parent = "" }
func farLower(l *link)               { l.lower, l.elsewhere = 7, true }
func asTAP(l *link)                  { l.tap = true }

func usb(driver, devtype string) device {
	return device{known: true, driver: driver, devtype: devtype, bus: "pci0000:00/0000:00:14.0/usb1/1-3"}
}

// TestClassify judges the first of the links, among the others.
func TestClassify(t *testing.T) {
	eth0 := nic(2, "eth0")
	for _, tc := range []struct {
		what   string
		links  []link
		device device
		kind   string
		// excluded has words of the reason; empty: discovery may take it.
		excluded string
	}{
		{"Ethernet on PCI", []link{eth0}, device{known: true, driver: "igc", bus: "pci0000:00/0000:02:00.0"}, "ethernet", ""},
		{"Ethernet of a virtual machine", []link{eth0}, device{known: true, driver: "virtio_net", bus: "pci0000:00/0000:00:03.0/virtio2"}, "ethernet", ""},
		{"Ethernet adapter on USB", []link{nic(2, "enx00e04c")}, usb("r8152", ""), "ethernet", ""},
		{"Ethernet, sysfs of another namespace", []link{eth0}, device{}, "ethernet", ""},
		{"Ethernet, the same on an old kernel", []link{nic(2, "eth0", withoutParent)}, device{}, "ethernet", ""},
		{"host-only network of a hypervisor", []link{nic(2, "vboxnet0", withoutParent), nic(3, "eth0")}, device{known: true}, "other", "no hardware"},
		{"Wi-Fi on PCI", []link{nic(2, "wlp1s0")}, device{known: true, driver: "iwlwifi", devtype: "wlan", bus: "pci0000:00/0000:01:00.0"}, "wifi", ""},
		{"Wi-Fi on USB", []link{nic(2, "wlan0")}, usb("rtl8xxxu", "wlan"), "wifi", ""},
		{"modem, raw IP", []link{nic(2, "wwan0", withEncap(encapRawIP))}, usb("qmi_wwan", "wwan"), "wwan", ""},
		{"modem, raw IP, no sysfs", []link{nic(2, "wwan0", withEncap(encapRawIP))}, device{}, "wwan", ""},
		{"modem, QMI with Ethernet frames", []link{nic(2, "wwan0")}, usb("qmi_wwan", ""), "wwan", ""},
		{"modem, MBIM", []link{nic(2, "wwan0")}, usb("cdc_mbim", ""), "wwan", ""},
		{"modem, cdc_ether that says wwan", []link{nic(2, "wwan0")}, usb("cdc_ether", "wwan"), "wwan", ""},
		{"modem, no link-layer at all", []link{nic(2, "hso0", withEncap("none"))}, usb("hso", "wwan"), "wwan", ""},
		{"modem on PCIe", []link{virtual(2, "wwan0", "wwan", withEncap(encapRawIP))}, device{known: true, driver: "iosm", bus: "pci0000:00/0000:01:00.0"}, "wwan", ""},
		{"modem, multiplexed", []link{virtual(2, "qmapmux0.0", "rmnet", withEncap(encapRawIP), onTopOf(3)), nic(3, "wwan0")}, device{}, "wwan", ""},
		{"Android phone", []link{nic(2, "usb0")}, usb("rndis_host", ""), "usb", ""},
		{"iPhone", []link{nic(2, "eth1")}, usb("ipheth", ""), "usb", ""},
		{"stick that is its own router", []link{nic(2, "usb0")}, usb("cdc_ether", ""), "usb", ""},
		{"phone, NCM", []link{nic(2, "usb0")}, usb("cdc_ncm", ""), "usb", ""},
		{"PPP", []link{virtual(2, "ppp0", "ppp", withEncap("ppp"))}, device{}, "ppp", ""},
		{"PPP on an old kernel", []link{nic(2, "ppp0", withEncap("ppp"), withoutParent)}, device{known: true}, "ppp", ""},
		{"CAN bus", []link{nic(2, "can0", withEncap("unknown280"))}, device{known: true, driver: "mcp251x", bus: "platform/spi0"}, "other", noUplink},

		{"VLAN on Ethernet", []link{virtual(9, "eth0.7", "vlan", onTopOf(2)), eth0}, device{}, "vlan", ""},
		{"VLAN on a bond of two", []link{virtual(9, "bond0.7", "vlan", onTopOf(8)), virtual(8, "bond0", "bond"), nic(2, "eth0", memberOf(8)), nic(3, "eth1", memberOf(8))}, device{}, "vlan", ""},
		{"VLAN on a member of a bridge", []link{virtual(9, "eth0.7", "vlan", onTopOf(2)), nic(2, "eth0", memberOf(8)), virtual(8, "br0", "bridge")}, device{}, "vlan", ""},
		{"VLAN of a container", []link{virtual(9, "eth0", "vlan", farLower)}, device{}, "vlan", ""},
		{"VLAN on a TAP device", []link{virtual(9, "tap0.7", "vlan", onTopOf(3)), virtual(3, "tap0", "tun", asTAP), eth0}, device{}, "vlan", "on top of tap0: a TAP device"},
		{"VLAN on a container's cable", []link{virtual(9, "veth1.7", "vlan", onTopOf(3)), virtual(3, "veth1", "veth", farLower), eth0}, device{}, "vlan", "on top of veth1"},
		{"macvlan on Ethernet", []link{virtual(9, "wan2", "macvlan", onTopOf(2)), eth0}, device{}, "macvlan", ""},
		{"macvlan of a container", []link{virtual(9, "eth0", "macvlan", farLower)}, device{}, "macvlan", ""},
		{"ipvlan of a container", []link{virtual(9, "eth0", "ipvlan", farLower)}, device{}, "macvlan", ""},

		{"bridge with Ethernet", []link{virtual(8, "br0", "bridge"), nic(2, "eth0", memberOf(8))}, device{}, "bridge", ""},
		{"bridge called br-lan with Ethernet", []link{virtual(8, "br-lan", "bridge"), nic(2, "eth0", memberOf(8))}, device{}, "bridge", ""},
		{"bridge with a bond", []link{virtual(8, "br0", "bridge"), virtual(7, "bond0", "bond", memberOf(8)), nic(2, "eth0", memberOf(7))}, device{}, "bridge", ""},
		{"bridge with a VLAN", []link{virtual(8, "br0", "bridge"), virtual(7, "eth0.7", "vlan", memberOf(8), onTopOf(2)), eth0}, device{}, "bridge", ""},
		{"bridge with nothing", []link{virtual(8, "br0", "bridge"), eth0}, device{}, "bridge", "no physical member"},
		{"docker0", []link{virtual(8, "docker0", "bridge"), virtual(7, "veth12ab", "veth", farLower, memberOf(8)), eth0}, device{}, "bridge", "no physical member"},
		{"Docker's bridge inside a container", []link{virtual(8, "br-0123456789ab", "bridge"), virtual(7, "veth12ab", "veth", farLower, memberOf(8))}, device{}, "bridge", "no physical member"},
		{"a container's bridge over its cable", []link{virtual(8, "br0", "bridge"), virtual(7, "eth0", "veth", farLower, memberOf(8))}, device{}, "bridge", ""},
		{"virbr0 with virtual machines", []link{virtual(8, "virbr0", "bridge"), virtual(7, "vnet0", "tun", asTAP, memberOf(8)), eth0}, device{}, "bridge", "no physical member"},
		{"cni0, lxcbr0 alike", []link{virtual(8, "cni0", "bridge"), virtual(7, "veth12ab", "veth", memberOf(8)), eth0}, device{}, "bridge", "no physical member"},
		{"bond of two", []link{virtual(8, "bond0", "bond"), nic(2, "eth0", memberOf(8)), nic(3, "eth1", memberOf(8))}, device{}, "bond", ""},
		{"team", []link{virtual(8, "team0", "team"), nic(2, "eth0", memberOf(8))}, device{}, "bond", ""},
		{"bond of tunnels", []link{virtual(8, "bond0", "bond"), virtual(2, "tap0", "tun", asTAP, memberOf(8)), eth0}, device{}, "bond", "no physical member"},
		{"member of a bridge", []link{nic(2, "eth0", memberOf(8)), virtual(8, "br0", "bridge")}, device{}, "ethernet", "a member of br0"},
		{"member of a bond", []link{nic(2, "eth0", memberOf(8)), virtual(8, "bond0", "bond")}, device{}, "ethernet", "a member of bond0"},
		{"function behind a virtual machine's interface", []link{nic(2, "enP1", memberOf(8)), nic(8, "eth0")}, device{}, "ethernet", "a member of eth0"},
		{"member of a VRF", []link{nic(2, "eth0", memberOf(8)), virtual(8, "red", "vrf")}, device{}, "ethernet", ""},

		{"loopback", []link{{index: 1, name: "lo", loopback: true, encap: "loopback"}, eth0}, device{}, "loopback", "loopback"},
		{"TUN", []link{virtual(9, "corp", "tun", withEncap("none")), eth0}, device{}, "tun", "a TUN device"},
		{"TAP", []link{virtual(9, "corp", "tun", asTAP), eth0}, device{}, "tap", "a TAP device"},
		{"ZeroTier", []link{virtual(9, "ztabcdefgh", "tun", asTAP), eth0}, device{}, "tap", "another overlay"},
		{"Tailscale", []link{virtual(9, "tailscale0", "tun", withEncap("none")), eth0}, device{}, "tun", "another overlay"},
		{"NetBird", []link{virtual(9, "wt0", "wireguard", withEncap("none")), eth0}, device{}, "wireguard", "another overlay"},
		{"an overlay's name alone", []link{virtual(9, "zt1234", "veth"), eth0}, device{}, "veth", "another overlay"},
		{"hardware that is only called so", []link{nic(2, "zte0")}, usb("cdc_ether", ""), "usb", ""},
		{"WireGuard", []link{virtual(9, "office", "wireguard", withEncap("none")), eth0}, device{}, "wireguard", "a WireGuard tunnel"},
		{"GRE", []link{virtual(9, "gre1", "gre", withEncap("gre")), eth0}, device{}, "tunnel", "a tunnel"},
		{"VXLAN", []link{virtual(9, "flannel.1", "vxlan", onTopOf(2)), eth0}, device{}, "tunnel", "a tunnel"},
		{"OpenVPN in the kernel", []link{virtual(9, "vpn0", "ovpn", withEncap("none")), eth0}, device{}, "tunnel", "a tunnel"},
		{"container's cable, host's end", []link{virtual(9, "veth12ab", "veth", farLower), eth0}, device{}, "veth", "container"},
		{"container's cable, its own end", []link{virtual(9, "eth0", "veth", farLower), {index: 1, name: "lo", loopback: true}}, device{}, "veth", ""},
		{"dummy", []link{virtual(9, "dummy0", "dummy"), eth0}, device{}, "other", noUplink},
		{"another node's overlay", []link{virtual(9, "plr1", "tun", func(l *link) { l.alias = "fogplr gateway west" }), eth0}, device{}, "tun", "fogplr's own"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			first := tc.links[0]
			n := newNeighbours(tc.links, map[int]device{first.index: tc.device})
			kind, excluded := n.classify(first)
			if kind != tc.kind || !strings.Contains(excluded, tc.excluded) || (excluded == "") != (tc.excluded == "") {
				t.Errorf("%s %q, want %s %q", kind, excluded, tc.kind, tc.excluded)
			}
		})
	}
}

// TestClassifyEnds: interfaces that claim to lie on each other, which no kernel
// shows, end the look all the same.
func TestClassifyEnds(t *testing.T) {
	n := newNeighbours([]link{
		virtual(1, "a", "vlan", onTopOf(2)), virtual(2, "b", "macvlan", onTopOf(1)),
		virtual(3, "c", "bridge", memberOf(4)), virtual(4, "d", "bridge", memberOf(3)),
	}, nil)
	for _, l := range n.links {
		n.classify(l)
	}
}
