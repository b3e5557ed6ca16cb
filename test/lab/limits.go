package lab

import "time"

const (
	// defaultQueue is how long a packet may wait for its turn on a link with a
	// rate but no Queue: about what a home router buffers.
	defaultQueue = 100 * time.Millisecond
	// defaultReorderDelay is how far a reordered packet falls behind when
	// ReorderDelay is not given: longer than the gaps of any busy stream.
	defaultReorderDelay = 10 * time.Millisecond
	// maxRTT is the longest round trip in a trace, in ms: one minute.
	maxRTT = 60_000
	// maxRows and maxOpportunities bound a trace, so that the emulator reads it in a
	// small part of emulatorPatience: six days of seconds, and ten minutes of 40
	// Mbit/s.
	maxRows          = 500_000
	maxOpportunities = 2_000_000
	// maxInFlight bounds the packets inside one direction: 20,000 packets/s with
	// five seconds of delay, 200 MB at worst.
	maxInFlight = 100_000
	// maxFrame is the largest frame a TAP device hands over, in bytes.
	maxFrame = 65_536 + ethernetHeader
	// ethernetHeader is the length of an Ethernet header, in bytes.
	ethernetHeader = 14
	// smallFrame is the size of the recycled buffers, in bytes: one full frame
	// of an ordinary link.
	smallFrame = 2048
	// readBurst is how many frames are read before due ones are written: at
	// 5 us per frame a burst delays them by 0.3 ms at most.
	readBurst = 64
	// restTime is the shortest time between two looks for frames: it bounds the
	// added delay and, at 10,000 looks/s, what looking costs.
	restTime = 100 * time.Microsecond
	// emulatorPriority is the real-time priority of the emulator process and of
	// the senders of flows, the lowest there is: enough to come before every ordinary program.
	emulatorPriority = 1
	// emulatorProcs is how many Go processors the emulator has: with more than
	// there are cores a thread coming back from the kernel finds one at once.
	emulatorProcs = 64
	// emulatorMemory is where the emulator's garbage collection sets in, in
	// bytes: beyond what maxInFlight packets of a few links take.
	emulatorMemory = 1 << 30
	// emulatorPatience is how long the emulator may take to answer or to end.
	emulatorPatience = 5 * time.Second
	// maxMessage is the size of the buffer for a control message, in bytes: the
	// longest, a reply with all counters, takes about 1 kB.
	maxMessage = 1 << 14
	// taygaPatience is how long a translator may take to make its device.
	taygaPatience = 5 * time.Second
	// stopGrace is how long a program may take to end after SIGTERM when a
	// laboratory is closed.
	stopGrace = 2 * time.Second
	// captureBuffer is the kernel's buffer for one capture, in bytes: one second
	// of 20,000 full packets/s.
	captureBuffer = 32 << 20
	// recordDir holds one file per living laboratory, and the socket and log of one
	// that stands.
	recordDir = "/run/fogplr-lab"
	// netnsDir is where iproute2 keeps named network namespaces.
	netnsDir = "/run/netns"
	// namePrefix opens the name of every namespace of a laboratory.
	namePrefix = "fp-"
)
