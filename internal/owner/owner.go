// Package owner keeps files usable for the service's user when root made them.
package owner

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// LikeDir gives file the owner and group of the directory it is in. A daemon
// that somebody started as root, to try something, would otherwise leave files
// behind that the service, which is not root, cannot open. It does nothing when
// the caller is not root.
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
