package check

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	choice "github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/routing"
)

// readConfig reads the configuration and the key as the daemon does.
func readConfig(file string) Config {
	c := Config{File: file}
	if file == "" {
		return c
	}
	role, err := config.RoleOf(file)
	if err != nil {
		c.Problems = lines(err)
		return c
	}
	c.Role = role
	if role == "robot" {
		r, err := config.LoadRobot(file)
		if err == nil {
			c.Node = &r.Node
			c.Gateways = gatewaysOf(r)
			c.Carriers = interfacesOf(r)
			c.readKey()
			return c
		}
		c.Problems = lines(err)
	} else {
		g, err := config.LoadGateway(file)
		if err == nil {
			c.Node = &g.Node
			c.Ports = g.ListenPorts
			c.Warning = g.Warning()
			c.readKey()
			return c
		}
		c.Problems = lines(err)
	}
	c.Node, _ = config.LoadNode(file) // what is right in it is looked at all the same
	return c
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

// interfacesOf are the interfaces that a daemon would use now, and those that the
// configuration names, in the order of the slots that a new robot would give them.
func interfacesOf(r *config.Robot) (names []string) {
	found, _ := routing.Interfaces() // without them, those that are named
	for _, c := range choice.New(new(slots.Book)).Choose(r, found).Carriers {
		names = append(names, c.Interface)
	}
	return names
}

// carriers are the interfaces that the daemon uses, or the configuration names.
func carriers(f *Facts) []string {
	if f.Daemon.Status == nil || len(f.Daemon.Status.Carriers) == 0 {
		return f.Config.Carriers
	}
	var out []string
	for _, c := range f.Daemon.Status.Carriers {
		if c.Interface != "" && !slices.Contains(out, c.Interface) {
			out = append(out, c.Interface)
		}
	}
	return out
}
