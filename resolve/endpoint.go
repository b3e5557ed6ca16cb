package resolve

import "net/netip"

// Endpoint is where a gateway listens, as a user wrote it.
type Endpoint struct {
	// Name is a DNS name in lower case without the final dot, empty for a literal. It
	// is absolute: no search domain is ever added.
	Name string
	// Addr is the literal address; it is not valid if there is a name.
	Addr netip.Addr
	Port uint16
}

// unreachable says that no carrier can reach a gateway at a: it is of one link alone,
// this machine itself, or no machine's.
func unreachable(a netip.Addr) bool {
	return a.Zone() != "" || a.Is6() && a.IsLinkLocalUnicast() || a.IsLoopback() ||
		a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
