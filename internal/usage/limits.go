package usage

import "time"

const (
	// maxFile is the largest file read, in bytes: 64 carriers take 8 KiB.
	maxFile = 64 << 10
	// maxCarriers bounds the carriers that are remembered; the one that was not
	// used for the most months goes first.
	maxCarriers = 64
	// reserve is the part of a cap, 1 in so many, at which a carrier stops at the
	// latest. It stops sooner where it is so fast that more would come in after a crash.
	reserve = 100
	// goesOn is for how long: until the gateways notice.
	goesOn = 3 * time.Second
	// mostReserve is 1 in so many of the cap: a small one is of some use nevertheless.
	mostReserve = 4
	// rateInterval is the least time over which it is measured how fast that is.
	rateInterval = time.Second
	// lease and leaseSmall are how much is written down ahead of its use, 1 in so many
	// of the cap, up to or above leaseBytes, beside what would come in after a crash:
	// what one costs, against some hundred writes to the disk in a month.
	lease      = 1000
	leaseSmall = 200
	leaseBytes = 1 << 20
	// settles is how long the clock must agree with a new month before that begins:
	// a robot's clock may leap before it is set.
	settles = time.Hour
)
