package check

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/check/firewall"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

var (
	west = netip.MustParseAddr("198.51.100.10")
	east = netip.MustParseAddr("2001:db8::20")
)

const pointed = `<CycloneDDS><NetworkInterface name="plr0"/></CycloneDDS>`

// sound are the facts of a robot or gateway with which nothing is wrong, before
// its start or while it runs.
func sound(role string, running bool) *Facts {
	yes, no := true, false
	overlay := []netip.Prefix{netip.MustParsePrefix("10.77.0.2/16"), netip.MustParsePrefix("fd77::2/64")}
	f := &Facts{
		Config: Config{File: "/etc/fogplr/" + role + ".toml", Role: role,
			Node: &config.Node{Name: "stretch", Interface: "plr0", MTU: 1280, Addresses: overlay, PrivateKeyFile: "/etc/fogplr/node.key", ControlSocket: "/run/x.sock"}},
		Capable: func(int) bool { return true },
		Kernel:  Kernel{Release: "6.1.0-18-amd64", Forwards: &yes},
		Network: &routing.Facts{Links: []routing.LinkFacts{
			{Name: "lo", MTU: 65536, Up: true},
			{Name: "wwan0", MTU: 1428, Up: true, Multicast: true, Default: true, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.2/24"), netip.MustParsePrefix("2001:db8:1::2/64")}},
			{Name: "wlan0", MTU: 1500, Up: true, Multicast: true, Default: true, Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.1.2/24"), netip.MustParsePrefix("fe80::2/64")}},
			{Name: "plr0", Kind: "tun", TUN: true, Ours: true, Owner: role + " stretch", Up: running, Multicast: true, MTU: 1280, Addresses: overlay, Addressed: time.Minute},
		}},
		Firewall: new(firewall.Rules),
		Clock:    Clock{Now: time.Unix(1_800_000_000, 0), Built: time.Unix(1_700_000_000, 0), Free: &no},
		Shell:    Profile{Cyclone: Setting{Variable: "CYCLONEDDS_URI", Value: "file:///x", Text: pointed}},
		Programs: []Program{{PID: 7, Name: "talker", Started: 2 * time.Minute, Profile: &Profile{Cyclone: Setting{Variable: "CYCLONEDDS_URI", Value: "x", Text: pointed}}}},
		Daemon:   Daemon{Version: "v1"},
	}
	if role == "robot" {
		f.Config.Carriers = []string{"wwan0", "wlan0"}
		f.Config.Gateways = []Gateway{
			{"west", []Endpoint{{Host: "198.51.100.10", Addr: west, Port: 51820}}},
			{"east", []Endpoint{{Host: "east.example", Port: 51820}}},
		}
		f.Names = []Name{{Host: "east.example", Addrs: []netip.Addr{east}}}
		f.Network.Carriers = []routing.CarrierFacts{
			{Carrier: routing.Carrier{Interface: "wwan0", Index: 2, Reached: map[netip.Addr]bool{west: true, east: true}}, RPFilter: "net.ipv4.conf.wwan0.rp_filter"},
			{Carrier: routing.Carrier{Interface: "wlan0", Index: 3, Reached: map[netip.Addr]bool{west: true}}, RPFilter: "net.ipv4.conf.wlan0.rp_filter"},
		}
	} else {
		f.Config.Ports = []uint16{51820}
	}
	if running {
		f.Daemon.Status = &tunnel.Status{Role: role, Name: "stretch", Version: "v1"}
		if role == "robot" {
			f.Daemon.Status.Peers = []tunnel.PeerStatus{{Name: "west", Paths: []tunnel.PathStatus{{Carrier: "wwan0", Up: true}, {Carrier: "wlan0", Up: true}}}}
		}
	}
	return f
}

// finding is one row of the tables: a fact that is wrong and what is then found.
type row struct {
	name    string
	role    string // both when empty
	running *bool  // both when nil
	wrong   func(*Facts)
	want    string // LEVEL ID, one or several
	words   string // in text or repair, separated by |
}

var (
	before = new(bool)
	during = func() *bool { t := true; return &t }()
)

func TestSoundIsSilent(t *testing.T) {
	for _, role := range []string{"robot", "gateway"} {
		for _, running := range []bool{false, true} {
			r := Judge(sound(role, running))
			if len(r.Findings) != 0 || r.Level != OK || r.Name != "stretch" || r.Role != role || r.Running != running || r.Stopped ||
				(role == "robot") != slices.Equal(r.Carriers, []string{"wwan0", "wlan0"}) {
				t.Errorf("%s, running=%v: %+v", role, running, r)
			}
			text, err := json.Marshal(r)
			if err != nil || !strings.Contains(string(text), `"level":"ok","findings":[]`) {
				t.Errorf("%s, %v", text, err)
			}
		}
	}
}

// Nothing known is nothing found, but for what cannot be without.
func TestNothingKnown(t *testing.T) {
	if r := Judge(&Facts{}); len(r.Findings) != 1 || r.Findings[0].ID != "config.missing" || r.Level != Fails {
		t.Errorf("%+v", r)
	}
	if r := Judge(&Facts{Config: Config{File: "x.toml"}}); len(r.Findings) != 0 {
		t.Errorf("%+v", r)
	}
}

// try holds every row against the roles and times that it is for.
func try(t *testing.T, rows []row) {
	t.Helper()
	for _, c := range rows {
		for _, role := range []string{"robot", "gateway"} {
			for _, running := range []bool{false, true} {
				if c.role != "" && c.role != role || c.running != nil && *c.running != running {
					continue
				}
				f := sound(role, running)
				c.wrong(f)
				r := Judge(f)
				var got []string
				worst := OK
				text := ""
				for _, found := range r.Findings {
					got = append(got, found.Level.String()+" "+found.ID)
					worst = max(worst, found.Level)
					text += found.Text + "\n" + found.Repair + "\n"
					if !strings.HasSuffix(found.Text, ".") && !strings.HasSuffix(found.Text, "?") {
						t.Errorf("%s: no sentence: %q", c.name, found.Text)
					}
				}
				if strings.Join(got, ", ") != c.want || r.Level != worst {
					t.Errorf("%s (%s, running=%v): found %q at level %v, want %q\n%s", c.name, role, running, got, r.Level, c.want, text)
				}
				for word := range strings.SplitSeq(c.words, "|") {
					if c.want != "" && !strings.Contains(text, word) {
						t.Errorf("%s (%s): nothing about %q in\n%s", c.name, role, word, text)
					}
				}
			}
		}
	}
}

func TestConfig(t *testing.T) {
	try(t, []row{
		{"wrong file", "", before, func(f *Facts) {
			f.Config.Problems = []string{"a.toml:3: mtu: found 1, expected more", "a.toml:4: x: found y, expected z"}
		}, "fails config.file, fails config.file", "a.toml:3: mtu|a.toml:4"},
		{"no key", "", before, func(f *Facts) { f.Config.KeyProblems = []string{"node.key does not exist"} }, "fails config.key", "node.key does not exist"},
		{"open key", "", nil, func(f *Facts) { f.Config.KeyWarning = "Others may read it." }, "warning config.key_mode", "Others may read|chmod 600 /etc/fogplr/node.key"},
		{"key warning of the daemon too", "", during, func(f *Facts) {
			f.Config.KeyWarning = "Others may read it."
			f.Daemon.Status.Warnings = []string{"Others may read it."}
		}, "warning config.key_mode", ""},
		{"no robots", "gateway", before, func(f *Facts) { f.Config.Warning = "No robot can connect." }, "warning config.peers", "No robot"},
	})
}

func TestKernel(t *testing.T) {
	lacks := func(missing int) func(int) bool { return func(c int) bool { return c != missing } }
	try(t, []row{
		{"not root", "", nil, func(f *Facts) { f.User = 1000 }, "note user.rights", "sudo fogplr check\n"},
		{"container", "", nil, func(f *Facts) { f.Capable = lacks(unix.CAP_NET_ADMIN) }, "fails user.net_admin", "CAP_NET_ADMIN|--cap-add"},
		{"user without CAP_NET_ADMIN", "", nil, func(f *Facts) { f.User, f.Capable = 1, lacks(unix.CAP_NET_ADMIN) }, "note user.rights", ""},
		{"no TUN", "", before, func(f *Facts) { f.Kernel.TUN = unix.ENOENT }, "fails kernel.tun", "CONFIG_TUN|modprobe tun"},
		{"no TUN module", "", before, func(f *Facts) { f.Kernel.TUN = unix.ENODEV }, "fails kernel.tun", "modprobe tun"},
		{"TUN forbidden", "", before, func(f *Facts) { f.Kernel.TUN = unix.EPERM }, "fails kernel.tun", "--device /dev/net/tun"},
		{"TUN for root", "", before, func(f *Facts) { f.User, f.Kernel.TUN = 1, unix.EACCES }, "note user.rights", ""},
		{"TUN elsewhere", "", during, func(f *Facts) { f.Kernel.TUN = unix.ENOENT }, "", ""},
		{"no netlink", "", before, func(f *Facts) { f.Network, f.NetworkError = nil, errors.New("denied") }, "fails kernel.netlink", "denied|AF_NETLINK"},
		{"no marks", "", nil, func(f *Facts) { f.Kernel.Mark = unix.ENOPROTOOPT }, "warning kernel.so_mark", "SO_MARK"},
		{"marks forbidden", "", nil, func(f *Facts) { f.Kernel.Mark = unix.EPERM }, "", ""},
		{"no binding", "robot", nil, func(f *Facts) { f.Kernel.Bind = unix.ENOPROTOOPT }, "fails kernel.so_bindtodevice", "SO_BINDTODEVICE"},
		{"no binding", "gateway", nil, func(f *Facts) { f.Kernel.Bind = unix.ENOPROTOOPT }, "", ""},
		{"old kernel", "robot", before, func(f *Facts) { f.Kernel.Release = "5.6.19" }, "warning user.net_raw", "5.7|CAP_NET_RAW|systemctl edit fogplr-robot"},
		{"old kernel in a container", "robot", before, func(f *Facts) { f.Kernel.Release, f.Capable = "4.9.0-tegra", lacks(unix.CAP_NET_RAW) }, "fails user.net_raw", "--cap-add NET_RAW"},
		{"old kernel, runs", "robot", during, func(f *Facts) { f.Kernel.Release = "4.9.0" }, "", ""},
		{"old kernel of a gateway", "gateway", nil, func(f *Facts) { f.Kernel.Release = "4.9.0" }, "", ""},
		{"kernel 5.7", "", nil, func(f *Facts) { f.Kernel.Release, f.Capable = "5.7.0", lacks(unix.CAP_NET_RAW) }, "", ""},
		{"no GSO", "", nil, func(f *Facts) { f.Kernel.Segment, f.Kernel.Gather = unix.ENOPROTOOPT, unix.ENOPROTOOPT }, "note kernel.udp_offload", "UDP_SEGMENT and UDP_GRO"},
		{"no GRO", "", nil, func(f *Facts) { f.Kernel.Gather = unix.ENOPROTOOPT }, "note kernel.udp_offload", "UDP_GRO"},
		{"no rules", "robot", nil, func(f *Facts) { f.Network.NoRules4 = true }, "warning kernel.rules4", "CONFIG_IP_MULTIPLE_TABLES"},
		{"no IPv6 rules", "robot", nil, func(f *Facts) { f.Network.NoRules6 = true }, "warning kernel.rules6", "CONFIG_IPV6_MULTIPLE_TABLES"},
		{"no rules for a gateway", "gateway", nil, func(f *Facts) { f.Network.NoRules4, f.Network.NoRules6 = true, true }, "", ""},
		{"no IPv6", "", before, func(f *Facts) { f.Kernel.NoIPv6, f.Network.NoRules6 = true, true }, "warning kernel.ipv6", "fd77::2/64|CONFIG_IPV6"},
		{"no IPv6 at all for an overlay that has nothing else", "", before, func(f *Facts) {
			f.Kernel.NoIPv6, f.Network.NoRules6, f.Config.Node.Addresses = true, true, f.Config.Node.Addresses[1:]
		}, "fails kernel.ipv6", "fd77::2/64|CONFIG_IPV6"},
		{"no IPv6, not needed", "", before, func(f *Facts) { f.Kernel.NoIPv6, f.Config.Node.Addresses = true, f.Config.Node.Addresses[:1] }, "", ""},
		{"IPv6 off", "", before, func(f *Facts) { f.Kernel.IPv6Off = "net.ipv6.conf.default.disable_ipv6" }, "warning kernel.ipv6", "Only IPv4 works|sysctl -w net.ipv6.conf.default.disable_ipv6=0"},
	})
}

func TestOverlay(t *testing.T) {
	plr0 := func(f *Facts) *routing.LinkFacts { return f.overlay() }
	without := func(f *Facts) {
		f.Network.Links = slices.DeleteFunc(f.Network.Links, func(l routing.LinkFacts) bool { return l.Name == "plr0" })
	}
	try(t, []row{
		{"not yet there", "", before, func(f *Facts) { without(f); f.Programs = nil }, "note overlay.missing", "start ROS 2 after fogplr"},
		{"removed", "robot", during, func(f *Facts) { without(f); f.Programs = nil }, "fails overlay.missing", "systemctl restart fogplr-robot"},
		{"another node's", "", before, func(f *Facts) { plr0(f).Up, plr0(f).Owner, f.Daemon.Stopped = true, "robot other", true },
			"fails overlay.taken, note daemon.stopped", "plr0 belongs to another node of this machine, robot other, whose daemon runs|cannot start|interface in /etc/fogplr/"},
		{"another node's, which has stopped", "", before, func(f *Facts) { plr0(f).Owner = "robot other" }, "", ""},
		{"of another alias, and open", "", before, func(f *Facts) { plr0(f).Up, plr0(f).Ours, plr0(f).Owner = true, false, "" }, "warning daemon.silent", ""},
		{"a restart is pending", "robot", during, func(f *Facts) {
			f.Config.Pending = []Pending{{"interface", "plr5", "plr0"}, {"mtu", "1400", "1280"}}
		}, "warning daemon.pending", "interface is plr5, and the daemon that runs has plr0; mtu is 1400|Programs that use plr0 must then be restarted, too|systemctl restart fogplr-robot"},
		{"a restart for less is pending", "gateway", during, func(f *Facts) { f.Config.Pending = []Pending{{"mtu", "1400", "1280"}} },
			"warning daemon.pending", "has 1280. What is said here of name, addresses, interface and MTU is about what the daemon has.\nsystemctl restart fogplr-gateway"},
		{"taken", "", before, func(f *Facts) { plr0(f).TUN = false }, "fails overlay.taken", "no TUN device"},
		{"no multicast", "", nil, func(f *Facts) { plr0(f).Multicast = false }, "warning overlay.multicast", "ip link set dev plr0 multicast on"},
		{"other MTU", "gateway", during, func(f *Facts) { plr0(f).MTU = 1400 }, "warning overlay.mtu", "1400|1280|ip link set dev plr0 mtu 1280"},
		{"MTU before the start", "", before, func(f *Facts) { plr0(f).MTU = 1400 }, "", ""},
		{"conflict", "", nil, func(f *Facts) { f.Network.Warnings = []string{"eth0 overlaps."} }, "warning overlay.conflict", "eth0"},
		{"conflict, perhaps", "", nil, func(f *Facts) {
			f.Network.Warnings = []string{"If nobody needs tun7, remove it with `ip link del tun7`."}
		},
			"warning overlay.conflict", "`ip link del tun7`.\n\n"},
		{"conflict that the daemon tells", "", during, func(f *Facts) {
			f.Network.Warnings, f.Daemon.Status.Warnings = []string{"eth0 overlaps."}, []string{"eth0 overlaps."}
		}, "warning overlay.conflict", ""},
	})
}

func TestNamesAndClock(t *testing.T) {
	free := true
	try(t, []row{
		{"no such name", "robot", nil, func(f *Facts) { f.Names = []Name{{Host: "east.example", Problem: "no such host", Never: true}} }, "fails dns.name", "east.example|no such host"},
		{"no server", "robot", nil, func(f *Facts) { f.Names = []Name{{Host: "east.example", Problem: "timeout"}} }, "warning dns.name", "resolv.conf"},
		{"1970", "", nil, func(f *Facts) { f.Clock.Now, f.Clock.Free = time.Unix(60, 0), &free }, "warning clock.past", "1970-01-01|timedatectl"},
		{"not kept right", "", nil, func(f *Facts) { f.Clock.Free = &free }, "note clock.unsynchronised", "timedatectl"},
		{"build date not known", "", nil, func(f *Facts) { f.Clock.Built = time.Time{} }, "", ""},
	})
}

func TestDaemon(t *testing.T) {
	down := func(hint string, carriers ...string) []tunnel.PeerStatus {
		var p []tunnel.PathStatus
		for _, c := range carriers {
			p = append(p, tunnel.PathStatus{Carrier: c, Stage: "no reply", Hint: hint})
		}
		return []tunnel.PeerStatus{{Name: "west", Paths: p}}
	}
	try(t, []row{
		{"warnings", "", during, func(f *Facts) { f.Daemon.Status.Warnings = []string{"One.", "Two."} }, "warning daemon.warning, warning daemon.warning", "One.|Two."},
		{"version", "robot", during, func(f *Facts) { f.Daemon.Status.Version = "v0" }, "note daemon.version", "v0|v1|systemctl restart fogplr-robot"},
		{"a path is down", "robot", during, func(f *Facts) {
			f.Daemon.Status.Peers = append(f.Daemon.Status.Peers, down("Nothing comes back.", "wwan0", "wlan0")...)
		}, "warning daemon.path", "wwan0 to west, wlan0 to west|Nothing comes back"},
		{"a path suffers", "robot", during, func(f *Facts) {
			f.Daemon.Status.Peers[0].Paths[1].Hint = "Large packets do not pass."
		}, "warning daemon.path", "wlan0 to west: Large packets"},
		{"all paths are down", "robot", during, func(f *Facts) {
			f.Daemon.Status.Peers = down("Nothing comes back.", "a", "b", "c", "d", "e", "f", "g")
		}, "fails daemon.path", "e to west and 2 more"},
		{"a robot is away", "gateway", during, func(f *Facts) { f.Daemon.Status.Peers = down("It is silent.", "slot 0") }, "note daemon.path", ""},
		{"starting", "robot", during, func(f *Facts) {
			f.Daemon.Status.Peers = down("Wait.", "wwan0")
			f.Daemon.Status.Peers[0].Paths[0].Stage = "starting"
		}, "", ""},
		{"not running", "", before, func(f *Facts) { f.Daemon.Stopped = true }, "note daemon.stopped", "does not run, so nothing goes|systemctl start fogplr-"},
		{"killed", "gateway", before, func(f *Facts) { f.Daemon.Stopped, f.Daemon.Killed = true, true }, "note daemon.stopped",
			"/run/x.sock|was killed|journalctl -u fogplr-gateway|fogplr cleanup|systemctl start"},
		{"forbidden", "", before, func(f *Facts) { f.Daemon.Forbidden = true }, "note daemon.forbidden", "group fogplr"},
		{"stuck", "robot", before, func(f *Facts) { f.Daemon.Silent = "it has not answered" }, "fails daemon.silent", "it has not answered.|systemctl restart"},
		{"another one", "", before, func(f *Facts) { f.overlay().Up = true }, "warning daemon.silent", "/run/x.sock"},
	})
}

// A daemon that does not answer has stopped only if nobody else has its device.
func TestStopped(t *testing.T) {
	f := sound("gateway", false)
	f.Daemon.Stopped = true
	if r := Judge(f); r.Running || !r.Stopped {
		t.Errorf("stopped: %+v", r)
	}
	f.overlay().Up = true
	if r := Judge(f); r.Running || r.Stopped {
		t.Errorf("with another control socket: %+v", r)
	}
}

// Nobody is told to start what cannot start.
func TestNoStartWithoutConfig(t *testing.T) {
	f := sound("robot", false)
	f.Daemon.Stopped, f.Config.KeyProblems = true, []string{"there is no key"}
	f.Network.Links = f.Network.Links[:3] // no plr0
	r := Judge(f)
	for _, found := range r.Findings {
		if strings.Contains(found.Repair, "systemctl start") {
			t.Errorf("%s: %s", found.ID, found.Repair)
		}
	}
	if len(r.Findings) < 3 {
		t.Errorf("%+v", r.Findings)
	}
	f = sound("gateway", false)
	f.Daemon.Stopped = true
	if f.start() == "" {
		t.Error("nothing starts a sound gateway")
	}
	f.Config.Places = []Place{{"control_socket", "No.", true}}
	if f.start() != "" {
		t.Error("one is to be started that has no place for its socket")
	}
}

func TestLevels(t *testing.T) {
	for l := OK; l <= Fails; l++ {
		text, err := json.Marshal(Finding{Level: l})
		var back Finding
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || !reflect.DeepEqual(back, Finding{Level: l}) {
			t.Errorf("%v: %s, %v", l, text, err)
		}
	}
	if new(Level).UnmarshalText([]byte("bad")) == nil {
		t.Error("a level that does not exist")
	}
}
