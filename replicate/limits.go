package replicate

import "time"

// Window is how many numbers an Eliminator remembers per epoch, and so how far
// a copy may come behind the newest number and still be judged: 655 ms at
// 100,000 packets/s, 3 s at 20,000 packets/s, far more than two uplinks differ.
// It costs 8 KiB per epoch. It is a power of two, so that it divides the
// number space.
const Window = 1 << 16

// Limits of elimination.
const (
	// farthestCopy is how far behind the newest number a number can be that was
	// sent before it: 16.8 million, 167 s of 100,000 packets/s, longer than any
	// network keeps a packet. What seems still farther behind is ahead: the
	// sender went on while nothing came through. Splitting the circle here and
	// not in its middle leaves hardly a number that a long silence turns into an
	// old one.
	farthestCopy = 1 << 24

	// lossAge is how long a number must have been missing to be lost: the second
	// between two calls of Settle, less a ticker's jitter. It is longer than two
	// usable paths differ, and a number that comes later is taken back.
	lossAge = 900 * time.Millisecond

	// holdFor is how long an epoch must have had nothing new, while the other one
	// had, to be retired: late copies come within it, even from a modem that
	// buffers for seconds.
	holdFor = 5 * time.Second

	// refuseFor is how long a retired epoch is refused. After it no copy is left
	// in any network, and an epoch that was retired by mistake comes back.
	refuseFor = time.Minute

	// retiredEpochs is how many retired epochs are remembered, so that a sender
	// that restarts all the time costs nothing. A sender that systemd restarts
	// every 5 s needs 12.
	retiredEpochs = 16
)

// Limits of reassembly.
const (
	// partRing is how many packets a Reassembler has in the making. The parts of a
	// packet leave one after the other, and a network that reorders on one path does
	// so by a few frames. A power of two, so that it divides the number space.
	partRing = 32

	// partsAge is for how long the parts of a packet are put together: they left
	// within a millisecond, and later the packet is of no use.
	partsAge = time.Second

	// partsMemory is for how long a packet keeps older ones out of its place.
	partsMemory = 10 * time.Second
)

// Limits of latent error detection.
const (
	// quietFor is by how much one path may be faster than its twin without being
	// accused where traffic pauses. With intervals of 250 ms it lets an error be
	// told within a second: up to one interval until the silence begins, two that
	// do not count, one that does.
	quietFor = 450 * time.Millisecond

	// proofFrames is how many frames prove that a path carries: before it can be
	// accused, so that its loss is known, and before an error has ended.
	proofFrames = 16

	// proofTime is for how long a path must carry again before an error has
	// ended, so that a few frames at once do not end it.
	proofTime = time.Second

	// minRun is how many frames in a row a twin must bring alone: at 1 packet/s
	// that is 10 s, in which a stray loss or two mean nothing.
	minRun = 10

	// runFactor is how many times longer than its longest run of late a path
	// must be silent. That run is what the path misses once in some hundred
	// times; three in a row are once in many million.
	runFactor = 3

	// maxRun is the longest run ever asked for, frames. A path with 90 % loss
	// misses so many in a row once in 700,000 frames.
	maxRun = 128

	// runMemory is over how many intervals with frames the longest run is taken,
	// and for as long again remembered: two minutes or more.
	runMemory = 512
)

// Limits of an AgeFilter.
const (
	// ageSpan is for how long a least delay counts, and as long again: clocks that
	// run 100 ppm apart differ by 12 ms in two of them.
	ageSpan = time.Minute

	// ageMemory is a silence after which it is measured anew: such clocks differ by
	// 60 ms then.
	ageMemory = 10 * time.Minute

	// agePatience is for how long frames may be old before it is the measure that is
	// wrong. What waited in a program or machine that stood still comes within some
	// milliseconds after it.
	agePatience = 250 * time.Millisecond
)
