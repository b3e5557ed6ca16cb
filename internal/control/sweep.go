package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/files"
)

// Abandoned says whether path is a Unix socket on which nobody listens, such as
// that of a program which was killed. The error says why that cannot be told.
func Abandoned(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode().Type() != fs.ModeSocket:
		return false, nil
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		return false, c.Close()
	case errors.Is(err, unix.ECONNREFUSED):
		return true, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.EAGAIN): // gone meanwhile; too many knock
		return false, nil
	}
	return false, err
}

// Sweep removes the control socket path if it is Abandoned and no daemon is about
// to use it, and says whether it did. The lock stays: a new daemon needs one, and
// it would not be safe to remove.
func Sweep(path string) (removed bool, err error) {
	if stale, err := Abandoned(path); !stale {
		return false, err
	}
	lock, err := lockSocket(path)
	if errors.Is(err, ErrRunning) { // between its lock and its first answer, or at its end
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if stale, err := Abandoned(path); !stale { // what was there before the lock may be another's
		return false, err
	}
	return true, os.Remove(path)
}

// lockSocket takes the lock of the control socket path. If another process has it
// the error wraps ErrRunning.
func lockSocket(path string) (*os.File, error) {
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w and has the control socket %s: stop it first, or give this one its own control_socket and interface", ErrRunning, path)
		}
		return nil, fmt.Errorf("cannot lock %s: %w", path+".lock", err)
	}
	if err := files.LikeDir(lock.Name()); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}
