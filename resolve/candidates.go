package resolve

import (
	"net/netip"
	"slices"
)

// Reach is what a carrier can send, and how its network translates.
type Reach struct {
	// IPv4 and IPv6 say that the carrier has an address to send from and a route.
	IPv4, IPv6 bool
	// NAT64 are the prefixes by which a carrier with IPv6 reaches IPv4 addresses.
	NAT64 []netip.Prefix
}

// Candidates returns the addresses to try for one gateway on a carrier, in order,
// without repetitions, eight at most. known are the gateway's addresses in the
// user's order, each name replaced by its addresses.
//
// The families alternate, beginning with that of the first address that the
// carrier can reach, and each keeps its order (RFC 8305, section 4). Translated
// addresses follow the carrier's own IPv6 ones, since a translator is one more
// thing to break; if the carrier has IPv4 they come last of all.
func Candidates(known []netip.AddrPort, r Reach) []netip.AddrPort {
	var v4, v6, synthetic []netip.AddrPort
	v4First, decided := false, false
	for _, ap := range known {
		a := ap.Addr().Unmap()
		ap = netip.AddrPortFrom(a, ap.Port())
		if !a.IsValid() || ap.Port() == 0 || unreachable(a) {
			continue
		}
		if a.Is4() && r.IPv4 || a.Is6() && r.IPv6 {
			if !decided {
				v4First, decided = a.Is4(), true
			}
			if a.Is4() {
				v4 = with(v4, ap)
			} else {
				v6 = with(v6, ap)
			}
		}
		for _, p := range r.NAT64 {
			if s, ok := Synthesise(p, a); ok && r.IPv6 {
				synthetic = with(synthetic, netip.AddrPortFrom(s, ap.Port()))
			}
		}
	}
	all := interleave(v6, v4)
	if v4First {
		all = interleave(v4, v6)
	}
	for _, ap := range synthetic {
		all = with(all, ap)
	}
	return all[:min(len(all), maxCandidates)]
}

// with adds ap unless it is there already.
func with(all []netip.AddrPort, ap netip.AddrPort) []netip.AddrPort {
	if slices.Contains(all, ap) {
		return all
	}
	return append(all, ap)
}

// interleave takes one of a, one of b, and so on.
func interleave(a, b []netip.AddrPort) []netip.AddrPort {
	var all []netip.AddrPort
	for i := range max(len(a), len(b)) {
		if i < len(a) {
			all = append(all, a[i])
		}
		if i < len(b) {
			all = append(all, b[i])
		}
	}
	return all
}
