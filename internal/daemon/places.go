package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/config"
)

// checkSocket says in plain words why there can be no control socket. What it
// does not find control.Listen tells.
func checkSocket(cfg *config.Node) error {
	path := cfg.ControlSocket
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return checkFolder(cfg.File, "control_socket", filepath.Dir(path))
	case info.IsDir():
		return fmt.Errorf("%s: control_socket is %s, which is a folder. Give the path of a file in it, such as %s",
			cfg.File, path, filepath.Join(path, "fogplr.sock"))
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s: control_socket is %s, where there is another file, which fogplr does not replace. "+
			"Give another path, or remove that file", cfg.File, path)
	}
	return nil
}

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

// slotsUnread is the error of slots that are there and cannot be read.
func slotsUnread(cfg *config.Node, err error) error {
	return fmt.Errorf("%w. The file must be one that the user of fogplr may read; if it is not fogplr's, remove it or give another state_dir in %s", err, cfg.File)
}

// slotsUnkept is the note for slots that could not be written.
func slotsUnkept(cfg *config.Node, err error) string {
	remedy := "Let the user of fogplr write to " + cfg.StateDir
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		remedy = "Free some space for " + cfg.StateDir
	}
	return fmt.Sprintf("%v. This run goes on, but after a restart the slots are given anew in the order of the configuration, so a carrier "+
		"may get another key, which a gateway without all eight of this robot's carrier_keys refuses. %s, or give another state_dir, "+
		"and restart fogplr.", err, remedy)
}
