package main

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/internal/check"
)

func TestCheckText(t *testing.T) {
	for _, c := range []struct {
		name string
		r    check.Report
		want string
	}{
		{"well", check.Report{Role: "robot", Name: "stretch", Config: "/etc/fogplr/robot.toml", Running: true},
			"robot stretch (/etc/fogplr/robot.toml), running: all is well.\n"},
		{"carriers", check.Report{Role: "robot", Name: "stretch", Config: "r.toml", Running: true, Carriers: []string{"wwan0", "wlan\x1b"}},
			"robot stretch (r.toml), running: all is well.\ncarriers: wwan0, wlan?.\n"},
		{"left out", check.Report{Config: "r.toml", Carriers: []string{"wwan0"}, LeftOut: []check.Other{{Interface: "eth0", Reason: "it is down"}, {Interface: "wlan\x1b", Reason: "denied"}}},
			"r.toml: all is well.\ncarriers: wwan0.\nno carriers: eth0 (it is down), wlan? (denied).\n"},
		{"nine are left out", check.Report{Config: "r.toml", Carriers: []string{"wwan0"}, LeftOut: slices.Repeat([]check.Other{{Interface: "e", Reason: "x"}}, 9)},
			"r.toml: all is well.\ncarriers: wwan0.\nno carriers: e (x), e (x), e (x), e (x), e (x), e (x), e (x), e (x), 1 more.\n"},
		{"no file", check.Report{Findings: []check.Finding{{ID: "a.b", Level: check.Note, Text: "One."}, {ID: "a.c", Level: check.Note, Text: "Two."}}},
			"no configuration: 2 notes.\n\nnote: a.b: One.\nnote: a.c: Two.\n"},
		{"stopped", check.Report{Role: "gateway", Name: "west", Config: "g.toml", Stopped: true, Findings: []check.Finding{{ID: "daemon.stopped", Level: check.Note, Text: "It does not run."}}},
			"gateway west (g.toml), not running: 1 note.\n\nnote: daemon.stopped: It does not run.\n"},
		{"groups", check.Report{Config: "g.toml", Findings: []check.Finding{
			{ID: "kernel.tun", Level: check.Fails, Text: "There is no TUN device, and this sentence is longer than a line of a terminal.", Repair: "modprobe tun"},
			{ID: "carrier.mtu", Level: check.Warning, Text: "Small\x1b[31m."},
			{ID: "kernel.udp", Level: check.Fails, Text: "No UDP.", Repair: "a command that is so long that it would not fit into one line of a terminal of eighty columns"},
		}}, "g.toml: 2 fail, 1 warning.\n" +
			"\nfails: kernel.tun: There is no TUN device, and this sentence is longer than a\n  line of a terminal.\n  repair: modprobe tun\n" +
			"fails: kernel.udp: No UDP.\n  repair: a command that is so long that it would not fit into one line of a terminal of eighty columns\n" +
			"\nwarning: carrier.mtu: Small?[31m.\n"},
		{"probed", check.Report{Config: "r.toml", Answers: []check.Answer{
			{Carrier: "wwan0", Gateway: "west", Endpoint: netip.MustParseAddrPort("198.51.100.10:51820"), Heard: true, RTTms: 23.44},
			{Carrier: "wlan0", Gateway: "west", Endpoint: netip.MustParseAddrPort("[2001:db8::1]:443")},
		}}, "r.toml: all is well.\n\nprobe: west (198.51.100.10:51820) through wwan0: answers after 23.4 ms\n" +
			"probe: west ([2001:db8::1]:443) through wlan0: no answer\n"},
		{"nobody to ask", check.Report{Config: "r.toml", Role: "robot", Answers: []check.Answer{}},
			"r.toml: all is well.\n\nprobe: nobody was asked, since no carrier that can be used has a route to a\n  gateway whose address is known.\n"},
		{"a gateway asks nobody", check.Report{Config: "g.toml", Role: "gateway", Answers: []check.Answer{}},
			"g.toml: all is well.\n\nprobe: nobody was asked, since a gateway waits for its robots: use --probe on a\n  robot.\n"},
	} {
		var b strings.Builder
		checkText(&b, &c.r)
		if b.String() != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, b.String(), c.want)
		}
	}
}

// The time that stands for the program's making is one at which it was there.
func TestBuilt(t *testing.T) {
	info, err := os.Stat(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if b := built(); b.IsZero() || b.After(info.ModTime().Add(time.Second)) {
		t.Errorf("built %v, the file is of %v", b, info.ModTime())
	}
}
