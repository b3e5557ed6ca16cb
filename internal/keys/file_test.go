package keys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileRoundTrip(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.key")
	k := Generate()
	if err := WritePrivate(file, k, false); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 || info.Size() != 45 {
		t.Errorf("mode %v, %d bytes; want 0600 and 45", info.Mode(), info.Size())
	}
	got, warning, err := ReadPrivate(file)
	if err != nil || warning != "" || got != k {
		t.Errorf("read back: same key %v, warning %q, error %v", got == k, warning, err)
	}

	if err := WritePrivate(file, Generate(), false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second write: %v, want fs.ErrExist", err)
	}
	if got, _, _ := ReadPrivate(file); got != k {
		t.Error("a refused write changed the file")
	}
	other := Generate()
	if err := WritePrivate(file, other, true); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := ReadPrivate(file); got != other {
		t.Error("a forced write did not change the file")
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
}

func TestReadWarnsOfOtherReaders(t *testing.T) {
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o660, 0o644} {
		file := filepath.Join(t.TempDir(), "node.key")
		if err := WritePrivate(file, Generate(), false); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		_, warning, err := ReadPrivate(file)
		if err != nil || !strings.Contains(warning, file) || !strings.Contains(warning, "chmod 600") {
			t.Errorf("mode %04o: warning %q, error %v", mode, warning, err)
		}
	}
}

func TestReadErrorsNameTheFileNotItsContent(t *testing.T) {
	dir := t.TempDir()
	const secret = "c2VjcmV0IQ=="
	for name, c := range map[string]struct {
		content string
		want    error
	}{
		"short":  {secret, ErrLength},
		"text":   {secret + " # mine", ErrEncoding},
		"empty":  {"", ErrLength},
		"long":   {strings.Repeat(secret, 100), nil},
		"double": {Generate().Base64() + "\n" + Generate().Base64(), nil},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := ReadPrivate(file)
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: error %v does not name the file", name, err)
			continue
		}
		if c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
		if c.content != "" && strings.Contains(err.Error(), c.content[:8]) {
			t.Errorf("%s: error %q repeats the content", name, err)
		}
	}
	if _, _, err := ReadPrivate(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	if _, _, err := ReadPrivate(dir); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("directory: %v", err)
	}
}
