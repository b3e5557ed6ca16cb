package check

import (
	"net/netip"
	"time"

	"github.com/fogplr/fogplr/internal/check/firewall"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// Facts is what was looked at. What is not known is the zero value, of which
// nobody says anything.
type Facts struct {
	Config Config
	// User is the effective user id, Capable whether this process has a
	// capability (CAP_...), by its number; nil when that is not known.
	User    int
	Capable func(capability int) bool
	Kernel  Kernel
	Network *routing.Facts
	// NetworkError is why there is no Network.
	NetworkError error
	Firewall     *firewall.Rules // nil: not seen
	Caps         []Cap           // of metered carriers while no daemon tells
	Names        []Name
	Clock        Clock
	Shell        Profile
	Programs     []Program
	Ports        []Holder
	Daemon       Daemon
	Answers      []Answer // nil: not wanted; empty: there was nobody to ask
}

// Config is the node's configuration.
type Config struct {
	File string // empty: there is none at the default places
	Role string // "robot" or "gateway", empty when not known
	Both bool   // there is one of each role at the default places
	// Problems are lines of text.
	Problems []string
	// Node is the part that both roles have; nil when that is wrong.
	Node *config.Node
	// Pending is what of the file takes a restart of the daemon that runs, as far as
	// its status tells. Node has there what that daemon has.
	Pending []Pending
	// Warning is what is allowed and yet hardly meant.
	Warning string
	// KeyWarning is about the mode of the key's file, KeyProblems say why there is
	// no usable key.
	KeyWarning  string
	KeyProblems []string
	// Places are the files and folders of which the daemon could not make use.
	Places []Place
	// Carriers are the interfaces of a robot's carriers. Missing and Notes are
	// sentences on how they were chosen, Others the interfaces that were not.
	Carriers, Missing, Notes []string
	Others                   []Other
	Gateways                 []Gateway // a robot's
	Ports                    []uint16  // a gateway's
}

// Other is an interface that is no carrier.
type Other struct {
	Interface string `json:"interface"`
	Reason    string `json:"reason"` // a few words
	// Candidate says that the configuration lets it be one.
	Candidate bool `json:"-"`
}

// Pending is a key whose value the daemon that runs does not have yet.
type Pending struct {
	Key, File, Daemon string // its name, and both values
}

// Place is a file or folder of which the daemon could not make use.
type Place struct {
	Key     string // of the configuration
	Problem string // one sentence or several
	Fails   bool   // the daemon does not start
}

// Gateway is a gateway of a robot's configuration.
type Gateway struct {
	Name      string
	Endpoints []Endpoint
}

// Endpoint is an address and port, or a name and a port whose addresses stand in
// Facts.Names.
type Endpoint struct {
	Host string
	Addr netip.Addr // invalid for a name
	Port uint16
}

// Kernel is what this kernel, or this container, offers. Errors are those of the
// attempt, nil when it works.
type Kernel struct {
	Release string // such as "6.1.0-18-amd64"
	TUN     error  // opening /dev/net/tun
	Mark    error  // SO_MARK
	Bind    error  // SO_BINDTODEVICE
	Segment error  // UDP_SEGMENT
	Gather  error  // UDP_GRO
	NoIPv6  bool   // the kernel has no IPv6
	// IPv6Off is the sysctl that turns IPv6 off for plr0, empty: none does.
	IPv6Off string
	// Forwards is net.ipv4.ip_forward; nil: not known.
	Forwards *bool
}

// Name is a host name of an endpoint.
type Name struct {
	Host    string
	Addrs   []netip.Addr
	Problem string // why it has no address
	Never   bool   // there is no such name, for sure
}

// Clock is the time of day.
type Clock struct {
	Now   time.Time
	Built time.Time // no clock can be right that is before this; zero: not known
	// Free says that nothing keeps the clock right; nil: not known.
	Free *bool
}

// Profile is where an environment points DDS.
type Profile struct {
	RMW       string // RMW_IMPLEMENTATION
	Cyclone   Setting
	FastDDS   Setting
	Obstacles []string // sentences about what keeps ROS 2 off every network
}

// Setting is one variable of an environment.
type Setting struct {
	Variable string
	Value    string // empty: not set
	Text     string // the profile, as far as it can be read
	Problem  string // why it cannot be read
}

// Program is a program that speaks DDS in this network namespace, as far as can
// be told: it has a port of DDS open, or it is the daemon of the ros2 command.
type Program struct {
	PID       int
	Name      string
	Unit      string // its systemd service, or empty
	ROSDaemon bool
	Started   time.Duration // after the machine's start
	Profile   *Profile      // nil: not known
}

// Holder is who has a UDP port of this machine.
type Holder struct {
	Port uint16
	PID  int    // 0: not known; the kernel itself, or a program of another user
	Name string // of the program
	Unit string
}

// Daemon is what the node's daemon says.
type Daemon struct {
	Status *tunnel.Status // nil: no answer
	// Stopped says that nobody listens on the control socket, Killed that it is
	// there nevertheless.
	Stopped, Killed bool
	// Forbidden says that this user may not ask, Silent why there is no answer
	// although there should be one.
	Forbidden bool
	Silent    string
	Version   string // this program's own
}

// link returns an interface by name, nil if it is not there.
func (f *Facts) link(name string) *routing.LinkFacts {
	if f.Network == nil {
		return nil
	}
	for i := range f.Network.Links {
		if l := &f.Network.Links[i]; l.Name == name {
			return l
		}
	}
	return nil
}

// overlay returns the overlay's interface, nil if it is not there.
func (f *Facts) overlay() *routing.LinkFacts {
	if f.Config.Node == nil {
		return nil
	}
	return f.link(f.Config.Node.Interface)
}

// running says that the daemon answers, or that somebody has its device open who is
// not another node's daemon.
func (f *Facts) running() bool {
	if f.Daemon.Status != nil {
		return true
	}
	l := f.overlay()
	return l != nil && l.TUN && l.Up && f.tenant() == ""
}

// tenant is another node whose daemon has the overlay's device open, as role and
// name, or empty.
func (f *Facts) tenant() string {
	l := f.overlay()
	if !f.Daemon.Stopped || l == nil || !l.Up || l.Owner == f.Config.Role+" "+f.Config.Node.Name {
		return ""
	}
	return l.Owner
}

func (f *Facts) robot() bool { return f.Config.Role == "robot" }

func (f *Facts) root() bool { return f.User == 0 }
