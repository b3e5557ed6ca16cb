package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

// Carriers, gateways and robots are taken out of configurations and put back, by
// reloads, while packets go both ways: each arrives once, and no daemon is
// started anew.
func TestReloadUnderTraffic(t *testing.T) {
	w := start(t, options{Options: lab.Options{Gateways: []string{"west", "east"}, Robots: 2, Carriers: make([]lab.CarrierOptions, 3)}})
	r, west, east := w.robots[0], w.gateways[0], w.gateways[1]
	pids := []int{r.Pid(), west.Pid()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	flow := sendBoth(ctx, r.end(), west.end(), load{rate: 200, count: 200 * 120, size: 200, linger: time.Second})

	robotText, westText := read(t, r.Config()), read(t, west.Config())
	reload := func(m *deploy.Member, text string) {
		t.Helper()
		must(t, os.WriteFile(m.Config(), []byte(text), 0o644))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		must(t, control.Reload(ctx, m.Socket()))
	}
	for _, c := range []struct {
		name     string
		m        *deploy.Member
		text     string
		carriers int
		gateways int
	}{
		{"a carrier goes", r.Member, without(t, robotText, "[[carrier]]", "cell-a"), 2, 2},
		{"two go, and it comes back", r.Member, without(t, without(t, robotText, "[[carrier]]", "cell-b"), "[[carrier]]", "cell-c"), 1, 2},
		{"all come back", r.Member, robotText, 3, 2},
		{"a gateway goes", r.Member, without(t, robotText, "[[gateway]]", east.Name), 3, 1},
		{"and comes back", r.Member, robotText, 3, 2},
		{"another robot goes", west.Member, without(t, westText, "[[robot]]", w.robots[1].Name), 3, 2},
		{"and comes back", west.Member, westText, 3, 2},
	} {
		reload(c.m, c.text)
		eventually(t, c.name, func() error {
			s := status(t, r.Member)
			if len(s.Carriers) != c.carriers || len(s.Peers) != c.gateways || !deploy.AllUp(s) {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
		time.Sleep(300 * time.Millisecond)
	}
	must(t, w.robots[1].WaitUp(t.Context()))
	cancel()
	flow.wait(t).complete(t, "reloads")
	if r.Pid() != pids[0] || west.Pid() != pids[1] {
		t.Error("a daemon was started anew")
	}
	rules := output(t, r.lab.Node, "ip", "rule")
	must(t, r.Stop())
	if after := output(t, r.lab.Node, "ip", "rule"); strings.Contains(after, "0x666f67") {
		t.Errorf("rules after the end:\n%s\nbefore:\n%s", after, rules)
	}
	run(t, r.Member)
}

// without returns the configuration without the table of that kind that names
// name.
func without(t testing.TB, text, kind, name string) string {
	t.Helper()
	parts := strings.Split(text, "[[")
	for i, p := range parts {
		if i > 0 && strings.HasPrefix("[["+p, kind) && strings.Contains(p, `"`+name+`"`) {
			return strings.Join(append(parts[:i:i], parts[i+1:]...), "[[")
		}
	}
	t.Fatalf("no %s %q in\n%s", kind, name, text)
	return ""
}
