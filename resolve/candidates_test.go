package resolve

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
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

func TestParseEndpoint(t *testing.T) {
	for s, want := range map[string]Endpoint{
		"198.51.100.10:51820":               {Addr: netip.MustParseAddr("198.51.100.10"), Port: 51820},
		"[2001:db8::1]:443":                 {Addr: netip.MustParseAddr("2001:db8::1"), Port: 443},
		"[::ffff:198.51.100.10]:1":          {Addr: netip.MustParseAddr("198.51.100.10"), Port: 1},
		"West.Example.ORG.:51820":           {Name: "west.example.org", Port: 51820},
		"gateway:65535":                     {Name: "gateway", Port: 65535},
		"_wg.xn--bcher-kva.example:1":       {Name: "_wg.xn--bcher-kva.example", Port: 1},
		"10.example.org:1":                  {Name: "10.example.org", Port: 1},
		"a-b.3com.net:51820":                {Name: "a-b.3com.net", Port: 51820},
		"169.254.7.7:51820":                 {Addr: netip.MustParseAddr("169.254.7.7"), Port: 51820},
		"[64:ff9b::198.51.100.10]:51820":    {Addr: netip.MustParseAddr("64:ff9b::c633:640a"), Port: 51820},
		"ec2-1-2-3-4.compute.example.com:9": {Name: "ec2-1-2-3-4.compute.example.com", Port: 9},
	} {
		got, err := ParseEndpoint(s)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for s, part := range map[string]string{
		"198.51.100.10":         "no port",
		"2001:db8::1:51820":     "without brackets",
		"198.51.100.10:0":       `port "0"`,
		"198.51.100.10:65536":   `port "65536"`,
		"198.51.100.10:+7":      `port "+7"`,
		"198.51.100.10:":        `port ""`,
		":51820":                "empty",
		".:51820":               "empty",
		"a..b:51820":            "empty",
		"-a.org:51820":          "hyphen",
		"a b.org:51820":         "' '",
		"bücher.example:51820":  "punycode",
		"198.51.100:51820":      "neither an address nor a name",
		"198.51.100.300:51820":  "neither an address nor a name",
		"[fe80::1]:51820":       "one link",
		"[fe80::1%eth0]:51820":  "one link",
		"127.0.0.1:51820":       "this machine",
		"0.0.0.0:51820":         "no machine",
		"255.255.255.255:51820": "no machine",
		"[ff02::1]:51820":       "no machine",
	} {
		if e, err := ParseEndpoint(s); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %+v, %v; want an error with %q", s, e, err, part)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{"198.51.100.10:51820", "[2001:db8::1]:443", "West.Example.ORG.:51820", ":1", "a:b:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseEndpoint(s)
		if err != nil {
			return
		}
		if e.Port == 0 || (e.Name == "") != e.Addr.IsValid() {
			t.Errorf("%q: %+v", s, e)
		}
		if again, err := ParseEndpoint(e.String()); err != nil || again != e {
			t.Errorf("%q is %q, which is %+v, %v", s, e, again, err)
		}
		if e.Name != "" {
			if _, err := newQuestion(e.Name, IPv4); err != nil {
				t.Errorf("%q cannot be asked for: %v", e.Name, err)
			}
		}
	})
}
