package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/internal/keys"
)

// Good files; each case below spoils one line of them.
var (
	goodRobot = []string{
		`name = "stretch"`,
		`address = "10.77.0.2/16"`,
		`private_key_file = "node.key"`,
		`deadline = "200ms"`,
		`[[carrier]]`,
		`interface = "wwan0"`,
		`[[carrier]]`,
		`interface = "wlan0"`,
		`[[gateway]]`, // line 9
		`name = "west"`,
		`address = "10.77.0.11"`,
		`public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="`,
		`endpoint = "198.51.100.10:51820"`,
		`[[gateway]]`, // line 14
		`name = "east"`,
		`address = "10.77.0.12"`,
		`public_key = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="`,
		`endpoint = "198.51.100.20:51820"`,
	}
	goodGateway = []string{
		`name = "west"`,
		`address = "10.77.0.11/16"`,
		`private_key_file = "node.key"`,
		`listen_port = 51820`,
		`[[robot]]`, // line 5
		`name = "stretch"`,
		`address = "10.77.0.2"`,
		`carrier_keys = ["hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=", "JivncQgETHGA6jwvZIgPzVP2Nel+bjMowbH2AidXnk8="]`,
		`[[robot]]`, // line 9
		`name = "spot"`,
		`address = "10.77.0.3"`,
		`carrier_keys = [`,
		`  "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=",`,
		`]`,
	}
)

type spoiled struct {
	line int    // which line to replace, and where the problem must be reported
	with string // in its place
	at   int    // where the problem is reported, when not at line
	want string // part of the message
}

func (c spoiled) check(t *testing.T, good []string, load func(string) error) {
	t.Helper()
	lines := append([]string(nil), good...)
	lines[c.line-1] = c.with
	file := write(t, "node.toml", strings.Join(lines, "\n")+"\n")
	err := load(file)
	var problems *Error
	if !errors.As(err, &problems) {
		t.Errorf("line %d %s: error %v, want an *Error", c.line, c.with, err)
		return
	}
	at := c.line
	if c.at != 0 {
		at = c.at
	}
	first := problems.Problems[0].Error()
	if len(problems.Problems) != 1 || !strings.HasPrefix(first, fmt.Sprintf("%s:%d: ", file, at)) || !strings.Contains(first, c.want) || !strings.Contains(first, "expected ") {
		t.Errorf("line %d %s:\n got %v\nwant one problem at line %d with %q", c.line, c.with, err, at, c.want)
	}
}

func loadRobot(file string) error   { _, err := LoadRobot(file); return err }
func loadGateway(file string) error { _, err := LoadGateway(file); return err }

func TestGoodFilesLoad(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	if err := loadRobot(write(t, "robot.toml", strings.Join(goodRobot, "\n"))); err != nil {
		t.Error(err)
	}
	if err := loadGateway(write(t, "gateway.toml", strings.Join(goodGateway, "\n"))); err != nil {
		t.Error(err)
	}
}

func TestRobotProblems(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	for _, c := range []spoiled{
		{1, `name = ""`, 0, `name: found an empty text`},
		{1, `name = "two words"`, 0, `name: found "two words"`},
		{1, `name = 5`, 0, `name: found 5 (without quotes)`},
		{1, ``, 0, `name: found nothing`},
		{1, `name = "a`, 0, `TOML syntax`},
		{1, "name = \"stretch\"\nname = \"b\"", 2, `TOML syntax`},
		{2, `address = "10.77.0.2"`, 0, `such as "10.77.0.2/16"`},
		{2, `address = ""`, 0, `found an empty text`},
		{2, `address = []`, 0, `found an empty list`},
		{2, `address = 7`, 0, `found 7`},
		{2, `address = "10.77.0.2/31"`, 0, `/8 to /30`},
		{2, `address = "10.77.0.2/7"`, 0, `/8 to /30`},
		{2, `address = "10.77.0.0/16"`, 0, `is the network itself`},
		{2, `address = "10.77.255.255/16"`, 0, `broadcast address of 10.77.0.0/16`},
		{2, "address = [\n\"10.77.0.2/16\",\n\"10.77.0.3/16\"]", 4, `does not overlap`},
		{2, "address = [\"10.77.0.2/16\",\n\"fd77::2/127\"]", 3, `/8 to /126`},
		{2, "address = [\"10.77.0.2/16\",\n\"fe80::2/64\"]", 3, `ordinary unicast`},
		{2, "address = [\"10.77.0.2/16\",\n\"fd77::/64\"]", 3, `is the network itself`},
		{2, "address = [\"10.77.0.2/16\",\n\"::ffff:10.78.0.1/112\"]", 3, `written as IPv4`},
		{2, "address = [\"10.77.0.2/16\",\n5]", 3, `address: found 5`},
		{2, "mtu = 1279\naddress = [\"10.77.0.2/16\", \"fd77::2/64\"]", 0, `found 1279, expected at least 1280, since this node has the IPv6 address fd77::2`},
		{3, ``, 1, `private_key_file: found nothing`},
		{3, `private_key_file = ""`, 0, `private_key_file: found an empty text`},
		{4, `deadline = "0ms"`, 0, `from "1ms" to "1m"`},
		{4, `deadline = "61s"`, 0, `from "1ms" to "1m"`},
		{4, `deadline = 200`, 0, `found 200 (without quotes)`},
		{4, `deadline = "soon"`, 0, `found "soon"`},
		{4, `mtu = 575`, 0, `mtu: found 575, expected a whole number from 576 to 9000`},
		{4, `mtu = 1280.0`, 0, `mtu: found 1280.0, expected a whole number`},
		{4, `mtu = 9001`, 0, `from 576 to 9000`},
		{4, `mtu = "1280"`, 0, `found "1280", expected a whole number from 576 to 9000 (without quotes)`},
		{4, `interface = "sixteen-letters-"`, 0, `at most 15`},
		{4, `interface = "a/b"`, 0, `found "a/b"`},
		{4, `interface = "wlan0"`, 8, `overlay's own interface`},
		{4, `log_level = "loud"`, 0, `"debug", "info", "warn" or "error"`},
		{4, `state_dir = ""`, 0, `a path in quotes`},
		{4, `control_socket = "/` + strings.Repeat("x", 107) + `"`, 0, `108 characters`},
		{4, `prot = 5`, 0, `prot: found an unknown key, expected one of name, address`},
		{4, `listen_port = 5`, 0, `listen_port: found a key that belongs in gateway.toml, expected one of name, address`},
		{4, `discovery = 5`, 0, `discovery: found 5, expected a table [discovery]`},
		{4, `discovery.allow = []`, 0, `discovery.allow: found a list beside a [[carrier]], expected it in a file without [[carrier]]`},
		{4, `discovery.forbid = []`, 0, `discovery.forbid: found an unknown key, expected one of allow, deny`},
		{4, `robot = [{name = "spot"}]`, 0, `robot: found a key that belongs in gateway.toml`},
		{4, `"a.b" = 5`, 0, `an unknown key`},
		{4, `a.b = 5`, 0, `a: found an unknown key`},
		{6, ``, 5, `interface of carrier number 1: found nothing, expected "interface", "mac", "driver", "bus" or "kind", to say which`},
		{6, `label = "x"`, 5, `interface of carrier number 1: found nothing`},
		{6, `interface = ""`, 0, `interface of carrier number 1: found an empty text, expected the name of a network interface, such as "wwan0", or a pattern`},
		{6, `interface = "sixteen-letters-"`, 0, `or a pattern, such as "wwan*"; * stands for any characters`},
		{6, `interface = "wwan["`, 0, `found "wwan["`},
		{6, `interface = "w/*"`, 0, `found "w/*"`},
		{6, `interface = "wlan0"`, 8, `which carrier number 1 has already`},
		{6, `interface = "wl*"`, 8, `found "wlan0", which carrier number 1 takes already with "wl*", expected it before the [[carrier]] with the pattern`},
		{6, `mac = "0c:5b:8f:27:9a"`, 0, `mac of carrier number 1: found "0c:5b:8f:27:9a", expected a hardware address`},
		{6, `mac = "wwan*"`, 0, `expected a hardware address`},
		{6, `driver = ""`, 0, `driver of carrier number 1: found an empty text, expected the name of a kernel driver`},
		{6, `driver = "a/b"`, 0, `expected the name of a kernel driver`},
		{6, `bus = "/"`, 0, `bus of carrier number 1: found "/", expected the path of a device below /sys/devices`},
		{6, `kind = "umts"`, 0, `kind of carrier number 1: found "umts", expected one of "ethernet", "wifi", "wwan", `},
		{6, `kind = "w*"`, 0, `kind of carrier number 1: found "w*", expected one of`},
		{6, "interface = \"wwan0\"\ncidr = \"10.0.0.0/8\"", 7, `cidr of carrier number 1: found an unknown key, expected one of interface, mac, driver, bus, kind, label, cost, monthly_cap, dns`},
		{6, "interface = \"wwan0\"\nmetric = 3", 7, `metric of carrier number 1: found an unknown key, expected one of interface`},
		{6, "interface = \"wwan0\"\nlabel = \"\"", 7, `label of carrier number 1: found an empty text, expected a short text, at most 24 characters`},
		{6, "interface = \"wwan0\"\nlabel = \"x\\ty\"", 7, `expected a short text`},
		{6, "interface = \"wwan0\"\nlabel = \" x\"", 7, `expected a short text`},
		{6, "interface = \"wwan0\"\nlabel = \"1234567890123456789012345\"", 7, `expected a short text`},
		{6, "interface = \"wwan0\"\ncost = -1", 7, `cost of carrier number 1: found -1, expected a number from 0 to 1000000, where 2 is twice as dear as 1`},
		{6, "interface = \"wwan0\"\ncost = nan", 7, `cost of carrier number 1: found NaN`},
		{6, "interface = \"wwan0\"\nmonthly_cap = \"5 gigabytes\"", 7, `monthly_cap of carrier number 1: found "5 gigabytes", expected an amount of data, such as "5GB" or "500MB"`},
		{6, "interface = \"wwan0\"\nmonthly_cap = \"5GiB\"", 7, `(decimal: 1 GB is 1,000 MB)`},
		{6, "interface = \"wwan0\"\nmonthly_cap = \"0MB\"", 7, `found "0MB", expected an amount of data from "1MB" to "1000TB"`},
		{6, "interface = \"wwan0\"\nmonthly_cap = 5", 7, `found 5 (without quotes)`},
		{6, "interface = \"wwan0\"\ndns = []", 7, `dns of carrier number 1: found an empty list, expected the address of a DNS server`},
		{6, "interface = \"wwan0\"\ndns = \"dns.example.com\"", 7, `found "dns.example.com", expected the address of a DNS server`},
		{6, "interface = \"wwan0\"\ndns = [\"9.9.9.9\",\n\"9.9.9.9\"]", 8, `every server once`},
		{6, "interface = \"wwan0\"\ndns = \"127.0.0.53\"", 7, `a server that the carrier reaches`},
		{6, "interface = \"wwan0\"\ndns = \"fe80::1%wwan0\"", 7, `an address without %`},
		{6, "interface = \"wwan0\"\ndns = \"::ffff:9.9.9.9\"", 7, `written as IPv4, 9.9.9.9`},
		{8, "interface = \"wlan0\"\n[discovery]\ndeny = [\n\"name:w*\",\n\"wwan0\"]", 12, `discovery.deny: found "wwan0", expected a selector: "name:", "mac:", "driver:", "bus:", "kind:" or "cidr:" and what it must be`},
		{8, "interface = \"wlan0\"\n[discovery]\ndeny = [\"kind:umts\"]", 10, `found "kind:umts", expected behind "kind:" one of "ethernet"`},
		{8, "interface = \"wlan0\"\n[discovery]\ndeny = [\"cidr:10.0.0.1\"]", 10, `expected behind "cidr:" a prefix of addresses`},
		{8, "interface = \"wlan0\"\n[discovery]\ndeny = [\"name:a\", \"name:a\"]", 10, `expected every selector once`},
		{8, "interface = \"wlan0\"\n[discovery]\ndeny = \"name:a\"", 10, `found "name:a", expected a list of up to 32 selectors`},
		{10, `name = "east"`, 15, `name of gateway number 2: found "east", which the gateway of line 9 has already`},
		{10, ``, 9, `name of gateway number 1: found nothing`},
		{11, `address = "10.77.0.11/16"`, 0, `without prefix length`},
		{11, `address = "10.78.0.11"`, 0, `inside this node's own prefix, 10.77.0.0/16`},
		{11, `address = "10.77.0.2"`, 0, `which this node itself has already`},
		{11, `address = "10.77.0.12"`, 16, `address of gateway "east": found "10.77.0.12", which gateway "west" has already`},
		{11, `address = ["10.77.0.11", "10.77.0.12"]`, 16, `which gateway "west" has already`},
		{11, `address = "10.77.0.0"`, 0, `is the network itself`},
		{11, ``, 9, `address of gateway "west": found nothing`},
		{12, `public_key = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="`, 17, `public_key of gateway "east": found 3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=, which gateway "west" has already`},
		{12, `public_key = "AAAA"`, 0, `a text of 4 characters that is not 32 bytes long`},
		{12, `public_key = "` + strings.Repeat("A", 43) + `="`, 0, `all zero`},
		{12, ``, 9, `public_key of gateway "west": found nothing`},
		{13, `endpoint = "west.example.com"`, 0, `; the port is missing`},
		{13, `endpoint = "west.example.com:0"`, 0, `a port from 1 to 65535 behind the address`},
		{13, `endpoint = "west.example.com:http"`, 0, `a port from 1 to 65535 behind the address`},
		{13, `endpoint = "-west.example.com:51820"`, 0, `a DNS name has letters a to z, digits and '-', others in the form "xn--..."`},
		{13, `endpoint = "west..example.com:51820"`, 0, `a DNS name has`},
		{13, `endpoint = "küche.example.com:51820"`, 0, `a DNS name has`},
		{13, `endpoint = ":51820"`, 0, `a DNS name has`},
		{13, `endpoint = "localhost:51820"`, 0, `localhost is no machine's name on the internet`},
		{13, `endpoint = "198.51.100.300:51820"`, 0, `198.51.100.300 is no machine's name on the internet`},
		{13, `endpoint = "` + strings.Repeat("a234567890.", 23) + `de:51820"`, 0, `a DNS name of at most 253 characters`},
		{13, `endpoint = []`, 0, `found an empty list, expected an IP address or a DNS name and a port`},
		{13, "endpoint = [\n\"198.51.100.10:51820\",\n\"198.51.100.10:51820\"]", 15, `found 198.51.100.10:51820, which gateway "west" has already, expected an endpoint of its own for every gateway, each once`},
		{13, "endpoint = [\"a.example.com:51820\",\n\"A.example.com.:51820\"]", 14, `found a.example.com:51820, which gateway "west" has already`},
		{13, "endpoint = [\"198.51.100.10:51820\",\n\"10.77.0.11:51820\"]", 14, `the tunnel cannot run through itself`},
		{13, `endpoint = [` + strings.Repeat(`"x",`, 9) + `]`, 0, `found a list of 9`},
		{13, `endpoint = "198.51.100.10"`, 0, `the port is missing`},
		{13, `endpoint = "2001:db8::1"`, 0, `the IPv6 address has no brackets`},
		{13, `endpoint = "2001:db8::1:51820"`, 0, `the IPv6 address has no brackets`},
		{13, `endpoint = "198.51.100.10:0"`, 0, `a port from 1 to 65535`},
		{13, `endpoint = "198.51.100.10:70000"`, 0, `a port from 1 to 65535 behind the address`},
		{13, `endpoint = "0.0.0.0:51820"`, 0, `0.0.0.0 means every address of a machine`},
		{13, `endpoint = "[::]:51820"`, 0, `:: means every address of a machine`},
		{13, `endpoint = "127.0.0.1:51820"`, 0, `127.0.0.1 is the robot itself`},
		{13, `endpoint = "[::1]:51820"`, 0, `::1 is the robot itself`},
		{13, `endpoint = "224.0.0.1:51820"`, 0, `224.0.0.1 means many machines`},
		{13, `endpoint = "255.255.255.255:51820"`, 0, `means many machines`},
		{13, `endpoint = "[ff02::1]:51820"`, 0, `ff02::1 means many machines`},
		{13, `endpoint = "[fe80::1]:51820"`, 0, `fe80::1 is good on one link only`},
		{13, `endpoint = "[fe80::1%eth0]:51820"`, 0, `fe80::1%eth0 is good on one link only`},
		{13, `endpoint = "[::ffff:198.51.100.10]:51820"`, 0, `written as IPv4, 198.51.100.10:51820`},
		{13, `endpoint = "10.77.0.11:51820"`, 0, `the tunnel cannot run through itself`},
		{13, `endpoint = "198.51.100.20:51820"`, 18, `which gateway "west" has already`},
		{13, ``, 9, `endpoint of gateway "west": found nothing`},
	} {
		c.check(t, goodRobot, loadRobot)
	}
}

func TestRobotWithoutCarriersOrGateways(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	file := write(t, "robot.toml", strings.Join(goodRobot[:4], "\n")+"\n")
	want := file + ":5: gateway: found no [[gateway]], expected here the [[gateway]] block that `fogplr init gateway` prints on each gateway"
	if err := loadRobot(file); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	err := loadRobot(write(t, "robot.toml", strings.Join(goodRobot[:4], "\n")+"\ncarrier = []\ngateway = []\n"))
	for _, want := range []string{":5: carrier: found an empty list", ":6: gateway: found an empty list"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	nine := strings.Join(goodRobot[:4], "\n")
	for i := range 9 {
		nine += fmt.Sprintf("\n[[carrier]]\ninterface = \"c%d\"", i)
	}
	if err := loadRobot(write(t, "robot.toml", nine+"\n"+strings.Join(goodRobot[8:], "\n"))); err == nil || !strings.Contains(err.Error(), "carrier: found a list of 9") {
		t.Errorf("nine carriers: %v", err)
	}
}

// [discovery] without [[carrier]] has its own mistakes.
func TestDiscoveryProblems(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	good := append(append([]string(nil), goodRobot[:4]...), append([]string{"[discovery]", `allow = ["name:tun5"]`, `deny = ["kind:wifi"]`}, goodRobot[8:]...)...)
	if err := loadRobot(write(t, "robot.toml", strings.Join(good, "\n"))); err != nil {
		t.Error(err)
	}
	for _, c := range []spoiled{
		{7, `deny = ["kind:wifi", "name:tun5"]`, 0, `discovery.deny: found "name:tun5", which is in allow too, expected it in one of the two`},
		{6, `allow = ["name:tun 5"]`, 0, `discovery.allow: found "name:tun 5", expected behind "name:" the name of a network interface`},
		{6, `allow = [5]`, 0, `discovery.allow: found 5 (without quotes), expected a list of up to 32 selectors`},
		{6, `alow = []`, 0, `discovery.alow: found an unknown key, expected allow, perhaps; here one of allow, deny`},
	} {
		c.check(t, good, loadRobot)
	}
}

func TestGatewayProblems(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	for _, c := range []spoiled{
		{4, `listen_port = 0`, 0, `from 1 to 65535`},
		{4, `listen_port = 65536`, 0, `from 1 to 65535`},
		{4, `listen_port = []`, 0, `or a list of 1 to 8 of them`},
		{4, "listen_port = [51820,\n443,\n443]", 6, `found 443 again, expected every number once`},
		{4, `discovery = {}`, 0, `discovery: found a key that belongs in robot.toml`},
		{4, `listen_port = "51820"`, 0, `found "51820"`},
		{4, `deadline = "5s"`, 0, `deadline: found a key that belongs in robot.toml`},
		{4, `gateway = [{name = "east"}]`, 0, `gateway: found a key that belongs in robot.toml`},
		{4, `carrier = [{interface = "wlan0"}]`, 0, `carrier: found a key that belongs in robot.toml`},
		{6, `name = "spot"`, 10, `which the robot of line 5 has already`},
		{7, `address = "10.77.0.3"`, 11, `address of robot "spot": found "10.77.0.3", which robot "stretch" has already`},
		{7, `address = "10.77.0.11"`, 0, `which this node itself has already`},
		{7, `address = "192.168.0.1"`, 0, `inside this node's own prefix`},
		{8, `carrier_keys = []`, 0, `an empty list`},
		{8, `carrier_keys = ["hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=", "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="]`, 0, `which robot "stretch" has already`},
		{8, `carrier_keys = ["3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="]`, 13, `carrier_keys of robot "spot": found 3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=, which robot "stretch" has already`},
		{13, `"x",`, 0, `a text of 1 characters`},
		{8, `carrier_keys = [` + strings.Repeat(`"x",`, 9) + `]`, 0, `a list of 9`},
		{8, ``, 5, `carrier_keys of robot "stretch": found nothing`},
		{8, "carrier_keys = [\"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"]\nendpoint = \"1.2.3.4:5\"", 9, `endpoint of robot "stretch": found an unknown key`},
	} {
		c.check(t, goodGateway, loadGateway)
	}
}

// Two addresses can differ and still mean one node number.
func TestSameNodeNumberIsRefused(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	lines := append([]string(nil), goodGateway...)
	lines[1] = `address = ["10.77.0.11/16", "fd77::11/64"]`
	lines[6] = `address = "fd77::3"`
	err := loadGateway(write(t, "gateway.toml", strings.Join(lines, "\n")))
	if err == nil || !strings.Contains(err.Error(), `node number 3, and robot "stretch" has that number already`) {
		t.Errorf("error %v", err)
	}
}

func TestEveryProblemIsReportedInOrder(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	lines := append([]string(nil), goodRobot...)
	lines[0], lines[3], lines[7], lines[12], lines[17] = `nmae = "stretch"`, `mtu = 1`, `interface = "wwan0"`, `endpoint = "west"`, `port = 1`
	err := loadRobot(write(t, "robot.toml", strings.Join(lines, "\n")))
	var problems *Error
	if !errors.As(err, &problems) {
		t.Fatalf("error %v", err)
	}
	var at []int
	for _, p := range problems.Problems {
		at = append(at, p.Line)
	}
	if fmt.Sprint(at) != "[1 1 4 8 13 14 18]" {
		t.Errorf("problems at lines %v:\n%v", at, err)
	}
}

func TestBlanksOfInitNameTheirLines(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	for name, c := range map[string]struct {
		file RobotFile
		want []string
	}{
		"all but gateways": {RobotFile{Name: "stretch", Addresses: []string{"10.77.0.2/16"}, PrivateKeyFile: "node.key"}, []string{"gateway"}},
		"a gateway": {RobotFile{
			PrivateKeyFile: "node.key",
			Gateways:       []GatewayBlock{{Name: "west", Addresses: []string{"10.77.0.11"}, PublicKey: keys.Generate().PublicKey().String(), EndpointNote: "FILL IN"}},
		}, []string{"name", "address", `endpoint of gateway "west"`}},
	} {
		text := c.file.Render()
		err := loadRobot(write(t, "robot.toml", text))
		var problems *Error
		if !errors.As(err, &problems) {
			t.Fatalf("error %v", err)
		}
		lines := strings.Split(text, "\n")
		var got []string
		for _, p := range problems.Problems {
			got = append(got, p.Key)
			key, _, _ := strings.Cut(p.Key, " ")
			if line := lines[p.Line-1]; !p.Blank || p.Line < len(lines) && !strings.HasPrefix(line, key+` = ""`) {
				t.Errorf("%s: blank %v: %v, in %q", name, p.Blank, &p, line)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: blanks %q, want %q", name, got, c.want)
		}
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{filepath.Join(dir, "absent"): "no such file", dir: "cannot be read", big: "larger than"} {
		var problems *Error
		if err := loadRobot(file); !errors.As(err, &problems) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// A private key in the place of a public one must not show up in a log.
func TestKeysAreNotRepeated(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	lines := append([]string(nil), goodRobot...)
	lines[11] = `public_key = "secretsecretsecretsecretsecretsecretsecr"`
	if err := loadRobot(write(t, "robot.toml", strings.Join(lines, "\n"))); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v repeats the key", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Setenv("CREDENTIALS_DIRECTORY", "")
	f.Add([]byte(robotText))
	f.Add([]byte(strings.Join(goodRobot, "\n")))
	f.Add([]byte(strings.Join(goodGateway, "\n")))
	f.Add([]byte(RobotFile{}.Render()))
	f.Add([]byte("a.b.c = [{x = 1, y = [[]]}]\n[[gateway.x]]\n[gateway.x.y]\nz = 1979-05-27\n"))
	f.Add([]byte("gateway = [1, {name = {}}]\naddress = [1.5, true, \"10.77.0.2/16\"]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		last := strings.Count(string(text), "\n") + 1
		for _, parse := range []func() error{
			func() error { _, err := ParseRobot("node.toml", string(text)); return err },
			func() error { _, err := ParseGateway("node.toml", string(text)); return err },
		} {
			err := parse()
			if err == nil {
				continue
			}
			var problems *Error
			if !errors.As(err, &problems) || len(problems.Problems) == 0 {
				t.Fatalf("error %v is not an *Error", err)
			}
			for _, p := range problems.Problems {
				if p.Found == "" || p.Expected == "" || p.Line < 0 || p.Line > last {
					t.Fatalf("problem %+v of a file of %d lines", p, last)
				}
			}
		}
	})
}
