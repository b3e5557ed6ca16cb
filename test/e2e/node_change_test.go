package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/test/lab"
)

// The overlay's addresses, device and routes are corrected, by a person in the
// configuration or by a program in the kernel, and the robot reaches its gateway.
func TestNodeChanges(t *testing.T) {
	t.Parallel()
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	reaches := func(when string) {
		t.Helper()
		eventually(t, when+": an answer from the gateway", func() error {
			if a := try(t, r.lab.Node, "ping", "-n", "-c", "1", "-W", "1", g.ip.String()); a.code != 0 {
				return errors.New(a.all)
			}
			return nil
		})
	}
	again := func(old, fresh string) {
		t.Helper()
		must(t, r.Stop())
		edit(t, r.Member, old, fresh)
		run(t, r.Member)
		must(t, r.WaitUp(t.Context()))
	}
	reaches("at first")

	output(t, r.lab.Node, "ip", "route", "del", "10.77.0.0/16", "dev", "plr0")
	reaches("after its route was deleted")

	again("10.77.0.2/16", "10.77.0.2/24")
	again("10.77.0.2/24", "10.77.0.2/16")
	if holes := output(t, r.lab.Node, "ip", "route", "show", "type", "blackhole"); strings.Contains(holes, "/24") || !strings.Contains(holes, "/16") {
		t.Errorf("blackholes after a correction of the prefix: %s", holes)
	}
	reaches("after a correction of the prefix")

	again("control_socket", "interface = \"ovl0\"\ncontrol_socket")
	if links := output(t, r.lab.Node, "ip", "-o", "link", "show"); strings.Contains(links, "plr0") || !strings.Contains(links, "ovl0") {
		t.Errorf("devices after a change of the interface:\n%s", links)
	}
	reaches("after a change of the interface")

	uplink := r.lab.Carriers[0].Interface
	warned := func(want bool) {
		t.Helper()
		eventually(t, "status about an overlap", func() error {
			if all := strings.Join(status(t, r.Member).Warnings, "\n"); strings.Contains(all, uplink+" has the address 10.77.9.9/24") != want {
				return errors.New("it warns of " + all)
			}
			return nil
		})
	}
	output(t, r.lab.Node, "ip", "addr", "add", "10.77.9.9/24", "dev", uplink)
	warned(true)
	output(t, r.lab.Node, "ip", "addr", "del", "10.77.9.9/24", "dev", uplink)
	warned(false)

	try(t, r.lab.Node, program(t), "cleanup", "--all", "--config", r.Config()).wants(t, "cleanup under a running robot", 1, "running", "--force")
	output(t, r.lab.Node, "rm", r.Socket())
	try(t, r.lab.Node, program(t), "cleanup", "--all", "--config", r.Config()).wants(t, "cleanup without the socket", 1, "ovl0", "--force")
	reaches("after the refused cleanups")
}
