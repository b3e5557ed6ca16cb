package check

import (
	"os"
	"path/filepath"
	"slices"
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
		"the unit, with other places": {config.RobotPath, "robot", "/srv/a.sock", "/srv/state", 0, "warning config.control_socket, warning config.state_dir", "in /srv, where the unit fogplr-robot does not let|ReadWritePaths=/srv/state"},
		"the unit, in /run":           {config.RobotPath, "robot", "/run/wireguard/a.sock", "/run/fogplr/state", 0, "", ""},
		"the unit, in a private /tmp": {config.RobotPath, "robot", "/tmp/fogplr/a.sock", "/var/tmp", 0, "warning config.control_socket, warning config.state_dir", "of which the unit fogplr-robot gives the daemon one of its own|Leave state_dir out of /etc/fogplr/robot.toml"},
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

// A path is where its symbolic links lead, also what is not there yet.
func TestPlacesBehindLinks(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"run", "var", "srv"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"var/run": "../run", "run/fogplr": "../srv", "home": "srv"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for socket, want := range map[string]int{"/run/fogplr/a": 0, "/var/run/fogplr/a": 0, "/var/run/fogplr/new/a": 0, "/home/new/a": 0, "/var/run/a": 1, "/run/fogplr/../a": 1, "/run/fogplr2/a": 1} {
		f := &Facts{Config: Config{File: config.GatewayPath, Role: "gateway", Node: &config.Node{ControlSocket: socket}}}
		if (Host{Root: root}).places(f); len(f.Config.Places) != want {
			t.Errorf("%s: %+v", socket, f.Config.Places)
		}
	}
}

// The units let the daemon write where they are said to.
func TestUnitPaths(t *testing.T) {
	for _, name := range []string{"robot", "gateway"} {
		text, err := os.ReadFile("../../systemd/fogplr-" + name + ".service")
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "RuntimeDirectory":
				paths = append(paths, "/run/"+value)
			case "StateDirectory":
				paths = append(paths, "/var/lib/"+value)
			case "ReadWritePaths":
				paths = append(paths, strings.TrimPrefix(value, "-"))
			}
		}
		if !slices.Equal(paths, unitPaths) || !strings.Contains(string(text), "\nPrivateTmp=yes\n") {
			t.Errorf("%s: %q", name, paths)
		}
	}
}
