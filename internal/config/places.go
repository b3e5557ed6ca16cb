package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CheckSocket says in plain words why there can be no control socket. What it
// does not find the attempt tells.
func (n *Node) CheckSocket() error {
	path := n.ControlSocket
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return checkFolder(n.File, "control_socket", filepath.Dir(path))
	case info.IsDir():
		return fmt.Errorf("%s: control_socket is %s, which is a folder. Give the path of a file in it, such as %s",
			n.File, path, filepath.Join(path, "fogplr.sock"))
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s: control_socket is %s, where there is another file, which fogplr does not replace. "+
			"Give another path, or remove that file", n.File, path)
	}
	return nil
}

// CheckStateDir says in plain words why there can be no state_dir.
func (n *Node) CheckStateDir() error { return checkFolder(n.File, "state_dir", n.StateDir) }

// checkFolder says whether dir can be made where something else than a folder is
// in the way.
func checkFolder(file, key, dir string) error {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s: %s needs the folder %s, but %s is a file. Give another path, or remove that file", file, key, dir, at)
		case err == nil || at == filepath.Dir(at) || !(errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)):
			return nil
		}
	}
}
