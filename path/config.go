package path

import "time"

// Config of a Machine. All fields must be positive but Learnt.
type Config struct {
	// Active and Idle are the probe intervals: while traffic flows, and when not.
	// While a path is idle its interval grows from Idle to MaxIdle, as far as
	// translators (NAT) on its way allow, see Keepalive.
	Active, Idle, MaxIdle time.Duration
	// Learnt is what an earlier Machine knew of those translators.
	Learnt Lifetime
	// Linger is how long after the last traffic a path stays active.
	Linger time.Duration
	// Suspect is the silence after which a handshake is tried on a path that
	// goes on carrying.
	Suspect time.Duration
	// Trust is the silence after which a path is down; a path that answers few
	// probes gets more, up to MaxTrust.
	Trust, MaxTrust time.Duration
	// Retry is the least distance between two handshakes, MaxRetry the distance
	// that they grow to on a path that stays down unless traffic waits for it, and
	// IdleRetry what it is when for long there was neither traffic nor a link event.
	Retry, MaxRetry, IdleRetry time.Duration
	// Largest is the largest frame in bytes that this node sends, which is the MTU
	// of its WireGuard device. Verify is how often the largest frame that the path
	// takes is tried again under traffic.
	Largest int
	Verify  time.Duration
}

// DefaultConfig returns the values that limits.go gives reasons for.
func DefaultConfig() Config {
	return Config{
		Active:    defaultActive,
		Idle:      defaultIdle,
		MaxIdle:   defaultMaxIdle,
		Linger:    defaultLinger,
		Suspect:   defaultSuspect,
		Trust:     defaultTrust,
		MaxTrust:  defaultMaxTrust,
		Retry:     defaultRetry,
		MaxRetry:  defaultMaxRetry,
		IdleRetry: defaultIdleRetry,
		Largest:   defaultLargest,
		Verify:    defaultVerify,
	}
}

// LowData returns c with what makes a path cost less, for carriers that are paid
// by volume: fewer probes, and so a later notice of what fails.
func (c Config) LowData() Config {
	c.Active, c.Idle, c.MaxIdle, c.Verify = lowActive, lowIdle, lowMaxIdle, lowVerify
	return c
}
