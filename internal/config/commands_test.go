package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands mean the configuration that they are printed for.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, c := range []struct{ role, file, flag, both, start, restart string }{
		{"robot", RobotPath, "", " --config " + RobotPath, "systemctl start fogplr-robot", "run `systemctl restart fogplr-robot`"},
		{"gateway", "/etc/fogplr/./gateway.toml", "", " --config " + GatewayPath, "systemctl start fogplr-gateway", "run `systemctl restart fogplr-gateway`"},
		{"robot", "/x/r.toml", " --config /x/r.toml", " --config /x/r.toml", "fogplr robot --config /x/r.toml",
			"end the daemon and start it again with `fogplr robot --config /x/r.toml`"},
		{"gateway", "/x y/g.toml", " --config '/x y/g.toml'", " --config '/x y/g.toml'", "fogplr gateway --config '/x y/g.toml'",
			"end the daemon and start it again with `fogplr gateway --config '/x y/g.toml'`"},
		{"robot", "r.toml", " --config " + dir + "/r.toml", " --config " + dir + "/r.toml", "fogplr robot --config " + dir + "/r.toml",
			"end the daemon and start it again with `fogplr robot --config " + dir + "/r.toml`"},
	} {
		if got := Flag(c.file, false); got != c.flag {
			t.Errorf("%s: flag %q", c.file, got)
		}
		if got := Flag(c.file, true); got != c.both {
			t.Errorf("%s: flag of one of two %q", c.file, got)
		}
		if got := StartCommand(c.role, c.file); got != c.start {
			t.Errorf("%s: start with %q", c.file, got)
		}
		if got := RestartAdvice(c.role, c.file); got != c.restart {
			t.Errorf("%s: restart with %q", c.file, got)
		}
	}
}

// What is loaded knows its commands, and says them.
func TestLoadedCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "g.toml")
	if err := os.WriteFile(file, []byte("name = 'west'\naddress = '10.77.0.11/16'\nprivate_key_file = 'node.key'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := LoadGateway(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "`fogplr reload --config " + file + "`"; !strings.Contains(g.Warning(), want) {
		t.Errorf("%q does not say %s", g.Warning(), want)
	}
	n, err := LoadNode(file)
	if err != nil || n.Command("status") != "fogplr status --config "+file {
		t.Errorf("%v, %v", n, err)
	}
	if got := new(Node).Command("env"); got != "fogplr env" {
		t.Errorf("without a file: %s", got)
	}
}
