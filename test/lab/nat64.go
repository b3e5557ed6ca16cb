package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// NAT64 makes a router translate (RFC 7915): packets to addresses below prefix go
// on by IPv4, each IPv6 host with an address of pool of its own. It is done by
// tayga behind a TUN device of that name, so by nothing that knows fogplr. tayga
// refuses to translate private and documentation addresses with the well-known
// prefix 64:ff9b::/96 (RFC 6052, section 3.1).
func (n *Node) NAT64(device string, prefix, pool netip.Prefix) error {
	dir := filepath.Join(n.lab.dir, n.name+"-"+device)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// The addresses are of tayga itself, for its ICMP errors.
	config := fmt.Sprintf("tun-device %s\nprefix %v\ndynamic-pool %v\nipv4-addr %v\nipv6-addr fdff::64\ndata-dir %s\n",
		device, prefix, pool, pool.Masked().Addr().Next(), dir)
	file := filepath.Join(dir, "tayga.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return err
	}
	c := n.Command(context.Background(), "tayga", "--config", file, "--nodetach")
	if err := c.Start(); err != nil {
		return err
	}
	for limit := time.After(taygaPatience); n.Up(device) != nil; {
		select {
		case <-c.Done():
			return errors.Join(fmt.Errorf("tayga on %s ended at once", n.name), c.Wait())
		case <-limit:
			return fmt.Errorf("tayga on %s makes no device; its log is %s", n.name, c.Log())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return errors.Join(
		n.AddRoute(prefix.Masked().String(), "", device, 0),
		n.AddRoute(pool.Masked().String(), "", device, 0),
	)
}
