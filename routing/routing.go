// Package routing is the one place where fogplr touches the kernel's network
// configuration: the TUN device's addresses, the carriers' rules and routes,
// rp_filter, and the clean-up after a crash. It works by netlink (rtnetlink(7))
// and by /proc/sys/net.
//
// The core, desired, is pure: it takes what the kernel has (view) and what the
// daemon wants (Want), and says which rules and routes should exist. Manager
// looks, computes, compares and applies. Everything that fogplr adds carries
// Protocol, so that it can be told from what others added.
package routing

import "net/netip"

const (
	// Mark is the fwmark of every socket that fogplr opens on a carrier
	// (SO_MARK). It is "fog" in ASCII.
	Mark = 0x666f67
	// Protocol is the origin of all rules and routes that fogplr adds
	// (FRA_PROTOCOL, rtm_protocol; "proto 157" in iproute2).
	Protocol = 157
	// TableBase is the routing table of carrier slot 0; slot n has TableBase+n.
	TableBase = 15700
)

// TUN is the overlay's device as it should be.
type TUN struct {
	Name string
	// MTU is in bytes; 1280 is the least that IPv6 addresses allow (RFC 8200).
	MTU int
	// TxQueueLen is in packets; 0 leaves the kernel's value.
	TxQueueLen int
	// Addresses are this node's overlay addresses with the overlay's prefix
	// length, like 10.77.0.2/16.
	Addresses []netip.Prefix
	// Owner tells this node from others on the same machine, like "robot
	// stretch": role and name. It stands in the device's alias (IFLA_IFALIAS, at most 255 bytes
	// with what fogplr puts before it), by which a later start recognises the
	// device under another name.
	Owner string
}

// Want is one carrier and the gateway addresses to reach through it.
type Want struct {
	Interface string
	Slot      int // 0 to 7, different for each Want
	Endpoints []netip.Addr
}

// Carrier is what Apply found and did about one Want.
type Carrier struct {
	Interface string
	Slot      int
	Index     int // kernel's interface index; 0: there is no such interface
	// Usable4 and Usable6 say that a datagram of that family can leave through
	// the interface: it is up, has an address, and there is a route through it
	// to at least one endpoint (with no endpoint of that family: a default
	// route).
	Usable4, Usable6 bool
	// Table is the carrier's own routing table, 0 when it needs none.
	Table int
	// Reached has an entry for every endpoint of the Want: whether there is a
	// route to it through this interface.
	Reached map[netip.Addr]bool
	// Problem is a plain sentence when neither family is usable.
	Problem string
	// Warning is a plain sentence, or several, about something that may keep
	// the carrier from working although a route exists.
	Warning string
}
