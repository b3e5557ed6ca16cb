package routing

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Root reads what the daemon's user may have put there: no link, no pipe and no
// endless file must mislead it.
func TestRememberedValuesAreReadWithCare(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"pipe":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"large": func(path string) error {
			f, err := os.Create(path)
			if err == nil {
				err = f.Truncate(1 << 40)
			}
			return err
		},
	} {
		s := rpStore{filepath.Join(t.TempDir(), "rp_filter-1.json")}
		if err := put(s.path); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := s.load()
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: still reading", name)
		}
	}
}
