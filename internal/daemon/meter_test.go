package daemon

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/tun/tuntest"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/usage"
	"github.com/fogplr/fogplr/tunnel"
)

// The status has what was moved since the last count, and tells the carriers whose
// caps are used up from others.
func TestMeteredStatus(t *testing.T) {
	const month = "2026-11"
	for _, c := range []struct {
		state     usage.State
		at, moved uint64
		want      tunnel.UsageStatus
	}{
		{usage.State{Month: month, Used: 5, Cap: 9}, 3, 4, tunnel.UsageStatus{Month: month, Used: 6, Cap: 9}},
		{usage.State{Month: month, Used: 5, Cap: 9}, 3, 0, tunnel.UsageStatus{Month: month, Used: 5, Cap: 9}}, // configured anew
		{usage.State{Month: month, Used: 9, Cap: 9, Spent: true}, 3, 3, tunnel.UsageStatus{Month: month, Used: 9, Cap: 9, Spent: true}},
	} {
		if got := (metered{state: c.state, at: c.at}).status(c.moved); *got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.state, *got, c.want)
		}
	}
}

// What a metered carrier has moved is its own, also when another one takes its slot
// before the next count, and none of the other's is.
func TestMeteredCarrierIsReplaced(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	d := &robot{
		base: &base{
			opts:  Options{Log: quiet},
			cfg:   &config.Node{Name: "robot", Addresses: []netip.Prefix{netip.MustParsePrefix("10.77.0.101/16")}, MTU: 1280, StateDir: t.TempDir()},
			kicks: make(chan struct{}, 1),
		},
		began: time.Now(),
	}
	const limit = 1_000_000_000
	a := carriers.Carrier{Interface: "fogtest0", ID: "mac:a", MonthlyCap: limit}
	b := carriers.Carrier{Interface: "fogtest0", ID: "mac:b", MonthlyCap: limit}
	set := func(c carriers.Carrier) tunnel.RobotConfig {
		return tunnel.RobotConfig{Common: d.common(), Carriers: []tunnel.Carrier{tunnelled(c, d.key)}}
	}
	d.chosen, d.set = []carriers.Carrier{a}, set(a)
	var err error
	if d.tunnel, err = tunnel.NewRobot(d.set, tuntest.NewChannelTUN().TUN()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = d.tunnel.Run(ctx)
	}()
	d.count()
	d.tunnel.Spend(0, 5000)
	d.chosen = []carriers.Carrier{b}
	if err := d.install(set(b)); err != nil {
		t.Fatal(err)
	}
	if d.resting(b) == "" || d.resting(a) != "" {
		t.Error("the new carrier is used before it was counted")
	}
	d.count()
	d.tunnel.Spend(0, 300)
	d.chosen = []carriers.Carrier{a} // which the tunnel has refused
	d.count()
	if d.resting(a) == "" {
		t.Error("a carrier that the tunnel has not is used")
	}
	d.chosen = []carriers.Carrier{b}
	d.count()
	for id, want := range map[string]uint64{"mac:a": 5000, "mac:b": 300} {
		if got := d.usage.Count(id, 0, limit, d.clocks()); got.Used != want {
			t.Errorf("%s has used %d, want %d", id, got.Used, want)
		}
	}
}

// Paths of a carrier that rests say so, and others what they said.
func TestPathsOfRestingCarriers(t *testing.T) {
	s := tunnel.Status{Peers: []tunnel.PeerStatus{
		{Name: "west", Paths: []tunnel.PathStatus{{Slot: 0, Stage: "no route", Hint: "no way"}, {Slot: 1, Stage: "no route", Hint: "no way"}}},
		{Name: "east", Paths: []tunnel.PathStatus{{Slot: 1, Up: true, Stage: "lossy"}, {Slot: 0, Stage: "no reply"}}},
	}}
	rests(&s, 0)
	for _, got := range []tunnel.PathStatus{s.Peers[0].Paths[0], s.Peers[1].Paths[1]} {
		if got.Stage != "resting" || !strings.Contains(got.Hint, "monthly cap") {
			t.Errorf("%+v", got)
		}
	}
	if got := s.Peers[0].Paths[1]; got.Stage != "no route" || got.Hint != "no way" {
		t.Errorf("%+v", got)
	}
	if got := s.Peers[1].Paths[0]; !got.Up || got.Stage != "lossy" {
		t.Errorf("%+v", got)
	}
}
