package firewall

// Limits of this package.
const (
	// maxRules bounds the rules that are read, over all chains: a firewall with
	// more is not judged. Lists of blocked addresses belong into sets.
	maxRules = 20_000
	// maxDepth bounds jumps within jumps; nftables allows 16.
	maxDepth = 16
	// maxSteps bounds the rules that one packet is held against, since chains
	// that jump to each other could be walked for ever.
	maxSteps = 100_000
)
