package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// A path that does not come up says why, within 10 s, on the robot and in words
// that name what to do; and `status --check` is content only when all is mended.
func TestNodeStages(t *testing.T) {
	const within = 10 * time.Second
	w := build(t, options{Options: lab.Options{Gateways: []string{"west", "wrongkey", "filtered", "mismatch"}}})
	r := w.robots[0]
	west, filtered, mismatch := w.gateways[0], w.gateways[2], w.gateways[3]

	rightKey := configured(t, r.Member, `(?s)name = "wrongkey".*?public_key = "([^"]+)"`)
	falseKey := keys.Generate().PublicKey().String()
	edit(t, r.Member, rightKey, falseKey)
	must(t, filtered.lab.NFT(fmt.Sprintf("table inet filter {\n chain input {\n type filter hook input priority 0\n udp dport %d drop\n }\n}", wgPort)))
	edit(t, mismatch.Member, `"10.77.0.2"`, `"10.77.0.99"`)
	output(t, r.lab.Node, "ip", "route", "del", "default", "dev", "cell-b")
	must(t, w.fleet.Start(lasting(t)))

	want := map[string]string{"west": "", "wrongkey": "handshake refused", "filtered": "no reply", "mismatch": "address not allowed"}
	took := waitStatus(t, r.Member, "stages", within, func(s *tunnel.Status) error {
		for gateway, stage := range want {
			if p := pathOf(t, s, gateway, "cell-a"); p.Stage != stage || p.Up != (stage == "") || p.Up == (p.Hint != "") {
				return fmt.Errorf("%s by cell-a: %q, want %q (up=%v, hint %q)", gateway, p.Stage, stage, p.Up, p.Hint)
			}
			if p := pathOf(t, s, gateway, "cell-b"); p.Stage != "no route" || p.Up {
				return fmt.Errorf("%s by cell-b: %q (up=%v)", gateway, p.Stage, p.Up)
			}
		}
		return nil
	})
	t.Logf("all stages named after %v", took.Round(10*time.Millisecond))

	s := status(t, r.Member)
	if !s.Ready {
		t.Error("not ready though gateway west is reached")
	}
	try(t, r.lab.Node, program(t), "status", "--socket", r.Socket()).
		wants(t, "status with failing paths", 0, "robot: ready", "gateway wrongkey cannot be reached (")
	for _, c := range s.Carriers {
		if c.Usable != (c.Interface == "cell-a") || c.Usable == (c.Problem != "") {
			t.Errorf("carrier %s: usable=%v, problem %q", c.Interface, c.Usable, c.Problem)
		}
	}
	// The gateway that is sent a wrong address names the robot.
	g := status(t, mismatch.Member)
	if p := pathOf(t, g, "robot", "slot 0"); p.Stage != "address not allowed" {
		t.Errorf("gateway mismatch says %q of the robot", p.Stage)
	}
	if all := strings.Join(g.Warnings, "\n"); !strings.Contains(all, "Robot robot ") || !strings.Contains(all, "10.77.0.99") {
		t.Errorf("gateway mismatch does not warn of the robot: %q", all)
	}
	if g := status(t, west.Member); len(g.Warnings) > 0 {
		t.Errorf("gateway west warns of %q", g.Warnings)
	}

	check := []string{"status", "--check", "--socket", r.Socket()}
	try(t, r.lab.Node, program(t), check...).wants(t, "status --check with failing paths", 1)
	printed := try(t, r.lab.Node, program(t), append(check, "--json")...)
	printed.wants(t, "status --check --json with failing paths", 1)
	var told tunnel.Status
	if err := json.Unmarshal([]byte(printed.out), &told); err != nil {
		t.Errorf("status --json: %v in %s", err, printed.out)
	} else if p := pathOf(t, &told, "wrongkey", "cell-a"); p.Stage != "handshake refused" {
		t.Errorf("status --json says %q", p.Stage)
	}

	// Mend it all. What was not changed in a file needs no restart.
	output(t, filtered.lab.Node, "nft", "flush", "ruleset")
	output(t, r.lab.Node, "ip", "route", "add", "default", "via", r.lab.Carriers[1].Router.String(), "dev", "cell-b", "metric", "101")
	mended := waitPath(t, r, "filtered", "cell-a", true)
	waitPath(t, r, "west", "cell-b", true)
	t.Logf("the filtered path is up %v after the filter went", mended.Round(10*time.Millisecond))
	edit(t, r.Member, falseKey, rightKey)
	edit(t, mismatch.Member, `"10.77.0.99"`, `"10.77.0.2"`)
	must(t, r.Stop())
	must(t, mismatch.Stop())
	must(t, mismatch.Start(lasting(t)))
	must(t, r.Start(lasting(t)))
	must(t, r.WaitUp(t.Context()))
	if !status(t, r.Member).Ready {
		t.Error("not ready with all paths up")
	}
	try(t, r.lab.Node, program(t), check...).wants(t, "status --check when all is well", 0)
	for _, g := range w.gateways {
		try(t, g.lab.Node, program(t), "status", "--check", "--socket", g.Socket()).wants(t, g.Name+": status --check when all is well", 0)
	}
}

// A gateway stops complaining about a robot's address once the robot is mended.
func TestNodeAddressMended(t *testing.T) {
	w := build(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	edit(t, r.Member, `"10.77.0.2/16"`, `"10.77.0.3/16"`)
	must(t, w.fleet.Start(lasting(t)))
	waitStatus(t, g.Member, "the gateway's warning", patience, func(s *tunnel.Status) error {
		return mentions(strings.Join(s.Warnings, "\n"), "Robot robot ", "10.77.0.2")
	})
	check := []string{"status", "--check", "--socket", g.Socket()}
	try(t, g.lab.Node, program(t), check...).wants(t, "status --check of the gateway", 1, "robot")
	must(t, r.Stop())
	edit(t, r.Member, `"10.77.0.3/16"`, `"10.77.0.2/16"`)
	must(t, r.Start(lasting(t)))
	must(t, r.WaitUp(t.Context()))
	if s := status(t, g.Member); len(s.Warnings) > 0 {
		t.Errorf("the gateway still warns: %q", s.Warnings)
	}
	try(t, g.lab.Node, program(t), check...).wants(t, "status --check of the gateway", 0)
}
