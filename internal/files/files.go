// Package files writes small files that are whole at every moment and that the
// service's user can use when root made them.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Replace writes content to file, with mode and with the owner of its folder
// (see LikeDir). Whoever reads meanwhile sees the old file or the new one, also
// after a crash.
func Replace(file string, content []byte, mode fs.FileMode) error {
	return write(file, content, mode, os.Rename)
}

// Create is Replace for a file that must not be there; if it is, nothing changes
// and the error wraps fs.ErrExist.
func Create(file string, content []byte, mode fs.FileMode) error {
	return write(file, content, mode, os.Link) // which, unlike a rename, fails then
}

func write(file string, content []byte, mode fs.FileMode, place func(from, to string) error) error {
	dir := filepath.Dir(file)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(file)+".") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	err = errors.Join(err, LikeDir(tmp.Name()), tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = place(tmp.Name(), file)
	}
	if err == nil {
		err = syncDir(dir)
	}
	return err
}

// syncDir makes a new name in dir last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// LikeDir gives file the owner and group of the folder it is in. A daemon that
// somebody started as root, to try something, would otherwise leave files behind
// that the service, which is not root, cannot open. It does nothing when the
// caller is not root.
func LikeDir(file string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var dir unix.Stat_t
	if err := unix.Stat(filepath.Dir(file), &dir); err != nil {
		return fmt.Errorf("owner of %s: %w", filepath.Dir(file), err)
	}
	if err := os.Lchown(file, int(dir.Uid), int(dir.Gid)); err != nil {
		return fmt.Errorf("change the owner: %w", err)
	}
	return nil
}
