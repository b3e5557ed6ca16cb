package check

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
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
			c.Carriers = r.Carriers
			c.readKey()
			return c
		}
		c.Problems = lines(err)
	} else {
		g, err := config.LoadGateway(file)
		if err == nil {
			c.Node = &g.Node
			c.Ports = []uint16{g.ListenPort}
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
		out = append(out, Gateway{Name: g.Name, Endpoints: []Endpoint{{Host: g.Endpoint.Addr().String(), Addr: g.Endpoint.Addr().Unmap(), Port: g.Endpoint.Port()}}})
	}
	return out
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
