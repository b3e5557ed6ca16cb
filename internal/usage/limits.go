package usage

import "time"

const (
	// maxFile is the largest file read, in bytes: 64 carriers take 8 KiB.
	maxFile = 64 << 10
	// maxCarriers bounds the carriers that are remembered; the one that was not
	// used for the most months goes first.
	maxCarriers = 64
	// reserve is the part of a cap, 1 in so many, at which a carrier stops: what is
	// on its way then, and what comes in until the gateways have noticed.
	reserve = 100
	// lease is how much is written down ahead of its use, 1 in so many of the cap
	// and leastLease bytes at least: what a crash may cost, against writes to the
	// disk.
	lease      = 1000
	leastLease = 1 << 20
	// settles is how long the clock must agree with a new month before that begins:
	// a robot's clock may leap before it is set.
	settles = time.Hour
)
