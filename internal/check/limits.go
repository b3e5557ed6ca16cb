package check

import "time"

// Limits of this package, and figures that it judges by.
const (
	// wireGuard is what WireGuard adds to a frame, in bytes: header and
	// authentication tag of a data message (whitepaper, 5.4.6).
	wireGuard = 16 + 16
	// wireGuardBlock is what WireGuard pads to, in bytes.
	wireGuardBlock = 16
	// udp, ipv4 and ipv6 are header lengths in bytes (RFC 768, 791, 8200).
	udp  = 8
	ipv4 = 20
	ipv6 = 40
	// leastMTU6 is the least MTU of an interface with IPv6 (RFC 8200 section 5),
	// leastMTU what every IPv4 host takes (RFC 791). In bytes.
	leastMTU6 = 1280
	leastMTU  = 576

	// ddsFirst and ddsLast are the UDP ports of the first DDS domain (RTPS 2.5,
	// 9.6.1.1: 7400 and what follows for each participant).
	ddsFirst = 7400
	ddsLast  = 7500

	// namesShown bounds the programs that one sentence lists.
	namesShown = 5

	// maxOthers bounds the interfaces that are told to be no carriers: a machine with
	// containers has hundreds.
	maxOthers = 8

	// ticksPerSecond is the unit of times in /proc/PID/stat (USER_HZ, the same on
	// all platforms that Go knows).
	ticksPerSecond = 100
	// maxSmallFile bounds what is read of a file in /proc or of a profile, in
	// bytes, maxSocketTable the same of the list of UDP sockets.
	maxSmallFile   = 256 << 10
	maxSocketTable = 8 << 20
	// maxPrograms bounds the programs that are told of.
	maxPrograms = 64
	// maxRuleset bounds what is read of a packet filter, in bytes: more is not
	// judged.
	maxRuleset = 32 << 20
	// commandTimeout ends nft and iptables-save, lookupTimeout the look-ups of
	// all names.
	commandTimeout = 5 * time.Second
	lookupTimeout  = 5 * time.Second
	// askTries and askPatience are how often a gateway is asked and how long each
	// answer is waited for: a lost datagram or a modem that wakes up is no silence.
	askTries    = 3
	askPatience = time.Second
	// maxQuestions bounds the questions that are asked at once. A gateway answers
	// 50 a second.
	maxQuestions = 256
	// maxNames bounds the names that are looked up.
	maxNames = 64
)
