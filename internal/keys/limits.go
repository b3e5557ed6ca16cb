package keys

import "github.com/fogplr/fogplr/replicate"

// Limits of this package.
const (
	// Len is the length of a key in bytes (RFC 7748).
	Len = 32
	// Slots is the number of carrier slots of a robot, and so of its carrier
	// keys.
	Slots = replicate.MaxSlot + 1
	// maxFile is the largest key file read, in bytes. A key takes 45; the rest
	// is room for white space.
	maxFile = 1024
)

// Ports that carriers take: above the range from which Linux gives ports to
// programs that ask for none in particular.
const (
	firstPort = 61000
	lastPort  = 65535
)
