package systemd_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// machine is a Debian system booted by systemd-nspawn in a network namespace
// of the same name.
type machine struct {
	t      *testing.T
	name   string
	unit   string // the service under test
	root   string // its root directory, before it boots
	leader int    // its init, as seen from here
}

// newMachine makes the machine's files: a copy-on-write view of base.
func newMachine(t *testing.T, name, unit, base string) *machine {
	t.Helper()
	dir := filepath.Join(scratch, name)
	m := &machine{t: t, name: name, unit: unit, root: filepath.Join(dir, "root")}
	for _, d := range []string{"upper", "work", "root"} {
		m.check(os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", base, dir, dir)
	m.check(unix.Mount("overlay", m.root, "overlay", 0, options))
	// As udev would make it: the host's may have any mode.
	m.check(unix.Mknod(filepath.Join(dir, "tun"), unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))))
	m.check(os.Chmod(filepath.Join(dir, "tun"), 0o666))
	return m
}

func (m *machine) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("%s: %v", m.name, err)
	}
}

// write makes a file in the machine before it boots.
func (m *machine) write(path, text string, mode os.FileMode) {
	m.t.Helper()
	path = filepath.Join(m.root, path)
	m.check(os.MkdirAll(filepath.Dir(path), 0o755))
	m.check(os.WriteFile(path, []byte(text), mode))
}

// boot starts the machine and waits until systemd has done its work.
func (m *machine) boot() {
	m.t.Helper()
	groups, err := groups(os.Getenv(runEnv), m.name)
	m.check(err)
	join := ""
	for _, g := range groups {
		m.check(os.Mkdir(g, 0o755))
		join += fmt.Sprintf("echo $$ >%s/cgroup.procs && ", g)
	}
	console, err := os.Create(filepath.Join(scratch, m.name, "console"))
	m.check(err)
	defer console.Close()
	cmd := exec.Command("sh", "-c", join+`exec systemd-nspawn "$@"`, "sh",
		"--quiet", "--register=no", "--keep-unit", "--console=pipe", "--machine="+m.name,
		"--network-namespace-path=/run/netns/"+m.name,
		"--bind="+filepath.Join(scratch, m.name, "tun")+":/dev/net/tun",
		// nspawn keeps CAP_NET_ADMIN only with networks of its own making, and
		// systemd enforces DeviceAllow with a BPF program.
		"--capability=CAP_NET_ADMIN,CAP_BPF", "--system-call-filter=bpf",
		"--boot", "--directory="+m.root)
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1", "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network")
	cmd.Stdout, cmd.Stderr = console, console
	m.check(cmd.Start())
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.complain()
		}
		m.check(cmd.Process.Signal(unix.SIGTERM)) // nspawn halts the machine in good order
		select {
		case <-over:
		case <-time.After(20 * time.Second):
			m.t.Errorf("%s does not halt: killed", m.name)
			m.check(cmd.Process.Kill())
			<-over
		}
	})
	eventually(m.t, 30*time.Second, func() error {
		select {
		case err := <-over:
			over <- err
			m.t.Fatalf("%s does not boot: %v\n%s", m.name, err, m.console())
		default:
		}
		return m.findLeader(cmd.Process.Pid)
	})
	eventually(m.t, 30*time.Second, func() error {
		state, _ := m.run("systemctl", "is-system-running")
		if state != "running" && state != "degraded" {
			return fmt.Errorf("%s is not up but %q", m.name, state)
		}
		return nil
	})
}

// findLeader looks for systemd among the children of nspawn.
func (m *machine) findLeader(nspawn int) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", nspawn, nspawn))
	if err != nil {
		return err
	}
	for child := range strings.FieldsSeq(string(b)) {
		comm, err := os.ReadFile("/proc/" + child + "/comm")
		if err != nil || strings.TrimSpace(string(comm)) != "systemd" {
			continue
		}
		m.leader, err = strconv.Atoi(child)
		return err
	}
	return fmt.Errorf("systemd does not run in %s", m.name)
}

// complain logs what helps to see why a test failed.
func (m *machine) complain() {
	m.t.Logf("console of %s:\n%s", m.name, tail(m.console(), 10))
	status, _ := m.run("systemctl", "status", "--no-pager", "--lines=0", m.unit)
	m.t.Logf("%s on %s:\n%s", m.unit, m.name, status)
	journal, _ := m.run("journalctl", "--no-pager", "--output=short-precise")
	m.t.Logf("journal of %s:\n%s", m.name, tail(journal, 60))
}

func (m *machine) console() string {
	b, err := os.ReadFile(filepath.Join(scratch, m.name, "console"))
	m.check(err)
	return string(b)
}

// run runs a program as root in the machine and returns what it wrote.
func (m *machine) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	args = append([]string{"--target", strconv.Itoa(m.leader), "--mount", "--uts", "--ipc", "--net", "--pid", "--"}, args...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "TERM=dumb", "HOME=/root"}
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimRight(out.String(), "\n"), err
}

// must is run for programs that may not fail.
func (m *machine) must(args ...string) string {
	m.t.Helper()
	out, err := m.run(args...)
	if err != nil {
		m.t.Fatalf("%s: %s: %v\n%s", m.name, strings.Join(args, " "), err, out)
	}
	return out
}

// as runs a program as an unprivileged user of the machine.
func (m *machine) as(user string, args ...string) (string, error) {
	return m.run(append([]string{"setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups", "--"}, args...)...)
}

// property returns a property of the service.
func (m *machine) property(name string) string {
	m.t.Helper()
	return m.must("systemctl", "show", "--property="+name, "--value", m.unit)
}

func (m *machine) number(property string) int {
	m.t.Helper()
	n, err := strconv.Atoi(m.property(property))
	m.check(err)
	return n
}

// active reports whether the service runs, as an error when not.
func (m *machine) active() error {
	state := m.property("ActiveState") + "/" + m.property("SubState")
	if state != "active/running" {
		return fmt.Errorf("%s on %s is %s", m.unit, m.name, state)
	}
	return nil
}

// in runs f in the network namespace of the machine. Sockets that f opens stay
// there.
func (m *machine) in(f func() error) {
	m.t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		ns, err := os.Open("/run/netns/" + m.name)
		if err != nil {
			done <- err
			return
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	m.check(<-done)
}

// host runs a program here, outside of the machines.
func host(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}
