package config

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		n := &Node{File: "robot.toml", ControlSocket: c.socket, StateDir: c.state}
		err := n.CheckStateDir()
		if c.state == "" {
			err = n.CheckSocket()
		}
		if (err == nil) != (c.want == "") || (err != nil && !(strings.Contains(err.Error(), c.want) && strings.HasPrefix(err.Error(), "robot.toml: "))) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
