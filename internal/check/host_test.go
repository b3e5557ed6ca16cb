package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// put writes files below root; a content that begins with -> is a link.
func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if target, link := strings.CutPrefix(text, "->"); err == nil && link {
			err = os.Symlink(target, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// quiet is a machine without anything.
func quiet(root string) Host {
	return Host{
		Root: root, Version: "v1", Built: time.Unix(1, 0),
		Getenv: func(string) string { return "" },
		Probe:  func() Kernel { return Kernel{Release: "6.1.0"} },
		Command: func(_ context.Context, name string, _ ...string) ([]byte, error) {
			return nil, fmt.Errorf("%s: %w", name, exec.ErrNotFound)
		},
		Look:       func(string, []netip.Prefix, []routing.Want) (*routing.Facts, error) { return &routing.Facts{}, nil },
		Interfaces: func() ([]routing.Interface, error) { return nil, nil },
		Lookup:     func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no network") },
		Status:     func(context.Context, string) (*tunnel.Status, error) { return nil, control.ErrNotRunning },
		Clock:      func() (time.Time, bool, error) { return time.Unix(2, 0), true, nil },
	}
}

const robotTOML = `name = "stretch"
address = "10.77.0.2/16"
private_key_file = "node.key"
control_socket = "robot.sock"
[[carrier]]
interface = "wwan0"
[[carrier]]
interface = "wlan0"
[[gateway]]
name = "west"
address = "10.77.0.11"
public_key = "%s"
endpoint = "198.51.100.10:51820"
`

func robotFile(t *testing.T, dir string) string {
	t.Helper()
	text := fmt.Sprintf(robotTOML, keys.Generate().PublicKey())
	put(t, dir, map[string]string{"robot.toml": text})
	if err := keys.WritePrivate(filepath.Join(dir, "node.key"), keys.Generate(), false); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "robot.toml")
}

func TestGatherConfig(t *testing.T) {
	dir := t.TempDir()
	file := robotFile(t, dir)
	h := quiet(t.TempDir())
	var looked []routing.Want
	h.Look = func(tun string, overlay []netip.Prefix, want []routing.Want) (*routing.Facts, error) {
		looked = want
		if tun != "" && (tun != "plr0" || len(overlay) != 1) {
			t.Errorf("looked for %s %v", tun, overlay)
		}
		return nil, errors.New("denied")
	}
	f := h.Gather(t.Context(), file, false)
	west := netip.MustParseAddr("198.51.100.10")
	want := []routing.Want{{Interface: "wwan0", Slot: 0, Endpoints: []netip.Addr{west}}, {Interface: "wlan0", Slot: 1, Endpoints: []netip.Addr{west}}}
	if !reflect.DeepEqual(looked, want) || f.NetworkError == nil || f.Config.Role != "robot" || f.Config.Node.Name != "stretch" ||
		len(f.Config.Problems)+len(f.Config.KeyProblems) != 0 || f.Config.KeyWarning != "" || f.Clock.Free == nil || !*f.Clock.Free {
		t.Errorf("%+v, looked for %+v", f, looked)
	}
	if err := os.Chmod(filepath.Join(dir, "node.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := h.Gather(t.Context(), file, false); !strings.Contains(f.Config.KeyWarning, "0644") {
		t.Errorf("key warning %q", f.Config.KeyWarning)
	}
	put(t, dir, map[string]string{"node.key": "nonsense", "bad.toml": "name = 'x'\naddress = '10.77.0.2/16'\nwrong = 1\n[[carrier]]\n",
		"gateway.toml": "name = 'west'\naddress = '10.77.0.11/16'\nprivate_key_file = 'none.key'\nlisten_port = 7777\n"})
	if f := h.Gather(t.Context(), file, false); len(f.Config.KeyProblems) != 1 || !strings.Contains(f.Config.KeyProblems[0], "node.key") {
		t.Errorf("key problems %q", f.Config.KeyProblems)
	}
	if f := h.Gather(t.Context(), filepath.Join(dir, "bad.toml"), false); len(f.Config.Problems) < 2 || f.Config.Node == nil || f.Config.Role != "robot" {
		t.Errorf("%+v", f.Config)
	}
	if f := h.Gather(t.Context(), filepath.Join(dir, "gateway.toml"), false); f.Config.Role != "gateway" || !slices.Equal(f.Config.Ports, []uint16{7777}) ||
		len(f.Config.KeyProblems) != 1 || f.Config.Warning == "" {
		t.Errorf("%+v", f.Config)
	}
	if f := h.Gather(t.Context(), filepath.Join(dir, "none.toml"), false); len(f.Config.Problems) != 1 || f.Config.Node != nil || f.Config.Role != "" {
		t.Errorf("%+v", f.Config)
	}
	if f := h.Gather(t.Context(), "", false); f.Config.File != "" || len(f.Config.Problems) != 0 {
		t.Errorf("%+v", f.Config)
	}
}

func TestGatherDaemon(t *testing.T) {
	file := robotFile(t, t.TempDir())
	h := quiet(t.TempDir())
	for _, c := range []struct {
		err                        error
		forbidden, silent, stopped bool
	}{{control.ErrNotRunning, false, false, true}, {fmt.Errorf("x: %w", control.ErrForbidden), true, false, false}, {errors.New("stuck"), false, true, false}} {
		h.Status = func(context.Context, string) (*tunnel.Status, error) { return nil, c.err }
		if d := h.Gather(t.Context(), file, false).Daemon; d.Status != nil || d.Forbidden != c.forbidden || (d.Silent != "") != c.silent || d.Stopped != c.stopped || d.Killed {
			t.Errorf("%v: %+v", c.err, d)
		}
	}
	h.Status = func(context.Context, string) (*tunnel.Status, error) { return nil, control.ErrNotRunning }
	put(t, filepath.Dir(file), map[string]string{"robot.sock": ""}) // what it is the client has looked at
	if d := h.Gather(t.Context(), file, false).Daemon; !d.Stopped || !d.Killed {
		t.Errorf("after kill -9: %+v", d)
	}
	h.Status = func(_ context.Context, socket string) (*tunnel.Status, error) {
		if filepath.Base(socket) != "robot.sock" {
			t.Errorf("asked at %s", socket)
		}
		return &tunnel.Status{Carriers: []tunnel.CarrierStatus{{Interface: "new0"}, {}, {Interface: "new0"}}}, nil
	}
	if f := h.Gather(t.Context(), file, false); f.Daemon.Status == nil || !slices.Equal(f.Config.Carriers, []string{"new0"}) {
		t.Errorf("carriers %q", f.Config.Carriers)
	}
}

// While the daemon runs with another interface, that one is looked at.
func TestGatherPending(t *testing.T) {
	file := robotFile(t, t.TempDir())
	h := quiet(t.TempDir())
	h.Status = func(context.Context, string) (*tunnel.Status, error) {
		return &tunnel.Status{Name: "old", Interface: "plr5", Addresses: []string{"10.78.0.2/16", "fd78::2/64"}, MTU: 1400}, nil
	}
	looked := ""
	h.Look = func(tun string, overlay []netip.Prefix, _ []routing.Want) (*routing.Facts, error) {
		looked = fmt.Sprint(tun, overlay)
		return &routing.Facts{}, nil
	}
	f := h.Gather(t.Context(), file, false)
	want := []Pending{{"interface", "plr0", "plr5"}, {"address", "10.77.0.2/16", "10.78.0.2/16, fd78::2/64"}, {"mtu", "1280", "1400"}, {"name", "stretch", "old"}}
	if !reflect.DeepEqual(f.Config.Pending, want) || looked != "plr5[10.78.0.2/16 fd78::2/64]" || f.Config.Node.MTU != 1400 || f.Config.Node.Name != "old" {
		t.Errorf("pending %v, looked at %s, node %+v", f.Config.Pending, looked, f.Config.Node)
	}
	h.Status = func(context.Context, string) (*tunnel.Status, error) {
		return &tunnel.Status{Name: "stretch", Interface: "plr0", Addresses: []string{"10.77.0.2/16"}, MTU: 1280}, nil
	}
	if f := h.Gather(t.Context(), file, false); f.Config.Pending != nil || looked != "plr0[10.77.0.2/16]" {
		t.Errorf("pending %v, looked at %s", f.Config.Pending, looked)
	}
}

// What metered carriers have used is read under the identity that their slots
// give them.
func TestGatherCaps(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	file := robotFile(t, dir)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	metered := strings.Replace(string(text), `interface = "wwan0"`, "interface = \"wwan0\"\nmonthly_cap = \"5GB\"", 1)
	put(t, dir, map[string]string{"robot.toml": "state_dir = '/state'\n" + metered})
	h := quiet(root)
	h.Interfaces = func() ([]routing.Interface, error) {
		return []routing.Interface{{Index: 2, Name: "wwan0", Kind: "wwan", Up: true, Leads: true}}, nil
	}
	h.Clock = func() (time.Time, bool, error) { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local), false, nil }
	if f := h.Gather(t.Context(), file, false); len(f.Caps) != 1 || f.Caps[0].Carrier != "wwan0" || f.Caps[0].Used != 0 || f.Caps[0].Spent {
		t.Errorf("without a book: %+v", f.Caps)
	}
	put(t, root, map[string]string{
		"state/usage.json": `{"version": 1, "carriers": [{"carrier": "name:old0", "month": "2026-11", "bytes": 4999000000}]}`,
		"state/slots.json": `{"version": 2, "slots": [{"slot": 3, "interface": "wwan0", "changes": 1, "id": "name:old0"}]}`,
	})
	f := h.Gather(t.Context(), file, false)
	if len(f.Caps) != 1 || f.Caps[0].Used != 4_999_000_000 || !f.Caps[0].Spent || f.Caps[0].State.Cap != 5_000_000_000 {
		t.Errorf("with a book: %+v", f.Caps)
	}
	h.Status = func(context.Context, string) (*tunnel.Status, error) {
		return &tunnel.Status{Carriers: []tunnel.CarrierStatus{{Interface: "wwan0"}}}, nil
	}
	if f := h.Gather(t.Context(), file, false); len(f.Caps) != 0 {
		t.Errorf("while the daemon tells: %+v", f.Caps)
	}
}

func TestGatherSettings(t *testing.T) {
	file := robotFile(t, t.TempDir())
	root := t.TempDir()
	h := quiet(root)
	f := h.Gather(t.Context(), file, false)
	if !f.Kernel.NoIPv6 || f.Kernel.IPv6Off != "" || f.Kernel.Forwards != nil || f.Capable != nil {
		t.Errorf("an empty machine: %+v", f)
	}
	put(t, root, map[string]string{
		"proc/sys/net/ipv4/ip_forward":                "0\n",
		"proc/sys/net/ipv6/conf/default/disable_ipv6": "1\n",
		"proc/self/status":                            "Name:\tx\nCapEff:\t0000000000001000\nCapBnd:\t000001ffffffffff\n",
	})
	f = h.Gather(t.Context(), file, false)
	if f.Kernel.NoIPv6 || f.Kernel.IPv6Off != "net.ipv6.conf.default.disable_ipv6" || f.Kernel.Forwards == nil || *f.Kernel.Forwards ||
		!f.Capable(unix.CAP_NET_ADMIN) || f.Capable(unix.CAP_NET_RAW) {
		t.Errorf("%+v", f)
	}
	// plr0's own setting counts once it is there.
	put(t, root, map[string]string{"proc/sys/net/ipv6/conf/plr0/disable_ipv6": "0\n"})
	if f := h.Gather(t.Context(), file, false); f.Kernel.IPv6Off != "" {
		t.Errorf("IPv6 off by %s", f.Kernel.IPv6Off)
	}
}

// Without [[carrier]] the carriers are found; what is not taken is told with the
// reason.
func TestGatherCarriers(t *testing.T) {
	dir := t.TempDir()
	file := robotFile(t, dir)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h := quiet(t.TempDir())
	h.Interfaces = func() ([]routing.Interface, error) {
		return []routing.Interface{
			{Index: 1, Name: "lo", Kind: "loopback", Excluded: "the loopback device"}, {Index: 2, Name: "wlan0", Kind: "wifi", Leads: true, Up: true},
			{Index: 3, Name: "eth1", Kind: "ethernet"}, {Index: 4, Name: "wg0", Kind: "wireguard", Leads: true, Excluded: "a WireGuard tunnel"},
			{Index: 5, Name: "plr0", Kind: "tun", Excluded: "fogplr's own"},
		}, nil
	}
	for carriers, want := range map[string]Config{
		"": {Carriers: []string{"wlan0"}, Others: []Other{{"eth1", "it is down or not connected", true}, {"wg0", "a WireGuard tunnel", false}}},
		"[[carrier]]\ninterface = 'wwan0'\n[[carrier]]\nkind = 'usb'\n": {Carriers: []string{"wwan0"},
			Others: []Other{{"wlan0", "no [[carrier]] matches it", false}, {"eth1", "no [[carrier]] matches it", false}, {"wg0", "no [[carrier]] matches it", false}}, Missing: []string{"usb"}},
	} {
		plain := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(string(text), "[[carrier]]\n", ""), "interface = \"wwan0\"\n", ""), "interface = \"wlan0\"\n", "")
		put(t, dir, map[string]string{"robot.toml": plain + carriers})
		got := h.Gather(t.Context(), file, false).Config
		if len(got.Missing) == 1 && strings.Contains(got.Missing[0], "usb") {
			got.Missing = []string{"usb"}
		}
		if !slices.Equal(got.Carriers, want.Carriers) || !slices.Equal(got.Others, want.Others) || !slices.Equal(got.Missing, want.Missing) {
			t.Errorf("%q: %+v", carriers, got)
		}
	}
}

func TestLookUp(t *testing.T) {
	h := quiet("")
	h.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
		switch host {
		case "good":
			return []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("2001:db8::1")}, nil
		case "never":
			return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
		}
		return nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	}
	ends := func(hosts ...string) (g Gateway) {
		for _, h := range hosts {
			g.Endpoints = append(g.Endpoints, Endpoint{Host: h})
		}
		return g
	}
	literal := Endpoint{Host: "192.0.2.9", Addr: netip.MustParseAddr("192.0.2.9")}
	got := h.lookUp(t.Context(), []Gateway{ends("good", "never"), ends("good", "later"), {Endpoints: []Endpoint{literal}}})
	want := []Name{
		{Host: "good", Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}},
		{Host: "never", Problem: "no such host", Never: true}, {Host: "later", Problem: "server misbehaving"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	var many Gateway
	for i := range 2 * maxNames {
		many.Endpoints = append(many.Endpoints, Endpoint{Host: fmt.Sprint("host", i)})
	}
	if n := len(h.lookUp(t.Context(), []Gateway{many})); n != maxNames {
		t.Errorf("%d look-ups", n)
	}
}

func TestGatherFirewall(t *testing.T) {
	const legacy = "*filter\n:INPUT DROP [0:0]\nCOMMIT\n"
	const empty = `{"nftables":[]}`
	const translated = `{"nftables":[{"rule":{"family":"ip","table":"filter","chain":"INPUT","expr":[{"xt":null}]}}]}`
	for name, c := range map[string]struct {
		out    map[string]string
		legacy bool // the kernel has tables of the old iptables
		chains int  // -1: not seen
	}{
		"nothing":            {map[string]string{}, false, -1},
		"nft":                {map[string]string{"nft": empty}, false, 0},
		"nft and iptables":   {map[string]string{"nft": empty, "iptables-save": legacy, "ip6tables-save": legacy}, false, 0},
		"nft and old rules":  {map[string]string{"nft": empty, "iptables-save": legacy, "ip6tables-save": legacy}, true, 1},
		"iptables by nft":    {map[string]string{"nft": translated, "iptables-save": legacy, "ip6tables-save": legacy}, false, 2},
		"iptables alone":     {map[string]string{"iptables-save": legacy}, false, 1},
		"not permitted":      {map[string]string{"nft": "refused"}, false, -1},
		"iptables forbidden": {map[string]string{"nft": translated, "iptables-save": "refused"}, false, -1},
		"nonsense":           {map[string]string{"nft": "nonsense"}, false, -1},
	} {
		h := quiet(t.TempDir())
		if c.legacy {
			put(t, h.Root, map[string]string{"proc/net/ip_tables_names": "filter\n"})
		}
		h.Command = func(_ context.Context, name string, _ ...string) ([]byte, error) {
			switch out, ok := c.out[name]; {
			case !ok:
				return nil, exec.ErrNotFound
			case out == "refused":
				return nil, errors.New("exit status 1")
			default:
				return []byte(out), nil
			}
		}
		r := h.firewall(t.Context())
		if r == nil && c.chains >= 0 || r != nil && len(r.Chains) != c.chains {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if _, err := command(t.Context(), "no-such-program"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a missing program: %v", err)
	}
	if out, err := command(t.Context(), "echo", "x"); string(out) != "x\n" || err != nil {
		t.Errorf("echo: %q, %v", out, err)
	}
}

// The probes run anywhere, and find on this machine what the tests need anyway.
func TestProbe(t *testing.T) {
	k := probe()
	if k.Release == "" || k.Bind != nil || os.Geteuid() == 0 && (k.TUN != nil || k.Mark != nil) {
		t.Errorf("%+v", k)
	}
	if now, _, err := clock(); err != nil || time.Since(now) > time.Minute {
		t.Errorf("clock: %v, %v", now, err)
	}
	if Local("v", time.Time{}).capabilities() == nil {
		t.Error("capabilities are not known")
	}
}
