package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sources is the directory with the units and the installer.
const sources = "../../systemd"

var unitNames = []string{"fogplr-robot.service", "fogplr-gateway.service"}

// worstExposure is the largest exposure level that the units may have: 0 is
// none, 10 is a service without any protection.
const worstExposure = 3.5

func TestExposure(t *testing.T) {
	need(t, "systemd-analyze", "systemd")
	exposure := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`)
	for _, name := range unitNames {
		unit, err := filepath.Abs(filepath.Join(sources, name))
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", unit).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		found := exposure.FindSubmatch(out)
		if found == nil {
			t.Fatalf("no exposure level in:\n%s", out)
		}
		level, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		if level > worstExposure {
			t.Errorf("%s has exposure level %v, more than %v:\n%s", name, level, worstExposure, out)
		}
	}
}

// TestUnitsAgree finds what was mended in one unit and forgotten in the other.
func TestUnitsAgree(t *testing.T) {
	var texts []string
	for i, name := range unitNames {
		b, err := os.ReadFile(filepath.Join(sources, name))
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for line := range strings.SplitSeq(string(b), "\n") {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "Description=") {
				line = strings.TrimSuffix(line, []string{"", " CAP_NET_BIND_SERVICE"}[i])
				kept = append(kept, strings.ReplaceAll(line, []string{"robot", "gateway"}[i], "ROLE"))
			}
		}
		texts = append(texts, strings.Join(kept, "\n"))
	}
	if texts[0] != texts[1] {
		t.Errorf("the units differ in more than the role and low ports:\n%s\n--- and ---\n%s", texts[0], texts[1])
	}
}

func TestInstallInto(t *testing.T) {
	program := filepath.Join(t.TempDir(), "fogplr")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, prefix string }{{"default", "/usr"}, {"prefix", "/usr/local"}} {
		t.Run(c.name, func(t *testing.T) {
			dest := t.TempDir()
			install := func(args ...string) {
				t.Helper()
				cmd := exec.Command(filepath.Join(sources, "install.sh"), args...)
				cmd.Env = append(os.Environ(), "BINARY="+program, "PREFIX="+c.prefix)
				if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
					t.Fatalf("install.sh %v: %v\n%s", args, err, out)
				}
			}
			want := map[string]string{
				c.prefix + "/bin/fogplr":                                "-rwxr-xr-x",
				c.prefix + "/lib/systemd/system/fogplr-robot.service":   "-rw-r--r--",
				c.prefix + "/lib/systemd/system/fogplr-gateway.service": "-rw-r--r--",
				c.prefix + "/lib/sysusers.d/fogplr.conf":                "-rw-r--r--",
				c.prefix + "/lib/tmpfiles.d/fogplr.conf":                "-rw-r--r--",
			}
			install(dest)
			sameFiles(t, dest, want)
			install(dest + "/")
			sameFiles(t, dest, want)
			unit, err := os.ReadFile(filepath.Join(dest, c.prefix, "lib/systemd/system/fogplr-robot.service"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(unit), "\nExecStart="+c.prefix+"/bin/fogplr robot ") {
				t.Errorf("the unit does not start %s/bin/fogplr:\n%s", c.prefix, unit)
			}
			install("--uninstall", dest)
			sameFiles(t, dest, nil)
			install("--uninstall", dest)
		})
	}
}

// sameFiles compares the files below dir with want, a mode for each path.
func sameFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found++
		name := strings.TrimPrefix(path, dir)
		if want[name] != info.Mode().String() {
			t.Errorf("%s has mode %v, want %q", name, info.Mode(), want[name])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found != len(want) {
		t.Errorf("%d files are installed, want %d", found, len(want))
	}
}

func TestInstallNamesMissingProgram(t *testing.T) {
	cmd := exec.Command(filepath.Join(sources, "install.sh"), t.TempDir())
	cmd.Env = append(os.Environ(), "BINARY=/nonexistent/fogplr")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "/nonexistent/fogplr: run `make build` first") {
		t.Errorf("error %v does not name the missing program: %s", err, out)
	}
}

// sudo gives root a PATH without Go.
func TestMakeInstallNeedsNoGo(t *testing.T) {
	bare := t.TempDir()
	for _, name := range []string{"make", "sh", "cat", "chmod", "dirname", "mkdir", "mv", "rm", "sed"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bare, name)); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(bare, "fogplr")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dest := t.TempDir()
	for binary, ok := range map[string]bool{program: true, "/nonexistent/fogplr": false} {
		cmd := exec.Command("make", "-C", filepath.Dir(sources), "install", "DESTDIR="+dest)
		cmd.Env = []string{"PATH=" + bare, "BINARY=" + binary}
		if out, err := cmd.CombinedOutput(); (err == nil) != ok || !ok && !strings.Contains(string(out), "run `make build` first") {
			t.Errorf("make install with %s: %v\n%s", binary, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dest, "usr/bin/fogplr")); err != nil {
		t.Error(err)
	}
}
