package tunnel

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// space is a network namespace with a thread in it. It has no name, and goes
// with the test however that ends.
type space struct {
	t     *testing.T
	calls chan func()
	tid   int
}

func newSpace(t *testing.T) *space {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces and interfaces: run it as root")
	}
	s := &space{t: t, calls: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		s.tid = unix.Gettid()
		err := unix.Unshare(unix.CLONE_NEWNET)
		ready <- err
		if err != nil {
			return
		}
		for f := range s.calls {
			f()
		}
	}()
	if err := <-ready; err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	t.Cleanup(func() { close(s.calls) })
	s.ip("link set lo up")
	return s
}

// in runs f on the thread in the namespace and waits.
func (s *space) in(f func()) {
	done := make(chan struct{})
	s.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

// ip runs ip(8) with each line of commands.
func (s *space) ip(commands string, args ...any) {
	s.t.Helper()
	for line := range strings.Lines(fmt.Sprintf(commands, args...)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var out []byte
		var err error
		s.in(func() { out, err = exec.Command("ip", words...).CombinedOutput() })
		if err != nil {
			s.t.Fatalf("ip %s: %v: %s", strings.TrimSpace(line), err, out)
		}
	}
}

// index returns the index of the interface of that name.
func (s *space) index(name string) (index int) {
	s.t.Helper()
	var i *net.Interface
	var err error
	s.in(func() { i, err = net.InterfaceByName(name) })
	if err != nil {
		s.t.Fatal(err)
	}
	return i.Index
}

// wire joins two namespaces by a pair of interfaces, up, with that MTU in bytes.
func wire(a *space, nameA string, b *space, nameB string, mtu int) {
	a.t.Helper()
	a.ip("link add %s mtu %d type veth peer name %s mtu %d netns %s", nameA, mtu, nameB, mtu, strconv.Itoa(b.tid))
	a.ip("link set %s up", nameA)
	b.ip("link set %s up", nameB)
}
