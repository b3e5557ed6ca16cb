package resolve

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Endpoint is where a gateway listens, as a user wrote it.
type Endpoint struct {
	// Name is a DNS name in lower case without the final dot, empty for a literal.
	Name string
	// Addr is the literal address; it is not valid if there is a name.
	Addr netip.Addr
	Port uint16
}

// String returns the endpoint as ParseEndpoint reads it.
func (e Endpoint) String() string {
	host := e.Name
	if host == "" {
		host = e.Addr.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(e.Port)))
}

// ParseEndpoint reads "host:port", where host is an IPv4 address, an IPv6 address
// in brackets, or a DNS name. Names are absolute: no search domain is ever added.
// The error says what is wrong, as the end of a sentence about s.
func ParseEndpoint(s string) (Endpoint, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return Endpoint{}, errors.New("has no port, or an IPv6 address without brackets")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '+' {
		return Endpoint{}, fmt.Errorf("has the port %q, which is no number from 1 to 65535", port)
	}
	e := Endpoint{Port: uint16(n)}
	if a, err := netip.ParseAddr(host); err == nil {
		e.Addr = a.Unmap()
		if complaint := unreachable(e.Addr); complaint != "" {
			return Endpoint{}, fmt.Errorf("has the address %v, %s", a, complaint)
		}
		return e, nil
	}
	if e.Name, err = parseName(host); err != nil {
		return Endpoint{}, err
	}
	return e, nil
}

// unreachable says why no carrier can reach a gateway at a, empty if one may.
func unreachable(a netip.Addr) string {
	switch {
	case a.Zone() != "" || a.Is6() && a.IsLinkLocalUnicast():
		return "which is of one link alone"
	case a.IsLoopback():
		return "which is this machine itself"
	case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "which is no machine's"
	}
	return ""
}

// parseName checks a host name (RFC 1123, 2.1; underscores are in use) and returns
// it in lower case without the final dot.
func parseName(s string) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	if name == "" || len(name) > 253 {
		return "", fmt.Errorf("has the name %q, which is empty or longer than 253 letters", s)
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
			return "", fmt.Errorf("has the name %q, in which the part %q is empty, too long, or has a hyphen at an end", s, l)
		}
		if i := strings.IndexFunc(l, notOfName); i >= 0 {
			return "", fmt.Errorf("has the name %q with %q in it; DNS names have letters a to z, digits and hyphens (write others in punycode)", s, []rune(l[i:])[0])
		}
	}
	if strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		return "", fmt.Errorf("has %q, which is neither an address nor a name", s)
	}
	return name, nil
}

func notOfName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}
