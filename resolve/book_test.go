package resolve

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

var errDead = errors.New("192.168.1.1 does not answer")

func TestNameAtStart(t *testing.T) {
	for _, c := range []struct {
		metered bool
		day     int // questions, two families each
	}{{false, 2 * (1 + 143)}, {true, 2 * (1 + 23)}} {
		w := wlan(0, IPv4, IPv6)
		w.Metered = c.metered
		s := play(t, []Carrier{w}, gateway("west", "west.example.org:51820"))
		s.answers("0 west.example.org A", "198.51.100.10")
		s.answers("0 west.example.org AAAA", "2001:db8::10")
		s.run(answerTime)
		s.wantAsked("0 west.example.org A", "0 west.example.org AAAA")
		s.wantTold("0 west", "[2001:db8::10]:51820", "198.51.100.10:51820")
		s.up(0, "west", "198.51.100.10:51820")
		s.says(0)
		s.run(day - answerTime)
		if n := len(s.asks) + 2; n != c.day {
			t.Errorf("metered %v: %d questions a day, want %d", c.metered, n, c.day)
		}
	}
}

func TestLiteralsAskNothing(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4, IPv6), wlan(1, IPv4), wlan(2, IPv6)},
		gateway("west", "198.51.100.10:51820", "[2001:db8::10]:51820"), gateway("east", "203.0.113.20:1", "203.0.113.20:2", "[2001:db8::20]:1"))
	s.run(time.Hour)
	s.wantTold("0 west", "198.51.100.10:51820", "[2001:db8::10]:51820")
	s.wantTold("1 east", "203.0.113.20:1", "203.0.113.20:2")
	s.wantTold("2 west", "[2001:db8::10]:51820")
	s.fail(0, "west") // east goes on
	s.b.Changed(0, s.now)
	s.b.Changed(1, s.now)
	s.run(day)
	s.wantAsked()
	s.says(0)
}

// TestGatewayMoves: P048.
func TestGatewayMoves(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4), wlan(1, IPv4)}, gateway("west", "west.example.org:51820"))
	s.answers("0 west.example.org A", "198.51.100.10")
	s.answers("1 west.example.org A", "198.51.100.10")
	s.run(time.Second)
	s.up(0, "west", "198.51.100.10:51820")
	s.up(1, "west", "198.51.100.10:51820")
	s.run(90 * time.Second)
	s.asked()

	s.answers("0 west.example.org A", "198.51.100.77")
	s.fail(0, "west")
	s.fail(0, "west")
	s.run(time.Second)
	s.wantAsked("0 west.example.org A", "0 ipv4only.arpa A")           // perhaps a portal
	s.wantTold("0 west", "198.51.100.77:51820", "198.51.100.10:51820") // what answered once comes last
	s.wantTold("1 west", "198.51.100.10:51820")                        // nobody asked through the other carrier
	s.up(0, "west", "198.51.100.77:51820")
	s.run(time.Second)
	s.wantTold("0 west", "198.51.100.77:51820")
	s.asked()
	s.run(refresh - 3*time.Second)
	s.wantAsked("1 west.example.org A") // its first refresh; carrier 0 was asked later
}

// TestRecordChangesLate: the name is changed while its owner wonders why nothing
// works.
func TestRecordChangesLate(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4)}, gateway("west", "west.example.org:51820"))
	s.answers("0 west.example.org A", "198.51.100.10")
	s.run(time.Second)
	s.up(0, "west", "198.51.100.10:51820")
	s.run(time.Hour)
	s.asked()
	s.fail(0, "west")
	s.run(30 * time.Second)
	s.answers("0 west.example.org A", "198.51.100.77")
	changed := s.now
	for len(s.told["0 west"]) < 2 && s.now.Sub(changed) < time.Hour {
		s.run(100 * time.Millisecond)
	}
	if d := s.now.Sub(changed); d > 35*time.Second {
		t.Errorf("noticed after %v", d)
	}
	before := len(s.asks)
	s.run(day)
	if n := len(s.asks) - before; n > 600 { // for the name, and for a portal
		t.Errorf("%d questions a day for a gateway that is gone", n)
	}
}

func TestDeadDNS(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4)}, gateway("west", "west.example.org:51820"), gateway("east", "203.0.113.20:51820"))
	s.fails("0 west.example.org A", ErrNoServers) // DHCP is not through yet
	s.run(time.Second)
	s.says(0, "No DNS server of wlan0 is known, so no name")
	s.wantTold("0 east", "203.0.113.20:51820")
	s.fails("0 west.example.org A", errDead)
	s.run(10 * time.Second)
	if got := s.status(0); got.Failing != 11*time.Second {
		t.Errorf("failing for %v", got.Failing)
	}
	s.says(0, "DNS through wlan0 fails: 192.168.1.1 does not answer.")
	if strings.Contains(s.status(0).Sentences[0], "stays in use") {
		t.Error(s.status(0).Sentences)
	}
	s.answers("0 west.example.org A", "198.51.100.10")
	s.run(10 * time.Second)
	s.wantTold("0 west", "198.51.100.10:51820")
	s.says(0)

	s.fails("0 west.example.org A", errDead)
	s.run(day)
	s.wantTold("0 west", "198.51.100.10:51820")
	s.says(0, "DNS through wlan0 fails: 192.168.1.1 does not answer. What it said before stays in use for west.")
	if n := len(s.asks); n > 310 || n < 250 {
		t.Errorf("%d questions to a dead server in a day", n)
	}
}

func TestLinkEvents(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4)}, gateway("west", "west.example.org:51820"))
	s.answers("0 west.example.org A", "198.51.100.10")
	s.run(time.Minute)
	s.asked()
	s.b.Changed(0, s.now)
	s.turn()
	s.wantAsked("0 west.example.org A")
	// The answer to the old address is not waited for.
	q := s.flying[0].q
	w := wlan(0, IPv4)
	w.Addresses = []netip.Prefix{netip.MustParsePrefix("192.168.7.5/24")}
	s.b.SetCarriers([]Carrier{w}, s.now)
	if s.b.Waits(q) {
		t.Error("still waits for what was asked from the old address")
	}
	s.answers("0 west.example.org A", "198.51.100.77")
	s.run(spacing)
	s.wantAsked("0 west.example.org A")
	s.run(answerTime)
	s.wantTold("0 west", "198.51.100.77:51820")
	s.b.SetCarriers([]Carrier{w}, s.now) // the same again is no event
	s.run(time.Second)
	s.wantAsked()
	// A burst of events costs a question a second.
	for range 100 {
		s.b.Changed(0, s.now)
		s.run(50 * time.Millisecond)
	}
	if n := len(s.asks); n < 4 || n > 6 {
		t.Errorf("%d questions in five seconds of link events", n)
	}
	s.b.SetCarriers(nil, s.now)
	s.asked()
	s.run(day)
	s.wantAsked()
}

func TestQuestionsAreBounded(t *testing.T) {
	for _, metered := range []bool{false, true} {
		w := wlan(0, IPv4, IPv6)
		w.Metered = metered
		var gateways []Gateway
		for i := range 5 {
			gateways = append(gateways, gateway(fmt.Sprint("g", i), fmt.Sprintf("g%d.example.org:51820", i)))
		}
		s := play(t, []Carrier{w}, gateways...)
		for range 1200 { // ten minutes
			s.b.Changed(0, s.now)
			s.run(500 * time.Millisecond)
		}
		want := perMinute
		if metered {
			want = meteredPerMinute
		}
		if n := s.busiest(0); n != want {
			t.Errorf("metered %v: %d questions in a minute, want %d", metered, n, want)
		}
		if s.status(0).Asked != uint64(len(s.asks)) {
			t.Errorf("status counts %d of %d", s.status(0).Asked, len(s.asks))
		}
	}
}

// TestPathFlaps: a path that comes and goes all day is not the name's fault.
func TestPathFlaps(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4)}, gateway("west", "west.example.org:51820"), gateway("east", "203.0.113.20:51820"))
	s.answers("0 west.example.org A", "198.51.100.10")
	for range int(day / (10 * time.Second)) {
		s.up(0, "west", "198.51.100.10:51820")
		s.run(5 * time.Second)
		s.fail(0, "west")
		s.run(5 * time.Second)
	}
	if n := len(s.asks); n > 400 {
		t.Errorf("%d questions in a day", n)
	}
	s.up(0, "west", "198.51.100.10:51820")
	s.run(2 * calm)
	s.asked()
	s.fail(0, "west")
	s.run(time.Second)
	s.wantAsked("0 west.example.org A")
}

// TestTranslator: P081.
func TestTranslator(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv6), wlan(1, IPv4)}, gateway("west", "198.51.100.10:51820"), gateway("east", "203.0.113.20:51820", "[2001:db8::20]:51820"))
	s.answers("0 ipv4only.arpa AAAA", "64:ff9b::c000:aa", "64:ff9b::c000:ab")
	s.run(time.Minute)
	s.wantAsked("0 ipv4only.arpa AAAA")
	s.wantTold("0 west", "[64:ff9b::c633:640a]:51820")
	s.wantTold("0 east", "[2001:db8::20]:51820", "[64:ff9b::cb00:7114]:51820")
	s.wantTold("1 west", "198.51.100.10:51820")
	if got := s.status(0).NAT64; !slices.Equal(got, []netip.Prefix{wellKnownPrefix}) {
		t.Errorf("NAT64 %v", got)
	}
	s.says(0)

	// IPv4 comes as well: no translator any more, unless everything fails.
	s.b.SetCarriers([]Carrier{wlan(0, IPv4, IPv6)}, s.now)
	s.run(time.Hour)
	s.wantTold("0 west", "198.51.100.10:51820")
	s.wantAsked()
}

func TestNoTranslator(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv6), wlan(1, IPv4)}, gateway("west", "198.51.100.10:51820"), gateway("east", "[2001:db8::20]:51820"))
	s.turn()
	s.says(0) // not known yet
	s.run(time.Minute)
	s.wantTold("0 west")
	s.says(0, "wlan0 has no IPv4, and its network no translator (NAT64), so gateway west (198.51.100.10) cannot")
	s.says(1, "wlan1 has no IPv6, so gateway east (2001:db8::20) cannot")
	s.asked()
	s.run(day)
	if n := len(s.asks); n > 300 {
		t.Errorf("%d questions in a day", n)
	}
	s.answers("0 ipv4only.arpa AAAA", "2001:db8:64:0:c0:0:aa00:0") // a modem that needed its time
	s.b.Changed(0, s.now)
	s.run(spacing)
	s.wantTold("0 west", "[2001:db8:64:0:c6:3364:a00:0]:51820")
}

func TestNamesWithoutIPv4(t *testing.T) {
	// The network's DNS does the synthesis (DNS64).
	s := play(t, []Carrier{wlan(0, IPv6)}, gateway("west", "west.example.org:51820"))
	s.answers("0 west.example.org AAAA", "64:ff9b::c633:640a")
	s.run(time.Minute)
	s.wantAsked("0 west.example.org AAAA")
	s.wantTold("0 west", "[64:ff9b::c633:640a]:51820")

	// It does not, but there is a translator.
	s = play(t, []Carrier{wlan(0, IPv6)}, gateway("west", "west.example.org:51820"))
	s.answers("0 west.example.org A", "198.51.100.10")
	s.answers("0 ipv4only.arpa AAAA", "64:ff9b::c000:aa")
	s.run(3 * answerTime)
	s.wantAsked("0 west.example.org AAAA", "0 west.example.org A", "0 ipv4only.arpa AAAA")
	s.wantTold("0 west", "[64:ff9b::c633:640a]:51820")
	s.says(0)

	// IPv6 is in DNS, but does not work; IPv4 would.
	s = play(t, []Carrier{wlan(0, IPv6)}, gateway("west", "west.example.org:51820"))
	s.answers("0 west.example.org AAAA", "2001:db8::10")
	s.answers("0 west.example.org A", "198.51.100.10")
	s.answers("0 ipv4only.arpa AAAA", "64:ff9b::c000:aa")
	s.run(time.Minute)
	s.fail(0, "west")
	s.run(time.Second)
	s.wantTold("0 west", "[2001:db8::10]:51820", "[64:ff9b::c633:640a]:51820")

	// Nobody knows the name.
	s = play(t, []Carrier{wlan(0, IPv6)}, gateway("west", "west.example.org:51820"))
	s.run(time.Second)
	s.says(0, "The DNS of wlan0 knows no address for west.example.org, so gateway west cannot be found")
}

// TestDeadCLAT: P082. The IPv4 address is there, but what translates it died.
func TestDeadCLAT(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4, IPv6)}, gateway("west", "198.51.100.10:51820"), gateway("east", "203.0.113.20:51820"))
	s.answers("0 ipv4only.arpa A", "192.0.0.170", "192.0.0.171")
	s.answers("0 ipv4only.arpa AAAA", "64:ff9b::c000:aa")
	s.run(time.Hour)
	s.wantAsked()
	s.fail(0, "west", "east")
	s.run(time.Second)
	s.wantAsked("0 ipv4only.arpa A", "0 ipv4only.arpa AAAA")
	s.wantTold("0 west", "198.51.100.10:51820", "[64:ff9b::c633:640a]:51820")
	if s.status(0).Captive {
		t.Error("an honest network is called captive")
	}
	s.up(0, "west", "[64:ff9b::c633:640a]:51820")
	s.run(time.Hour)
	s.wantTold("0 west", "198.51.100.10:51820", "[64:ff9b::c633:640a]:51820") // what answers stays
	s.wantTold("0 east", "203.0.113.20:51820")
}

// TestCaptivePortal: P067.
func TestCaptivePortal(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4), wlan(1, IPv4)}, gateway("west", "west.example.org:51820"), gateway("east", "203.0.113.20:51820"))
	s.answers("0 west.example.org A", "198.51.100.10")
	s.answers("1 west.example.org A", "198.51.100.10")
	s.run(time.Second)
	s.up(0, "west", "198.51.100.10:51820")
	s.run(time.Hour)
	// The robot enters a hotel.
	s.answers("0 west.example.org A", "10.0.0.1")
	s.answers("0 ipv4only.arpa A", "10.0.0.1")
	s.b.Changed(0, s.now)
	s.run(time.Second)
	if s.status(0).Captive {
		t.Error("a verdict although nothing failed yet")
	}
	s.fail(0, "west")
	s.run(time.Second)
	s.asked()
	s.fail(0, "east")
	s.run(time.Second)
	if asked := s.asked(); !slices.Contains(asked, "0 ipv4only.arpa A") {
		t.Errorf("asked %q", asked)
	}
	if !s.status(0).Captive || s.status(1).Captive {
		t.Error("wlan0 is captive, wlan1 is not")
	}
	s.says(0, "The network of wlan0 intercepts: its DNS answers 10.0.0.1 for ipv4only.arpa, and no gateway answers.")
	s.says(1)
	s.wantTold("0 west", "10.0.0.1:51820", "198.51.100.10:51820") // where it was before
	s.wantTold("1 west", "198.51.100.10:51820")
	// Somebody logs in.
	s.up(0, "west", "198.51.100.10:51820")
	s.run(time.Second)
	s.says(0)
	// The next network is honest, but dead.
	s.fail(0, "west")
	s.run(time.Second)
	if !s.status(0).Captive {
		t.Error("captive again")
	}
	s.answers("0 ipv4only.arpa A", "192.0.0.170", "192.0.0.171")
	s.b.Changed(0, s.now)
	s.says(0) // nothing is known of this one yet
	s.run(10 * time.Second)
	s.says(0)
	// One that says NXDOMAIN is not captive.
	delete(s.dns, "0 ipv4only.arpa A")
	s.b.Changed(0, s.now)
	s.run(10 * time.Second)
	s.says(0)
}

// Nothing tells that a portal lets the robot through but its DNS, which is asked
// for that; the names that it lied about are asked for at once then.
func TestPortalLetsThrough(t *testing.T) {
	for _, metered := range []bool{false, true} {
		c := wlan(0, IPv4)
		c.Metered = metered
		s := play(t, []Carrier{c}, gateway("west", "west.example.org:51820"))
		s.answers("0 west.example.org A", "10.0.0.1")
		s.answers("0 ipv4only.arpa A", "10.0.0.1")
		s.run(3 * time.Second)
		s.fail(0, "west")
		s.run(time.Hour)
		if !s.status(0).Captive {
			t.Fatal("not captive")
		}
		s.asked()
		s.run(time.Hour)
		most := int(time.Hour/lastRetry + time.Hour/captiveRetry)
		if metered {
			most = int(2 * time.Hour / lastRetry)
		}
		if n := len(s.asked()); n > most || n < most-2 {
			t.Errorf("metered %v: %d questions in an hour, want %d", metered, n, most)
		}
		s.answers("0 west.example.org A", "198.51.100.10")
		s.answers("0 ipv4only.arpa A", "192.0.0.170", "192.0.0.171")
		if metered {
			s.run(lastRetry + time.Second)
		} else {
			s.run(captiveRetry + time.Second)
		}
		s.wantTold("0 west", "198.51.100.10:51820")
		s.says(0)
	}
}

func TestReload(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4)}, gateway("west", "west.example.org:51820"), gateway("east", "west.example.org:443"))
	s.answers("0 west.example.org A", "198.51.100.10")
	s.answers("0 new.example.org A", "203.0.113.20")
	s.run(time.Second)
	s.wantAsked("0 west.example.org A") // once for both
	s.wantTold("0 west", "198.51.100.10:51820")
	s.wantTold("0 east", "198.51.100.10:443")
	s.up(0, "west", "198.51.100.10:51820")
	clear(s.told)
	s.b.SetGateways([]Gateway{gateway("west", "new.example.org:51820"), gateway("east", "west.example.org:443")})
	s.run(time.Second)
	s.wantAsked("0 new.example.org A")
	s.wantTold("0 west", "203.0.113.20:51820") // not where it was under another endpoint
	if _, again := s.told["0 east"]; again {
		t.Error("east did not change")
	}
	// The same carriers and gateways, taken away and given back, are told again.
	s.b.SetCarriers(nil, s.now)
	s.turn()
	clear(s.told)
	s.b.SetCarriers([]Carrier{wlan(0, IPv4)}, s.now)
	s.run(time.Second)
	s.wantTold("0 west", "203.0.113.20:51820")
	s.wantTold("0 east", "198.51.100.10:443")
	s.b.SetGateways(nil)
	s.asked()
	s.run(day)
	s.wantAsked()
}

func TestCarrierWithoutAddress(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4)}, gateway("west", "west.example.org:51820"))
	s.answers("0 west.example.org A", "198.51.100.10")
	s.run(time.Second)
	s.asked()
	s.b.SetCarriers([]Carrier{wlan(0)}, s.now)
	s.fail(0, "west")
	s.run(day)
	s.wantAsked()
	s.wantTold("0 west", "198.51.100.10:51820") // nothing new
	s.says(0)
	s.b.SetCarriers([]Carrier{wlan(0, IPv4)}, s.now)
	s.turn()
	s.wantAsked("0 ipv4only.arpa A", "0 west.example.org A")
}

func TestUnknownCarriersAndGateways(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4)}, gateway("west", "198.51.100.10:51820"))
	s.fail(0, "nobody")
	s.fail(5, "west")
	s.up(5, "west", "198.51.100.10:51820")
	s.up(0, "nobody", "198.51.100.10:51820")
	s.b.Changed(5, s.now)
	s.up(0, "west", "6.6.6.6:6") // not where it was tried
	s.run(time.Hour)
	s.wantAsked()
	s.wantTold("0 west", "198.51.100.10:51820")
	if s.b.Waits(Question{ID: 7, Carrier: Carrier{Slot: 5}}) {
		t.Error("waits for a question of a carrier that is not there")
	}
}

func TestForeignNetworks(t *testing.T) {
	prefixes := func(all ...string) (out []netip.Prefix) {
		for _, s := range all {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	a, b, c := wlan(0, IPv4), wlan(1, IPv4), wlan(2, IPv4)
	a.Addresses = prefixes("192.168.8.100/24", "2001:db8:1::5/64")
	b.Addresses = prefixes("192.168.8.101/24", "10.1.2.3/8") // the same modem twice
	c.Addresses = prefixes("172.16.0.5/16")
	s := play(t, []Carrier{a, b, c}, gateway("west", "west.example.org:51820"))
	got := s.b.Due(s.now)
	want := [][]netip.Prefix{prefixes("10.0.0.0/8", "172.16.0.0/16"), prefixes("2001:db8:1::/64", "172.16.0.0/16"),
		prefixes("192.168.8.0/24", "2001:db8:1::/64", "192.168.8.0/24", "10.0.0.0/8")}
	for i, q := range got {
		if !slices.Equal(q.Foreign, want[i]) {
			t.Errorf("carrier %d: %v, want %v", i, q.Foreign, want[i])
		}
	}
	q := got[0]
	q.Carrier.IPv6 = false
	shared := Servers{Shared: true, List: addrPorts("10.0.0.53:53", "192.168.8.1:53", "[2001:db8::53]:53", "9.9.9.9:53")}
	if list := usable(shared, q); !slices.Equal(list, addrPorts("192.168.8.1:53", "9.9.9.9:53")) {
		t.Errorf("%v", list)
	}
	shared.Shared = false
	if list := usable(shared, q); !slices.Equal(list, addrPorts("10.0.0.53:53", "192.168.8.1:53", "9.9.9.9:53")) {
		t.Errorf("%v", list)
	}
}

// IPv4 addresses that are known first wait a moment for IPv6 ones, but not for a
// server that does not answer for those; and not once something was told.
func TestFirstFamilyWaits(t *testing.T) {
	for _, late := range []time.Duration{10 * time.Millisecond, time.Second} {
		now := time.Now()
		b := NewBook()
		b.SetGateways([]Gateway{gateway("west", "west.example.org:51820")})
		b.SetCarriers([]Carrier{wlan(0, IPv4, IPv6)}, now)
		questions := b.Due(now)
		if len(questions) != 2 || questions[0].Family != IPv6 {
			t.Fatalf("%+v", questions)
		}
		told := func(want ...string) {
			t.Helper()
			var got []netip.AddrPort
			for _, n := range b.News(now) {
				got = n.Candidates
			}
			if !slices.Equal(got, addrPorts(want...)) {
				t.Errorf("AAAA after %v: told %v, want %v", late, got, want)
			}
		}
		b.Record(questions[1], Answer{Found: addrs("198.51.100.10")}, now)
		told()
		if at, ok := b.Next(); !ok || !at.Equal(now.Add(resolutionDelay)) {
			t.Errorf("wants to be asked in %v", at.Sub(now))
		}
		now = now.Add(late)
		if late > resolutionDelay {
			told("198.51.100.10:51820")
		}
		b.Record(questions[0], Answer{Found: addrs("2001:db8::10")}, now)
		told("[2001:db8::10]:51820", "198.51.100.10:51820")
	}
}

// What an endpoint means is told apart from an address that only has answered.
func TestMeant(t *testing.T) {
	s := play(t, []Carrier{wlan(0, IPv4)}, gateway("west", "west.example.org:51820"))
	s.answers("0 west.example.org A", "198.51.100.10")
	s.run(time.Second)
	s.up(0, "west", "198.51.100.10:51820")
	means := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, a := range s.status(0).Meant["west"] {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: west is %q, want %q", when, got, want)
		}
	}
	means("found", "198.51.100.10:51820")
	s.b.SetGateways([]Gateway{gateway("west", "nosuch.example.org:51820")})
	means("at once")
	s.up(0, "west", "198.51.100.10:51820") // the path has not noticed
	s.run(time.Second)
	s.wantTold("0 west", "198.51.100.10:51820")
	means("not found")
	s.b.SetGateways([]Gateway{gateway("west", "198.51.100.99:51820")})
	s.up(0, "west", "198.51.100.10:51820")
	means("another address", "198.51.100.99:51820")
}
