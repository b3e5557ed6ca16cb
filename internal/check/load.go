package check

import (
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/tunnel"
)

// readConfig reads the configuration and the key as the daemon does; robot is nil
// unless it is a robot's and right.
func readConfig(file string) (c Config, robot *config.Robot) {
	c.File = file
	if file == "" {
		return c, nil
	}
	role, err := config.RoleOf(file)
	if err != nil {
		c.Problems = lines(err)
		return c, nil
	}
	c.Role, c.Both = role, config.Both()
	if role == "robot" {
		r, err := config.LoadRobot(file)
		if err == nil {
			c.Node = &r.Node
			c.Gateways = gatewaysOf(r)
			c.readKey()
			return c, r
		}
		c.Problems = lines(err)
	} else {
		g, err := config.LoadGateway(file)
		if err == nil {
			c.Node = &g.Node
			c.Ports = g.ListenPorts
			c.Warning = g.Warning()
			c.readKey()
			return c, nil
		}
		c.Problems = lines(err)
	}
	c.Node, _ = config.LoadNode(file) // what is right in it is looked at all the same
	return c, nil
}

// asRunning has all that follows look at the node as its daemon has it, as far as
// its status tells, and keeps where the file says otherwise.
func (c *Config) asRunning(s *tunnel.Status) {
	n := *c.Node
	differs := func(key, file, daemon string) bool {
		if daemon == "" || file == daemon {
			return false
		}
		c.Pending = append(c.Pending, Pending{key, file, daemon})
		return true
	}
	if differs("interface", n.Interface, s.Interface) {
		n.Interface = s.Interface
	}
	if differs("address", list(n.Addresses), strings.Join(s.Addresses, ", ")) {
		n.Addresses = nil
		for _, a := range s.Addresses {
			if p, err := netip.ParsePrefix(a); err == nil {
				n.Addresses = append(n.Addresses, p)
			}
		}
	}
	if s.MTU != 0 && differs("mtu", strconv.Itoa(n.MTU), strconv.Itoa(s.MTU)) {
		n.MTU = s.MTU
	}
	if differs("name", n.Name, s.Name) {
		n.Name = s.Name
	}
	c.Node = &n
}

func lines(err error) []string { return strings.Split(err.Error(), "\n") }

// readKey reads the private key. One that this user may not read is nobody's
// mistake.
func (c *Config) readKey() {
	if _, _, err := keys.ReadPrivate(c.Node.PrivateKeyFile); errors.Is(err, fs.ErrPermission) {
		return
	}
	_, warning, err := c.Node.ReadKey()
	c.KeyWarning = warning
	if err != nil {
		c.KeyProblems = lines(err)
	}
}

func gatewaysOf(r *config.Robot) []Gateway {
	var out []Gateway
	for _, g := range r.Gateways {
		k := Gateway{Name: g.Name}
		for _, e := range g.Endpoints {
			x := Endpoint{Host: e.Host, Addr: e.Addr.Unmap(), Port: e.Port}
			if e.Host == "" {
				x.Host = e.Addr.String()
			}
			k.Endpoints = append(k.Endpoints, x)
		}
		out = append(out, k)
	}
	return out
}

// choose says which interfaces are a robot's carriers: those that the daemon uses,
// else those that it would choose now, and what they have used of their caps.
func (h Host) choose(f *Facts, robot *config.Robot) {
	s := f.Daemon.Status
	asked := s != nil && len(s.Carriers) > 0
	taken := 0
	if asked {
		taken = len(s.Carriers)
		for _, c := range s.Carriers {
			f.Config.name(c.Interface)
		}
	}
	if robot == nil {
		return
	}
	found, err := h.Interfaces()
	if err != nil {
		return // Look tells it
	}
	if !asked {
		book, _, hidden := slots.Load(h.path(robot.StateDir))
		if hidden != nil { // for this user, at least
			book = new(slots.Book)
		}
		choice := carriers.New(book).Choose(robot, found)
		h.caps(f, robot, choice.Carriers, hidden != nil)
		taken = len(choice.Carriers)
		for _, c := range choice.Carriers {
			f.Config.name(c.Interface)
		}
		f.Config.Missing, f.Config.Notes = choice.Missing, choice.Notes
	}
	for _, i := range found {
		if i.Kind != "loopback" && i.Name != f.Config.Node.Interface && !slices.Contains(f.Config.Carriers, i.Name) {
			why, candidate := carriers.Reason(robot, i, taken)
			f.Config.Others = append(f.Config.Others, Other{i.Name, why, candidate})
		}
	}
}

// name adds a carrier's interface, once.
func (c *Config) name(iface string) {
	if iface != "" && !slices.Contains(c.Carriers, iface) {
		c.Carriers = append(c.Carriers, iface)
	}
}
