package routing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWithoutRules: policy routing missing for either family or both, seen
// when reading the rules or only when adding one. Sockets are bound, the user
// reads one sentence, and nothing of ours stays in the kernel.
func TestWithoutRules(t *testing.T) {
	both := func() view {
		v := world()
		v.addresses = append(v.addresses, address{index: 1, ip: addr("::1"), subnet: pfx("::1/128")})
		for i, name := range []string{"eth0", "wlan0"} {
			v.ether(2+i, name, []string{"192.168.1.5/24", "192.168.2.5/24"}[i], []string{"2001:db8:1::5/64", "2001:db8:2::5/64"}[i])
			v.route(unix.RT_TABLE_MAIN, "default", []string{"192.168.1.1", "192.168.2.1"}[i], 2+i, uint32(100+i))
			v.route(unix.RT_TABLE_MAIN, "default6", "fe80::1", 2+i, uint32(100+i))
		}
		v.ether(4, "wwan0", "10.8.7.6/29", "2001:db8:3::5/64") // no default route in main
		v.route(300, "default", "10.8.7.1", 4, 0)
		v.route(300, "default6", "fe80::1", 4, 0)
		return v
	}
	wants := []Want{carrier("eth0", 0, gw1, gw6), carrier("wlan0", 1, gw1, gw6), carrier("wwan0", 2, gw1, gw6)}
	for _, err := range []error{unix.EAFNOSUPPORT, unix.EOPNOTSUPP} {
		for _, atAdd := range []bool{false, true} {
			for _, lacks := range [][2]bool{{true, false}, {false, true}, {true, true}} {
				t.Run(fmt.Sprintf("%v, at adding %v, without %v", err, atAdd, lacks), func(t *testing.T) {
					v := both()
					if !atAdd {
						v.noRules4, v.noRules6 = lacks[0], lacks[1]
						v.rules = slices.DeleteFunc(v.rules, func(r rule) bool { return lacks[0] && !r.v6 || lacks[1] && r.v6 })
					}
					k := newFake(v)
					tried := 0
					k.refuse = func(line string) error {
						if strings.HasPrefix(line, "ip rule add") && lacks[0] || strings.HasPrefix(line, "ip -6 rule add") && lacks[1] {
							tried++
							return err
						}
						return nil
					}
					m, out := manage(t, k)
					for range 3 {
						for i, c := range apply(t, m, wants) {
							want4, want6 := i < 2 || !lacks[0], i < 2 || !lacks[1]
							if c.Usable4 != want4 || c.Usable6 != want6 {
								t.Errorf("%+v", c)
							}
							if (c.Problem != "") != (i == 2 && lacks[0] && lacks[1]) {
								t.Errorf("problem %q", c.Problem)
							}
						}
					}
					if n := strings.Count(out.String(), "no policy routing"); n != 1 || strings.Count(out.String(), "level=WARN") != 1 {
						t.Errorf("said %d times:\n%s", n, out)
					}
					if w := m.Warnings(); len(w) != 1 || strings.Contains(w[0], "CONFIG_IP_MULTIPLE") != lacks[0] || strings.Contains(w[0], "CONFIG_IPV6_MULTIPLE") != lacks[1] {
						t.Errorf("warnings %q", w)
					}
					if atAdd == (tried == 0) || tried > 4 {
						t.Errorf("tried to add a rule %d times", tried)
					}
					for _, r := range k.v.routes {
						if r.protocol == Protocol && lacks[map[bool]int{true: 1}[r.v6()]] {
							t.Errorf("route for nothing: %s", r.line(""))
						}
					}
				})
			}
		}
	}
}

// TestWithoutIPv6 has no policy routing for IPv6 to miss.
func TestWithoutIPv6(t *testing.T) {
	v := world()
	v.rules, v.noRules6 = v.rules[:3], true
	v.ether(2, "eth0", "192.168.1.5/24")
	v.route(unix.RT_TABLE_MAIN, "default", "192.168.1.1", 2, 100)
	m, out := manage(t, newFake(v))
	c := apply(t, m, []Want{carrier("eth0", 0, gw1, gw6)})
	if !c[0].Usable4 || c[0].Problem != "" || strings.Contains(out.String(), "WARN") {
		t.Errorf("%+v\n%s", c, out)
	}
}

// TestKernelIPv6Off: an administrator switched IPv6 off, before the start or while
// fogplr runs. The overlay goes on with IPv4, and one sentence says so until IPv6
// is there again. Only an overlay that has nothing else is refused.
func TestKernelIPv6Off(t *testing.T) {
	l := newLab(t)
	ipv6Off := func(off string) {
		l.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=" + off + " net.ipv6.conf.default.disable_ipv6=" + off)
	}
	has := func(words string) bool {
		out, err := l.try("ip -br addr show dev plr0")
		l.must(err)
		return strings.Contains(out, words)
	}
	ipv6Off("1")
	l.persistentTUN("plr0")
	m := l.manager(t.TempDir())
	warns := func(want int) {
		t.Helper()
		for range 2 {
			l.must(m.SetupTUN(overlayTUN()))
			apply(t, m, nil)
		}
		if w := m.Warnings(); len(w) != want || want > 0 && !strings.Contains(w[0], "sysctl -w net.ipv6.conf.plr0.disable_ipv6=0") {
			t.Errorf("%q", w)
		}
		if !has("10.77.0.2/16") || has("fd77::2/64") != (want == 0) {
			t.Errorf("want %d warnings: wrong addresses", want)
		}
	}
	warns(1)
	ipv6Off("0")
	warns(0)
	ipv6Off("1")
	warns(1)
	only6 := overlayTUN()
	only6.Addresses = only6.Addresses[1:]
	if err := m.SetupTUN(only6); err == nil || !strings.Contains(err.Error(), "disable_ipv6=0") {
		t.Errorf("an overlay of IPv6 alone: %v", err)
	}
}
