package check

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/fogplr/fogplr/internal/check/firewall"
	"github.com/fogplr/fogplr/internal/usage"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

func TestCarriers(t *testing.T) {
	carrier := func(f *Facts, i int) *routing.CarrierFacts { return &f.Network.Carriers[i] }
	strict := func(f *Facts) { carrier(f, 1).Strict, carrier(f, 1).NeedsLoose = true, true }
	try(t, []row{
		{"one is down", "robot", nil, func(f *Facts) { carrier(f, 1).Problem = "wlan0 is down." }, "warning carrier.unusable", "wlan0 is down. The other carriers"},
		{"all are down", "robot", nil, func(f *Facts) { carrier(f, 0).Problem, carrier(f, 1).Problem = "A is down.", "B is down." },
			"fails carrier.unusable, fails carrier.unusable", "A is down. No other|B is down."},
		{"down, with a command", "robot", nil, func(f *Facts) {
			carrier(f, 1).Problem, carrier(f, 1).Repair = "wlan0 is down. Bring it up with `ip link set wlan0 up`.", "ip link set wlan0 up"
		},
			"warning carrier.unusable", "wlan0 up`. The other carriers|\nip link set wlan0 up\n"},
		{"all are down, without a full stop", "robot", nil, func(f *Facts) { carrier(f, 0).Problem, carrier(f, 1).Problem = "A is down", "B is down" },
			"fails carrier.unusable, fails carrier.unusable", "A is down. No other|B is down. No other"},
		{"a command to complete", "robot", nil, func(f *Facts) {
			carrier(f, 1).Problem = "No route. Add one with `ip route add default via GATEWAY dev wlan0`."
		},
			"warning carrier.unusable", "dev wlan0`. The other carriers work without it.\n\n"},
		{"the only one is down", "robot", before, func(f *Facts) {
			f.Network.Carriers = f.Network.Carriers[:1]
			carrier(f, 0).Problem = "A is down."
		}, "fails carrier.unusable", "There is no other carrier"},
		{"down, and the daemon says so of its paths", "robot", during, func(f *Facts) {
			carrier(f, 1).Problem = "wlan0 is down."
			f.Daemon.Status.Carriers = []tunnel.CarrierStatus{{Interface: "wlan0", Problem: "wlan0 is down."}}
			f.Daemon.Status.Peers[0].Paths[1] = tunnel.PathStatus{Carrier: "wlan0", Stage: "no route", Hint: "wlan0 is down."}
		}, "warning carrier.unusable", ""},
		{"no carriers", "robot", before, func(f *Facts) { f.Config.Carriers, f.Network.Carriers = nil, nil }, "fails carrier.none", "[[carrier]]"},
		{"no carriers, for a reason", "robot", before, func(f *Facts) {
			f.Config.Carriers, f.Network.Carriers = nil, nil
			f.Config.Others = []Other{{"wg0", "a tunnel", false}, {"wlan1", "deny of [discovery] has \"kind:wifi\"", true}}
		}, "fails carrier.none, note carrier.left_out, note carrier.left_out", "wlan1 is no carrier (deny of [discovery] has \"kind:wifi\").\n\nwg0 is no carrier (a tunnel)."},
		{"some are left out", "robot", nil, func(f *Facts) {
			f.Config.Others = []Other{{"wg0", "a tunnel", false}, {"eth1", "it is down or not connected", true}}
		}, "", ""},
		{"one that is not there", "robot", before, func(f *Facts) { f.Config.Missing = []string{"No interface is left for usb."} }, "warning carrier.missing", "usb"},
		{"how they were chosen", "robot", before, func(f *Facts) { f.Config.Notes = []string{"Both match."} }, "note carrier.choice", "Both"},
		{"warned of", "robot", nil, func(f *Facts) { carrier(f, 0).Warning = "A rule comes first." }, "warning carrier.routes", "A rule"},
		{"a command to think about", "robot", nil, func(f *Facts) { carrier(f, 0).Warning = "If nothing comes back, try `sysctl -w a=0`." },
			"warning carrier.routes", "try `sysctl -w a=0`.\n\n"},
		{"strict", "robot", before, strict, "note carrier.rp_filter", "wlan0|nothing to repair"},
		{"strict, runs", "robot", during, strict, "warning carrier.rp_filter", "sysctl -w|not permitted"},
		{"strict, harmless", "robot", nil, func(f *Facts) { carrier(f, 0).Strict = true }, "", ""},
		{"strict and down", "robot", before, func(f *Facts) {
			carrier(f, 1).Strict, carrier(f, 1).Problem = true, "wlan0 is down."
		}, "warning carrier.unusable, note carrier.rp_filter", ""},
		{"strict and absent", "robot", before, func(f *Facts) {
			carrier(f, 1).Strict, carrier(f, 1).Problem, carrier(f, 1).Index = true, "There is no wlan0.", 0
		}, "warning carrier.unusable", ""},
		{"MTU 1360", "robot", nil, func(f *Facts) { f.link("wlan0").MTU = 1360 }, "note carrier.mtu", "in 2 parts|1280 + 28 tag + 32 WireGuard + 8 UDP + 20 IPv4|1368|ip link set dev wlan0 mtu 1368"},
		{"MTU 1368", "robot", nil, func(f *Facts) { f.link("wlan0").MTU = 1368 }, "", ""},
		{"MTU for IPv6", "robot", nil, func(f *Facts) { f.link("wwan0").MTU = 1387 }, "note carrier.mtu", "40 IPv6|mtu 1388"},
		{"MTU 576", "robot", nil, func(f *Facts) { f.link("wlan0").MTU = 576 }, "note carrier.mtu", "in 3 parts"},
		{"MTU 400", "robot", nil, func(f *Facts) { f.link("wlan0").MTU = 400 }, "warning carrier.mtu", "Not even in 4 parts"},
		{"MTU, IPv4 overlay", "robot", nil, func(f *Facts) { f.link("wlan0").MTU, f.Config.Node.Addresses = 1280, f.Config.Node.Addresses[:1] },
			"note carrier.mtu", "mtu = 1192 in the configuration of every node"},
		{"no way to west", "robot", nil, func(f *Facts) {
			delete(carrier(f, 0).Reached, west)
			delete(carrier(f, 1).Reached, west)
		}, "warning gateway.route", "gateway west (198.51.100.10:51820)"},
		{"no way to east", "robot", nil, func(f *Facts) { delete(carrier(f, 0).Reached, east) }, "warning gateway.route", "gateway east ([2001:db8::20]:51820)"},
		{"a tunnel", "robot", nil, func(f *Facts) { f.link("wlan0").Kind = "wireguard" }, "warning carrier.tunnel", "wlan0 is a tunnel"},
		{"a TAP device", "robot", nil, func(f *Facts) { f.link("wlan0").Kind = "tun" }, "", ""},
		{"a TUN device", "robot", nil, func(f *Facts) { f.link("wlan0").Kind, f.link("wlan0").TUN = "tun", true }, "warning carrier.tunnel", "wlan0 is a tunnel (tun)"},
		{"another VPN", "robot", nil, func(f *Facts) {
			f.Network.Links = append(f.Network.Links, routing.LinkFacts{Name: "wg0", Kind: "wireguard", Default: true})
		}, "note vpn.default_route", "wg0 (wireguard)|kill switch"},
		{"another VPN on a gateway", "gateway", nil, func(f *Facts) {
			f.Network.Links = append(f.Network.Links, routing.LinkFacts{Name: "wg0", Kind: "wireguard", Default: true})
		}, "", ""},
		{"a VPN for one network", "robot", nil, func(f *Facts) {
			f.Network.Links = append(f.Network.Links, routing.LinkFacts{Name: "wg0", Kind: "wireguard"})
		}, "", ""},
		{"another node's TUN", "robot", nil, func(f *Facts) {
			f.Network.Links = append(f.Network.Links, routing.LinkFacts{Name: "plr1", Kind: "tun", Ours: true, Default: true})
		}, "", ""},
	})
}

// Interfaces that are no carriers are no trouble as long as others are: those that
// may be carriers are listed.
func TestLeftOut(t *testing.T) {
	f := sound("robot", false)
	for i := range 9 {
		f.Config.Others = append(f.Config.Others, Other{fmt.Sprint("veth", i), "a cable", false})
	}
	eth1 := Other{"eth1", "it is down or not connected", true}
	f.Config.Others = append(f.Config.Others, eth1)
	if r := Judge(f); r.Level != OK || !slices.Equal(r.LeftOut, []Other{eth1}) {
		t.Errorf("%+v", r)
	}
	f.Config.Carriers, f.Network.Carriers = nil, nil
	others := f.Config.Others
	for n, last := range map[int]string{10: "2 more interfaces are no carriers.", 9: "1 more interface is no carrier.", 8: "veth7 is no carrier (a cable)."} {
		f.Config.Others = others[:n]
		found := slices.DeleteFunc(Judge(f).Findings, func(f Finding) bool { return f.ID != idLeftOut })
		if got := found[len(found)-1].Text; got != last {
			t.Errorf("of %d: %q, want %q", n, got, last)
		}
	}
}

// A carrier that rests because of its monthly cap is told, by the daemon while it
// runs, else by its books.
func TestCaps(t *testing.T) {
	spent := func(names ...string) func(*Facts) {
		return func(f *Facts) {
			for _, c := range f.Network.Carriers {
				used := Cap{c.Interface, false, usage.State{Used: 1_500_000_000, Cap: 5_000_000_000, Month: "2026-11"}}
				if slices.Contains(names, c.Interface) {
					used.Used, used.Spent = 4_960_000_000, true
				}
				f.Caps = append(f.Caps, used)
			}
		}
	}
	rests := func(f *Facts) {
		f.Daemon.Status.Carriers = []tunnel.CarrierStatus{{Interface: "wwan0", Problem: "Its cap is used up, so wwan0 rests.", Usage: &tunnel.UsageStatus{Spent: true}}, {Slot: 1, Interface: "wlan0", Usable: true}}
	}
	try(t, []row{
		{"one is used up", "robot", before, spent("wwan0"), "warning carrier.resting",
			"wwan0 has used 4.96 GB of its monthly cap of 5 GB|until 2026-11 is over|The other carriers work|raise monthly_cap in /etc/fogplr/robot.toml"},
		{"none is used up", "robot", before, spent(), "", ""},
		{"all are used up", "robot", before, spent("wwan0", "wlan0"), "fails carrier.resting, fails carrier.resting", "nothing can leave"},
		{"used up and away", "robot", before, func(f *Facts) { spent("wwan0")(f); f.Network.Carriers[0].Problem = "wwan0 is down." },
			"warning carrier.unusable", "wwan0 is down"},
		{"used up, the other is away", "robot", before, func(f *Facts) { spent("wwan0")(f); f.Network.Carriers[1].Problem = "wlan0 is down." },
			"fails carrier.resting, fails carrier.unusable", "wlan0 is down"},
		{"the daemon says it", "robot", during, rests, "warning carrier.resting", "wwan0: Its cap is used up, so wwan0 rests.|The other carriers work"},
		{"the daemon says it, old books", "robot", during, func(f *Facts) { spent("wlan0")(f); rests(f) }, "warning carrier.resting", "wwan0 rests"},
		{"not by its cap", "robot", during, func(f *Facts) {
			f.Daemon.Status.Carriers = []tunnel.CarrierStatus{{Interface: "wwan0", Problem: "It is looked up.", Usage: new(tunnel.UsageStatus)}}
		}, "warning carrier.unusable", "wwan0: It is looked up."},
		{"without a cap, named as part of another", "robot", during, func(f *Facts) {
			f.Daemon.Status.Carriers = []tunnel.CarrierStatus{{Interface: "wwan0", Problem: "It conflicts with wwan01."}}
		}, "warning carrier.unusable", "wwan0: It conflicts with wwan01."},
	})
}

// The carrier that has the name of one that is gone is judged by itself.
func TestNameOfOneThatIsGone(t *testing.T) {
	carriers := []tunnel.CarrierStatus{
		{Interface: "wwan0", Slot: 0, Gone: true, Problem: "There is no interface wwan0 with its MAC now."},
		{Interface: "wwan0", Slot: 1, Usable: true},
	}
	only := func(order ...int) func(*Facts) {
		return func(f *Facts) {
			f.Network.Carriers = f.Network.Carriers[:1]
			for _, i := range order {
				f.Daemon.Status.Carriers = append(f.Daemon.Status.Carriers, carriers[i])
			}
		}
	}
	suffers := func(order ...int) func(*Facts) {
		return func(f *Facts) {
			only(order...)(f)
			f.Daemon.Status.Peers[0].Paths = []tunnel.PathStatus{
				{Carrier: "wwan0", Slot: 0, Hint: "It is gone."},
				{Carrier: "wwan0", Slot: 1, Up: true, Hint: "Large packets do not pass."},
			}
		}
	}
	try(t, []row{
		{"gone first", "robot", during, only(0, 1), "", ""},
		{"gone last", "robot", during, only(1, 0), "", ""},
		{"its paths, gone first", "robot", during, suffers(0, 1), "warning daemon.path", "wwan0 to west: Large packets"},
		{"its paths, gone last", "robot", during, suffers(1, 0), "warning daemon.path", "wwan0 to west: Large packets"},
	})
}

func iptables(t *testing.T, text string, v6 bool) *firewall.Rules {
	t.Helper()
	var r firewall.Rules
	if err := r.ParseIPTables(text, v6); err != nil {
		t.Fatal(err)
	}
	return &r
}

func nftables(t *testing.T, table, hook, policy, rules string) *firewall.Rules {
	t.Helper()
	var r firewall.Rules
	text := fmt.Sprintf(`{"nftables":[{"chain":{"family":"inet","table":%q,"name":"in","type":"filter","hook":%q,"prio":0,"policy":%q}}%s]}`, table, hook, policy, rules)
	if err := r.ParseNFT([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestFirewall(t *testing.T) {
	const rpf = `,{"rule":{"family":"inet","table":%q,"chain":"in","expr":[{"match":{"op":"==","left":{"fib":{"result":"oif","flags":["saddr","iif"]}},"right":false}},{"drop":null}]}}`
	const plr0 = `,{"rule":{"family":"inet","table":"filter","chain":"in","expr":[{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"plr0"}},{"accept":null}]}}`
	closed := nftables(t, "filter", "input", "drop", "")
	second := func(f *Facts) {
		f.link("wlan0").Addresses = append(f.link("wlan0").Addresses, netip.MustParsePrefix("2001:db8:1::3/64"))
	}
	strict6 := func(table string) func(*Facts) {
		return func(f *Facts) {
			second(f)
			f.Firewall = nftables(t, table, "prerouting", "accept", fmt.Sprintf(rpf, table))
		}
	}
	try(t, []row{
		{"not seen", "", nil, func(f *Facts) { f.Firewall = nil }, "", ""},
		{"port closed", "gateway", nil, func(f *Facts) { f.Firewall = closed }, "warning firewall.port, warning firewall.dds",
			"UDP port 51820|nft insert rule inet filter in udp dport 51820 accept|nft insert rule inet filter in iifname plr0 accept"},
		{"port closed, plr0 open", "gateway", nil, func(f *Facts) { f.Firewall = nftables(t, "filter", "input", "drop", plr0) }, "warning firewall.port", ""},
		{"closed on a robot", "robot", nil, func(f *Facts) { f.Firewall = closed }, "warning firewall.dds", "plr0"},
		{"firewalld", "gateway", nil, func(f *Facts) { f.Firewall = nftables(t, "firewalld", "input", "drop", "") }, "warning firewall.port, warning firewall.dds",
			"firewall-cmd --permanent --add-port=51820/udp|--zone=trusted --add-interface=plr0"},
		{"iptables", "gateway", nil, func(f *Facts) {
			f.Firewall = iptables(t, "*filter\n:INPUT DROP [0:0]\n-A INPUT -i plr0 -j ACCEPT\n", false)
		},
			"warning firewall.port", "iptables -I INPUT -p udp --dport 51820 -j ACCEPT"},
		{"iptables on a robot", "robot", nil, func(f *Facts) { f.Firewall = iptables(t, "*filter\n:INPUT DROP [0:0]\n", false) },
			"warning firewall.dds", "iptables -I INPUT -i plr0 -j ACCEPT"},
		{"ip6tables, overlay by IPv6", "robot", nil, func(f *Facts) {
			f.Config.Node.Addresses = f.Config.Node.Addresses[1:]
			f.Firewall = iptables(t, "*filter\n:INPUT DROP [0:0]\n", true)
		}, "warning firewall.dds", "ip6tables -I INPUT"},
		{"ip6tables, overlay by IPv4", "robot", nil, func(f *Facts) { f.Firewall = iptables(t, "*filter\n:INPUT DROP [0:0]\n", true) }, "", ""},
		{"strict IPv6", "robot", nil, strict6("filter"), "note carrier.ipv6_rpfilter", "inet filter in|wwan0, wlan0|nothing to repair"},
		{"strict IPv6, no rules", "robot", nil, func(f *Facts) { strict6("filter")(f); f.Network.NoRules6 = true },
			"warning kernel.rules6, warning carrier.ipv6_rpfilter", "wwan0, wlan0|nft --handle list chain inet filter in"},
		{"strict IPv6, one address on two carriers", "robot", nil, func(f *Facts) {
			strict6("filter")(f)
			f.link("wwan0").Addresses = f.link("wlan0").Addresses
		}, "warning carrier.ipv6_rpfilter", "the same address"},
		{"strict IPv6 by firewalld, no rules", "robot", nil, func(f *Facts) { strict6("firewalld")(f); f.Network.NoRules6 = true },
			"warning kernel.rules6, warning carrier.ipv6_rpfilter", "IPv6_rpfilter=no|complete-reload"},
		{"strict IPv6 by ip6tables, no rules", "robot", nil, func(f *Facts) {
			second(f)
			f.Firewall = iptables(t, "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m rpfilter --invert -j DROP\n", true)
			f.Network.NoRules6 = true
		}, "warning kernel.rules6, warning carrier.ipv6_rpfilter", "ip6tables -t raw -I PREROUTING"},
		{"strict IPv6, one carrier has it", "robot", nil, func(f *Facts) { strict6("filter")(f); f.link("wlan0").Addresses = nil }, "", ""},
		{"strict IPv6 on a gateway", "gateway", nil, strict6("filter"), "", ""},
	})
}

func TestGateway(t *testing.T) {
	no := false
	bridge := func(f *Facts) {
		f.Network.Links = append(f.Network.Links, routing.LinkFacts{Name: "docker0", Kind: "bridge", Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("172.17.0.1/16")}})
	}
	hold := func(h Holder) func(*Facts) { return func(f *Facts) { f.Ports = []Holder{h} } }
	try(t, []row{
		{"port taken", "gateway", before, hold(Holder{Port: 51820, PID: 12, Name: "wireguard-go"}), "fails gateway.port", "51820|wireguard-go (process 12)|kill 12|listen_port"},
		{"port taken by a service", "gateway", before, hold(Holder{Port: 51820, PID: 12, Name: "x", Unit: "x.service"}), "fails gateway.port", "systemctl stop x.service"},
		{"port taken by somebody", "gateway", before, hold(Holder{Port: 51820}), "fails gateway.port", "another program, so"},
		{"port taken by the kernel", "gateway", before, func(f *Facts) {
			hold(Holder{Port: 51820})(f)
			f.Network.Links = append(f.Network.Links, routing.LinkFacts{Name: "wg0", Kind: "wireguard"})
		}, "fails gateway.port", "the kernel's WireGuard (wg0)|wg-quick down wg0"},
		{"port is its own", "gateway", during, hold(Holder{Port: 51820, PID: 12, Name: "fogplr"}), "", ""},
		{"another port", "gateway", before, hold(Holder{Port: 51821, PID: 12, Name: "x"}), "", ""},
		{"containers", "gateway", nil, bridge, "", ""},
		{"containers, no forwarding", "gateway", nil, func(f *Facts) { bridge(f); f.Kernel.Forwards = &no }, "warning gateway.ip_forward", "docker0|sysctl -w net.ipv4.ip_forward=1"},
		{"no forwarding", "gateway", nil, func(f *Facts) { f.Kernel.Forwards = &no }, "", ""},
		{"no forwarding on a robot", "robot", nil, func(f *Facts) { bridge(f); f.Kernel.Forwards = &no }, "", ""},
		{"not forwarded", "gateway", nil, func(f *Facts) {
			f.Firewall = iptables(t, "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -j LOG\n*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -i plr0 -j DNAT --to-destination 172.17.0.2\n", false)
		}, "note gateway.forward_policy", "dnat|iptables -I FORWARD -i plr0 -j ACCEPT"},
		{"not forwarded, nothing behind", "gateway", nil, func(f *Facts) { f.Firewall = nftables(t, "filter", "forward", "drop", "") }, "", ""},
	})
}

func TestDDS(t *testing.T) {
	away := Setting{Variable: "CYCLONEDDS_URI", Value: "file:///y", Text: `<CycloneDDS><!-- plr0 --><NetworkInterface name="eth0"/></CycloneDDS>`}
	fast := func(text string) Setting {
		return Setting{Variable: "FASTRTPS_DEFAULT_PROFILES_FILE", Value: "/f.xml", Text: text}
	}
	const whitelist = "<dds><interfaceWhiteList>\n<address> 10.77.0.2 </address></interfaceWhiteList></dds>"
	late := func(p Program) func(*Facts) {
		return func(f *Facts) { f.Programs = append(f.Programs, p) }
	}
	early := Program{PID: 3, Name: "listener", Started: time.Second}
	try(t, []row{
		{"nothing set", "", nil, func(f *Facts) { f.Shell, f.Programs = Profile{}, nil }, "note dds.environment", `eval "$(fogplr env)"|sudo`},
		{"nothing set, programs are right", "", nil, func(f *Facts) { f.Shell = Profile{} }, "", ""},
		{"elsewhere", "", nil, func(f *Facts) { f.Shell.Cyclone = away }, "warning dds.profile", "CYCLONEDDS_URI|file:///y|plr0"},
		{"unreadable", "", nil, func(f *Facts) { f.Shell.Cyclone.Problem = "open /x: no such file" }, "warning dds.profile", "/x: no such file"},
		{"Fast DDS by address", "", nil, func(f *Facts) { f.Shell = Profile{FastDDS: fast(whitelist)} }, "", ""},
		{"Fast DDS elsewhere", "", nil, func(f *Facts) { f.Shell.FastDDS = fast("<dds>10.77.0.20</dds>") }, "warning dds.profile", "FASTRTPS"},
		{"another vendor's profile is wrong", "", nil, func(f *Facts) { f.Shell.RMW, f.Shell.FastDDS = "rmw_cyclonedds_cpp", fast("<dds/>") }, "", ""},
		{"this vendor's profile is missing", "", nil, func(f *Facts) { f.Shell.RMW, f.Programs = "rmw_fastrtps_cpp", nil }, "note dds.environment", ""},
		{"localhost", "", nil, func(f *Facts) { f.Shell.Obstacles = []string{"ROS_LOCALHOST_ONLY is set"} }, "warning dds.obstacle", "ROS_LOCALHOST_ONLY"},
		{"lo without multicast", "", nil, func(f *Facts) {
			f.Shell.Cyclone.Text = `<CycloneDDS><NetworkInterface name="plr0"/><NetworkInterface name="lo"/></CycloneDDS>`
		}, "warning dds.multicast", "names lo|ip link set dev lo multicast on"},
		{"early", "", nil, late(early), "warning dds.before", "listener (process 3)|before plr0 was there"},
		{"many early", "", nil, func(f *Facts) { f.Programs = slices.Repeat([]Program{early}, 7) }, "warning dds.before", ", 2 more"},
		{"early service", "", nil, late(Program{PID: 3, Name: "x", Unit: "ros.service", Started: 1}), "warning dds.before", "systemctl restart ros.service"},
		{"early ROS daemon", "", nil, late(Program{PID: 4, Name: "python3", ROSDaemon: true, Started: time.Second}), "warning dds.ros_daemon", "process 4|ros2 daemon stop"},
		{"start not known", "", nil, late(Program{PID: 5, Name: "x"}), "", ""},
		{"late", "", nil, late(Program{PID: 5, Name: "x", Started: time.Hour}), "", ""},
		{"before plr0", "", before, func(f *Facts) {
			f.Network.Links = f.Network.Links[:3]
			f.Programs = []Program{early, {PID: 4, ROSDaemon: true, Started: time.Hour}}
		}, "note overlay.missing, warning dds.ros_daemon, warning dds.before", "while there is no plr0 yet"},
		{"program elsewhere", "", nil, late(Program{PID: 6, Name: "rogue", Started: time.Hour, Profile: &Profile{Cyclone: away}}), "note dds.program", "rogue (process 6)"},
		{"program without profile", "", nil, late(Program{PID: 6, Name: "rogue", Started: time.Hour, Profile: &Profile{}}), "note dds.program", ""},
	})
}
