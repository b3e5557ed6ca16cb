package scenario

import (
	"time"

	"github.com/fogplr/fogplr/internal/tables"
)

// Limits of what a file may say.
const (
	// maxFile is the largest scenario file, in bytes: maxFaults with comments.
	maxFile = 1 << 20
	// maxCarriers and maxGateways are what a standard laboratory has room for.
	maxCarriers = 8
	maxGateways = 8
	// maxFaults is one a second for more than an hour.
	maxFaults = 5000
	// maxWorkloads is more than two cores can run.
	maxWorkloads = 16
	// maxArgs bounds a command, in words.
	maxArgs = 100
	// maxGatewayName is the longest name of a gateway in bytes: the router's
	// interface to it is called to-NAME.
	maxGatewayName = tables.MaxInterface - len("to-")
	// minMTU and maxMTU are what IPv4 needs (RFC 791) and a TAP device takes, in
	// bytes.
	minMTU = 68
	maxMTU = 65_521
	// maxPacket is the longest IP packet in bytes.
	maxPacket = 65_535
	// maxRate is the highest rate of a link in Mbit/s, beyond any that there is, and
	// maxCalls that of a workload in calls or samples a second: what the emulator
	// carries.
	maxRate = 100_000
	// minDatagram and maxDatagram are the payload of a udp call in bytes (see
	// test/apps/src/udp.h).
	minDatagram = 4
	maxDatagram = 65_499
	maxCalls    = 20_000
	minCalls    = 0.001
	// maxPayload is the largest call or sample in bytes: a camera picture without
	// compression.
	maxPayload = 64 << 20

	minDuration = 100 * time.Millisecond
	maxDuration = 24 * time.Hour
	// minPositive is the shortest time where none at all would mean the default.
	minPositive = time.Microsecond
	// maxDelay is the longest time that anything on a link or in a call takes.
	maxDelay = time.Minute
	maxRow   = time.Hour
	// maxFirst is beyond the rows of any trace.
	maxFirst = 1_000_000
	// minIdle is the shortest time that the kernel remembers a mapping, and its unit.
	minIdle = time.Second
)

// Defaults of keys that a file leaves out.
const (
	defaultSeed      = 1
	defaultDuration  = 20 * time.Second
	defaultRow       = time.Second
	defaultRate      = 30 // a second
	defaultSize      = 64 // bytes
	defaultDeadline  = 200 * time.Millisecond
	defaultLostAfter = 4 * time.Second
)
