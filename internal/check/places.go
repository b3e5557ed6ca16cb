package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/config"
)

// The units let a daemon write below unitPaths (RuntimeDirectory, StateDirectory,
// ReadWritePaths) and give it privatePaths of its own (PrivateTmp).
var (
	unitPaths    = []string{"/run/fogplr", config.DefaultStateDir, "/run/wireguard"}
	privatePaths = []string{"/tmp", "/var/tmp"}
)

// places looks at where the daemon will make its control socket and keep its state,
// unless it runs, in which case it says itself what it lacks. It makes nothing.
func (h Host) places(f *Facts) {
	d := &f.Daemon
	if f.Config.Node == nil || d.Status != nil || d.Forbidden {
		return
	}
	n := *f.Config.Node
	n.ControlSocket, n.StateDir = h.path(n.ControlSocket), h.path(n.StateDir)
	h.place(f, "control_socket", filepath.Dir(n.ControlSocket), n.CheckSocket(), true)
	if f.robot() {
		problem := n.CheckStateDir()
		h.place(f, "state_dir", n.StateDir, problem, problem != nil)
	}
}

// place keeps what is wrong with the folder dir of a key: the problem if there is
// one, or that nothing can be made there. fails says that the daemon does not start
// without the folder.
func (h Host) place(f *Facts, key, dir string, problem error, fails bool) {
	p := Place{Key: key, Fails: fails}
	unit := config.Unit(f.Config.File)
	within := func(outer string) bool { return inside(dir, h.path(outer)) }
	switch {
	case problem != nil:
		p.Problem = problem.Error() + "."
	case unit != "" && slices.ContainsFunc(unitPaths, within):
		return // which systemd makes
	case unit != "" && slices.ContainsFunc(privatePaths, within):
		p.Fails = false
		p.Problem = fmt.Sprintf("%s is in %s, of which the unit %s gives the daemon one of its own, unless you have changed it: no other program sees what is there, and it is gone after a stop. "+
			"Leave %s out of %s.", key, dir, unit, key, f.Config.File)
	case unit != "":
		p.Fails = false
		p.Problem = fmt.Sprintf("%s is in %s, where the unit %s does not let the daemon write, unless you have changed it. "+
			"Leave %s out of %s, or add ReadWritePaths=%s with `systemctl edit %s`.",
			key, dir, unit, key, f.Config.File, dir, unit)
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

// inside says that dir is outer or below it, whatever symbolic links lead there.
func inside(dir, outer string) bool {
	dir, outer = resolved(dir), resolved(outer)
	return dir == outer || strings.HasPrefix(dir, outer+"/")
}

// resolved returns a path without symbolic links, as far as there is something at it.
func resolved(path string) string {
	path = filepath.Clean(path)
	if there, err := filepath.EvalSymlinks(path); err == nil {
		return there
	}
	if up := filepath.Dir(path); up != path {
		return filepath.Join(resolved(up), filepath.Base(path))
	}
	return path
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
