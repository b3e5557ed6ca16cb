package owner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLikeDir(t *testing.T) {
	dir := t.TempDir()
	want := [2]uint32{uint32(os.Getuid()), uint32(os.Getgid())}
	if os.Geteuid() == 0 {
		want = [2]uint32{12345, 54321}
		if err := os.Chown(dir, 12345, 54321); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := LikeDir(file); err != nil {
		t.Fatal(err)
	}
	var got unix.Stat_t
	if err := unix.Stat(file, &got); err != nil {
		t.Fatal(err)
	}
	if [2]uint32{got.Uid, got.Gid} != want {
		t.Errorf("owner %d:%d, want %v", got.Uid, got.Gid, want)
	}
	if err := LikeDir(filepath.Join(dir, "absent")); os.Geteuid() == 0 && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}
