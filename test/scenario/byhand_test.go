package scenario

import (
	"strings"
	"testing"
	"time"
)

func TestCheckFault(t *testing.T) {
	s, err := parse("x.toml", "[[carrier]]\ninterface = \"cell-a\"\n[[carrier]]\ninterface = \"cell-b\"\nnat = \"symmetric\"\n", onDisk)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f    Fault
		want string
	}{
		{Fault{Kind: BlackHole, Carrier: "cell-a"}, ""},
		{Fault{Kind: BlackHole, Carrier: "cell-a", Direction: Up, For: time.Second}, ""},
		{Fault{Kind: Replug, Carrier: "cell-a", As: "cell-x"}, ""},
		{Fault{Kind: NATRebind, Carrier: "cell-b"}, ""},
		{Fault{Kind: GatewayKill, Gateway: "west"}, ""},
		{Fault{Kind: RobotRestart}, ""},
		{Fault{Kind: "fire"}, "black-hole, link-down"},
		{Fault{Kind: BlackHole}, "cell-a, cell-b"},
		{Fault{Kind: BlackHole, Carrier: "cell-c"}, "cell-a, cell-b"},
		{Fault{Kind: GatewayStop, Gateway: "north"}, "west, east"},
		{Fault{Kind: GatewayStop, Gateway: "west", Carrier: "cell-a"}, "does not happen to a carrier"},
		{Fault{Kind: RobotRestart, Gateway: "west"}, "does not happen to a gateway"},
		{Fault{Kind: Replug, Carrier: "cell-a", For: time.Second}, "undoes itself"},
		{Fault{Kind: Unplug, Carrier: "cell-a", For: -1}, "cannot last"},
		{Fault{Kind: Unplug, Carrier: "cell-a", As: "x"}, "no new name"},
		{Fault{Kind: BlackHole, Carrier: "cell-a", Direction: "left"}, "both, up and down"},
		{Fault{Kind: NATRebind, Carrier: "cell-a"}, "has no NAT"},
		{Fault{Kind: Replug, Carrier: "cell-a", As: "cell-b"}, "another carrier's name"},
		{Fault{Kind: Replug, Carrier: "cell-a", As: "lo"}, "cannot be the name"},
		{Fault{Kind: Replug, Carrier: "cell-a", As: "sixteen-letters-"}, "cannot be the name"},
	} {
		if c.f.Direction == "" {
			c.f.Direction = BothWays
		}
		err := s.CheckFault(&c.f)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.f, err, c.want)
		}
	}
}
