package hello

import "time"

// At the gateway.
const (
	// nonceLife is how long a nonce may be used: many round trips of the slowest
	// network, and short enough that an address it proves still belongs to the
	// robot.
	nonceLife = 30 * time.Second
	// plainPerSecond bounds the answers to plain binding requests, which anybody
	// may send. A robot without sessions sends one in 2 s.
	plainPerSecond = 50
	// noncesPerSecond bounds the nonces given out, which anybody may ask for, too.
	// A thousand robots may start at once after a power cut; one costs some 5 us.
	noncesPerSecond = 1000
	// hellosPerSecond bounds the hellos with a good nonce that are verified. Each
	// that passes starts a handshake, some 200 us.
	hellosPerSecond = 1000
	// callSpacing is the least distance between two calls of one carrier.
	callSpacing = time.Second
	// clockFor is how long a handshake refused for its time explains a hello: the
	// robot tries at least every 5 s.
	clockFor = 30 * time.Second
	// MaxMessage is the longest message looked at, in octets: a hello has 116,
	// and other STUN clients send less than the 548 of section 6.1.
	MaxMessage = 548
)

// At the robot.
const (
	// callAfter is how many handshakes must go unanswered before the first hello:
	// one may be lost.
	callAfter = 2
	// callPatience is how long the last of them is given.
	callPatience = 500 * time.Millisecond
	// reachableFor is how long an answer to a plain request counts: longer than
	// the distance between two, 5 s, and one of them lost.
	reachableFor = 12 * time.Second
	// sessionAge is the age of a session at which its renewal is overdue. WireGuard
	// renews at 120 s and repeats that every 5 s; at 180 s the session is dead.
	sessionAge = 140 * time.Second
	// firstRetry and lastRetry are the distances between two attempts: the first
	// like the retransmissions of section 6.2.1, growing by half each time. At the
	// last one, a robot that a gateway does not know costs 1 MB a day and path.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// maxNonce is the longest nonce taken, in octets (RFC 8489 section 14.10 allows
	// fewer than 128 characters).
	maxNonce = 127
	// answersPerAttempt bounds the messages that answers can draw from the robot in
	// one attempt: the nonce, and a fresh one if that was too old.
	answersPerAttempt = 2
	// holdFor is how long the robot leaves the handshake to a gateway that has said
	// it would call: its initiation, our response and its first frame take one and
	// a half round trips.
	holdFor = 2 * time.Second
)
