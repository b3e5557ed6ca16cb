package tunnels

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Programs that failover.sh runs here instead of the real ones. Setting routes
// ends a round; the next one is the first line of the file rounds, which has the
// carriers and gateways that answer.
var stubs = map[string]string{
	"sleep": "exit 0",
	"ping": `while [ $# -gt 1 ]; do
	[ "$1" = -I ] && carrier=$2
	shift
done
grep -qw -e "$carrier:$1" -e "$carrier:all" answering`,
	"ip": `case "$*" in
"-4 route show default dev tun-c") echo "default scope link metric 102" ;;
"-4 route show default dev gone") exit 1 ;;
"-4 route show default dev "*) echo "default via 10.0.0.1 metric 100" ;;
"-4 -force -batch -") cat >>all; echo >>all
	[ -s rounds ] || rm -f alive
	head -n 1 rounds >answering
	sed -i 1d rounds ;;
*) echo "unexpected: ip $*" >&2; exit 1 ;;
esac`,
}

// play runs failover.sh with the stubs and returns, for every round, the routes
// that it set at its end; the first element is from before the first round.
func play(t *testing.T, rounds []string, args ...string) []string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range stubs {
		write(name, "#!/bin/sh\n"+text+"\n")
	}
	write("rounds", strings.Join(rounds, "\n")+"\n")
	write("alive", "")
	write("failover.sh", failoverScript)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	script := exec.CommandContext(ctx, "sh", append([]string{"failover.sh"}, args...)...)
	script.Dir = dir
	script.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	script.Stderr = os.Stderr
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	for ctx.Err() == nil {
		if _, err := os.Stat(filepath.Join(dir, "alive")); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Error("the script did not play all rounds")
	}
	_ = syscall.Kill(-script.Process.Pid, syscall.SIGKILL)
	_ = script.Wait()
	text, err := os.ReadFile(filepath.Join(dir, "all"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(string(text), "\n\n")
	if len(all) <= len(rounds) {
		t.Fatalf("%d rounds left %d sets of routes", len(rounds), len(all))
	}
	return all[:len(rounds)+1]
}

// used names the carrier of the routes in use.
func used(routes string) (carrier string) {
	for line := range strings.Lines(routes) {
		line = strings.TrimSpace(line)
		if before, ok := strings.CutSuffix(line, " metric 10"); ok {
			_, dev, _ := strings.Cut(before, " dev ")
			if carrier != "" && carrier != dev {
				return carrier + " and " + dev
			}
			carrier = dev
		}
	}
	return carrier
}

func TestFailoverScript(t *testing.T) {
	const both, onlyA, onlyB, none = "cell-a:all cell-b:all", "cell-a:all", "cell-b:all", ""
	for name, c := range map[string]struct {
		rounds []string
		want   string // carrier after each round: its letter
	}{
		"all is well":              {[]string{both, both, both, both}, "aaaa"},
		"the second one is silent": {[]string{onlyA, onlyA, onlyA, onlyA, onlyA}, "aaaaa"},
		"two misses":               {[]string{both, onlyB, onlyB, both, onlyB, onlyB, both}, "aaaaaaa"},
		"three misses":             {[]string{both, onlyB, onlyB, onlyB, onlyB, onlyB, onlyB}, "aaabbbb"},
		"back after three answers": {[]string{onlyB, onlyB, onlyB, both, both, onlyB, both, both, both}, "aabbbbbba"},
		"nobody answers":           {[]string{none, none, none, none, onlyB, both}, "aaaabb"},
		"one gateway is enough":    {[]string{"cell-a:192.0.2.2 cell-b:all", "cell-a:192.0.2.2", onlyA, "cell-a:192.0.2.1", onlyA}, "aaaaa"},
		"forth and back at once":   {[]string{onlyB, onlyB, onlyB, onlyA, onlyA, onlyA}, "aabbba"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			for _, routes := range play(t, c.rounds, "192.0.2.1", "192.0.2.2", "--", "cell-a", "cell-b")[1:] {
				got += strings.TrimPrefix(used(routes), "cell-")
			}
			if got != c.want {
				t.Errorf("it uses %s, want %s", got, c.want)
			}
		})
	}
}

func TestFailoverRoutes(t *testing.T) {
	all := play(t, []string{"", "", ""}, "192.0.2.1", "192.0.2.2", "--", "cell-a", "gone", "tun-c")
	const want = `route replace 192.0.2.1 via 10.0.0.1 dev cell-a metric 20
route replace 192.0.2.1 via 10.0.0.1 dev cell-a metric 10
route replace 192.0.2.2 via 10.0.0.1 dev cell-a metric 20
route replace 192.0.2.2 via 10.0.0.1 dev cell-a metric 10
route replace 192.0.2.1  dev tun-c metric 22
route replace 192.0.2.2  dev tun-c metric 22
route replace unreachable 192.0.2.1 metric 1000
route replace unreachable 192.0.2.2 metric 1000`
	for i, routes := range all {
		if routes != want {
			t.Errorf("round %d: the routes are\n%s\nwant\n%s", i, routes, want)
		}
	}
}

// With one carrier the routes stay, whatever happens.
func TestFailoverScriptAlone(t *testing.T) {
	for i, routes := range play(t, []string{"", "", "", ""}, "192.0.2.1", "--", "cell-b") {
		if used(routes) != "cell-b" {
			t.Errorf("round %d: the routes are\n%s", i, routes)
		}
	}
}
