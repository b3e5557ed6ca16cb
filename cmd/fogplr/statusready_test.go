package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/tunnel"
)

// A robot is ready with one gateway, and says why when it reaches none.
func TestUnreached(t *testing.T) {
	robot, gateway := robotStatus(), gatewayStatus()
	for i := range robot.Peers[0].Paths {
		robot.Peers[0].Paths[i].Up = false
	}
	robot.Ready = false
	robot.Peers[0].Paths[0].Stage = "handshake refused\x1b"
	away := func(name string) tunnel.PeerStatus {
		return tunnel.PeerStatus{Name: name, Paths: []tunnel.PathStatus{{Carrier: "wwan0", Stage: "no reply"}, {Carrier: "wlan0", LastProof: -1}}}
	}
	two := tunnel.Status{Role: "robot", Ready: true, Peers: []tunnel.PeerStatus{away("east"), {Name: "west", Paths: []tunnel.PathStatus{{Carrier: "wwan0", Up: true}}}, away("north")}}
	bare := tunnel.Status{Role: "robot", Peers: []tunnel.PeerStatus{{Name: "west"}}}
	for name, c := range map[string]struct {
		status tunnel.Status
		want   []string
	}{
		"none": {robot, []string{"no gateway can be reached: handshake refused? on wwan0; silent for 100ms on wlan0; carrier gone on eth0; no reply on wwan0; silent for 1m15s on wlan0"}},
		"two of three": {two, []string{
			"gateway east cannot be reached (no reply on wwan0; not yet up on wlan0); 1 of 3 gateways can be",
			"gateway north cannot be reached (no reply on wwan0; not yet up on wlan0); 1 of 3 gateways can be",
		}},
		"no carrier": {bare, []string{"no gateway can be reached: there is no carrier"}},
		"no gateway": {tunnel.Status{Role: "robot"}, []string{"no gateway can be reached: none is configured"}},
		"gateway":    {gateway, nil},
	} {
		if got := unreached(&c.status); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := failing(&robot); got[0] != "robot stretch is not ready" || !strings.HasPrefix(got[1], "no gateway can be reached: ") {
		t.Errorf("%q", got)
	}
}

// Having no carrier is told once, by the daemon, which knows what to do.
func TestNoCarrierIsToldOnce(t *testing.T) {
	s := tunnel.Status{Role: "robot", Name: "stretch", Warnings: []string{"This robot has no carrier."}, Peers: []tunnel.PeerStatus{{Name: "west"}}}
	var text strings.Builder
	if statusText(&text, &s); strings.Count(text.String(), "warning: ") != 1 || !strings.Contains(text.String(), "\nwarning: This robot has no carrier.\n") {
		t.Error(text.String())
	}
	want := []string{"robot stretch is not ready", "no gateway can be reached: there is no carrier"}
	if got := failing(&s); !reflect.DeepEqual(got, want) {
		t.Errorf("--check: %q, want %q", got, want)
	}
}

// The table of paths and the sentences about gateways call a state the same.
func TestDownFor(t *testing.T) {
	for _, c := range []struct {
		path tunnel.PathStatus
		gone bool
		want string
	}{
		{tunnel.PathStatus{LastProof: -1}, false, "not yet up"},
		{tunnel.PathStatus{LastProof: 75.4}, false, "silent for 1m15s"},
		{tunnel.PathStatus{LastProof: 75.4, Stage: "no reply\x1b"}, false, "no reply?"},
		{tunnel.PathStatus{LastProof: 75.4, Stage: "no route", Latent: true}, true, "carrier gone"},
	} {
		s := tunnel.Status{Role: "robot", Ready: true, Carriers: []tunnel.CarrierStatus{{Interface: "wwan0", Gone: c.gone}}, Peers: []tunnel.PeerStatus{{Name: "west", Paths: []tunnel.PathStatus{c.path}}}}
		if state, sentence := pathState(&c.path, c.gone), obstacles(&s, s.Peers); state != "down: "+c.want || sentence != c.want+" on wwan0" {
			t.Errorf("%+v: %q and %q, want %q", c.path, state, sentence, c.want)
		}
	}
}
