package lab

import "time"

const (
	// defaultQueue is how long a packet may wait for its turn on a link with a
	// rate but no Queue: about what a home router buffers.
	defaultQueue = 100 * time.Millisecond
	// defaultReorderDelay is how far a reordered packet falls behind when
	// ReorderDelay is not given: longer than the gaps of any busy stream.
	defaultReorderDelay = 10 * time.Millisecond
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
	// emulatorPriority is the real-time priority of the emulators' threads, the
	// lowest there is: enough to come before every ordinary program.
	emulatorPriority = 1
	// stopGrace is how long a program may take to end after SIGTERM when a
	// laboratory is closed.
	stopGrace = 2 * time.Second
	// captureBuffer is the kernel's buffer for one capture, in bytes: one second
	// of 20,000 full packets/s.
	captureBuffer = 32 << 20
	// recordDir holds one file per living laboratory.
	recordDir = "/run/fogplr-lab"
	// netnsDir is where iproute2 keeps named network namespaces.
	netnsDir = "/run/netns"
	// namePrefix opens the name of every namespace of a laboratory.
	namePrefix = "fp-"
)
