// Package scenario reads the TOML files that describe an experiment in the
// laboratory: links, gateways, what fails when, and what the programs do. It
// starts nothing.
package scenario

import (
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// Scenario is one file.
type Scenario struct {
	File string // empty for one that was built in
	// Name is made of letters, digits, '-', '_' and '.'; the file's name unless it says
	// another.
	Name string
	Seed uint64
	// Duration is how long the workloads run, and so how long traces play.
	Duration  time.Duration
	Robot     string // lines for the top of robot.toml, the last one ended
	Carriers  []Carrier
	Gateways  []Gateway
	Faults    []Fault // by time
	Workloads []Workload
}

// Carrier is one uplink of the robot.
type Carrier struct {
	lab.CarrierOptions
	// MTU of the interfaces at both ends, in bytes, so that the kernel says what is
	// too big; 0 for 1500. (A link that drops what is too big without a word has it
	// in Up and Down.)
	MTU int
}

// Gateway is one server in the cloud.
type Gateway struct {
	Name string
	// PauseEvery and PauseFor, when set, stop the programs on the gateway (not its
	// daemon) now and then, as a garbage collector does: both are means of
	// exponential distributions.
	PauseEvery, PauseFor time.Duration
}

// Kind of a fault.
type Kind string

// Faults of a carrier, of a gateway, of the robot.
const (
	BlackHole     Kind = "black-hole"     // packets vanish, the interface stays up
	LinkDown      Kind = "link-down"      // as by `ip link set down`
	Unplug        Kind = "unplug"         // the cable, so that the kernel sees it
	AddressChange Kind = "address-change" // another lease
	Replug        Kind = "replug"         // the interface goes and comes again, as As
	NATRebind     Kind = "nat-rebind"     // the translator takes other ports

	GatewayKill    Kind = "gateway-kill"    // daemon and programs, by SIGKILL; started again after For
	GatewayStop    Kind = "gateway-stop"    // daemon and programs, by SIGSTOP; they go on after For
	GatewayRestart Kind = "gateway-restart" // the daemon, by SIGKILL, and started again at once
	ServerStop     Kind = "server-stop"     // the programs, by SIGSTOP; they go on after For
	ServerKill     Kind = "server-kill"     // the programs, by SIGKILL; started again after For

	RobotRestart Kind = "robot-restart" // the daemon, by SIGKILL, and started again at once
)

// Direction is one of a link's, or both.
type Direction string

// Directions of a black hole, as the robot sees them.
const (
	BothWays Direction = "both"
	Up       Direction = "up"
	Down     Direction = "down"
)

// Fault is something that goes wrong at a time.
type Fault struct {
	At   time.Duration // since the start of the workloads
	Kind Kind
	// For is when it is undone, after At; 0 for never, or for a kind that undoes itself.
	For time.Duration
	// Carrier or Gateway is what it happens to, by name; the robot needs neither. A
	// carrier is called by its first name even when As has given it another.
	Carrier, Gateway string
	Direction        Direction // of a black hole
	As               string    // new name of a replugged interface; empty for the old one
}

// Workload types.
const (
	RPC     = "rpc"     // calls over real DDS, with the ROS 2 service mapping, or by datagrams
	Stream  = "stream"  // a topic from the robot to the gateways
	DDSPerf = "ddsperf" // Cyclone's own measuring tool, ping against pong
	Iperf3  = "iperf3"  // TCP or UDP from the robot to one gateway
	Command = "command" // any program on the robot, and another on the gateways
	ROS2    = "ros2"    // ROS 2's own add_two_ints demo; needs ROS_SETUP
)

// vendorUDP is the vendor of calls without DDS.
const vendorUDP = "udp"

// Workload is what programs do meanwhile.
type Workload struct {
	Name string
	Type string
	// Vendor of DDS for rpc: cyclone or fast; or udp for plain datagrams.
	Vendor string
	// Rate is in calls or samples a second.
	Rate float64
	// Size and ReplySize are in bytes of DDS payload.
	Size, ReplySize int
	Deadline        time.Duration
	LostAfter       time.Duration // when a call counts as lost
	Work            time.Duration // what a server takes for a call
	// Gateway is where the workload has its other end; empty means the first one for
	// iperf3 and all for the others.
	Gateway string
	// Args are further arguments of ddsperf and iperf3, or a command on the robot.
	Args []string
	// Server is a command on the gateways, started before.
	Server []string
}
