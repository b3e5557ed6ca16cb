package tunnels

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"

	"github.com/fogplr/fogplr/test/lab"
)

//go:embed failover.sh
var failoverScript string

// lastResort is the metric of the route that failover.sh makes last.
const lastResort = 1000

// routerCommand writes failover.sh into dir and returns the command that keeps the
// robot's routes with it.
func (t *wireguard) routerCommand(dir string) ([]string, error) {
	script := filepath.Join(dir, "failover.sh")
	if err := os.WriteFile(script, []byte(failoverScript), 0o755); err != nil {
		return nil, err
	}
	command := []string{"sh", script}
	for _, g := range t.world.Gateways {
		command = append(command, g.Address.String())
	}
	return append(append(command, "--"), t.carriers...), nil
}

// awaitRoutes waits until failover.sh has made its routes, so that WireGuard's
// first packet takes the right carrier.
func (t *wireguard) awaitRoutes(ctx context.Context, script *lab.Cmd) error {
	return await(ctx, func() error {
		routes, err := t.hostRoutes(t.world.Gateways[len(t.world.Gateways)-1])
		if err != nil {
			return err
		}
		for _, r := range routes {
			if r.Priority == lastResort {
				return nil
			}
		}
		return fmt.Errorf("the robot gets no routes to its gateways (the script's log is %s)", script.Log())
	})
}

// hostRoutes returns the robot's routes to one gateway alone.
func (t *wireguard) hostRoutes(g *lab.Gateway) ([]netlink.Route, error) {
	to := &net.IPNet{IP: g.Address.AsSlice(), Mask: net.CIDRMask(32, 32)}
	routes, err := t.world.Robots[0].Netlink().RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: to}, netlink.RT_FILTER_DST)
	if err != nil {
		return nil, fmt.Errorf("the robot's routes to %s: %w", g.Name(), err)
	}
	return routes, nil
}

func (t *wireguard) removeRoutes() error {
	var errs []error
	for _, g := range t.world.Gateways {
		routes, err := t.hostRoutes(g)
		errs = append(errs, err)
		for _, r := range routes {
			errs = append(errs, t.world.Robots[0].Netlink().RouteDel(&r))
		}
	}
	return errors.Join(errs...)
}
