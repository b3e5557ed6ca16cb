package tunnel

import "time"

// Every bound of this package, with its unit and reason.
const (
	// batchPackets is how many packets one read or write handles: what
	// wireguard-go's own TUN device yields from one 64 KiB GSO packet.
	batchPackets = 128

	// queuePackets and queueBytes bound one device's outgoing queue. It only
	// has to bridge the scheduling of two goroutines: 4,096 packets are 200 ms
	// at 20,000 packets/s.
	queuePackets = 4096
	queueBytes   = 8 << 20
	// leastAge is how long a packet may wait in a queue even if the deadline is
	// shorter: a busy machine may not run the reader for that long.
	leastAge = 50 * time.Millisecond
	// sendingFrames and receivingFrames bound what is inside one WireGuard device;
	// each frame holds a page of memory there. With a quarter of it TCP over one
	// carrier lost a tenth of its throughput; with twice as much in receiving a
	// flood took three times the memory, and nothing was faster.
	sendingFrames   = 2048
	receivingFrames = 2048
	// windowPatience is how long nothing must leave a device before it is taken
	// to be empty: longer than a busy machine keeps all its workers waiting.
	windowPatience = 50 * time.Millisecond
	// controlFrames bounds waiting probes and replies: two for each path of the
	// largest robot, or of many robots whose probes came together.
	controlFrames = 512

	// socketReceiveBuffer and socketSendBuffer are the sizes in bytes asked for a UDP
	// socket's buffers. For sending, more would only hold stale frames on a slow uplink.
	socketReceiveBuffer = 4 << 20
	socketSendBuffer    = 1 << 20

	// gsoSegments and gsoBytes bound one UDP_SEGMENT send (UDP_MAX_SEGMENTS of
	// older kernels; largest IPv4 UDP payload).
	gsoSegments = 64
	gsoBytes    = 65507

	// segmentRefusals is how many segmented messages in a row the kernel may refuse
	// in vain before a socket does without for segmentPause: links change.
	segmentRefusals = 16
	segmentPause    = time.Minute

	// receiveMessages is how many 64 KiB scratch buffers one socket reads into;
	// each may hold 64 coalesced datagrams. receiveControl is the room in bytes for
	// the control messages of each: IPV6_PKTINFO, UDP_GRO and SO_RXQ_OVFL are 88.
	receiveMessages = 8
	receiveControl  = 128
	// receivePause is the rest after an error in receiving, so that one that stays
	// costs little: what an interface does to its sockets is over in seconds.
	receivePause = 10 * time.Millisecond

	// maxPorts bounds a gateway's UDP ports: each has two sockets, with 512 KiB of
	// scratch and a receiver's 128 buffers each.
	maxPorts = 8
	// lowPorts is the first port that every user may bind
	// (net.ipv4.ip_unprivileged_port_start, which administrators may lower).
	lowPorts = 1024

	// endpointCache bounds the addresses remembered by a socket, so that a flood of
	// forged sources cannot grow it.
	endpointCache = 4096
	// sourceRetry is how long an own address that could not be used is not tried
	// again for a peer, though it sends there (an anycast prefix, for which IPv6 has
	// no address to send from, would cost two system calls for each message).
	sourceRetry = time.Second

	// hostBuffer is the room of one packet, in bytes, on its way from and to the
	// TUN device: what GSO splits has the kernel's MTU, which may be another than
	// ours for a moment, and the library writes beyond less; GRO appends to the
	// first packet of a flow. Only what is used becomes resident.
	hostBuffer = 65535

	// twinOverlap is how long two runs of a node must both have gone on since they
	// met: what a dying run sent by other paths may come behind the new one's first
	// frames by some seconds.
	twinOverlap = 4 * time.Second
	// twinReturns is how many times, twinSpacing apart and within twinMemory, they must
	// take turns then. A machine without traffic is heard for hardly a second each time
	// that it wins its session back, which is every five, with a probe every 200 ms.
	twinReturns = 3
	twinSpacing = 200 * time.Millisecond
	twinMemory  = time.Minute
	// twinLate is by how much the first frames of two runs of one machine may differ in
	// age; of two machines' clocks that differ by less the alarm comes later by as much.
	twinLate = time.Minute
	// twinWraps is a silence after which stamps, which wrap after 71 minutes, cannot be
	// told to be older or newer.
	twinWraps = 30 * time.Minute
	// twinRuns are remembered for each node: so many machines with one key, or runs in
	// quick succession.
	twinRuns = 4

	// fragmentsAge is how long the IP fragments of a datagram are waited for: longer
	// than two usable paths differ. Memory for them is bounded for each peer:
	// fragmentsOpen datagrams, in fragmentsBytes bytes together, which are sixteen of
	// the largest, each in fragmentsEach fragments, what an MTU of 576 makes of one.
	// fragmentsSpare keep their memory for the next ones.
	fragmentsAge   = time.Second
	fragmentsOpen  = 64
	fragmentsBytes = 1 << 20
	fragmentsEach  = 128
	fragmentsSpare = 2

	// errorShown is how long status shows a socket's last error.
	errorShown = time.Minute

	// warningsPerSecond bounds the log lines that packets can provoke.
	warningsPerSecond = 1

	// uapiClients bounds the programs that talk to one WireGuard socket at once.
	uapiClients = 16

	// callsPerSecond bounds the handshakes that a gateway starts after its own
	// start; each takes some 200 us of CPU time.
	callsPerSecond = 1000
	// calledFor is how long a carrier that was called has to answer: as long as
	// WireGuard itself repeats a handshake, and some more.
	calledFor = 2 * time.Minute

	// guestsWaiting bounds the carriers that said hello and are to be called; the
	// greeter lets 1,000 pass in a second.
	guestsWaiting = 1024
	// callAgain: a second hello within this time says that the call came to nothing.
	callAgain = 10 * time.Second
	// greetingsPerSecond bounds how often STUN messages, which anybody can forge or
	// repeat, wake a robot's prober: more than those of a start with 8 carriers, 3
	// gateways and both families.
	greetingsPerSecond = 100
	// calledPoll is how often the robot looks whether the gateway's call came.
	calledPoll = 50 * time.Millisecond
	// lookInterval is how often a robot looks for new sessions where all is well.
	lookInterval = 10 * time.Second
	// knowAtOnce is how many carriers a gateway gets to know when it is told of
	// them, 50 us each; with more it waits until one says hello.
	knowAtOnce = 256
	// knowSlice is how many at a time then, some 3 ms.
	knowSlice = 64
	// clockSet is how far the wall clock must be set forward to be believed again.
	clockSet = time.Second

	// beatInterval is the distance of heartbeats, by the gaps in which standstills
	// are noticed.
	beatInterval = 50 * time.Millisecond
	// idleBeat is that when there is nothing that could become stale. It is short
	// enough that a late beat is not taken for a standstill.
	idleBeat = 200 * time.Millisecond
	// quietAfter is how long after the last traffic.
	quietAfter = 2 * time.Second
	// leastStandstill is the shortest gap in them that is taken for a standstill,
	// however short the deadline. With four busy programs for each CPU beats came up
	// to 505 ms late, and to drop what is not stale is worse than to deliver what is a
	// second old after a standstill that short.
	leastStandstill = time.Second
	// leastAged is by how much what waited in a sender that stood still is told from
	// what a network kept: a path that is silent for so long is dead.
	leastAged = 3 * time.Second
	// settling is how long after a standstill all is dropped: what the TUN device's
	// queue (500 packets) and a WireGuard device (2,048 frames) hold is read by then.
	settling = 50 * time.Millisecond
	// longestDrain is how long a socket may go on yielding as much as can be read at
	// once and be taken to hold stale datagrams: 4 MB take 50 ms.
	longestDrain = 500 * time.Millisecond
	// wakeAfter is a standstill after which paths prove themselves anew. Probes
	// tolerate less.
	wakeAfter = time.Second

	// upkeepInterval is how often counters are rolled and latent errors judged, and
	// idleUpkeep how often without traffic.
	upkeepInterval = 250 * time.Millisecond
	idleUpkeep     = time.Second

	// badFor is how long a path must be bad before it tries another address of its
	// gateway, and badRemembered how long one that was left is not tried again.
	badFor        = 10 * time.Second
	badRemembered = 10 * time.Minute
	// moveTrial is how long a proof may take after a move: as a suspected path is
	// given, and some round trips. What was read from the socket before the move
	// arrives within moveSettles.
	moveTrial   = 2 * time.Second
	moveSettles = 50 * time.Millisecond
	// leastReassembled is the size in bytes up to which packets are put together
	// from parts whatever this node's own MTU is: peers may have a larger one.
	leastReassembled = 1500
	// mostFarewells, farewellEvery apart, tell a gateway to send nothing more by a
	// path, as long as something comes; one that does not understand goes on anyway.
	mostFarewells = 20
	farewellEvery = 50 * time.Millisecond
	// ownSettles is how long a carrier's start takes: handshakes, the search for the
	// largest frame, and until idle paths are probed as seldom as they will be.
	ownSettles = 20 * time.Second
	// ownRateAfter is how long after that its own traffic must have been counted to
	// be told as a rate: of six probes one more or less does not matter.
	ownRateAfter = time.Minute
	// ownMarks, ownEvery apart, remember it for a day.
	ownMarks = 25
	ownEvery = time.Hour
	// mappingInterval is from which announced probe interval on a gateway tells a
	// robot at which address it sees it: sooner no translator forgets a mapping.
	mappingInterval = time.Second
	// mappingPeers is up to how many carriers: asking WireGuard takes some 3 us for
	// each.
	mappingPeers = 512
	// mappingQueue bounds the probes that wait for that.
	mappingQueue = 256
	// maxCandidates bounds the addresses of one gateway for one carrier: two
	// families by a few ports, and what NAT64 adds.
	maxCandidates = 8
	// headStart is how long the preferred address of a gateway may take to answer
	// before another one that did is used (RFC 8305, section 5: 250 ms).
	headStart = 250 * time.Millisecond
	// candidateTries is how many handshakes in a row may fail before the next
	// address is tried: one can be lost.
	candidateTries = 2

	// latestPoll is the longest sleep of the prober whatever the paths ask for.
	latestPoll = 5 * time.Second

	// trafficPause is the silence after which new traffic wakes the prober: the
	// probe interval of an active path.
	trafficPause = 200 * time.Millisecond
)

// callsAt are the times after a gateway's start when it calls the carriers that
// were not heard yet. The second one comes before users notice, the last one when
// robots have given the path up and search by themselves.
var callsAt = [...]time.Duration{0, 400 * time.Millisecond, time.Second, 3 * time.Second}
