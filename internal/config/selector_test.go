package config

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSelectorMatches(t *testing.T) {
	for _, c := range []struct {
		selector, text string
		want           bool
	}{
		{"name:wwan0", "wwan0", true},
		{"name:wwan0", "wwan00", false},
		{"name:wwan*", "wwan", true},
		{"name:wwan?", "wwan", false},
		{"name:usb[0-3]", "usb2", true},
		{"name:usb[^0]", "usb0", false},
		{`name:a\*`, "a*", true},
		{"name:*", "", false},
		{"mac:0C-5B-8F-27-9A-64", "0c:5b:8f:27:9a:64", true},
		{"mac:0c:5b:8f:*", "0c:5b:8f:27:9a:64", true},
		{"mac:*", "", false},
		{"driver:cdc_*", "cdc_ether", true},
		{"bus:*/usb1/1-3", "pci0000:00/0000:00:14.0/usb1/1-3", true},
		{"bus:*/usb1/1-3", "pci0000:00/0000:00:14.0/usb1/1-3.1", false},
		{"bus:/sys/devices/platform/*", "platform/soc/eth0", true},
		{"kind:usb", "usb", true},
		{"kind:usb", "wifi", false},
	} {
		s, complaint := ParseSelector(c.selector)
		if complaint != "" || s.Matches(c.text) != c.want {
			t.Errorf("%s and %q: %v (%s), want %v", c.selector, c.text, s.Matches(c.text), complaint, c.want)
		}
	}
}

func TestPlainNames(t *testing.T) {
	for _, c := range []struct {
		carrier        string
		outright, name string
	}{
		{"interface = 'wwan0'", "wwan0", "wwan0"},
		{"interface = 'wwan*'", "", ""},
		{"interface = 'wwan0'\nkind = 'usb'", "wwan0", ""},
		{"kind = 'usb'", "", ""},
	} {
		r, err := ParseRobot("r.toml", "name='r'\naddress='10.77.0.2/16'\nprivate_key_file='k'\n"+
			gatewayText+"[[carrier]]\n"+c.carrier)
		if err != nil {
			t.Fatal(err)
		}
		k := r.Carriers[0]
		if k.Outright() != c.outright || k.Name() != c.name || k.Title() != "[[carrier]] with "+strings.ReplaceAll(strings.ReplaceAll(c.carrier, "'", `"`), "\n", ", ") {
			t.Errorf("%s: outright %q, name %q, title %s", c.carrier, k.Outright(), k.Name(), k.Title())
		}
	}
}

const gatewayText = `[[gateway]]
name = "west"
address = "10.77.0.11"
public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
endpoint = "198.51.100.10:51820"
`

func FuzzParseSelector(f *testing.F) {
	for _, s := range []string{"name:wwan*", "mac:0c:5b:8f:*", "driver:cdc_ether", "bus:*/usb1/1-3", "kind:usb", "cidr:10.0.0.0/8", "name:[", `name:\`, "mac:aa-bb[0-9]*", "bus:/sys/devices"} {
		f.Add(s, "wwan0")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		s, complaint := ParseSelector(text)
		if complaint != "" {
			return
		}
		again, complaint := ParseSelector(s.String())
		if complaint != "" || again != s {
			t.Fatalf("%q is %+v, and read back %+v (%s)", text, s, again, complaint)
		}
		if s.Matches("") {
			t.Fatalf("%q matches nothing", text)
		}
		if s.By == ByName && s.Plain() && !s.Matches(s.Pattern) {
			t.Fatalf("%q does not match itself", text)
		}
		s.Matches(value)
	})
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]uint64{
		"5GB": 5e9, "500MB": 5e8, "1.5GB": 15e8, "0.001kB": 1, "1 TB": 1e12, "1.234567890GB": 1234567890, "007kB": 7000, "18446744073709551kB": 18446744073709551000,
	} {
		if n, ok := parseBytes(text); !ok || n != want {
			t.Errorf("%q is %d (%v), want %d", text, n, ok, want)
		}
	}
	for _, text := range []string{"", "5", "GB", ".5GB", "5.GB", "5gb", "5Gb", "5GiB", "-5GB", "+5GB", "1e3MB", "5  GB", "0.0001kB", "18446744073709552kB", "5,5GB", "٥GB", "1_0GB"} {
		if n, ok := parseBytes(text); ok {
			t.Errorf("%q is %d", text, n)
		}
	}
}

// decimal writes n with a point before its last places.
func decimal(n uint64, places int) string {
	digits := fmt.Sprintf("%0*d", places+1, n)
	return digits[:len(digits)-places] + "." + digits[len(digits)-places:]
}

// An amount is the same in every unit.
func TestParseBytesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64().Draw(t, "bytes")
		for unit, places := range zeros {
			if got, ok := parseBytes(decimal(n, places) + unit); !ok || got != n {
				t.Fatalf("%s%s is %d (%v), want %d", decimal(n, places), unit, got, ok, n)
			}
		}
	})
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"5GB", "1.5 GB", "0.001kB", "9TB", "1..2MB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := parseBytes(s); ok {
			if again, ok := parseBytes(decimal(n, 3) + "kB"); !ok || again != n {
				t.Fatalf("%q is %d, and that is %d", s, n, again)
			}
		}
	})
}

func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{"198.51.100.10:51820", "[2001:db8::1]:51820", "gw.example.com:51820", "GW.example.com.:1", "[fe80::1%eth0]:1", "a:0", "[", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseEndpoint(s)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error that says nothing")
			}
			return
		}
		again, err := ParseEndpoint(e.String())
		if err != nil || again != e || e.Port == 0 || (e.Host == "") != e.Addr.IsValid() {
			t.Fatalf("%q is %+v, and read back %+v (%v)", s, e, again, err)
		}
	})
}
