package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Node is one machine of a laboratory: a network namespace. Files and processes
// are those of the host.
type Node struct {
	lab    *Lab
	name   string
	path   string // of the namespace in the file system
	ns     netns.NsHandle
	handle *netlink.Handle
	starts chan func() // served by the thread that starts the node's programs
}

func newNode(l *Lab, name string) (*Node, error) {
	if err := prepareNetnsDir(); err != nil {
		return nil, err
	}
	n := &Node{lab: l, name: name, ns: netns.None(), starts: make(chan func())}
	n.path = filepath.Join(netnsDir, namePrefix+l.run+"-"+name)
	ready := make(chan error)
	go n.serve(ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	if err := n.open(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// serve makes the namespace and then starts programs in it, one at a time. Its
// thread lives as long as the node, and the kernel ends the programs with it
// (PR_SET_PDEATHSIG goes by thread).
func (n *Node) serve(ready chan<- error) {
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_NEWNET)
	if err == nil {
		err = bindNamespace(n.path)
	}
	ready <- err
	if err != nil {
		return
	}
	for start := range n.starts {
		start()
	}
}

func (n *Node) open() (err error) {
	if n.ns, err = netns.GetFromPath(n.path); err != nil {
		return fmt.Errorf("open namespace: %w", err)
	}
	if n.handle, err = netlink.NewHandleAt(n.ns); err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	return n.Up("lo")
}

func (n *Node) close() error {
	if n.handle != nil {
		n.handle.Close()
	}
	if n.ns.IsOpen() {
		_ = n.ns.Close()
	}
	close(n.starts)
	return removeNamespace(n.path)
}

// Name is the node's name in its laboratory.
func (n *Node) Name() string { return n.name }

// Namespace is the name that `ip netns exec` takes.
func (n *Node) Namespace() string { return filepath.Base(n.path) }

// Netlink returns a handle that works inside the node. The laboratory owns it.
func (n *Node) Netlink() *netlink.Handle { return n.handle }

// Do runs f on a thread of its own inside the node and returns f's error. What f
// starts with `go` runs outside; a socket that f opens stays inside.
func (n *Node) Do(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := netns.Set(n.ns); err != nil {
			result <- fmt.Errorf("enter node %s: %w", n.name, err)
			return
		}
		result <- f()
	}()
	return <-result
}

// Up brings an interface up, Down takes it down. Both cause a link event.
func (n *Node) Up(iface string) error { return n.onLink(iface, n.handle.LinkSetUp) }

// Down takes an interface down; see Up.
func (n *Node) Down(iface string) error { return n.onLink(iface, n.handle.LinkSetDown) }

// SetMTU sets the MTU of an interface in bytes.
func (n *Node) SetMTU(iface string, mtu int) error {
	return n.onLink(iface, func(k netlink.Link) error { return n.handle.LinkSetMTU(k, mtu) })
}

func (n *Node) onLink(iface string, f func(netlink.Link) error) error {
	k, err := n.handle.LinkByName(iface)
	if err == nil {
		err = f(k)
	}
	if err != nil {
		return fmt.Errorf("node %s, interface %s: %w", n.name, iface, err)
	}
	return nil
}

// AddAddress gives an interface an address in CIDR notation, IPv4 or IPv6,
// usable at once (no duplicate address detection).
func (n *Node) AddAddress(iface, cidr string) error {
	return n.addAddress(iface, cidr, 0)
}

func (n *Node) addAddress(iface, cidr string, flags int) error {
	address, err := netlink.ParseAddr(cidr)
	if err != nil {
		return fmt.Errorf("address %q: %w", cidr, err)
	}
	address.Flags = flags
	if address.IP.To4() == nil {
		address.Flags |= unix.IFA_F_NODAD
	}
	return n.onLink(iface, func(k netlink.Link) error { return n.handle.AddrAdd(k, address) })
}

// AddRoute adds a route to the main table. to is a prefix, or "default" for the
// whole family of via; via may be empty for a route on the link itself. metric
// 0 leaves the choice to the kernel.
func (n *Node) AddRoute(to, via, iface string, metric int) error {
	route := &netlink.Route{Gw: net.ParseIP(via), Priority: metric}
	if via != "" && route.Gw == nil {
		return fmt.Errorf("gateway %q is not an address", via)
	}
	if via == "" {
		route.Scope = netlink.SCOPE_LINK
	}
	if to == "default" {
		to = "0.0.0.0/0"
		if strings.Contains(via, ":") {
			to = "::/0"
		}
	}
	var err error
	if _, route.Dst, err = net.ParseCIDR(to); err != nil {
		return err
	}
	return n.onLink(iface, func(k netlink.Link) error {
		route.LinkIndex = k.Attrs().Index
		return n.handle.RouteAdd(route)
	})
}

// Sysctl sets a network setting of the node, for example
// "net.ipv4.ip_forward".
func (n *Node) Sysctl(name, value string) error {
	file := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
	return n.Do(func() error { return os.WriteFile(file, []byte(value), 0) })
}
