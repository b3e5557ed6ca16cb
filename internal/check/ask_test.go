package check

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v3"

	"github.com/fogplr/fogplr/internal/usage"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

func TestAnswers(t *testing.T) {
	port := func(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 51820) }
	asked := func(silentGateway, silentCarrier string) func(*Facts) {
		return func(f *Facts) {
			h := Host{Ask: func(_ context.Context, iface string, to netip.AddrPort) (time.Duration, error) {
				if iface == silentCarrier || silentGateway == "all" || silentGateway == "west" && to == port(west) {
					return 0, errors.New("no answer")
				}
				return 20 * time.Millisecond, nil
			}}
			h.askAll(t.Context(), f)
			if len(f.Answers) != 3 { // wlan0 has no route to east
				t.Errorf("asked %+v", f.Answers)
			}
		}
	}
	try(t, []row{
		{"all answer", "robot", nil, asked("", ""), "", ""},
		{"west is silent", "robot", nil, asked("west", ""), "warning gateway.answer, warning carrier.answer", "west does not answer|through wlan0"},
		{"wlan0 is silent", "robot", nil, asked("", "wlan0"), "warning carrier.answer", "through wlan0, although"},
		{"all are silent", "robot", nil, asked("all", ""), "fails gateway.answer, fails gateway.answer", "west|east"},
	})
	if q := questions(&Facts{}); q == nil || len(q) != 0 {
		t.Errorf("asked %v", q)
	}
	f := sound("robot", false)
	asked("", "wlan0")(f)
	for _, a := range Judge(f).Answers {
		if a.Heard != (a.Carrier == "wwan0") || a.Heard && a.RTTms != 20 || !a.Heard && a.RTTms != 0 {
			t.Errorf("%+v", a)
		}
	}
	f.Network.Carriers[0].Problem = "It is down."
	if q := questions(f); len(q) != 1 || q[0].Carrier != "wlan0" || q[0].Endpoint != port(west) {
		t.Errorf("asked %+v", q)
	}
	f.Network.Carriers = nil
	for range 2 * maxQuestions {
		f.Network.Carriers = append(f.Network.Carriers, routing.CarrierFacts{Carrier: routing.Carrier{Reached: map[netip.Addr]bool{west: true}}})
	}
	if n := len(questions(f)); n != maxQuestions {
		t.Errorf("%d questions", n)
	}
}

// A carrier that fogplr itself spares is not used for a question.
func TestSparedCarriersAreNotAsked(t *testing.T) {
	spent := usage.State{Used: 5, Cap: 5, Month: "2026-11", Spent: true}
	for name, c := range map[string]struct {
		running bool
		spare   func(*Facts)
		asked   bool
	}{
		"used up":      {false, func(f *Facts) { f.Caps = []Cap{{"wwan0", false, spent}} }, false},
		"hidden":       {false, func(f *Facts) { f.Caps = []Cap{{"wwan0", true, usage.State{}}} }, false},
		"some is left": {false, func(f *Facts) { f.Caps = []Cap{{"wwan0", false, usage.State{Used: 1, Cap: 5}}} }, true},
		"the daemon says so": {true, func(f *Facts) {
			f.Daemon.Status.Carriers = []tunnel.CarrierStatus{{Interface: "wwan0", Problem: "It rests.", Usage: &tunnel.UsageStatus{Spent: true}}}
		}, false},
		"the daemon looks it up": {true, func(f *Facts) {
			f.Daemon.Status.Carriers = []tunnel.CarrierStatus{{Interface: "wwan0", Problem: "It is being looked up.", Usage: new(tunnel.UsageStatus)}}
		}, false},
		"the daemon uses it": {true, func(f *Facts) {
			f.Daemon.Status.Carriers = []tunnel.CarrierStatus{{Interface: "wwan0", Usable: true, Usage: new(tunnel.UsageStatus)}}
		}, true},
	} {
		f := sound("robot", c.running)
		c.spare(f)
		asked, others, told := false, false, false
		Host{Ask: func(_ context.Context, _ string, _ netip.AddrPort) (time.Duration, error) {
			return time.Millisecond, nil
		}}.askAll(t.Context(), f)
		for _, a := range f.Answers {
			asked, others = asked || a.Carrier == "wwan0", others || a.Carrier == "wlan0"
		}
		for _, found := range Judge(f).Findings {
			told = told || found.ID == "carrier.not_asked" && found.Level == Note && strings.Contains(found.Text, "through wwan0:")
		}
		if asked != c.asked || !others || told == c.asked {
			t.Errorf("%s: asked %v, others %v, told %v", name, asked, others, told)
		}
		f.Answers = nil
		if slices.ContainsFunc(Judge(f).Findings, func(f Finding) bool { return f.ID == "carrier.not_asked" }) {
			t.Errorf("%s: told without --probe", name)
		}
	}
}

// A server that first says other things is waited for.
func TestAsk(t *testing.T) {
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 1500)
		n, from, err := server.ReadFromUDPAddrPort(b)
		var m stun.Message
		if err != nil || stun.Decode(b[:n], &m) != nil || m.Type != stun.BindingRequest {
			return
		}
		answer := func(id stun.Setter) []byte { return stun.MustBuild(id, stun.BindingSuccess).Raw }
		for _, raw := range [][]byte{[]byte("nonsense"), answer(stun.TransactionID), m.Raw, answer(stun.NewTransactionIDSetter(m.TransactionID))} {
			_, _ = server.WriteToUDPAddrPort(raw, from)
		}
	}()
	began := time.Now()
	if rtt, err := ask(t.Context(), "lo", server.LocalAddr().(*net.UDPAddr).AddrPort()); err != nil || rtt <= 0 || rtt > time.Since(began) {
		t.Error(rtt, err)
	}
	<-ended
	if _, err := ask(t.Context(), "no-such-if0", netip.MustParseAddrPort("192.0.2.1:1")); err == nil {
		t.Error("an interface that does not exist")
	}
}
