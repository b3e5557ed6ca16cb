package config

import (
	"time"

	"github.com/fogplr/fogplr/replicate"
)

// Defaults of keys that a file leaves out.
const (
	DefaultInterface  = "plr0"
	DefaultMTU        = 1280 // bytes; IPv6 needs it, and it fits every carrier
	DefaultListenPort = 51820
	DefaultStateDir   = "/var/lib/fogplr"
	DefaultDeadline   = 200 * time.Millisecond
	DefaultCost       = 1
	// RobotSocket and GatewaySocket are the control sockets.
	RobotSocket   = "/run/fogplr/robot.sock"
	GatewaySocket = "/run/fogplr/gateway.sock"
)

// Limits of what a file may say.
const (
	// maxFile is the largest configuration file, in bytes: room for maxPeers
	// robots with eight keys and comments each.
	maxFile = 4 << 20
	// maxAddresses is the number of overlay addresses of one node: one or two
	// of each family.
	maxAddresses = 8
	// maxCarriers is the number of carrier slots.
	maxCarriers = replicate.MaxSlot + 1
	// maxSelectors bounds allow and deny, each of which is tried on every
	// interface at every change of the network.
	maxSelectors = 32
	// maxPattern is the longest pattern in bytes; paths in /sys rarely have 100.
	maxPattern = 256
	// maxLabel is the longest label in characters: it must fit a column of status.
	maxLabel = 24
	// maxCost bounds the cost of a carrier, which is of no unit.
	maxCost = 1e6
	// minCap and maxCap bound a monthly cap, in bytes: less is gone with the first
	// handshakes, and more is a typing mistake.
	minCap = 1e6
	maxCap = 1e15
	// maxDNS is the number of DNS servers of a carrier, as in resolv.conf (MAXNS).
	maxDNS = 3
	// maxEndpoints bounds the endpoints of a gateway: some addresses of both
	// families, and some ports.
	maxEndpoints = 8
	// maxPorts bounds the ports of a gateway, each of which has sockets of its own.
	maxPorts = 8
	// maxDNSName and maxDNSLabel are the longest DNS name and part of one, in bytes
	// (RFC 1035 section 2.3.4).
	maxDNSName  = 253
	maxDNSLabel = 63
	// maxGateways bounds the gateways of a robot: with eight carriers 128 paths,
	// each probed several times a second.
	maxGateways = 16
	// maxPeers bounds the robots of a gateway.
	maxPeers = 4096
	// maxSocket is the longest path of a Unix socket in bytes (sun_path - 1).
	maxSocket = 107

	minMTU  = 576  // bytes; RFC 791: every IPv4 host takes such a datagram
	minMTU6 = 1280 // bytes; RFC 8200 section 5
	maxMTU  = 9000 // bytes; jumbo frames

	minBits     = 8   // shortest overlay prefix, in bits
	maxBits     = 30  // longest IPv4 overlay prefix: room for two nodes
	maxBits6    = 126 // the same for IPv6
	minDeadline = time.Millisecond
	maxDeadline = time.Minute
)
