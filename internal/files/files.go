// Package files keeps small files: whole at every moment, usable by the service's
// user when root made them, and read with care.
package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Read returns the content of file, nil if it is not there. Of a file larger than
// limit (bytes) it returns limit + 1 bytes, which Decode refuses.
func Read(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1)) // not nil
}

// Decode reads JSON that this program wrote into v: at most limit bytes, and no
// other keys than v has.
func Decode(content []byte, limit int64, v any) error {
	if int64(len(content)) > limit {
		return fmt.Errorf("it is larger than %d bytes", limit)
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("it is not the JSON that fogplr writes: %w", err)
	}
	return nil
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
