package systemd_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The machines run in PID, mount and network namespaces of one process, the
// test's own second run. When that process ends, for whatever reason, the
// kernel takes processes, mounts, networks and files with it; only the empty
// control groups are left, which the first run removes.

// What the first run tells the second: the Debian root, the program under test
// (which users may set) and the first run's process, which names the groups.
const (
	insideEnv  = "FOGPLR_TEST_INSIDE"
	programEnv = "FOGPLR_TEST_BINARY"
	runEnv     = "FOGPLR_TEST_RUN"
)

// scratch is a tmpfs of the second run.
const scratch = "/run/fogplr-test"

func TestMain(m *testing.M) {
	if os.Getenv(insideEnv) != "" {
		if err := enter(); err != nil {
			fmt.Fprintln(os.Stderr, "preparing the namespaces:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// enter finishes what clone began: mounts that the host does not see.
func enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	// All of /run: network namespaces' names, nspawn's locks, our files. It
	// also hides the host's systemd, so that nspawn behaves alike everywhere.
	if err := unix.Mount("run", "/run", "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("/run: %w", err)
	}
	return os.Mkdir(scratch, 0o700)
}

// runInside runs the calling test once more, in namespaces of its own.
func runInside(t *testing.T, root, program string, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit+10*time.Second)
	defer cancel()
	args := []string{"-test.run=^" + t.Name() + "$", "-test.timeout=" + limit.String(), "-test.count=1"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), insideEnv+"="+root, programEnv+"="+program, runEnv+"="+fmt.Sprint(os.Getpid()))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
		Pdeathsig:  unix.SIGKILL,
	}
	defer removeGroups(t, fmt.Sprint(os.Getpid()))
	// Pdeathsig counts the death of the thread that forked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		t.Errorf("in its own namespaces: %v", err)
	}
}

// buildProgram builds the program here, where the network is, unless the
// environment names one.
func buildProgram(t *testing.T) string {
	t.Helper()
	if p := os.Getenv(programEnv); p != "" {
		return p
	}
	program := filepath.Join(t.TempDir(), "fogplr")
	cmd := exec.Command("go", "build", "-o", program, "../../cmd/fogplr")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building fogplr: %v\n%s", err, out)
	}
	return program
}

// groups returns the control groups that this run gives to machine, one in
// each hierarchy that systemd uses. Machines with a group in common would
// take each other's processes for their own.
func groups(run, machine string) ([]string, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for line := range strings.Lines(string(b)) {
		before, after, ok := strings.Cut(line, " - ")
		f, super := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(super) < 3 || f[3] != "/" {
			continue
		}
		if super[0] == "cgroup2" || super[0] == "cgroup" && strings.Contains(super[2], "name=systemd") {
			dirs = append(dirs, filepath.Join(f[4], "fogplr-test-"+run+"-"+machine))
		}
	}
	if len(dirs) == 0 {
		return nil, errors.New("no control groups are mounted that systemd could use")
	}
	return dirs, nil
}

// removeGroups removes the control groups of every machine of a run.
func removeGroups(t *testing.T, run string) {
	patterns, err := groups(run, "*")
	if err != nil {
		t.Error(err)
		return
	}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Error(err)
		}
		for _, dir := range found {
			// The last processes may take a moment to be gone.
			eventually(t, 10*time.Second, func() error { return removeTree(dir) })
		}
	}
}

// removeTree removes a control group and those in it, deepest first.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeTree(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(err, os.Remove(dir))
}

// eventually calls try until it succeeds, and fails the test when it has not
// after limit. It returns how long that took.
func eventually(t *testing.T, limit time.Duration, try func() error) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		err := try()
		took := time.Since(start)
		if err == nil {
			return took
		}
		if took > limit {
			t.Errorf("after %v: %v", limit, err)
			return took
		}
		time.Sleep(50 * time.Millisecond)
	}
}
