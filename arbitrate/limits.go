package arbitrate

import "time"

const (
	// maxParticipants is how many participants are known: 20 robots' worth of
	// processes. More are not arbitrated.
	maxParticipants = 512

	// maxEndpoints is how many writers and readers of services are known, and
	// maxOwned how many of one participant. A ROS 2 node has at least six services,
	// so this is 600 nodes that others have in view.
	maxEndpoints = 4096
	maxOwned     = 1024

	// maxServices is how many services are known.
	maxServices = 1024

	// maxPorts is how many of the host's UDP ports are known by participant: each
	// has one or two for each of its addresses.
	maxPorts = 256

	// maxRequests is how many requests are known, and maxAsked how many of one
	// service: 40 s of one at 100 Hz, or 10 minutes at 6 Hz. A late reply to an older
	// request passes.
	maxRequests = 16384
	maxAsked    = 4096

	// requestAge is for how long a request is known. An action's result is a reply
	// that comes when the action is done.
	requestAge = 2 * time.Hour

	// maxStreams is how many writers of replies are followed, the last used ones;
	// maxPairs how many readers of one.
	maxStreams = 256
	maxPairs   = 32

	// window is how many numbers above the first missing one are followed, a power
	// of two: 10 s at 100 Hz. Beyond, nothing is known.
	window = 1024

	// maxRecords is how many samples of a writer are remembered with their request,
	// for fragments and repetitions that do not say it; a power of two.
	maxRecords = 256

	// maxOpen is how many samples of a writer are put together at a time for one
	// reader; the oldest goes. At 200 Hz with every second sample hurt, as many are open
	// while one is repeated. maxFragments is how many fragments a sample may have:
	// 16 MB of the smallest that fogplr's profiles make. maxBitmaps is how many octets
	// the bitmaps of all fragments take.
	maxOpen      = 64
	maxFragments = 16384
	maxBitmaps   = 4 << 20

	// Parked replies: at most so many and so many octets of one writer, and of all,
	// for so long. A writer repeats what is missing within some 100 ms and a round trip.
	parkedEach      = 64
	parkedEachBytes = 256 << 10
	parkedAll       = 256
	parkedAllBytes  = 1 << 20
	parkAge         = time.Second

	// doubtAfter is how old a delivery must be before the reader's asking for it
	// again means that it was lost in the host; before, the two crossed.
	doubtAfter = 100 * time.Millisecond

	// leaseDefault is that of a participant whose announcement was not seen (RTPS,
	// Table 9.19).
	leaseDefault = 100 * time.Second

	// silentFor is after how much silence a participant is forgotten whose lease is
	// over. DDS has forgotten it before, and would announce all again; forgetting
	// too early cannot be made good, since it would not.
	silentFor = time.Hour

	// sweepEvery is how often old knowledge is looked for.
	sweepEvery = 10 * time.Second

	// maxSnapshot is the largest snapshot that is read, octets.
	maxSnapshot = 16 << 20
)
