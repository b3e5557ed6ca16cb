package resolve

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCandidates(t *testing.T) {
	wkp := []netip.Prefix{wellKnownPrefix}
	dual := Reach{IPv4: true, IPv6: true}
	for _, c := range []struct {
		what  string
		known []netip.AddrPort
		reach Reach
		want  []netip.AddrPort
	}{
		{"nothing", nil, dual, nil},
		{"a literal", addrPorts("198.51.100.10:51820"), dual, addrPorts("198.51.100.10:51820")},
		{"the user's first address decides which family begins", addrPorts("198.51.100.10:1", "198.51.100.11:1", "[2001:db8::1]:1", "[2001:db8::2]:1"), dual,
			addrPorts("198.51.100.10:1", "[2001:db8::1]:1", "198.51.100.11:1", "[2001:db8::2]:1")},
		{"IPv6 first, and more of it", addrPorts("[2001:db8::1]:1", "[2001:db8::2]:1", "198.51.100.10:1"), dual,
			addrPorts("[2001:db8::1]:1", "198.51.100.10:1", "[2001:db8::2]:1")},
		{"IPv4 only", addrPorts("[2001:db8::1]:1", "198.51.100.10:1"), Reach{IPv4: true}, addrPorts("198.51.100.10:1")},
		{"IPv6 only", addrPorts("198.51.100.10:1", "[2001:db8::1]:1"), Reach{IPv6: true}, addrPorts("[2001:db8::1]:1")},
		{"IPv6 only, IPv4 gateway, no translator", addrPorts("198.51.100.10:1"), Reach{IPv6: true}, nil},
		{"IPv6 only, IPv4 gateway, translator", addrPorts("198.51.100.10:1"), Reach{IPv6: true, NAT64: wkp}, addrPorts("[64:ff9b::c633:640a]:1")},
		{"translated ones behind real ones", addrPorts("198.51.100.10:1", "[2001:db8::1]:1"), Reach{IPv6: true, NAT64: wkp},
			addrPorts("[2001:db8::1]:1", "[64:ff9b::c633:640a]:1")},
		{"dead CLAT: IPv4 is there, translated ones last", addrPorts("198.51.100.10:1"), Reach{IPv4: true, IPv6: true, NAT64: wkp},
			addrPorts("198.51.100.10:1", "[64:ff9b::c633:640a]:1")},
		{"a prefix is of no use without IPv6", addrPorts("198.51.100.10:1"), Reach{IPv4: true, NAT64: wkp}, addrPorts("198.51.100.10:1")},
		{"two ports of one gateway", addrPorts("198.51.100.10:51820", "198.51.100.10:443"), dual, addrPorts("198.51.100.10:51820", "198.51.100.10:443")},
		{"repetitions, mapped or not", addrPorts("198.51.100.10:1", "[::ffff:198.51.100.10]:1", "198.51.100.10:1"), dual, addrPorts("198.51.100.10:1")},
		{"what no carrier reaches", addrPorts("127.0.0.1:1", "0.0.0.0:1", "224.0.0.1:1", "[fe80::1]:1", "[::1]:1", "[ff02::1]:1", "198.51.100.10:0", "10.0.0.1:1"), dual,
			addrPorts("10.0.0.1:1")},
		{"no family at all", addrPorts("198.51.100.10:1", "[2001:db8::1]:1"), Reach{}, nil},
	} {
		if got := Candidates(c.known, c.reach); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestCandidatesProperties(t *testing.T) {
	address := rapid.Custom(func(t *rapid.T) netip.AddrPort {
		s := "198.51.100.%d:%d"
		if rapid.Bool().Draw(t, "IPv6") {
			s = "[2001:db8::%x]:%d"
		}
		return netip.MustParseAddrPort(fmt.Sprintf(s, rapid.IntRange(1, 9).Draw(t, "host"), rapid.IntRange(1, 2).Draw(t, "port")))
	})
	rapid.Check(t, func(t *rapid.T) {
		known := rapid.SliceOfN(address, 0, 12).Draw(t, "known")
		r := Reach{IPv4: rapid.Bool().Draw(t, "has IPv4"), IPv6: rapid.Bool().Draw(t, "has IPv6")}
		got := Candidates(known, r)
		var usable []netip.AddrPort
		for _, ap := range known {
			if (ap.Addr().Is4() && r.IPv4 || ap.Addr().Is6() && r.IPv6) && !slices.Contains(usable, ap) {
				usable = append(usable, ap)
			}
		}
		if len(got) != min(len(usable), maxCandidates) {
			t.Fatalf("%d candidates of %d usable ones", len(got), len(usable))
		}
		if len(got) == 0 {
			return
		}
		if got[0] != usable[0] {
			t.Fatalf("begins with %v, not with %v", got[0], usable[0])
		}
		for i, ap := range got {
			if !slices.Contains(usable, ap) || slices.Contains(got[:i], ap) {
				t.Fatalf("%v", got)
			}
		}
		// Each family keeps its order.
		last := map[bool]int{true: -1, false: -1}
		for _, ap := range got {
			at := slices.Index(usable, ap)
			if at < last[ap.Addr().Is4()] {
				t.Fatalf("order: %v of %v", got, usable)
			}
			last[ap.Addr().Is4()] = at
		}
		if !slices.Equal(got, Candidates(got, r)) && len(usable) <= maxCandidates {
			t.Fatalf("not stable: %v becomes %v", got, Candidates(got, r))
		}
	})
}
