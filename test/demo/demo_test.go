package main

import (
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/tunnel"
)

func TestDescribe(t *testing.T) {
	up := func(carrier string, rtt, loss float64) tunnel.PathStatus {
		return tunnel.PathStatus{Carrier: carrier, Up: true, RTTms: rtt, LossIn: loss, LossOut: 0}
	}
	down := tunnel.PathStatus{Carrier: "cell-a", RTTms: 999, LossIn: 1, LossOut: 1}
	unknown := tunnel.PathStatus{Carrier: "cell-a", Up: true, RTTms: 60, LossIn: -1, LossOut: -1}
	for _, c := range []struct {
		west, east tunnel.PathStatus
		want       string
	}{
		{up("cell-a", 40, 0.02), up("cell-a", 44, 0.04), "2 of 2 up, 42 ms, 3.0 % lost"},
		{up("cell-a", 40, 0.02), down, "1 of 2 up, 40 ms, 2.0 % lost"},
		{up("cell-a", 40, 0.02), unknown, "2 of 2 up, 50 ms, 2.0 % lost"},
		{unknown, unknown, "2 of 2 up, 60 ms"},
		{down, down, "down (0 of 2 paths up)"},
		{up("cell-b", 1, 0), unknown, "1 of 1 up, 60 ms"},
	} {
		s := &tunnel.Status{Peers: []tunnel.PeerStatus{{Paths: []tunnel.PathStatus{c.west}}, {Paths: []tunnel.PathStatus{c.east}}}}
		if got := describe(s, "cell-a"); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestTables(t *testing.T) {
	var b strings.Builder
	printHeader(&b, []carrier{cellA})
	printLine(&b, 2*time.Second, []carrier{cellA}, &tunnel.Status{}, []apps.Event{
		{Seq: 1, LatencyMS: 41, By: "west"}, {Seq: 1, LatencyMS: 70, By: "east", Extra: true}, {Seq: 2, Lost: true}, {Seq: 3, LatencyMS: 50, By: "east"},
	})
	r := &result{Run: "both", Calls: apps.Summary{Requests: 3, Replies: 2, Lost: 1, P50MS: 41.2}, Traffic: map[string]traffic{"cell-a": {12_345, 6_789}}}
	printResults(&b, []*result{r})
	words := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"2 s 2 1 50 ms down", "west 1, east 1", "both 3 2 1 0 0 ms 41 ms", "cell-a: 12 and 6 kB"} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is missing in:\n%s", want, b.String())
		}
	}
	if r.complete() {
		t.Error("a run with a lost call counts as complete")
	}
}
