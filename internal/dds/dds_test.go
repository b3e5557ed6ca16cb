package dds

import (
	"encoding/xml"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func addrs(ss ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range ss {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// elements returns the text of every element named name.
func elements(t *testing.T, doc, name string) []string {
	t.Helper()
	var out []string
	d := xml.NewDecoder(strings.NewReader(doc))
	for {
		token, err := d.Token()
		if token == nil {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == name {
			var text struct {
				Text string `xml:",chardata"`
			}
			if err := d.DecodeElement(&text, &start); err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			out = append(out, strings.TrimSpace(text.Text))
		}
	}
}

func TestProfiles(t *testing.T) {
	for name, c := range map[string]struct {
		overlay     Overlay
		transport   string
		message     int
		fragment    int
		used        string // by Fast DDS; empty: it gets no profile
		fastMessage int
	}{
		"IPv4":     {Overlay{"plr0", addrs("10.77.0.2"), 1280}, "udp", 1252, 1128, "[10.77.0.2]", 1252},
		"both":     {Overlay{"plr0", addrs("fd77::2", "10.77.0.2"), 1280}, "udp", 1252, 1128, "[10.77.0.2]", 1252},
		"IPv6":     {Overlay{"plr0", addrs("fd77::2"), 1280}, "udp6", 1232, 1112, "", 0},
		"two IPv4": {Overlay{"plr0", addrs("10.77.0.2", "10.78.0.2"), 1280}, "udp", 1252, 1128, "[10.77.0.2 10.78.0.2]", 1252},
		"small":    {Overlay{"plr0", addrs("10.77.0.2"), 576}, "udp", 548, 424, "[10.77.0.2]", 1200},
		"jumbo":    {Overlay{"fog1", addrs("10.77.0.2"), 9000}, "udp", 8972, 8848, "[10.77.0.2]", 8972},
	} {
		cyclone := c.overlay.Cyclone()
		for element, want := range map[string]string{
			"Transport": c.transport, "AllowMulticast": "spdp", "MaxMessageSize": fmt.Sprintf("%dB", c.message),
			"MaxRexmitMessageSize": fmt.Sprintf("%dB", c.message), "FragmentSize": fmt.Sprintf("%dB", c.fragment),
		} {
			if got := elements(t, cyclone, element); len(got) != 1 || got[0] != want {
				t.Errorf("%s: Cyclone's %s is %q, want %s", name, element, got, want)
			}
		}
		if want := fmt.Sprintf("<NetworkInterface name=%q/>", c.overlay.Interface); strings.Count(cyclone, want) != 1 {
			t.Errorf("%s: no %s in\n%s", name, want, cyclone)
		}

		fast := c.overlay.FastDDS()
		if c.used == "" {
			if fast != "" {
				t.Errorf("%s: Fast DDS gets a profile:\n%s", name, fast)
			}
			continue
		}
		wantAddresses := strings.Fields(strings.Trim(c.used, "[]"))
		n := len(wantAddresses)
		got := elements(t, fast, "address") // white list, data, discovery, multicast
		if len(got) != 3*n+1 || fmt.Sprint(got[:n]) != c.used || fmt.Sprint(got[n:2*n]) != c.used || fmt.Sprint(got[2*n:3*n]) != c.used || got[3*n] != "239.255.0.1" {
			t.Errorf("%s: Fast DDS's addresses are %q", name, got)
		}
		if got := fmt.Sprint(elements(t, fast, "type")); got != "[UDPv4 SHM]" {
			t.Errorf("%s: Fast DDS's transports are %s", name, got)
		}
		if got := fmt.Sprint(elements(t, fast, "maxMessageSize")); got != fmt.Sprintf("[%d]", c.fastMessage) {
			t.Errorf("%s: Fast DDS's limit is %s", name, got)
		}
		if n := len(elements(t, fast, "udpv4")); n != 2*len(wantAddresses)+1 {
			t.Errorf("%s: %d locators", name, n)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	o := Overlay{"plr0", addrs("10.77.0.2"), 1280}
	for range 2 {
		f, err := Write(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{f.Cyclone: o.Cyclone(), f.FastDDS: o.FastDDS()} {
			got, err := os.ReadFile(file)
			if err != nil || string(got) != want || !filepath.IsAbs(file) {
				t.Errorf("%s: %v, %d bytes", file, err, len(got))
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
			t.Errorf("%d files, %v", len(left), err)
		}
		o.MTU = 1400
	}
	o.Addresses = addrs("fd77::2")
	dir = t.TempDir()
	f, err := Write(dir, o)
	if left, _ := os.ReadDir(dir); err != nil || f.FastDDS != "" || len(left) != 1 {
		t.Errorf("IPv6 only: %+v, %v, %d files", f, err, len(left))
	}
	if _, err := Write("/proc/no/such", o); err == nil {
		t.Error("no error for a directory that cannot be made")
	}
}
