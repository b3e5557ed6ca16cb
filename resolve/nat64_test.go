package resolve

import (
	"math/big"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The table of RFC 6052, section 2.4.
var vectors = []struct{ prefix, v4, v6 string }{
	{"2001:db8::/32", "192.0.2.33", "2001:db8:c000:221::"},
	{"2001:db8:100::/40", "192.0.2.33", "2001:db8:1c0:2:21::"},
	{"2001:db8:122::/48", "192.0.2.33", "2001:db8:122:c000:2:2100::"},
	{"2001:db8:122:300::/56", "192.0.2.33", "2001:db8:122:3c0:0:221::"},
	{"2001:db8:122:344::/64", "192.0.2.33", "2001:db8:122:344:c0:2:2100::"},
	{"2001:db8:122:344::/96", "192.0.2.33", "2001:db8:122:344::192.0.2.33"},
	{"64:ff9b::/96", "192.0.2.33", "64:ff9b::192.0.2.33"},
}

func TestSynthesise(t *testing.T) {
	for _, v := range vectors {
		got, ok := Synthesise(netip.MustParsePrefix(v.prefix), netip.MustParseAddr(v.v4))
		if want := netip.MustParseAddr(v.v6); !ok || got != want {
			t.Errorf("%s with %s: %v, %v; want %v", v.prefix, v.v4, got, ok, want)
		}
	}
	for _, c := range []struct {
		prefix, v4 string
		ok         bool
	}{
		{"64:ff9b::/96", "10.1.2.3", false}, // RFC 6052, section 3.1
		{"64:ff9b::/96", "192.168.1.1", false},
		{"2001:db8::/96", "10.1.2.3", true}, // the operator's own network
		{"64:ff9b::/96", "127.0.0.1", false},
		{"64:ff9b::/96", "169.254.1.1", false},
		{"64:ff9b::/96", "224.0.0.1", false},
		{"64:ff9b::/96", "0.0.0.0", false},
		{"64:ff9b::/96", "255.255.255.255", false},
		{"64:ff9b::/96", "2001:db8::1", false},
		{"64:ff9b::/96", "::ffff:192.0.2.33", true},
		{"2001:db8::/80", "192.0.2.33", false},
		{"192.0.2.0/32", "192.0.2.33", false},
	} {
		if a, ok := Synthesise(netip.MustParsePrefix(c.prefix), netip.MustParseAddr(c.v4)); ok != c.ok {
			t.Errorf("%s with %s: %v, %v", c.prefix, c.v4, a, ok)
		}
	}
	if _, ok := Synthesise(netip.Prefix{}, netip.MustParseAddr("192.0.2.33")); ok {
		t.Error("a prefix that is none")
	}
}

func TestPrefixes(t *testing.T) {
	prefixes := func(all ...string) (out []netip.Prefix) {
		for _, s := range all {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	for _, c := range []struct {
		what string
		aaaa []netip.Addr
		want []netip.Prefix
	}{
		{"nothing", nil, nil},
		{"well-known", addrs("64:ff9b::c000:aa", "64:ff9b::c000:ab"), prefixes("64:ff9b::/96")},
		{"one record is enough", addrs("64:ff9b::c000:ab"), prefixes("64:ff9b::/96")},
		{"two prefixes, in any order", addrs("2001:db8:1::c000:ab", "64:ff9b::c000:aa", "2001:db8:1::c000:aa", "64:ff9b::c000:ab"),
			prefixes("64:ff9b::/96", "2001:db8:1::/96")},
		{"the prefix has the address too", addrs("2001:db8:c000:aa::c000:aa", "2001:db8:c000:aa::c000:ab"), nil},
		{"the prefix has one of them", addrs("2001:db8:1:0:c0:0:aa00:0"), prefixes("2001:db8:1::/64")},
		{"no NAT64: a real address", addrs("2001:db8::1"), nil},
		{"octet 8 is not zero", addrs("2001:db8:c000:aa:100::"), nil},
		{"a mapped address is IPv4", addrs("::ffff:192.0.0.170"), nil},
		{"an IPv4 address", addrs("192.0.0.170"), nil},
	} {
		if got := Prefixes(c.aaaa); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	var many []netip.Addr
	for i := range 9 {
		many = append(many, netip.MustParseAddr("2001:db8:"+string(rune('1'+i))+"::c000:aa"))
	}
	if got := Prefixes(many); len(got) != maxPrefixes {
		t.Errorf("%d prefixes kept", len(got))
	}
	for _, v := range vectors { // all lengths, through the RFC's own prefixes
		p := netip.MustParsePrefix(v.prefix)
		a, _ := Synthesise(p, wellKnownA)
		if got := Prefixes([]netip.Addr{a}); !slices.Equal(got, []netip.Prefix{p}) {
			t.Errorf("%v: found %v", p, got)
		}
	}
}

// naiveSynthesise reads section 2.2 of RFC 6052 as arithmetic on 128 bits.
func naiveSynthesise(p netip.Prefix, v4 netip.Addr) netip.Addr {
	number := func(b []byte) *big.Int { return new(big.Int).SetBytes(b) }
	n, in := number(p.Masked().Addr().AsSlice()), number(v4.AsSlice())
	length := uint(p.Bits())
	if length == 96 {
		n.Or(n, in)
	} else {
		before := min(64-length, 32) // bits of the IPv4 address in front of octet 8
		head := new(big.Int).Rsh(in, 32-before)
		tail := new(big.Int).And(in, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 32-before), big.NewInt(1)))
		n.Or(n, head.Lsh(head, 128-length-before))
		n.Or(n, tail.Lsh(tail, 128-72-(32-before)))
	}
	var raw [16]byte
	n.FillBytes(raw[:])
	return netip.AddrFrom16(raw)
}

func TestSynthesiseLikeTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "prefix"))
		raw[0] |= 0x20 // not mapped
		raw[8] = 0
		p := netip.PrefixFrom(netip.AddrFrom16(raw), rapid.SampledFrom(prefixLengths[:]).Draw(t, "length")).Masked()
		v4 := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4")))
		got, ok := Synthesise(p, v4)
		if !ok {
			return
		}
		if want := naiveSynthesise(p, v4); got != want {
			t.Fatalf("%v with %v: %v, want %v", p, v4, got, want)
		}
		both := []netip.Addr{naiveSynthesise(p, wellKnownA), naiveSynthesise(p, wellKnownB)}
		if found := Prefixes(both); len(found) > 0 && !slices.Equal(found, []netip.Prefix{p}) {
			t.Fatalf("%v was taken for %v", p, found)
		}
	})
}

func FuzzPrefixes(f *testing.F) {
	for _, v := range vectors {
		a, _ := Synthesise(netip.MustParsePrefix(v.prefix), wellKnownA)
		f.Add(a.AsSlice())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		for _, p := range Prefixes([]netip.Addr{a}) {
			x, okA := Synthesise(p, wellKnownA)
			y, okB := Synthesise(p, wellKnownB)
			if !okA || !okB || !p.Contains(a) || p.Bits() == 96 && a != x && a != y {
				t.Errorf("%v is no prefix of %v", p, a)
			}
		}
	})
}

func TestCaptive(t *testing.T) {
	for _, c := range []struct {
		answer []netip.Addr
		want   bool
	}{
		{nil, false},
		{addrs("192.0.0.170", "192.0.0.171"), false},
		{addrs("192.0.0.171"), false},
		{addrs("10.0.0.1"), true},
		{addrs("192.0.0.170", "10.0.0.1"), true},
		{addrs("::ffff:192.0.0.170"), false},
		{addrs("0.0.0.0"), true},
	} {
		if got := Captive(c.answer); got != c.want {
			t.Errorf("%v: %v", c.answer, got)
		}
	}
}
