package systemd_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const suite = "bookworm"

// packages are what the machines need beyond Debian's minimal base.
var packages = []string{"systemd", "systemd-sysv", "iproute2", "wireguard-tools"}

// debianRoot returns a directory with a Debian root file system that nobody
// writes to. The first call on a machine makes it, which takes about a minute.
func debianRoot(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = "/var/cache"
	}
	cache = filepath.Join(cache, "fogplr-test")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(suite + " " + strings.Join(packages, " ")))
	root := filepath.Join(cache, "rootfs-"+hex.EncodeToString(hash[:6]))

	lock, err := os.OpenFile(root+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); err == nil {
		return root
	}
	need(t, "debootstrap", "debootstrap")
	fresh := root + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		t.Fatal(err)
	}
	t.Logf("making a Debian root file system in %s", root)
	cmd := exec.Command("debootstrap", "--variant=minbase", "--include="+strings.Join(packages, ","), suite, fresh, mirror(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("debootstrap: %v\n%s", err, tail(string(out), 20))
	}
	// The host's own name and resolver do not belong there.
	for _, f := range []string{"etc/hostname", "etc/resolv.conf"} {
		if err := os.RemoveAll(filepath.Join(fresh, f)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(fresh, root); err != nil {
		t.Fatal(err)
	}
	return root
}

// mirror returns the address from which this machine gets Debian packages.
func mirror(t *testing.T) string {
	t.Helper()
	if m := os.Getenv("FOGPLR_TEST_MIRROR"); m != "" {
		return m
	}
	files := []string{"/etc/apt/sources.list"}
	for _, pattern := range []string{"/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if m := mirrorIn(string(b)); m != "" {
			return m
		}
	}
	t.Fatalf("no apt source of this machine names the Debian suite %s: set FOGPLR_TEST_MIRROR to the address of a Debian mirror", suite)
	return ""
}

// mirrorIn returns the first address in an apt source file, of either format,
// that offers suite, or "".
func mirrorIn(text string) string {
	var uri string
	var has bool
	lines := bufio.NewScanner(strings.NewReader(text + "\n\n"))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			if uri != "" && has {
				return uri
			}
			uri, has = "", false
			continue
		}
		switch fields[0] {
		case "URIs:":
			if len(fields) > 1 {
				uri = fields[1]
			}
		case "Suites:":
			has = slices.Contains(fields[1:], suite)
		case "deb":
			i := 1
			for i < len(fields) && (strings.HasPrefix(fields[i], "[") || strings.Contains(fields[i], "=")) {
				i++
			}
			if i+1 < len(fields) && fields[i+1] == suite {
				return fields[i]
			}
		}
	}
	return ""
}

func TestMirrorIn(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"deb822", "Types: deb\nURIs: http://m.example/debian\nSuites: bookworm bookworm-updates\n", "http://m.example/debian"},
		{"security only", "Types: deb\nURIs: http://s.example\nSuites: bookworm-security\n", ""},
		{"second stanza", "URIs: http://s.example\nSuites: bookworm-security\n\nURIs: http://m.example\nSuites: bookworm\n", "http://m.example"},
		{"one line", "deb http://m.example/debian bookworm main\n", "http://m.example/debian"},
		{"one line with options", "deb [arch=amd64 signed-by=/k] http://m.example bookworm main\n", "http://m.example"},
		{"commented", "# deb http://m.example bookworm main\n", ""},
		{"other suite", "deb http://m.example noble main\n", ""},
	} {
		if got := mirrorIn(c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// need ends the test when a program is missing, and names its package.
func need(t *testing.T, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%s is missing, without which the units cannot be tested: run `apt-get install %s`", program, pkg)
	}
}

func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = append([]string{fmt.Sprintf("(%d lines before)", len(lines)-n)}, lines[len(lines)-n:]...)
	}
	return strings.Join(lines, "\n")
}
