package daemon

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/config"
)

func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", in("old.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct{ socket, state, want string }{
		{dir, "", "is a folder. Give the path of a file in it, such as " + in("fogplr.sock")},
		{in("file"), "", "another file"},
		{in("file/run/a.sock"), "", in("file") + " is a file"},
		{in("new/run/a.sock"), "", ""},
		{in("old.sock"), "", ""},
		{"", in("file"), in("file") + " is a file"},
		{"", in("file/a/b"), in("file") + " is a file"},
		{"", in("new/a"), ""},
		{"", dir, ""},
		{"", "relative", ""},
	} {
		n := &config.Node{File: "robot.toml", ControlSocket: c.socket}
		err := checkFolder(n.File, "state_dir", c.state)
		if c.state == "" {
			err = checkSocket(n)
		}
		if (err == nil) != (c.want == "") || (err != nil && !(strings.Contains(err.Error(), c.want) && strings.HasPrefix(err.Error(), "robot.toml: "))) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestUnkeptSlots(t *testing.T) {
	n := &config.Node{StateDir: "/var/lib/fogplr"}
	for err, remedy := range map[error]string{unix.ENOSPC: "Free some space", unix.EROFS: "Let the user"} {
		s := slotsUnkept(n, fmt.Errorf("cannot keep the carriers' slots: %w", err))
		for _, want := range []string{err.Error(), "in the order of the configuration", remedy, "restart fogplr"} {
			if !strings.Contains(s, want) {
				t.Errorf("%v: no %q in %q", err, want, s)
			}
		}
	}
}
