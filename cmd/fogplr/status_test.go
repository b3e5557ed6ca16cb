package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
	"github.com/fogplr/fogplr/tunnel"
)

// headers are those of a packet of mtu bytes.
func headers(mtu int) tunnel.SizeStatus {
	return tunnel.SizeStatus{Tag: 28, WireGuard: 32, UDP: 8, IPv4: 20, IPv6: 40, LargestIPv4: mtu + 88, LargestIPv6: mtu + 108}
}

func robotStatus() tunnel.Status {
	return tunnel.Status{
		Role: "robot", Name: "stretch", Version: "v0.1.0", Uptime: 93784, Interface: "plr0",
		Addresses: []string{"10.77.0.2/16", "fd77::2/64"}, MTU: 1280, OnCarrier: headers(1280), Ready: true,
		Warnings: []string{"rp_filter on wlan0 is strict, so replies may be dropped: run `sysctl net.ipv4.conf.wlan0.rp_filter=2`."},
		Carriers: []tunnel.CarrierStatus{
			{Interface: "wwan0", Slot: 0, Usable: true, Label: "operator A", OwnBytes: 4_567_890, OwnPerDay: 4_213_000,
				Usage: &tunnel.UsageStatus{Month: "2026-11", Used: 1_234_567_890, Cap: 5_000_000_000}, Socket: tunnel.SocketStatus{TxBytes: 123456789, RxBytes: 999949, TxDropped: 3}},
			{Interface: "wlan0", Slot: 1, Usable: true, Socket: tunnel.SocketStatus{TxBytes: 999, RxBytes: 1000, TxErrors: 1, LastError: "network is unreachable"}},
			{Interface: "eth0", Slot: 2, Gone: true, Problem: "There is no interface eth0 now. It is used as soon as it appears."},
		},
		Peers: []tunnel.PeerStatus{
			{
				Name: "west", Addresses: []string{"10.77.0.11"},
				Elimination: replicate.Counters{Passed: 1234, Discarded: 1200, OutOfOrder: 5, Rogue: 1, Lost: 2, Resets: 1}, Incomplete: 4,
				Paths: []tunnel.PathStatus{
					{Carrier: "wwan0", Slot: 0, Endpoint: "198.51.100.10:51820", Up: true, Carries: true, RTTms: 48.25, LossIn: 0.0123, LossOut: 0, LastProof: 0.1, TxFrames: 1300, RxFrames: 1299, Largest: 1308, LargestPacket: 1368, Parts: 1},
					{Carrier: "wlan0", Slot: 1, Endpoint: "198.51.100.10:51820", Up: true, RTTms: 8.04, LossIn: 0, LossOut: -1, LastProof: 0.1, TxFrames: 1300, RxFrames: 1135, TxDropped: 7, LatentErrors: 2, Latent: true, Largest: 1056, LargestPacket: 1116, Parts: 2},
					{Carrier: "eth0", Slot: 2, LossIn: -1, LossOut: -1, LastProof: -1, Stage: "no route", Hint: "No route leads to 198.51.100.10 through eth0: connect it."},
				},
			},
			{
				Name: "east", Addresses: []string{"10.77.0.12"},
				Paths: []tunnel.PathStatus{
					{Carrier: "wwan0", Slot: 0, Endpoint: "203.0.113.20:51820", RTTms: 31, LossIn: 0, LossOut: 0.5, LastProof: 75.4, Stage: "no reply", Hint: "Nothing comes back from 203.0.113.20:51820: is the gateway running, and does its firewall let the port through?"},
					{Carrier: "wlan0", Slot: 1, Endpoint: "203.0.113.20:51820", LossIn: -1, LossOut: -1, LastProof: 75.4},
					{Carrier: "eth0", Slot: 2, LossIn: -1, LossOut: -1, LastProof: -1},
				},
			},
		},
		Out: tunnel.OutCounters{Packets: 10, Bytes: 9000, Local: 1, NoPeer: 2, NoPath: 3, NotAllowed: 4},
		In:  tunnel.InCounters{Frames: 20, Malformed: 5, BadVersion: 6, NotAllowed: 7, TUNErrors: 8},
	}
}

func gatewayStatus() tunnel.Status {
	s := tunnel.Status{
		Role: "gateway", Name: "west\x1b[31m", Version: "v0.1.0", Uptime: 4.25, Interface: "plr0", Addresses: []string{"10.77.0.11/16"}, MTU: 1280, OnCarrier: headers(1280), Ready: true,
		Socket: &tunnel.SocketStatus{TxBytes: 5_000_000_000, RxBytes: 1, RxOverflow: 9},
		Peers: []tunnel.PeerStatus{{
			Name: "stretch", Addresses: []string{"10.77.0.2"}, Elimination: replicate.Counters{Passed: 10, Discarded: 9},
			Paths: []tunnel.PathStatus{{Carrier: "slot 0", Endpoint: "192.0.2.7:40000", Up: true, Carries: true, LossIn: 0.5, LossOut: 1, LastProof: 0.2, TxFrames: 3, RxFrames: 4, Largest: 1040, LargestPacket: 1120, Parts: 2}},
		}},
	}
	for slot := 1; slot < 8; slot++ {
		s.Peers[0].Paths = append(s.Peers[0].Paths, tunnel.PathStatus{Carrier: "slot 1", Slot: slot, LossIn: -1, LossOut: -1, LastProof: -1})
	}
	return s
}

// wideStatus has long names and addresses, large numbers and one hint for many
// paths.
func wideStatus() tunnel.Status {
	s := tunnel.Status{
		Role: "robot", Name: strings.Repeat("long-name-", 6), Version: "v0.1.0-123-g0123456789ab-dirty", Uptime: 9e6, Interface: "fifteen-letters", MTU: 9000, OnCarrier: headers(9000),
		Addresses: []string{"10.77.0.2/16", "fd77:1122:3344:5566:7788:99aa:bbcc:2/64", "fd78:1122:3344:5566:7788:99aa:bbcc:2/64"},
		Carriers: []tunnel.CarrierStatus{
			{Interface: "enx001122334455", Usable: true, Label: strings.Repeat("a long label ", 9), OwnBytes: 999_900_000_000, OwnPerDay: 999_900_000_000,
				Usage: &tunnel.UsageStatus{Month: "2026-11", Used: 999_900_000_000, Cap: 999_900_000_000}, Socket: tunnel.SocketStatus{TxBytes: 999_900_000_000, RxBytes: 999_900_000_000, TxDropped: 1e9, TxErrors: 1e9, RxOverflow: 1e9}},
			{Interface: "wlx0a0b0c0d0e0f", Slot: 1, Usable: true, Captive: true},
			{Interface: "wwx0a0b0c0d0e0f", Slot: 7, Problem: "The interface wwx0a0b0c0d0e0f is down, so nothing can be sent over it. Bring it up with `ip link set dev wwx0a0b0c0d0e0f up`, or look at the modem."},
		},
		Out: tunnel.OutCounters{Packets: 1e12, Bytes: 1e15, Local: 1e6, NoPeer: 1e6, NoPath: 1e6, NotAllowed: 1e6},
		In:  tunnel.InCounters{Frames: 1e12, Malformed: 1e9, BadVersion: 1e9, NotAllowed: 1e9, TUNErrors: 1e9},
	}
	for i, stage := range []path.Stage{path.StageNoReply, path.StageHandshakeRefused, path.StageNoReply, path.StageAddressNotAllowed, path.StageStarting, path.StageNoReply, path.StageNoReply, path.StageNoReply, path.StageNoReply, path.StageNoReply} {
		name := fmt.Sprintf("europe-central2-a-replica-%d", i)
		refused := func(carrier string, slot int, stage path.Stage) tunnel.PathStatus {
			return tunnel.PathStatus{
				Carrier: carrier, Slot: slot, Endpoint: fmt.Sprintf("[2a01:4f8:c0c:1234:5678:9abc:def0:%d]:51820", i), LossIn: 0.1234, LossOut: 1, LastProof: 1e6, RTTms: 1234.5,
				Stage: stage.String(), Hint: stage.Hint(), TxFrames: 1e12, RxFrames: 1e12, TxDropped: 1e9, LatentErrors: 1e9,
			}
		}
		s.Peers = append(s.Peers, tunnel.PeerStatus{
			Name: name, Elimination: replicate.Counters{Passed: 1e12, Discarded: 1e12, OutOfOrder: 1e9, Rogue: 1e9, Lost: 1e9, Resets: 1e9},
			Paths: []tunnel.PathStatus{refused("enx001122334455", 0, stage), refused("wwx0a0b0c0d0e0f", 7, path.StageNoRoute)},
		})
	}
	return s
}

func TestStatusText(t *testing.T) {
	for name, s := range map[string]tunnel.Status{"robot": robotStatus(), "gateway": gatewayStatus(), "wide": wideStatus()} {
		var got bytes.Buffer
		statusText(&got, &s)
		file := filepath.Join("testdata", "status_"+name+".golden")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s:\n%s\nwant\n%s", file, got.String(), want)
		}
		for _, line := range strings.Split(got.String(), "\n") {
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%s: trailing spaces in %q", file, line)
			}
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%s: %d columns in %q", file, n, line)
			}
		}
	}
}

// A path that is up is named for what it does not carry.
func TestPathsAreToldBySize(t *testing.T) {
	lost := path.StageLargeLost.String()
	for _, c := range []struct {
		path        tunnel.PathStatus
		state, hint string
	}{
		{tunnel.PathStatus{Up: true, Carries: true, LargestPacket: 1368, Parts: 1}, "up", ""},
		{tunnel.PathStatus{Up: true, Carries: true, Parts: 3}, "up", ""}, // not known yet
		{tunnel.PathStatus{Up: true, Carries: true, LargestPacket: 1116, Parts: 2}, "up", "up to 1116 bytes pass here, so the largest that plr0 takes go in 2 parts."},
		{tunnel.PathStatus{Up: true, Carries: true, LargestPacket: 1388}, "up", "up to 1388 bytes pass here, which is too little"}, // of 9000
		{tunnel.PathStatus{Up: true, Carries: true, LargestPacket: 108, Stage: lost, Latent: true}, "up, large packets lost", ""},
		{tunnel.PathStatus{LargestPacket: 1116, Parts: 2, Stage: "no reply"}, "down: no reply", ""},
	} {
		if state, hint := pathState(&c.path, false), sizeHint(&c.path); state != c.state || !strings.Contains(hint, c.hint) || c.hint == "" && hint != "" {
			t.Errorf("%+v: %q, %q", c.path, state, hint)
		}
	}
}

func TestFailing(t *testing.T) {
	robot, gateway := robotStatus(), gatewayStatus()
	want := []string{
		"gateway east cannot be reached (no reply on wwan0; silent for 1m15s on wlan0; carrier gone on eth0); 1 of 2 gateways can be", "the path eth0 to west is not up",
		"the path wwan0 to east is not up", "the path wlan0 to east is not up", "the path eth0 to east is not up",
	}
	if got := failing(&robot); !reflect.DeepEqual(got, want) {
		t.Errorf("robot: %q, want %q", got, want)
	}
	if got := failing(&gateway); len(got) != 0 { // slots that were never used are no failure
		t.Errorf("gateway: %q", got)
	}
	gateway.Peers[0].Paths[0].Up = false
	gateway.Peers[0].Paths[1].Stage = "address not allowed"
	if got := failing(&gateway); len(got) != 2 {
		t.Errorf("gateway with two failing paths: %q", got)
	}
}

// daemonAt answers at a control socket until the test ends.
func daemonAt(t *testing.T, h control.Handlers) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "robot.sock")
	srv, err := control.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return socket
}

// command runs fogplr in this process.
func command(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestStatusCommand(t *testing.T) {
	s := robotStatus()
	socket := daemonAt(t, control.Handlers{Status: func() tunnel.Status { return s }})

	code, out, errs := command("status", "--socket", socket)
	if code != 0 || !strings.HasPrefix(out, "robot stretch: ready, up ") || errs != "" {
		t.Errorf("status: %d, %q, %q", code, out, errs)
	}
	code, out, errs = command("status", "--socket", socket, "--json", "--check")
	var got tunnel.Status
	if err := json.Unmarshal([]byte(out), &got); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("JSON: %v, %+v", err, got)
	}
	if code != 1 || strings.Count(errs, "\n") != 5 || !strings.HasPrefix(errs, "fogplr: gateway east cannot be reached (no reply on wwan0; ") {
		t.Errorf("check: %d, %q", code, errs)
	}
	s.Ready, s.Peers, s.Carriers = true, nil, nil
	if code, _, errs := command("status", "--socket", socket, "--check"); code != 0 || errs != "" {
		t.Errorf("check of a good node: %d, %q", code, errs)
	}
}

func TestReloadCommand(t *testing.T) {
	var answer error
	var s tunnel.Status
	socket := daemonAt(t, control.Handlers{Reload: func() error { return answer }, Status: func() tunnel.Status { return s }})
	if code, out, errs := command("reload", "--socket", socket); code != 0 || out != "The new configuration is in use. See `fogplr status --socket "+socket+"` in a moment for how it does.\n" || errs != "" {
		t.Errorf("reload: %d, %q, %q", code, out, errs)
	}
	if code, out, _ := command("reload", "--socket", socket, "--json"); code != 0 || !strings.Contains(out, `"reloaded": true`) {
		t.Errorf("reload --json: %d, %q", code, out)
	}
	s.Warnings = []string{"This robot has no carrier."}
	if code, out, errs := command("reload", "--socket", socket); code != 0 || out != "The new configuration is in use. Known so far; see `fogplr status --socket "+socket+"` in a moment:\nwarning: This robot has no carrier.\n" || errs != "" {
		t.Errorf("reload with a warning: %d, %q, %q", code, out, errs)
	}
	if code, out, _ := command("reload", "--socket", socket, "--json"); code != 0 || !strings.Contains(out, `"This robot has no carrier."`) {
		t.Errorf("reload --json with a warning: %d, %q", code, out)
	}
	answer = errors.New("robot.toml:3: mtu: found 1") // the daemon's whole sentence
	if code, out, errs := command("reload", "--socket", socket); code != 1 || out != "" || errs != "fogplr: robot.toml:3: mtu: found 1\n" {
		t.Errorf("refused reload: %d, %q, %q", code, out, errs)
	}
}

// A changed control_socket is found by the configuration.
func TestConfigNamesTheSocket(t *testing.T) {
	socket := daemonAt(t, control.Handlers{Status: robotStatus, Reload: func() error { return nil }})
	file := filepath.Join(t.TempDir(), "robot.toml")
	if err := os.WriteFile(file, []byte("name='r'\naddress='10.77.0.2/16'\ncontrol_socket='"+socket+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"status", "reload"} {
		if code, out, errs := command(name, "--config", file); code != 0 || out == "" || errs != "" {
			t.Errorf("%s: %d, %q, %q", name, code, out, errs)
		}
	}
	if code, _, errs := command("status", "--config", file, "--socket", socket); code != 2 || !strings.Contains(errs, "--socket") {
		t.Errorf("both flags: %d, %q", code, errs)
	}
}

// What to do about a daemon that does not answer is said for the configuration.
func TestAdvice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "g.toml")
	if err := os.WriteFile(file, []byte("name='w'\naddress='10.77.0.11/16'\ninterface='plr7'\ncontrol_socket='/x/g.sock'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	restart := "end the daemon and start it again with `fogplr gateway --config " + file + "`"
	other := errors.New("another")
	elsewhere := control.ErrNotRunning.Error() + ", yet a program has plr7 open: most likely a fogplr daemon that was started with another control_socket than " + file + " has. To have it take over that one, " + restart
	for name, c := range map[string]struct {
		flags socketFlag
		err   error
		used  bool
		owner string
		want  string
	}{
		"stopped":              {socketFlag{Config: fileName(file)}, control.ErrNotRunning, false, "", control.ErrNotRunning.Error() + "; start it with `fogplr gateway --config " + file + "`"},
		"elsewhere":            {socketFlag{Config: fileName(file)}, control.ErrNotRunning, true, "", elsewhere},
		"its own":              {socketFlag{Config: fileName(file)}, control.ErrNotRunning, true, "gateway w", elsewhere},
		"another's":            {socketFlag{Config: fileName(file)}, control.ErrNotRunning, true, "robot w", control.ErrNotRunning.Error() + "; plr7 belongs to another node of this machine, robot w, whose daemon runs, so this gateway cannot start. Stop that one, or give interface in " + file + " another name"},
		"another's, no longer": {socketFlag{Config: fileName(file)}, control.ErrNotRunning, false, "robot w", control.ErrNotRunning.Error() + "; start it with `fogplr gateway --config " + file + "`"},
		"silent":               {socketFlag{Config: fileName(file)}, control.ErrSilent, true, "", control.ErrSilent.Error() + "; " + restart},
		"another error":        {socketFlag{Config: fileName(file)}, other, true, "", "another"},
		"no file":              {socketFlag{Socket: "/x/g.sock"}, control.ErrNotRunning, true, "", control.ErrNotRunning.Error() + "; start it with `systemctl start fogplr-robot` or `systemctl start fogplr-gateway`"},
	} {
		got := c.flags.advise(c.err, "/x/g.sock", func(iface string) (bool, string, error) { return c.used && iface == "plr7", c.owner, nil })
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := (socketFlag{Config: "a b.toml"}).words(); got != " --config 'a b.toml'" {
		t.Errorf("flags again: %s", got)
	}
}

func TestCleanupRefusesWhileTheDaemonRuns(t *testing.T) {
	socket := daemonAt(t, control.Handlers{})
	file := filepath.Join(t.TempDir(), "gateway.toml")
	if err := os.WriteFile(file, []byte("name='w'\naddress='10.77.0.11/16'\ncontrol_socket='"+socket+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := command("cleanup", "--config", file)
	if code != 1 || out != "" || !strings.Contains(errs, "the daemon at "+socket+" is running") || !strings.Contains(errs, "--force") {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
}

func TestShareWireGuardDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wireguard")
	err := shareWireGuardDir(dir, "no-such-user")
	if err == nil || !strings.Contains(err.Error(), "no user no-such-user") {
		t.Errorf("unknown user: %v", err)
	}
	err = shareWireGuardDir(dir, "nobody")
	if os.Geteuid() != 0 {
		if err == nil {
			t.Error("only root can share a folder with another user")
		}
		return
	}
	info, statErr := os.Stat(dir)
	if err != nil || statErr != nil {
		t.Fatal(err, statErr)
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if info.Mode() != fs.ModeDir|fs.ModeSticky|0o775 || owner.Uid != 0 || fmt.Sprint(owner.Gid) != u.Gid {
		t.Errorf("mode %v, owner %d:%d; want dtrwxrwxr-x 0:%s", info.Mode(), owner.Uid, owner.Gid, u.Gid)
	}
}

func TestFigures(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 999949: "999.9 kB", 999950: "1.0 MB", 1e12: "1.0 TB", 1 << 63: "9223.4 PB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 999_999: "999999", 1_000_000: "1.0M", 12e9: "12.0G", 1 << 63: "9223.4P"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
	for seconds, want := range map[float64]string{0: "0s", 0.04: "0s", 4.25: "4.3s", 75.4: "1m15s", 3600: "1h0m", 93784: "1d2h"} {
		if got := age(seconds); got != want {
			t.Errorf("age(%v) = %s, want %s", seconds, got, want)
		}
	}
}

func TestOnlySocket(t *testing.T) {
	const robot, gateway = config.RobotSocket, config.GatewaySocket
	for name, c := range map[string]struct {
		running, there []string
		want           string // none: an error
	}{
		"nothing":                   {nil, nil, robot},
		"robot":                     {[]string{robot}, []string{robot}, robot},
		"gateway":                   {[]string{gateway}, []string{gateway}, gateway},
		"both":                      {[]string{robot, gateway}, []string{robot, gateway}, ""},
		"gateway, dead robot":       {[]string{gateway}, []string{robot, gateway}, gateway},
		"robot, dead gateway":       {[]string{robot}, []string{robot, gateway}, robot},
		"dead or forbidden gateway": {nil, []string{gateway}, gateway},
		"both dead or forbidden":    {nil, []string{robot, gateway}, robot},
	} {
		in := func(list []string) func(string) bool {
			return func(path string) bool { return slices.Contains(list, path) }
		}
		got, err := onlySocket(robot, gateway, in(c.running), in(c.there))
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// Two carriers that had one name are told apart by their slots, and the one that is
// gone is not taken for the other.
func TestCarriersOfOneName(t *testing.T) {
	s := robotStatus()
	s.Carriers = []tunnel.CarrierStatus{
		{Interface: "usb0", Slot: 0, Gone: true, Problem: "It has gone."},
		{Interface: "usb0", Slot: 1, Usable: true, Socket: tunnel.SocketStatus{LastError: "no buffer space"}},
		{Interface: "wlan0", Slot: 2, Usable: true},
	}
	s.Peers = []tunnel.PeerStatus{{Name: "west", Paths: []tunnel.PathStatus{
		{Carrier: "usb0", Slot: 0, LossIn: -1, LossOut: -1, LastProof: -1, Stage: "no route", Hint: "Look at the first."},
		{Carrier: "usb0", Slot: 1, LossIn: -1, LossOut: -1, LastProof: -1, Stage: "no reply", Hint: "Look at the second."},
		{Carrier: "wlan0", Slot: 2, LossIn: -1, LossOut: -1, LastProof: -1, Stage: "lossy", Hint: "Look at the third."},
	}}}
	var b bytes.Buffer
	statusText(&b, &s)
	words := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"usb0 0 0 B 0 B 0 0 0 gone", "usb0 1 0 B 0 B 0 0 0 usable", "usb0 (slot 0): It has gone.", "usb0 (slot 1): last error: no buffer space",
		"usb0 0 west down: carrier gone - - -", "usb0 1 west down: no reply - - -", "usb0 (slot 1) to west: Look at the second.", "wlan0 to west: Look at the third.",
		"usb0 (slot 0) - 0 B -", "usb0 (slot 1) - 0 B -", "wlan0 - 0 B -", "usb0 0 west 0 0 0 0 - -", "usb0 1 west 0 0 0 0 - -",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(words, "the first") {
		t.Errorf("a hint about a carrier that is gone:\n%s", b.String())
	}
	if got := strings.Join(failing(&s), "; "); !strings.Contains(got, "the path usb0 (slot 0) to west is not up; the path usb0 (slot 1) to west") {
		t.Errorf("failing: %s", got)
	}
}
