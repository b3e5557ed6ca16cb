package slots

import "github.com/fogplr/fogplr/replicate"

// Limits of this package.
const (
	// Count is the number of carrier slots.
	Count = replicate.MaxSlot + 1
	// maxFile is the largest slots.json read, in bytes. Eight entries take less
	// than 1 KB.
	maxFile = 16 << 10
	// maxInterface is the longest interface name in bytes (IFNAMSIZ - 1).
	maxInterface = 15
)
