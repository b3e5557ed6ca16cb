package config

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/internal/keys"
)

const robotText = `name = "stretch"
address = ["10.77.0.2/16", "fd77::2/64"]
private_key_file = "node.key"
deadline = "150ms"
interface = "plr1"
mtu = 1400
control_socket = "run/r.sock"
state_dir = "/srv/state"
log_level = "debug"
[[carrier]]
interface = "wwan*"
mac = "0C:5B:8F:27:9A:64"
driver = "cdc_ether"
bus = "/sys/devices/pci0000:00/0000:00:14.0/usb1/*"
kind = "usb"
label = "operator A"
cost = 2.5
monthly_cap = "1.5GB"
dns = ["9.9.9.9", "2620:fe::fe"]
[[carrier]]
interface = "wlan0"
[discovery]
deny = ["name:w*", "mac:0C-5B-*", "driver:e1000?", "bus:*/usb2/*", "kind:wifi", "cidr:192.168.100.7/24"]
[[gateway]]
name = "west"
address = ["10.77.0.11", "fd77::11"]
public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
endpoint = "198.51.100.10:51820"
[[gateway]]
name = "east"
address = "10.77.0.12"
public_key = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="
endpoint = ["[2001:db8::1]:51821", "East.example.com.:443"]
`

func write(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func public(t testing.TB, s string) keys.Public {
	t.Helper()
	k, err := keys.ParsePublic(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestLoadRobot(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	file := write(t, "robot.toml", robotText)
	got, err := LoadRobot(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	want := &Robot{
		Node: Node{
			File:           file,
			Name:           "stretch",
			Addresses:      []netip.Prefix{netip.MustParsePrefix("10.77.0.2/16"), netip.MustParsePrefix("fd77::2/64")},
			Number:         2,
			PrivateKeyFile: filepath.Join(dir, "node.key"),
			Interface:      "plr1",
			MTU:            1400,
			ControlSocket:  filepath.Join(dir, "run/r.sock"),
			StateDir:       "/srv/state",
			LogLevel:       slog.LevelDebug,
			keyLine:        3,
			peerKeys: map[keys.Public]peerKey{
				public(t, "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="): {`public_key of gateway "west"`, 27},
				public(t, "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="): {`public_key of gateway "east"`, 32},
			},
		},
		Deadline: 150 * time.Millisecond,
		Carriers: []Carrier{{
			Selectors: []Selector{
				{By: ByName, Pattern: "wwan*"}, {By: ByMAC, Pattern: "0c:5b:8f:27:9a:64"}, {By: ByDriver, Pattern: "cdc_ether"},
				{By: ByBus, Pattern: "pci0000:00/0000:00:14.0/usb1/*"}, {By: ByKind, Pattern: "usb"},
			},
			Label: "operator A", Cost: 2.5, MonthlyCap: 1_500_000_000,
			DNS: []netip.Addr{netip.MustParseAddr("9.9.9.9"), netip.MustParseAddr("2620:fe::fe")},
		}, {
			Selectors: []Selector{{By: ByName, Pattern: "wlan0"}}, Cost: 1,
		}},
		Discovery: Discovery{Deny: []Selector{
			{By: ByName, Pattern: "w*"}, {By: ByMAC, Pattern: "0c:5b:*"}, {By: ByDriver, Pattern: "e1000?"}, {By: ByBus, Pattern: "*/usb2/*"},
			{By: ByKind, Pattern: "wifi"}, {By: ByCIDR, Pattern: "192.168.100.0/24", Prefix: netip.MustParsePrefix("192.168.100.0/24")},
		}},
		Gateways: []GatewayPeer{{
			Name:      "west",
			Addresses: []netip.Addr{netip.MustParseAddr("10.77.0.11"), netip.MustParseAddr("fd77::11")},
			PublicKey: public(t, "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="),
			Endpoints: []Endpoint{{Addr: netip.MustParseAddr("198.51.100.10"), Port: 51820}},
		}, {
			Name:      "east",
			Addresses: []netip.Addr{netip.MustParseAddr("10.77.0.12")},
			PublicKey: public(t, "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="),
			Endpoints: []Endpoint{{Addr: netip.MustParseAddr("2001:db8::1"), Port: 51821}, {Host: "east.example.com", Port: 443}},
		}},
	}
	want.flag, want.Role = " --config "+got.File, "robot"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLoadRobotDefaults(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	got, err := LoadRobot(write(t, "robot.toml", `
name = "r"
address = "10.77.1.2/16"
private_key_file = "/k"
discovery = {}
gateway = [{name = "g", address = "10.77.0.11", public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=", endpoint = "198.51.100.10:1"}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Interface != "plr0" || got.MTU != 1280 || got.Deadline != 200*time.Millisecond || got.LogLevel != slog.LevelInfo ||
		got.ControlSocket != "/run/fogplr/robot.sock" || got.StateDir != "/var/lib/fogplr" || got.PrivateKeyFile != "/k" || got.Number != 1<<8+2 ||
		got.Carriers != nil || !reflect.DeepEqual(got.Discovery, Discovery{}) {
		t.Errorf("got %+v", got)
	}
}

func TestLoadGateway(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	got, err := LoadGateway(write(t, "gateway.toml", `
name = "west"
address = "10.77.0.11/16"
private_key_file = "node.key"
listen_port = [4500, 443]
[[robot]]
name = "stretch"
address = "10.77.0.2"
carrier_keys = ["hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=",
  "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="]
`))
	if err != nil {
		t.Fatal(err)
	}
	wantRobots := []RobotPeer{{
		Name: "stretch", Addresses: []netip.Addr{netip.MustParseAddr("10.77.0.2")},
		CarrierKeys: []keys.Public{public(t, "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="), public(t, "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=")},
	}}
	if !slices.Equal(got.ListenPorts, []uint16{4500, 443}) || got.ControlSocket != "/run/fogplr/gateway.sock" || got.Number != 11 || !reflect.DeepEqual(got.Robots, wantRobots) {
		t.Errorf("got %+v", got)
	}
}

func TestGatewayWithoutRobotsLoads(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	got, err := LoadGateway(write(t, "gateway.toml", "name='west'\naddress='10.77.0.11/16'\nprivate_key_file='k'\n"))
	if err != nil || len(got.Robots) != 0 || !slices.Equal(got.ListenPorts, []uint16{51820}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if w := got.Warning(); !strings.Contains(w, got.File+" has no [[robot]]") {
		t.Errorf("warning %q", w)
	}
	got.Robots = []RobotPeer{{}}
	if w := got.Warning(); w != "" {
		t.Errorf("warning %q with a robot", w)
	}
}

func TestCredentialGoesFirst(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	const head = "name='west'\naddress='10.77.0.11/16'\n"
	named := write(t, "gateway.toml", head+"private_key_file='node.key'\n")
	unnamed := write(t, "gateway.toml", head)

	if got, err := LoadGateway(named); err != nil || got.PrivateKeyFile != filepath.Join(filepath.Dir(named), "node.key") {
		t.Errorf("no credential: %+v, %v", got, err)
	}
	var problems *Error
	if _, err := LoadGateway(unnamed); !errors.As(err, &problems) || problems.Problems[0].Key != "private_key_file" {
		t.Errorf("no credential and no key: %v", err)
	}

	key := keys.Generate()
	credential := filepath.Join(dir, "node.key")
	if err := keys.WritePrivate(credential, key, false); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(credential, 0o440); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{named, unnamed} {
		got, err := LoadGateway(file)
		if err != nil || got.PrivateKeyFile != credential {
			t.Errorf("with a credential: %+v, %v", got, err)
			continue
		}
		k, warning, err := got.ReadKey()
		if k != key || warning != "" || err != nil {
			t.Errorf("read key: same %v, warning %q, error %v", k == key, warning, err)
		}
	}
}

func TestLoadNode(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	for name, c := range map[string]struct{ text, socket, problem string }{
		"robot":     {robotText, "", ""},
		"bad peer":  {robotText + "[[gateway]]\nname = 5\nx = 1\n", "", ""},
		"carrier":   {"name='r'\naddress='10.77.0.2/16'\n[[carrier]]\n", RobotSocket, ""},
		"peers":     {"name='r'\naddress='10.77.0.2/16'\n[[gateway]]\n", RobotSocket, ""},
		"discovery": {"name='r'\naddress='10.77.0.2/16'\n[discovery]\n", RobotSocket, ""},
		"deadline":  {"name='r'\naddress='10.77.0.2/16'\ndeadline='1s'\n", RobotSocket, ""},
		"gateway":   {"name='west'\naddress='10.77.0.11/16'\n", GatewaySocket, ""},
		"bad mtu":   {"name='west'\naddress='10.77.0.11/16'\nmtu = 1\n", "", ":3: mtu"},
		"bad TOML":  {"name=\n", "", "TOML syntax"},
		"no config": {"", "", "address: found nothing"},
	} {
		got, err := LoadNode(write(t, "node.toml", c.text))
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: error %v", name, err)
		}
		if c.socket != "" && got.ControlSocket != c.socket {
			t.Errorf("%s: control socket %s", name, got.ControlSocket)
		}
	}
}

func TestCarrierKeysLine(t *testing.T) {
	k := keys.CarrierPublicKeys(keys.Generate())
	line := CarrierKeysLine(k[:])
	got, err := LoadGateway(write(t, "gateway.toml", "name='west'\naddress='10.77.0.11/16'\nprivate_key_file='k'\n[[robot]]\nname='r'\naddress='10.77.0.2'\n"+line+"\n"))
	if err != nil || strings.Contains(line, "\n") || !slices.Equal(got.Robots[0].CarrierKeys, k[:]) {
		t.Errorf("%s: %+v, %v", line, got, err)
	}
}

func TestReadKeyErrorNamesTheLine(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	got, err := LoadGateway(write(t, "gateway.toml", "name='west'\naddress='10.77.0.11/16'\nprivate_key_file='node.key'\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = got.ReadKey()
	var problems *Error
	if !errors.As(err, &problems) || problems.Problems[0].Line != 3 || problems.Problems[0].Key != "private_key_file" {
		t.Errorf("error %v, want line 3", err)
	}
}

// A node that finds its own key at a peer would talk to itself.
func TestReadKeyRefusesAPeerWithOurKey(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	dir := t.TempDir()
	own, other := keys.Generate(), keys.Generate()
	if err := keys.WritePrivate(filepath.Join(dir, "node.key"), own, false); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "node.toml")
	readKey := map[string]func() error{
		"robot": func() error {
			c, err := LoadRobot(file)
			if err == nil {
				_, _, err = c.ReadKey()
			}
			return err
		},
		"gateway": func() error {
			c, err := LoadGateway(file)
			if err == nil {
				_, _, err = c.ReadKey()
			}
			return err
		},
	}
	robot := func(k keys.Public) string {
		return "name='r'\naddress='10.77.0.2/16'\nprivate_key_file='node.key'\ncarrier=[{interface='wlan0'}]\n" +
			GatewayBlock{"west", []string{"10.77.0.11"}, k.String(), "198.51.100.10:51820", ""}.Render()
	}
	gateway := func(k ...keys.Public) string {
		return "name='w'\naddress='10.77.0.11/16'\nprivate_key_file='node.key'\n" + RobotBlock{"stretch", []string{"10.77.0.2"}, k}.Render()
	}
	ofOther := keys.CarrierPublicKeys(other)
	for _, c := range []struct{ role, text, want string }{
		{"robot", robot(other.PublicKey()), ""},
		{"robot", robot(own.PublicKey()), `node.toml:8: public_key of gateway "west": found this node's own public key, expected `},
		{"robot", robot(keys.CarrierKey(own, 3).PublicKey()), `:8: public_key of gateway "west": found this node's own carrier key of slot 3, `},
		{"gateway", gateway(ofOther[:]...), ""},
		{"gateway", gateway(ofOther[0], own.PublicKey()), `node.toml:9: carrier_keys of robot "stretch": found this node's own public key, `},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := readKey[c.role]()
		var problems *Error
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &problems) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q in\n%s", c.role, err, c.want, c.text)
		}
	}
}

// Windows' editors begin a file with a byte order mark.
func TestByteOrderMarks(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	got, err := LoadRobot(write(t, "robot.toml", "\xef\xbb\xbf"+robotText))
	if err != nil || got.keyLine != 3 {
		t.Errorf("UTF-8: %v", err)
	}
	_, err = LoadRobot(write(t, "robot.toml", "\xff\xfen\x00a\x00"))
	if err == nil || !strings.Contains(err.Error(), "found a text in UTF-16, expected a text in UTF-8") {
		t.Errorf("UTF-16: %v", err)
	}
}

// The file that init writes loads when every value is known, and else every
// blank is reported with the line that it is on.
func TestRenderedFilesLoad(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	node := keys.Generate()
	all := keys.CarrierPublicKeys(node)
	for name, f := range map[string]RobotFile{
		"one of each": {
			Name: "stretch", Addresses: []string{"10.77.0.2/16"}, PrivateKeyFile: "node.key", Carriers: []string{"wlan0"},
			Gateways: []GatewayBlock{{"west", []string{"10.77.0.11"}, all[0].String(), "198.51.100.10:51820", ""}},
		},
		"discovery": {
			Name: "stretch", Addresses: []string{"10.77.0.2/16"}, PrivateKeyFile: "node.key",
			Gateways: []GatewayBlock{{"west", []string{"10.77.0.11"}, all[0].String(), "west.example.com:51820", ""}},
		},
		"several": {
			Name: "stretch", Addresses: []string{"10.77.0.2/16", "fd77::2/64"}, PrivateKeyFile: "k/\"node\".key", Carriers: []string{"wlan0", "wwan0"},
			Gateways: []GatewayBlock{
				{"west", []string{"10.77.0.11", "fd77::11"}, all[0].String(), "198.51.100.10:51820", "guessed"},
				{"east", []string{"10.77.0.12"}, all[1].String(), "[2001:db8::1]:51820", ""},
			},
		},
	} {
		file := write(t, "robot.toml", f.Render())
		got, err := LoadRobot(file)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, f.Render())
			continue
		}
		if len(got.Carriers) != len(f.Carriers) || len(got.Gateways) != len(f.Gateways) || got.PrivateKeyFile != filepath.Join(filepath.Dir(file), f.PrivateKeyFile) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	for name, f := range map[string]GatewayFile{
		"no robots": {Name: "west", Addresses: []string{"10.77.0.11/16"}, PrivateKeyFile: "node.key", ListenPort: 51820},
		"a robot": {
			Name: "west", Addresses: []string{"10.77.0.11/16", "fd77::11/64"}, PrivateKeyFile: "node.key", ListenPort: 51820,
			Robots: []RobotBlock{{"stretch", []string{"10.77.0.2", "fd77::2"}, all[:]}},
		},
	} {
		got, err := LoadGateway(write(t, "gateway.toml", f.Render()))
		if err != nil || len(got.Robots) != len(f.Robots) {
			t.Errorf("%s: %v\n%s", name, err, f.Render())
		}
	}
}

// What the README says: paste the blocks of the other side at the end of what
// init wrote.
func TestBlocksCanBePasted(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	all := keys.CarrierPublicKeys(keys.Generate())
	text := RobotFile{Name: "stretch", Addresses: []string{"10.77.0.2/16"}, PrivateKeyFile: "node.key", Carriers: []string{"wlan0", "wwan0"}}.Render()
	text += GatewayBlock{"west", []string{"10.77.0.11"}, all[0].String(), "198.51.100.10:51820", "guessed"}.Render()
	text += GatewayBlock{"east", []string{"10.77.0.12"}, all[1].String(), "198.51.100.20:51820", ""}.Render()
	if got, err := ParseRobot("robot.toml", text); err != nil || len(got.Gateways) != 2 {
		t.Errorf("robot.toml: %v\n%s", err, text)
	}
	text = GatewayFile{Name: "west", Addresses: []string{"10.77.0.11/16"}, PrivateKeyFile: "node.key", ListenPort: 51820}.Render()
	text += RobotBlock{"stretch", []string{"10.77.0.2"}, all[:]}.Render()
	if got, err := ParseGateway("gateway.toml", text); err != nil || len(got.Robots) != 1 {
		t.Errorf("gateway.toml: %v\n%s", err, text)
	}
}
