package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/play"
)

// program is bin/fogplr-lab, and scenarios where the scenarios are.
func program(t *testing.T) (bin, scenarios string) {
	t.Helper()
	root, err := apps.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(root, "bin", "fogplr-lab")
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("%v (build it with: make build)", err)
	}
	return bin, filepath.Join(root, "test", "lab", "scenarios")
}

// runs runs the program and returns its status and what it printed.
func runs(t *testing.T, args ...string) (status int, output string) {
	t.Helper()
	bin, _ := program(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, bin, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return status, out.String()
}

// A laboratory that stands: programs run in its nodes, things fail and are mended,
// and nothing is left of it.
func TestStandingLaboratory(t *testing.T) {
	_, scenarios := program(t)
	must := func(want string, args ...string) string {
		t.Helper()
		status, out := runs(t, args...)
		if status != 0 || !strings.Contains(out, want) {
			t.Fatalf("fogplr-lab %s: status %d, %q is missing in:\n%s", strings.Join(args, " "), status, want, out)
		}
		return out
	}
	if status, out := runs(t, "exec", "robot", "--", "true"); status != 2 || !strings.Contains(out, "no laboratory is standing") {
		t.Fatalf("there should be no laboratory, and this test would take it down: status %d, %s", status, out)
	}
	nodes := must("The laboratory stands", "up", filepath.Join(scenarios, "campaign.toml"))
	defer func() {
		must("", "down")
		if status, out := runs(t, "down"); status != 2 || !strings.Contains(out, "no laboratory is standing") {
			t.Errorf("the laboratory is still there: status %d, %s", status, out)
		}
		for _, word := range strings.Fields(nodes) {
			if _, err := os.Stat("/run/netns/" + word); strings.HasPrefix(word, "fp-lab-") && err == nil {
				t.Errorf("namespace %s is left", word)
			}
		}
	}()
	if status, out := runs(t, "up", filepath.Join(scenarios, "campaign.toml")); status != 2 || !strings.Contains(out, "standing already") {
		t.Errorf("a second one: status %d, %s", status, out)
	}
	must("1 received", "exec", "robot", "--", "ping", "-c1", "-W5", "10.77.0.11")
	must("CYCLONEDDS_URI=", "exec", "west", "--", "env")
	must("black-hole of cell-a", "fault", "black-hole", "--carrier", "cell-a")
	must(" 0% packet loss", "exec", "robot", "--", "ping", "-c20", "-i0.05", "10.77.0.12")
	must("undone: 1", "undo")
	must("gateway-stop of west", "fault", "gateway-stop", "--gateway", "west", "--for", "500ms")
	must("1 received", "exec", "robot", "--", "ping", "-c1", "-W5", "10.77.0.12")
	if status, out := runs(t, "fault", "black-hole", "--carrier", "cell-z"); status != 2 || !strings.Contains(out, "cell-a, cell-b") {
		t.Errorf("a fault of nothing: status %d, %s", status, out)
	}
	if status, out := runs(t, "exec", "moon", "--", "true"); status != 2 || !strings.Contains(out, "robot, west, east") {
		t.Errorf("no such node: status %d, %s", status, out)
	}
}

// mine is a scenario, with its trace, that somebody else wrote.
var mine = map[string]string{
	"mine.csv": "a ms,b ms\n30,50\n-1,50\n30,-1\n",
	"mine.toml": `duration = "4s"
[[carrier]]
interface = "usb0"
kind = "raw-ip"
trace = "mine.csv:a ms"
[[carrier]]
interface = "wlp2s0"
nat = "symmetric"
delay = "15ms"
[[gateway]]
name = "paris"
[[workload]]
type = "rpc"
vendor = "fast"
[[workload]]
type = "rpc"
name = "datagrams"
vendor = "udp"
rate = 100
[[workload]]
type = "stream"
rate = 50
size = 1000
[[workload]]
type = "command"
args = ["sh", "-c", "echo the gateways are $FOGPLR_LAB_GATEWAYS"]
`,
}

// write puts files into a folder of the test and returns it.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRunOfAForeignScenario(t *testing.T) {
	dir := write(t, mine)
	status, out := runs(t, "run", filepath.Join(dir, "mine.toml"), "--json", filepath.Join(dir, "out.json"), "--plot", filepath.Join(dir, "plot"))
	if status != 0 || !strings.Contains(out, "the gateways are 10.77.0.11") {
		t.Fatalf("status %d:\n%s", status, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r play.Result
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	for i, calls := range map[int]int{0: 120, 1: 400} {
		w := &r.Work[i]
		if n := len(w.Calls); n < calls*8/10 || n > calls*11/10 || w.Lost() > 0 {
			t.Errorf("%s: %d calls, %d lost", w.Name, n, w.Lost())
		}
	}
	if s := r.Work[2].Streams["paris"]; s.Received < 150 || s.Lost > 0 {
		t.Errorf("stream: %+v", s)
	}
	if len(r.Carriers) != 2 || r.Carriers[0].Up.Lost == 0 || r.Carriers[1].Down.DeliveredBytes == 0 {
		t.Errorf("carriers: %+v", r.Carriers)
	}
	for _, name := range []string{"results.md", "results.json", "run-tail.svg"} {
		if _, err := os.Stat(filepath.Join(dir, "plot", name)); err != nil {
			t.Error(err)
		}
	}
}

// Mistakes are told with line and key, also in the trace.
func TestMistakesInAForeignScenario(t *testing.T) {
	dir := write(t, mine)
	status, out := runs(t, "run", filepath.Join(dir, "mine.toml"), "--trace", filepath.Join(dir, "mine.csv")+":c ms")
	if status != 2 || !strings.Contains(out, "the columns are a ms, b ms") {
		t.Errorf("status %d: %s", status, out)
	}
	wrong := strings.Replace(mine["mine.toml"], "rate = 50", "rates = 50", 1)
	dir = write(t, map[string]string{"mine.csv": mine["mine.csv"], "wrong.toml": wrong})
	status, out = runs(t, "run", filepath.Join(dir, "wrong.toml"))
	if status != 2 || !strings.Contains(out, "wrong.toml:22: rates") {
		t.Errorf("status %d: %s", status, out)
	}
}

// ROS 2 is not in Debian; a file in the place of its setup shows what would run.
func TestROSWorkload(t *testing.T) {
	setup := `PATH=$(dirname "$ROS_SETUP"):$PATH
`
	ros2 := "#!/bin/sh\necho \"ros2 $*\"\ncase $3 in *server) exec sleep 60 ;; *) exec sleep 0.2 ;; esac\n"
	scenario := "duration = \"1s\"\n[[carrier]]\ninterface = \"cell-a\"\n[[workload]]\ntype = \"ros2\"\n"
	dir := write(t, map[string]string{"setup.sh": setup, "ros2": ros2, "ros.toml": scenario})
	t.Setenv("ROS_SETUP", "")
	if status, out := runs(t, "run", filepath.Join(dir, "ros.toml")); status != 2 || !strings.Contains(out, "set ROS_SETUP") {
		t.Errorf("without ROS: status %d, %s", status, out)
	}
	t.Setenv("ROS_SETUP", filepath.Join(dir, "setup.sh"))
	if status, out := runs(t, "run", filepath.Join(dir, "ros.toml")); status != 0 || !strings.Contains(out, "ros2 run demo_nodes_cpp add_two_ints_client") {
		t.Errorf("status %d, %s", status, out)
	}
}
