package files

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

func TestReplaceAndCreate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	check := func(what, want string, mode fs.FileMode) {
		t.Helper()
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", what, got, err, want)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, %v; want %v", what, info.Mode(), err, mode)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%s: files left behind: %v, %v", what, left, err)
		}
	}
	if err := Create(file, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("created", "one", 0o600)
	if err := Create(file, []byte("two"), 0o644); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Create: %v, want fs.ErrExist", err)
	}
	check("created twice", "one", 0o600)
	if err := Replace(file, []byte("three"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("replaced", "three", 0o644)
	if err := Replace("/proc/no/such/file", nil, 0o600); err == nil {
		t.Error("no error for a folder that is not there")
	}
}
