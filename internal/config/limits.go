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
