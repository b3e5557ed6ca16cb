package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/tunnel"
)

// Where the daemon could not make its socket, or not keep its state, is told before
// its start.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file, role, socket, state string
		user                      int
		want                      string // LEVEL ID, several with commas
		words                     string // separated by |
	}{
		"right":                       {"/x/r.toml", "robot", dir + "/new/a.sock", dir + "/state", 0, "", ""},
		"a file is in the way":        {"/x/r.toml", "robot", file + "/a.sock", dir, 0, "fails config.control_socket", "needs the folder|is a file"},
		"in /proc":                    {"/x/r.toml", "robot", "/proc/fogplr/a.sock", dir, 0, "fails config.control_socket", "Nothing can be made in /proc/fogplr (/proc is the kernel's own)|does not start"},
		"a folder":                    {"/x/g.toml", "gateway", dir, "", 0, "fails config.control_socket", "which is a folder"},
		"state in /sys":               {"/x/r.toml", "robot", dir + "/a.sock", "/sys/fogplr", 0, "warning config.state_dir", "Nothing can be made in /sys/fogplr|slots"},
		"state in a file":             {"/x/r.toml", "robot", dir + "/a.sock", file + "/s", 0, "fails config.state_dir", "is a file"},
		"a gateway has no state":      {"/x/g.toml", "gateway", dir + "/a.sock", "/sys/fogplr", 0, "", ""},
		"another user":                {"/x/r.toml", "robot", "/proc/fogplr/a.sock", "/sys/fogplr", 1000, "", ""},
		"the unit, as it is":          {config.RobotPath, "robot", config.RobotSocket, config.DefaultStateDir, 0, "", ""},
		"the unit, with other places": {config.RobotPath, "robot", "/srv/a.sock", "/srv/state", 0, "warning config.control_socket, warning config.state_dir", "fogplr-robot lets the daemon write below /run/fogplr alone|below /var/lib/fogplr|ReadWritePaths=/srv/state"},
	} {
		f := &Facts{User: c.user, Config: Config{File: c.file, Role: c.role, Node: &config.Node{File: c.file, ControlSocket: c.socket, StateDir: c.state}}}
		Host{}.places(f)
		var got []string
		text := ""
		for _, found := range judgeConfig(f) {
			got = append(got, found.Level.String()+" "+found.ID)
			text += found.Text + "\n"
			if !strings.HasSuffix(found.Text, ".") {
				t.Errorf("%s: no sentence: %q", name, found.Text)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q\n%s", name, got, c.want, text)
		}
		for word := range strings.SplitSeq(c.words, "|") {
			if !strings.Contains(text, word) {
				t.Errorf("%s: nothing about %q in %q", name, word, text)
			}
		}
		f.Config.Places, f.Daemon.Status = nil, new(tunnel.Status)
		if (Host{}).places(f); f.Config.Places != nil {
			t.Errorf("%s, while the daemon runs: %+v", name, f.Config.Places)
		}
	}
}
