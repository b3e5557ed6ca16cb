package lab

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Lab is one laboratory. Its methods may be called from several goroutines, but
// not while Close runs.
type Lab struct {
	run      string // in the names of everything that outlives a crash
	dir      string
	record   string
	keepLogs bool
	emulator *emulator

	mu       sync.Mutex
	nodes    []*Node
	links    map[*Link]struct{}
	commands []*Cmd
	captures []*Capture
	servers  []*Nameserver
	logs     int
}

// New starts an empty laboratory and removes what dead ones left behind. name
// (letters, digits and hyphens) is part of the names of its namespaces.
func New(name string) (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a network laboratory needs root: it makes network namespaces and TAP devices")
	}
	if os.Getenv(emulatorEnv) != "" {
		return nil, errors.New("this copy of the program should be an emulator: main or TestMain must call lab.Main first")
	}
	if err := Sweep(); err != nil {
		return nil, err
	}
	var suffix [3]byte
	_, _ = rand.Read(suffix[:]) // never fails
	l := &Lab{
		run:   fmt.Sprintf("%s-%d-%s", name, os.Getpid(), hex.EncodeToString(suffix[:])),
		links: map[*Link]struct{}{},
	}
	var err error
	if l.record, err = writeRecord(l.run); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp("", namePrefix+l.run+"-"); err != nil {
		return nil, errors.Join(err, os.Remove(l.record))
	}
	log, err := l.logFile("lab", "emulator")
	if err == nil {
		l.emulator, err = startEmulator(log)
		err = errors.Join(err, log.Close())
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(l.record), os.RemoveAll(l.dir))
	}
	return l, nil
}

// Dir is the laboratory's own directory, for logs, configuration and captures.
// Close removes it unless KeepLogs was called.
func (l *Lab) Dir() string { return l.dir }

// KeepLogs makes Close leave Dir in place.
func (l *Lab) KeepLogs() { l.keepLogs = true }

// Node makes a namespace with the given name, unique in this laboratory. Its
// loopback interface is up. The namespace can be entered from outside with
// `ip netns exec`, by the name that Namespace returns.
func (l *Lab) Node(name string) (*Node, error) {
	n, err := newNode(l, name)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	l.mu.Lock()
	l.nodes = append(l.nodes, n)
	l.mu.Unlock()
	return n, nil
}

// Close ends every program, removes every link and namespace and returns what
// went wrong. It may be called once.
func (l *Lab) Close() error {
	var errs []error
	var ending sync.WaitGroup
	for _, c := range l.commands {
		ending.Go(func() { _ = c.Stop(stopGrace) }) // how a program ends at closing time is no matter
	}
	ending.Wait()
	for _, c := range l.captures {
		errs = append(errs, c.Stop())
	}
	for _, s := range l.servers {
		errs = append(errs, s.close())
	}
	for _, n := range l.nodes {
		errs = append(errs, killInside(n.path))
	}
	for k := range l.links {
		errs = append(errs, k.close())
	}
	errs = append(errs, l.emulator.close())
	for _, n := range slices.Backward(l.nodes) {
		errs = append(errs, n.close())
	}
	errs = append(errs, os.Remove(l.record))
	if !l.keepLogs {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close laboratory %s: %w", l.run, err)
	}
	return nil
}

// logFile makes a new log file for a program of a node.
func (l *Lab) logFile(node, program string) (*os.File, error) {
	l.mu.Lock()
	l.logs++
	n := l.logs
	l.mu.Unlock()
	return os.Create(filepath.Join(l.dir, fmt.Sprintf("%03d-%s-%s.log", n, node, filepath.Base(program))))
}

// TB is the part of testing.TB that Test needs.
type TB interface {
	Helper()
	Fatal(args ...any)
	Error(args ...any)
	Logf(format string, args ...any)
	Cleanup(f func())
	Failed() bool
}

// Test starts a laboratory for a test, which fails if the laboratory cannot be
// opened or closed. When the test has failed its logs are kept, and it says
// where.
func Test(t TB, name string) *Lab {
	t.Helper()
	l, err := New(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			l.KeepLogs()
			t.Logf("the laboratory's logs are in %s", l.Dir())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}
