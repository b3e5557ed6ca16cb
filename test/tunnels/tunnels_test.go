package tunnels

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

func TestByName(t *testing.T) {
	if got := Names(); !slices.Equal(got, []string{"fogplr", "wireguard", "failover"}) {
		t.Errorf("the tunnels are %v", got)
	}
	for _, name := range Names() {
		tunnel, err := ByName(name, Options{})
		if err != nil || tunnel.Name() != name {
			t.Errorf("%s: %v, %v", name, tunnel, err)
			continue
		}
		if err := tunnel.Kill(new(lab.Node)); err == nil {
			t.Errorf("%s: no error for a node that has no part in it", name)
		}
		if err := tunnel.Stop(); err != nil {
			t.Errorf("%s: stop without start: %v", name, err)
		}
	}
	if _, err := ByName("ipsec", Options{}); err == nil || !strings.Contains(err.Error(), "wireguard") {
		t.Errorf("the error for an unknown tunnel does not name the others: %v", err)
	}
}

func TestPrograms(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "wireguard-go")
	if _, err := binary(missing, "wireguard-go", "make it"); err == nil || !strings.Contains(err.Error(), "make it") {
		t.Errorf("the error for a missing program does not say how to make it: %v", err)
	}
	if err := os.WriteFile(missing, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := binary(missing, "wireguard-go", ""); err != nil || got != missing {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := program("/some/program"); err != nil || got != "/some/program" {
		t.Errorf("a path becomes %s, %v", got, err)
	}
	if got, err := program("sh"); err != nil || !filepath.IsAbs(got) {
		t.Errorf("sh becomes %s, %v", got, err)
	}
	if _, err := program("no_such_program"); err == nil || !strings.Contains(err.Error(), "no_such_program") {
		t.Errorf("the error for an unknown program: %v", err)
	}
}

func TestUnreached(t *testing.T) {
	path := func(up bool) (p tunnel.PathStatus) { p.Up = up; return p }
	status := func(west, east bool) *tunnel.Status {
		return &tunnel.Status{Peers: []tunnel.PeerStatus{
			{Name: "west", Paths: []tunnel.PathStatus{path(false), path(west)}},
			{Name: "east", Paths: []tunnel.PathStatus{path(east), path(false)}},
		}}
	}
	for _, c := range []struct {
		west, east bool
		want       string
	}{{true, true, ""}, {false, true, "west"}, {true, false, "east"}} {
		if got := unreached(status(c.west, c.east)); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestWireGuardConfigs(t *testing.T) {
	key := func(b byte) (k keys.Private) { k[0] = b; return k }
	a := netip.MustParseAddr
	robot := wgConfig{Key: key(1), Address: a("10.77.0.2"), Peers: []wgPeer{
		{key(2).PublicKey(), a("10.77.0.11"), netip.MustParseAddrPort("198.51.100.10:51820")},
		{key(3).PublicKey(), a("10.77.0.12"), netip.MustParseAddrPort("203.0.113.20:51820")},
	}}
	want := `[Interface]
PrivateKey = AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=

[Peer]
PublicKey = ` + key(2).PublicKey().String() + `
AllowedIPs = 10.77.0.11/32
Endpoint = 198.51.100.10:51820
PersistentKeepalive = 25

[Peer]
PublicKey = ` + key(3).PublicKey().String() + `
AllowedIPs = 10.77.0.12/32
Endpoint = 203.0.113.20:51820
PersistentKeepalive = 25
`
	if got := render("wireguard.conf.tmpl", robot); got != want {
		t.Errorf("the robot has\n%s\nwant\n%s", got, want)
	}
	gateway := wgConfig{Key: key(2), Address: a("10.77.0.11"), Listen: 51820, Peers: []wgPeer{{Key: key(1).PublicKey(), Address: a("10.77.0.2")}}}
	want = `[Interface]
PrivateKey = AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
ListenPort = 51820

[Peer]
PublicKey = ` + key(1).PublicKey().String() + `
AllowedIPs = 10.77.0.2/32
`
	if got := render("wireguard.conf.tmpl", gateway); got != want {
		t.Errorf("a gateway has\n%s\nwant\n%s", got, want)
	}
	u := robot.profile(1420)
	if u.Interface != "wg0" || !slices.Equal(u.Peers, []netip.Addr{a("10.77.0.2"), a("10.77.0.11"), a("10.77.0.12")}) {
		t.Errorf("the robot's DDS has %+v", u)
	}
}

func TestUnicastProfiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	a := netip.MustParseAddr
	u := unicast{Interface: "wg0", Address: a("10.77.0.2"), Peers: []netip.Addr{a("10.77.0.2"), a("10.77.0.11")}, MTU: 1420}
	env, err := u.write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{
		"CYCLONEDDS_URI=file://" + dir + "/cyclonedds.xml",
		"FASTRTPS_DEFAULT_PROFILES_FILE=" + dir + "/fastdds.xml",
		"FASTDDS_DEFAULT_PROFILES_FILE=" + dir + "/fastdds.xml",
	}; !slices.Equal(env, want) {
		t.Errorf("the environment is %q", env)
	}
	for file, parts := range map[string][]string{
		"cyclonedds.xml": {
			`<NetworkInterface name="wg0"/>`, "<AllowMulticast>false<", "<MaxMessageSize>1392B<", "<MaxRexmitMessageSize>1392B<",
			"<FragmentSize>1272B<", "<MaxAutoParticipantIndex>9<", `<Peer address="10.77.0.2"/>`, `<Peer address="10.77.0.11"/>`,
		},
		"fastdds.xml": {
			"<type>UDPv4<", "<maxMessageSize>1392<", "<maxInitialPeersRange>10<", "<useBuiltinTransports>false<",
			"<interfaceWhiteList><address>10.77.0.2<", "<initialPeersList><locator><udpv4><address>10.77.0.2<", "<locator><udpv4><address>10.77.0.11<",
		},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.Join(strings.Fields(strings.ReplaceAll(string(text), ">\n", "> ")), " ")
		plain = strings.ReplaceAll(plain, "> <", "><")
		for _, part := range parts {
			if strings.Count(plain, part) != 1 {
				t.Errorf("%s has %q %d times:\n%s", file, part, strings.Count(plain, part), text)
			}
		}
	}
}
