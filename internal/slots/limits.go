package slots

import "github.com/fogplr/fogplr/replicate"

// Limits of this package.
const (
	// Count is the number of carrier slots.
	Count = replicate.MaxSlot + 1
	// maxFile is the largest slots.json read, in bytes. Eight carriers take 2 KB, or
	// 50 KB with every text at its longest and escaped.
	maxFile = 64 << 10
	// maxText is the longest name, MAC or bus path kept, in bytes. Names have at
	// most 15 (IFNAMSIZ - 1), more once made valid UTF-8; paths in /sys rarely 100.
	maxText = 256
	// maxID is the longest id, in bytes: a text, what it is and a number.
	maxID = maxText + 16
	// maxCount is above what the counts of changes can reach.
	maxCount = 1 << 62
)
