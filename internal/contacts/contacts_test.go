package contacts

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/tunnel"
)

var some = []tunnel.Contact{
	{Key: tunnel.Key{1}, Endpoint: netip.MustParseAddrPort("192.0.2.1:51820"), Local: netip.MustParseAddrPort("198.51.100.1:443")},
	{Key: tunnel.Key{2}, Endpoint: netip.MustParseAddrPort("[2001:db8::1]:1024")},
}

func TestContactsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "contacts.json")
	for _, want := range [][]tunnel.Contact{nil, some, some[:1], nil} {
		if want != nil {
			if err := Save(file, want); err != nil {
				t.Fatal(err)
			}
		} else {
			_ = os.Remove(file)
		}
		if got, err := Load(file); err != nil || !slices.Equal(got, want) {
			t.Errorf("loaded %v, %v, want %v", got, err, want)
		}
	}
	if err := Save(file, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(file); err != nil || len(got) != 0 {
		t.Errorf("loaded %v, %v, want none", got, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: want mode 0600", info, err)
	}
	if err := Save(filepath.Join(file, "in", "a", "file"), some); err == nil {
		t.Error("no error from a file that cannot be written")
	}
}

func TestWrongFilesAreNamed(t *testing.T) {
	for name, content := range map[string]string{
		"empty":       "",
		"cut":         `{"version":1,"contacts":[{"carrier_key":"AQAA`,
		"version":     `{"version":2,"contacts":[]}`,
		"other keys":  `{"version":1,"contacts":[],"x":1}`,
		"key":         `{"version":1,"contacts":[{"carrier_key":"AQ==","endpoint":"192.0.2.1:1"}]}`,
		"no endpoint": `{"version":1,"contacts":[{"carrier_key":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","endpoint":""}]}`,
		"multicast":   `{"version":1,"contacts":[{"carrier_key":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","endpoint":"239.1.1.1:1"}]}`,
		"port":        `{"version":1,"contacts":[{"carrier_key":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","endpoint":"192.0.2.1:0"}]}`,
		"family":      `{"version":1,"contacts":[{"carrier_key":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","endpoint":"192.0.2.1:1","local":"[::1]:1"}]}`,
		"local port":  `{"version":1,"contacts":[{"carrier_key":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","endpoint":"192.0.2.1:1","local":"192.0.2.2:0"}]}`,
		"huge":        strings.Repeat(" ", maxFile+1),
	} {
		file := filepath.Join(t.TempDir(), "contacts.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Load(file); err == nil || got != nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, error %v does not name the file", name, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"contacts":[{"carrier_key":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","endpoint":"192.0.2.1:1"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := decode(b)
		for _, c := range all {
			if err != nil || !c.Endpoint.IsValid() || c.Endpoint.Port() == 0 {
				t.Errorf("%v, %v from %q", all, err, b)
			}
		}
	})
}
