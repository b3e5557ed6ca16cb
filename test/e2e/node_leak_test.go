package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

// Carriers that come and go cost neither file descriptors nor threads nor
// memory.
func TestNodeLeak(t *testing.T) { flap(t, 50) }

// flap takes a carrier down and up n times, and every fifth time unplugs it and
// plugs in another of the same name.
func flap(t *testing.T, n int) {
	const mostMemory = 150 << 20
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	c := r.lab.Carriers[1]
	i := 0
	cycle := func() {
		i++
		if i%5 == 0 {
			must(t, w.Remove(c.Link))
			time.Sleep(20 * time.Millisecond)
			var err error
			c.Link, err = w.Link(r.lab.Node, c.Interface, w.Inet, "up-b", lab.LinkParams{})
			must(t, err)
			must(t, r.lab.AddAddress(c.Interface, c.Address.String()))
			must(t, w.Inet.AddAddress("up-b", c.Router.String()+"/24"))
		} else {
			must(t, r.lab.Down(c.Interface))
			time.Sleep(20 * time.Millisecond)
			must(t, r.lab.Up(c.Interface))
		}
		must(t, r.lab.AddRoute("default", c.Router.String(), c.Interface, 101))
		time.Sleep(60 * time.Millisecond)
	}
	for range 5 {
		cycle()
	}
	waitPath(t, r, "west", "cell-b", true)
	fds, threads := use(t, r.Member)
	gfds, gthreads := use(t, g.Member)
	for range n / 10 {
		for range 10 {
			cycle()
		}
		waitPath(t, r, "west", "cell-b", true)
	}
	fds2, threads2 := use(t, r.Member)
	gfds2, gthreads2 := use(t, g.Member)
	memory, gmemory := memoryOf(t, r.Member), memoryOf(t, g.Member)
	t.Logf("robot: %d to %d files, %d to %d threads, %d MB; gateway: %d to %d files, %d to %d threads, %d MB",
		fds, fds2, threads, threads2, memory>>20, gfds, gfds2, gthreads, gthreads2, gmemory>>20)
	if fds2 > fds+3 || gfds2 > gfds+3 {
		t.Errorf("files stay open: robot %d to %d, gateway %d to %d", fds, fds2, gfds, gfds2)
	}
	if threads2 > threads+n/5 || gthreads2 > gthreads+n/5 {
		t.Errorf("threads stay: robot %d to %d, gateway %d to %d", threads, threads2, gthreads, gthreads2)
	}
	if memory > mostMemory || gmemory > mostMemory {
		t.Errorf("resident: robot %d MB, gateway %d MB", memory>>20, gmemory>>20)
	}
}

// use counts a daemon's open files and its threads.
func use(t testing.TB, m *deploy.Member) (files, threads int) {
	t.Helper()
	for dir, n := range map[string]*int{"fd": &files, "task": &threads} {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", m.Pid(), dir))
		must(t, err)
		*n = len(entries)
	}
	return files, threads
}

var residentLine = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// memoryOf is a daemon's resident memory in bytes.
func memoryOf(t testing.TB, m *deploy.Member) int {
	t.Helper()
	found := residentLine.FindStringSubmatch(read(t, fmt.Sprintf("/proc/%d/status", m.Pid())))
	if found == nil {
		t.Fatal("no VmRSS")
	}
	kB, err := strconv.Atoi(found[1])
	must(t, err)
	return kB << 10
}
