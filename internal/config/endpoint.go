package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/fogplr/fogplr/internal/tables"
)

// Endpoint is where a gateway listens.
type Endpoint struct {
	// Host is its DNS name, in lower case and without a dot at the end; empty when
	// Addr is its address.
	Host string
	Addr netip.Addr
	Port uint16 // UDP, not 0
}

// AddrPort returns an endpoint that is an address; ok is false for a DNS name.
func (e Endpoint) AddrPort() (a netip.AddrPort, ok bool) {
	return netip.AddrPortFrom(e.Addr, e.Port), e.Host == ""
}

// String returns the endpoint as it stands in a configuration.
func (e Endpoint) String() string {
	if a, ok := e.AddrPort(); ok {
		return a.String()
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

const endpointExpected = `an IP address or a DNS name and a port, such as "198.51.100.10:51820", "[2001:db8::1]:51820" or "gw.example.com:51820"`

// ParseEndpoint reads an endpoint. The error says what was expected instead.
func ParseEndpoint(s string) (Endpoint, error) {
	e, complaint := parseEndpoint(s)
	if complaint != "" {
		return e, errors.New(complaint)
	}
	return e, nil
}

func parseEndpoint(s string) (e Endpoint, complaint string) {
	if ep, err := netip.ParseAddrPort(s); err == nil {
		return Endpoint{Addr: ep.Addr(), Port: ep.Port()}, checkEndpoint(ep)
	}
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil || strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
		return e, endpointExpected + "; the port is missing, or the IPv6 address has no brackets"
	}
	host, number, found := strings.Cut(s, ":")
	if !found {
		return e, endpointExpected + "; the port is missing"
	}
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil || port == 0 {
		return e, "a port from 1 to 65535 behind the address"
	}
	e = Endpoint{Host: strings.ToLower(strings.TrimSuffix(host, ".")), Port: uint16(port)}
	return e, checkHostName(e.Host)
}

// checkHostName returns what was expected instead of a DNS name, or nothing (RFC
// 1123 section 2.1; underscores are in use, too).
func checkHostName(s string) string {
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if l == "" || len(l) > maxDNSLabel || l[0] == '-' || l[len(l)-1] == '-' || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return endpointExpected + `; a DNS name has letters a to z, digits and '-', others in the form "xn--..."`
		}
	}
	last := labels[len(labels)-1]
	switch {
	case len(s) > maxDNSName:
		return fmt.Sprintf("a DNS name of at most %d characters", maxDNSName)
	case strings.Trim(last, "0123456789") == "", last == "localhost":
		return endpointExpected + "; " + s + " is no machine's name on the internet"
	}
	return ""
}

// endpoints reads where a gateway listens; overlay are this node's prefixes.
func endpoints(t *tables.Table, overlay []netip.Prefix, taken claims) []Endpoint {
	var out []Endpoint
	for _, it := range texts(t, "endpoint", endpointExpected, maxEndpoints) {
		e, complaint := parseEndpoint(it.Text)
		for _, p := range overlay {
			if complaint == "" && e.Host == "" && p.Contains(e.Addr) {
				complaint = fmt.Sprintf("an address outside the overlay %v, since the tunnel cannot run through itself", p.Masked())
			}
		}
		if complaint != "" {
			t.FailAt(it.Line, "endpoint", tables.Show(it.Text), complaint)
			continue
		}
		if other := taken.claim("endpoint", e.String(), t.Owner); other != "" {
			t.FailAt(it.Line, "endpoint", fmt.Sprintf("%v, which %s has already", e, other), "an endpoint of its own for every gateway, each once")
			continue
		}
		out = append(out, e)
	}
	return out
}

// checkEndpoint returns what was expected instead of ep, or nothing.
func checkEndpoint(ep netip.AddrPort) string {
	a := ep.Addr()
	const expected = "the gateway's address as robots reach it from outside"
	switch {
	case ep.Port() == 0:
		return "a port from 1 to 65535 behind the address"
	case a.Is4In6():
		return fmt.Sprintf("the same address written as IPv4, %v", netip.AddrPortFrom(a.Unmap(), ep.Port()))
	case a.IsUnspecified():
		return fmt.Sprintf("%s; %v means every address of a machine", expected, a)
	case a.IsLoopback():
		return fmt.Sprintf("%s; %v is the robot itself", expected, a)
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Sprintf("%s; %v means many machines", expected, a)
	case a.Is6() && a.IsLinkLocalUnicast(), a.Zone() != "":
		return fmt.Sprintf("%s; %v is good on one link only", expected, a)
	}
	return ""
}
