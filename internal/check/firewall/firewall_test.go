package firewall

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "have nft(8) print testdata/*.nft anew (root)")

// TestMain prints the rule sets by the real nft when asked to.
func TestMain(m *testing.M) {
	flag.Parse()
	if *update {
		files, _ := filepath.Glob("testdata/*.nft")
		for _, f := range files {
			out, err := exec.Command("unshare", "--net", "sh", "-c", `nft -f "$1" && nft --json list ruleset`, "-", f).Output()
			if err == nil {
				err = os.WriteFile(strings.TrimSuffix(f, ".nft")+".json", out, 0o644)
			}
			if err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

func nftFile(t testing.TB, name string) *Rules {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var r Rules
	if err := r.ParseNFT(text); err != nil {
		t.Fatal(err)
	}
	return &r
}

const outside = "" // by any interface that leads out

func TestNFTInput(t *testing.T) {
	for _, c := range []struct {
		file    string
		port    uint16
		in      string
		v6      bool
		blocked bool
	}{
		{"drop", 51820, outside, false, true},
		{"drop", 51820, outside, true, true},
		{"drop", 51820, "lo", false, false},
		{"drop", 500, outside, false, false},
		{"drop", 22, outside, false, true}, // that is TCP's
		{"drop", 7400, "plr0", false, true},
		{"port", 51820, outside, false, false},
		{"port", 51831, outside, false, true},
		{"port", 7400, "plr0", false, false},
		{"port", 7400, "plr1", false, true},
		{"named", 51821, outside, false, false},
		{"named", 51823, outside, false, true},
		{"named", 7000, outside, false, false},
		{"named", 7001, outside, false, true},
		{"named", 7002, outside, false, true}, // sub takes plr0 alone
		{"named", 7002, "plr0", false, false},
		{"named", 7003, outside, false, false},
		{"named", 7003, "eth1", false, false},
		{"named", 7003, "wlan0", false, true},
		{"named", 7004, outside, false, false},
		{"named", 7005, "plr0", false, false},
		{"named", 7005, outside, false, true},
		{"named", 7006, outside, false, true},
		{"named", 7006, outside, true, false},
		{"named", 7007, outside, true, false},
		{"named", 7007, outside, false, true},
		{"named", 7008, outside, false, false},
		{"last", 51820, outside, false, false},
		{"last", 51821, outside, false, true},
		{"last", 51820, outside, true, true},
		{"last", 51821, outside, true, false},
		{"last", 51821, "lo", false, false},
		{"rpf", 51820, outside, false, false},
	} {
		r := nftFile(t, c.file)
		where, blocked := r.Blocks("input", Packet{Port: c.port, In: c.in, V6: c.v6, Inside: []string{"plr0", "plr*"}})
		if blocked != c.blocked {
			t.Errorf("%s: port %d by %q, v6=%v: blocked=%v by %q", c.file, c.port, c.in, c.v6, blocked, where)
		}
		if blocked && !strings.HasSuffix(where, "filter input") {
			t.Errorf("%s: blocked by %q", c.file, where)
		}
	}
	if !nftFile(t, "last").DNAT || nftFile(t, "port").DNAT {
		t.Error("DNAT is not told from its absence")
	}
}

func TestReversePath(t *testing.T) {
	if where, found := nftFile(t, "rpf").StrictReversePath6(); !found || where != "inet filter pre" {
		t.Errorf("nft: %q, %v", where, found)
	}
	if where, found := nftFile(t, "loose").StrictReversePath6(); found {
		t.Errorf("loose nft: %q", where)
	}
	for text, want := range map[string]bool{
		"-A PREROUTING -m rpfilter --validmark --invert -j DROP":                        true,
		"-A PREROUTING -m rpfilter --invert -m comment --comment \"-j ACCEPT\" -j DROP": true,
		"-A PREROUTING -m rpfilter --loose --invert -j DROP":                            false,
		"-A PREROUTING -m rpfilter --invert -j LOG":                                     false,
		"-A PREROUTING -m rpfilter -j DROP":                                             false,
		"-A PREROUTING -p icmp -m rpfilter --invert -j DROP":                            false,
	} {
		var r Rules
		save := "*raw\n:PREROUTING ACCEPT [0:0]\n" + text + "\nCOMMIT\n"
		if err := r.ParseIPTables(save, true); err != nil {
			t.Fatal(err)
		}
		if where, found := r.StrictReversePath6(); found != want {
			t.Errorf("%s: %q, %v", text, where, found)
		}
		r = Rules{}
		if err := r.ParseIPTables(save, false); err != nil {
			t.Fatal(err)
		}
		if where, found := r.StrictReversePath6(); found {
			t.Errorf("IPv4's %s: %q", text, where)
		}
	}
}

func TestIPTablesInput(t *testing.T) {
	const head = "# Generated\n*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n:user - [0:0]\n" +
		"-A INPUT -i lo -j ACCEPT\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -j LOG --log-prefix \"[UFW BLOCK] -j ACCEPT\"\n"
	for _, c := range []struct {
		rules string
		in    string
		open  bool
	}{
		{"", outside, false},
		{"-A INPUT -p udp -m udp --dport 51820 -j ACCEPT", outside, true},
		{"-A INPUT -p tcp -m tcp --dport 51820 -j ACCEPT", outside, false},
		{"-A INPUT -p udp -m udp ! --dport 51820 -j ACCEPT", outside, false},
		{"-A INPUT -p udp -m multiport --dports 500,51000:52000 -m comment --comment \"a \\\"b\\\" -p tcp\" -j ACCEPT", outside, true},
		{"-A INPUT -j user\n-A user -p udp -j RETURN\n-A user -j ACCEPT", outside, false},
		{"-A INPUT -g user\n-A INPUT -j ACCEPT\n-A user -p tcp -j ACCEPT", outside, false},
		{"-A INPUT -g user\n-A user -j ACCEPT", outside, true},
		{"-A INPUT -i plr+ -j ACCEPT", outside, true}, // there may be a plr1
		{"-A INPUT -i plr0 -j ACCEPT", outside, false},
		{"-A INPUT -i plr0 -j ACCEPT", "plr0", true},
		{"-A INPUT ! -i plr0 -j ACCEPT", "plr0", false},
		{"-A INPUT -i eth+ -p 17 -j ACCEPT", "plr0", false},
		{"-A INPUT -s 192.0.2.0/24 -j ACCEPT", outside, true},
		{"-A INPUT -m set --match-set good src -j ACCEPT", outside, true},
		{"-A INPUT -m conntrack --ctstate NEW,ESTABLISHED -j ACCEPT", outside, true},
		{"-A INPUT -m state ! --state INVALID -j ACCEPT", outside, true},
		{"-A INPUT -p udp -j REJECT --reject-with icmp-port-unreachable\n-A INPUT -j ACCEPT", outside, false},
		{"-A INPUT -s 192.0.2.0/24 -j DROP\n-A INPUT -j ACCEPT", outside, true},
	} {
		var r Rules
		if err := r.ParseIPTables(head+c.rules+"\nCOMMIT\n", false); err != nil {
			t.Fatal(err)
		}
		where, blocked := r.Blocks("input", Packet{Port: 51820, In: c.in, Inside: []string{"plr0"}})
		if blocked == c.open {
			t.Errorf("by %q, %s: blocked=%v by %q", c.in, c.rules, blocked, where)
		}
		if _, blocked := r.Blocks("input", Packet{Port: 51820, In: c.in, V6: true}); blocked {
			t.Error("a rule for IPv4 blocks IPv6")
		}
		if where, blocked := r.Blocks("forward", Packet{In: "plr0"}); !blocked || where != "ip iptables-filter FORWARD" {
			t.Errorf("forward: %q, %v", where, blocked)
		}
	}
}

// Chains that jump to each other, which no kernel takes, end the walk in doubt.
func TestEndlessJumps(t *testing.T) {
	var r Rules
	text := "*filter\n:INPUT DROP [0:0]\n:a - [0:0]\n:b - [0:0]\n-A INPUT -j a\n" +
		strings.Repeat("-A a -j b\n", 50) + strings.Repeat("-A b -j a\n", 50)
	if err := r.ParseIPTables(text, false); err != nil {
		t.Fatal(err)
	}
	if where, blocked := r.Blocks("input", Packet{Port: 1}); blocked {
		t.Errorf("blocked by %q", where)
	}
	if err := new(Rules).ParseIPTables("*filter\n:INPUT DROP [0:0]\n"+strings.Repeat("-A INPUT -j LOG\n", maxRules+1), false); err == nil {
		t.Error("no limit")
	}
	if err := new(Rules).ParseNFT([]byte("not JSON")); err == nil {
		t.Error("no error")
	}
}

func FuzzNFT(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Rules
		if r.ParseNFT(text) == nil {
			r.Blocks("input", Packet{Port: 51820})
			r.StrictReversePath6()
		}
	})
}

func FuzzIPTables(f *testing.F) {
	f.Add("*filter\n:INPUT DROP [0:0]\n:user - [0:0]\n-A INPUT ! -i lo -m comment --comment \"x\" -g user\n-A user --dports 1,2:3 -j ACCEPT\nCOMMIT\n")
	f.Add("*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m rpfilter --invert -j DROP\n-A PREROUTING !\n-A\n-A \"")
	f.Fuzz(func(t *testing.T, text string) {
		var r Rules
		if r.ParseIPTables(text, true) == nil {
			r.Blocks("input", Packet{Port: 51820, V6: true})
			r.StrictReversePath6()
		}
	})
}
