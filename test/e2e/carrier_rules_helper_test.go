package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/test/lab"
)

// entry is a rule or a route as ip(8) tells it and takes it.
type entry struct {
	family, object string // "-4" or "-6", "rule" or "route"
	text           string
}

func (e entry) String() string { return strings.Join([]string{"ip", e.family, e.object, e.text}, " ") }

// change has ip(8) add or delete it.
func (e entry) change(t testing.TB, n *lab.Node, verb string) {
	t.Helper()
	ip(t, n, append([]string{e.family, e.object, verb}, strings.Fields(e.text)...)...)
}

// ours lists the rules and routes of fogplr's on a node.
func ours(t testing.TB, n *lab.Node) (all []entry) {
	t.Helper()
	proto := fmt.Sprintf("proto %d", routing.Protocol)
	for _, family := range []string{"-4", "-6"} {
		for _, object := range []string{"rule", "route"} {
			args := []string{family, object, "show"}
			if object == "route" {
				args = append(args, "table", "all")
			}
			for line := range strings.Lines(output(t, n, "ip", args...)) {
				if line = strings.TrimSpace(line); !strings.Contains(line+" ", proto+" ") {
					continue
				}
				if pref, rest, ok := strings.Cut(line, ":\t"); ok && object == "rule" {
					line = "pref " + pref + " " + rest
				}
				all = append(all, entry{family, object, line})
			}
		}
	}
	return all
}

// differ says how two lists differ.
func differ(want, got []entry) error {
	lines := func(list []entry) (text []string) {
		for _, e := range list {
			text = append(text, e.String())
		}
		return text
	}
	if d := difference(lines(want), lines(got)); len(d) > 0 {
		return errors.New(strings.Join(d, "\n"))
	}
	return nil
}

// restored waits until a node has all of the entries again, which the status must
// have counted, and returns how long that took.
func restored(t testing.TB, r *robot, want []entry, count uint64) time.Duration {
	t.Helper()
	took := eventually(t, "rules and routes are as before", func() error { return differ(want, ours(t, r.lab.Node)) })
	eventually(t, "restoring is counted", func() error {
		if n := status(t, r.Member).Restored; n < count {
			return fmt.Errorf("status counts %d, want %d", n, count)
		}
		return nil
	})
	return took
}

// everything has another program of the node send everything that no rule before
// it takes into a table that leads nowhere, for both families.
func everything(t testing.TB, n *lab.Node, verb string) {
	t.Helper()
	for _, family := range []string{"-4", "-6"} {
		ip(t, n, family, "route", verb, "unreachable", "default", "table", "51820", "metric", "1")
		ip(t, n, family, "rule", verb, "pref", "100", "lookup", "51820")
	}
}

// networkd is a systemd-networkd on a node, with a bus and a /run of its own. It
// manages the node's interface other0, and nothing else.
type networkd struct {
	mounts
	t testing.TB
	n *lab.Node
}

const networkdProgram = "/lib/systemd/systemd-networkd"

// busConfig lets everybody on the bus do everything.
const busConfig = `<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>`

// newNetworkd makes all of it but the daemon.
func newNetworkd(t testing.TB, n *lab.Node) networkd {
	t.Helper()
	for _, p := range []string{networkdProgram, "dbus-daemon"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Fatalf("run `make needs` first: %v", err)
		}
	}
	ip(t, n, "link", "add", "other0", "type", "veth", "peer", "name", "other1")
	ip(t, n, "link", "set", "other1", "up")
	// networkd does not wait for udev where /sys is read-only, as in a container.
	d := networkd{newMounts(t, n, `mount -t tmpfs none /run && mount -t sysfs -o ro none /sys && mount -t tmpfs none /etc/systemd/network &&
		mkdir -p /run/dbus /run/systemd/network && printf '%s' '`+busConfig+`' >/run/bus.conf &&
		printf '[Match]\nName=other0\n[Network]\nAddress=192.0.2.1/24\n' >/run/systemd/network/50-other.network`), t, n}
	d.start("dbus-daemon", "--config-file=/run/bus.conf", "--nofork", "--nopidfile")
	return d
}

func (d networkd) start(args ...string) *lab.Cmd {
	d.t.Helper()
	c := d.n.Command(lasting(d.t), "nsenter", append([]string{"--mount", "--target", d.pid}, args...)...)
	must(d.t, c.Start())
	return c
}

// configured waits until networkd has done with other0 as often as that.
func (d networkd) configured(c *lab.Cmd, times int) {
	d.t.Helper()
	eventually(d.t, "networkd configures", func() error {
		text, err := os.ReadFile(c.Log())
		if n := strings.Count(string(text), "other0: Configuring with"); err != nil || n < times {
			return fmt.Errorf("%d times, %v: %s", n, err, text)
		}
		return nil
	})
}
