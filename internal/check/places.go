package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/config"
)

// places looks at where the daemon will make its control socket and keep its state,
// unless it runs, in which case it says itself what it lacks. It makes nothing.
func (h Host) places(f *Facts) {
	n, d := f.Config.Node, &f.Daemon
	if n == nil || d.Status != nil || d.Forbidden {
		return
	}
	f.place("control_socket", filepath.Dir(n.ControlSocket), "/run/fogplr", n.CheckSocket(), true)
	if f.robot() {
		f.place("state_dir", n.StateDir, config.DefaultStateDir, n.CheckStateDir(), n.CheckStateDir() != nil)
	}
}

// place keeps what is wrong with the folder dir of a key: the problem if there is
// one, or that nothing can be made there. unit is where the units let the daemon
// write; fails says that the daemon does not start without the folder.
func (f *Facts) place(key, dir, unit string, problem error, fails bool) {
	p := Place{Key: key, Fails: fails}
	switch {
	case problem != nil:
		p.Problem = problem.Error() + "."
	case config.Unit(f.Config.File) != "":
		if dir == unit || strings.HasPrefix(dir, unit+"/") {
			return // which systemd makes
		}
		p.Fails = false
		p.Problem = fmt.Sprintf("%s is in %s, but the unit %s lets the daemon write below %s alone, unless you have changed it. "+
			"Leave %s out of %s, or add ReadWritePaths=%s with `systemctl edit %s`.",
			key, dir, config.Unit(f.Config.File), unit, key, f.Config.File, dir, config.Unit(f.Config.File))
	case !f.root(): // the daemon is hardly this user's
		return
	default:
		err := writable(dir)
		if err == nil {
			return
		}
		p.Problem = fmt.Sprintf("Nothing can be made in %s (%v), where %s in %s is. ", dir, err, key, f.Config.File)
		if fails {
			p.Problem += "The daemon does not start without it. Give another path."
		} else {
			p.Problem += "The daemon starts without it, but knows neither its carriers' slots nor what metered ones have used after a restart. Give another path."
		}
	}
	f.Config.Places = append(f.Config.Places, p)
}

// writable says why files cannot be made in dir, or dir itself, as far as that can
// be told without doing it.
func writable(dir string) error {
	at := filepath.Clean(dir)
	for at != filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil {
			break
		}
		at = filepath.Dir(at)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, at, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(at, &fs); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	switch fs.Type {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC: // whatever the modes say
		return fmt.Errorf("%s is the kernel's own", at)
	}
	return nil
}
