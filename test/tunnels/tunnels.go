// Package tunnels has an adapter for each way to connect a robot with its
// gateways that the laboratory compares: fogplr, and what people use instead. A
// further one is one more file.
package tunnels

import (
	"context"
	"net/netip"

	"github.com/fogplr/fogplr/test/lab"
)

// Tunnel connects one robot with all gateways of a world. Its methods are called
// by one goroutine at a time, Start first and Stop last.
type Tunnel interface {
	// Name of the tunnel, for tables and plots.
	Name() string
	// Start brings it up over these carriers of the world's first robot and returns
	// when the robot reaches every gateway, or with an error that says why not.
	// Files belong under w.Dir().
	Start(ctx context.Context, w *lab.World, carriers []*lab.Carrier) error
	// Command prepares a DDS program on a node (the robot's or a gateway's), so
	// that its DDS uses the tunnel.
	Command(ctx context.Context, node *lab.Node, name string, args ...string) (*lab.Cmd, error)
	// Address is a node's address inside.
	Address(node *lab.Node) netip.Addr
	// Kill ends the tunnel's own programs on a node by SIGKILL, Restart starts them
	// again. Pause stops them (SIGSTOP) or lets them go on.
	Kill(node *lab.Node) error
	Restart(ctx context.Context, node *lab.Node) error
	Pause(node *lab.Node, stopped bool) error
	// Stop ends everything.
	Stop() error
}
