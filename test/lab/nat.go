package lab

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"
)

// NATKind is how a translator maps and filters (RFC 4787).
type NATKind string

// Kinds of translators.
const (
	NoNAT NATKind = ""
	// FullCone maps without regard to the destination and lets everybody in.
	FullCone NATKind = "full-cone"
	// PortRestricted maps without regard to the destination and lets in only
	// those that were sent to.
	PortRestricted NATKind = "port-restricted"
	// Symmetric has another mapping for each destination.
	Symmetric NATKind = "symmetric"
)

// NAT describes an address translator. The zero value is none.
type NAT struct {
	Kind NATKind
	// Idle is how long a mapping lasts without packets, in whole seconds; 0 means
	// what the kernel has. Operators' translators are known for short ones.
	Idle time.Duration
}

// lanPort and wanPort are a translator's interfaces.
const lanPort, wanPort = "lan", "wan"

// translator is the node of a NAT.
type translator struct {
	node    *Node
	kind    NATKind
	address string // public
	inside  string // of the robot
	binds   int    // rebindings so far
}

// addTranslator makes a translator whose outer side is plugged into the internet.
func (w *World) addTranslator(s seat, o NAT) (*translator, error) {
	name := "nat-" + letter(s.slot)
	if s.robot > 0 {
		name = fmt.Sprintf("%s-%d", name, s.robot+1)
	}
	node, err := w.router(name)
	if err != nil {
		return nil, err
	}
	wan := fmt.Sprintf("100.%d.%d.", 64+s.slot, s.robot)
	t := &translator{node: node, kind: o.Kind, address: wan + "2", inside: fmt.Sprintf("10.%d.%d.2", s.slot+1, s.robot)}
	if err := w.Veth(node, wanPort, w.Inet, s.port()); err != nil {
		return nil, err
	}
	err = errors.Join(
		node.AddAddress(wanPort, t.address+"/24"),
		node.AddRoute("default", wan+"1", wanPort, 0),
		w.Inet.AddAddress(s.port(), wan+"1/24"),
		t.translate(),
	)
	if o.Idle > 0 && err == nil {
		seconds := strconv.Itoa(int(o.Idle.Seconds()))
		err = errors.Join(
			node.Sysctl("net.netfilter.nf_conntrack_udp_timeout", seconds),
			node.Sysctl("net.netfilter.nf_conntrack_udp_timeout_stream", seconds),
		)
	}
	return t, err
}

// translate loads the rules, in the place of those there are. Linux keeps the
// source port where it can, so its plain masquerading maps without regard to the
// destination.
func (t *translator) translate() error {
	out, in := "masquerade", ""
	switch {
	case t.kind == FullCone:
		in = fmt.Sprintf(`chain prerouting {
		type nat hook prerouting priority dstnat
		iifname "%s" meta l4proto { tcp, udp } dnat to %s
	}`, wanPort, t.inside)
	case t.kind == Symmetric:
		out = "masquerade fully-random"
	case t.binds > 0:
		low := 20_000 + 1000*(t.binds%40)
		out = fmt.Sprintf("meta l4proto { tcp, udp } masquerade to :%d-%d\n\t\toifname \"%s\" masquerade", low, low+999, wanPort)
	}
	return t.node.NFT(fmt.Sprintf(`table ip nat
delete table ip nat
table ip nat {
	%s
	chain postrouting {
		type nat hook postrouting priority srcnat
		oifname "%s" %s
	}
}`, in, wanPort, out))
}

// Rebind makes the carrier's translator forget all mappings and choose other
// ports for the new ones, as after its restart.
func (c *Carrier) Rebind() error {
	switch {
	case c.nat == nil:
		return fmt.Errorf("carrier %s has no NAT to rebind", c.Interface)
	case c.nat.kind == FullCone:
		return fmt.Errorf("carrier %s: the full cone of this laboratory maps every port to itself, so it cannot be rebound", c.Interface)
	}
	c.nat.binds++
	return errors.Join(c.nat.translate(), c.nat.node.handle.ConntrackTableFlush(netlink.ConntrackTable))
}
