package resolve

import (
	"net/netip"
	"slices"
)

// ipv4only is the name that has IPv4 addresses only, so that an IPv6 address for
// it tells how a network translates (RFC 7050).
const ipv4only = "ipv4only.arpa"

// The addresses of ipv4only.arpa (RFC 7050, section 8.2).
var (
	wellKnownA = netip.AddrFrom4([4]byte{192, 0, 0, 170})
	wellKnownB = netip.AddrFrom4([4]byte{192, 0, 0, 171})
)

// wellKnownPrefix is 64:ff9b::/96 (RFC 6052, section 2.1).
var wellKnownPrefix = netip.MustParsePrefix("64:ff9b::/96")

// prefixLengths are those of RFC 6052, section 2.2, the longest first.
var prefixLengths = [...]int{96, 64, 56, 48, 40, 32}

// octets returns the places of the four IPv4 octets in an IPv6 address that is
// translated with a prefix of this length. Octet 8 is always left out (RFC 6052,
// section 2.2).
func octets(length int) (at [4]int) {
	i := length / 8
	for k := range at {
		if i == 8 {
			i++
		}
		at[k], i = i, i+1
	}
	return at
}

// Prefixes returns the NAT64 prefixes that a network's AAAA records of
// ipv4only.arpa tell (RFC 7050, section 3), in a fixed order and without
// repetitions, four at most. A record in which a well-known address is found at
// more than one place is ambiguous and tells nothing; its companion with the
// other address does.
func Prefixes(answer []netip.Addr) []netip.Prefix {
	var found []netip.Prefix
	for _, a := range answer {
		if p, ok := prefixOf(a); ok && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return b.Bits() - a.Bits()
	})
	return found[:min(len(found), maxPrefixes)]
}

func prefixOf(a netip.Addr) (p netip.Prefix, ok bool) {
	if !a.Is6() || a.Is4In6() {
		return p, false
	}
	raw := a.As16()
	places := 0
	for _, length := range prefixLengths {
		var v4 [4]byte
		for k, i := range octets(length) {
			v4[k] = raw[i]
		}
		in := netip.AddrFrom4(v4)
		if in != wellKnownA && in != wellKnownB || length < 96 && raw[8] != 0 {
			continue
		}
		places++
		p = netip.PrefixFrom(a.WithZone(""), length).Masked()
	}
	return p, places == 1
}

// Synthesise returns the IPv6 address by which a network with this NAT64 prefix
// reaches an IPv4 address (RFC 6052, section 2.2). There is none if the prefix
// has another length than the RFC's, or if the address means nothing outside its
// own network: loopback, link-local, multicast, and for the well-known prefix
// private ones (section 3.1).
func Synthesise(prefix netip.Prefix, v4 netip.Addr) (v6 netip.Addr, ok bool) {
	v4 = v4.Unmap()
	if !prefix.Addr().Is6() || !slices.Contains(prefixLengths[:], prefix.Bits()) || !v4.Is4() {
		return v6, false
	}
	if unreachable(v4) || v4.IsLinkLocalUnicast() || prefix == wellKnownPrefix && v4.IsPrivate() {
		return v6, false
	}
	raw, in := prefix.Masked().Addr().As16(), v4.As4()
	for k, i := range octets(prefix.Bits()) {
		raw[i] = in[k]
	}
	return netip.AddrFrom16(raw), true
}

// Captive reports whether a carrier's A records of ipv4only.arpa are a lie: every
// honest server has the same two (RFC 8880, section 7). A network that answers
// names with addresses of its own wants its users to log in first. No records say
// nothing; so call it with what was answered, and only when no gateway answers.
func Captive(answer []netip.Addr) bool {
	return slices.ContainsFunc(answer, func(a netip.Addr) bool {
		a = a.Unmap()
		return a != wellKnownA && a != wellKnownB
	})
}
