package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// emulatorEnv marks the copy of the program that is an emulator.
const emulatorEnv = "FOGPLR_LAB_EMULATOR"

// emulatorFD is the descriptor of the emulator's control socket.
const emulatorFD = 3

// Operations of the emulator.
const (
	opOpen     = "open"     // a link with two descriptors
	opSet      = "set"      // parameters
	opCounters = "counters" // of both directions
	opClose    = "close"    // a link
)

// request is what a laboratory asks of its emulator: one JSON datagram.
type request struct {
	Op     string
	Link   int // chosen by the laboratory
	Params LinkParams
}

// reply is the emulator's answer to one request.
type reply struct {
	Error    string
	Counters [2]Counters // AB, BA
	Stopped  [2]string   // why a direction ended on its own; empty while it runs
}

// Main must be the first call in main, or in TestMain, of every program that
// makes laboratories. New runs the program a second time, as emulator of the
// links; in that copy Main does not return. In the other it does nothing.
//
// The emulator is a process of its own because the Go scheduler is shared by
// all threads of a program: a thread coming back from the kernel can wait for
// many milliseconds on behalf of an ordinary one, whatever its priority.
func Main() {
	if os.Getenv(emulatorEnv) == "" {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "emulator:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve answers requests until the laboratory closes its end.
func serve() error {
	debug.SetGCPercent(-1) // nothing is allocated per packet, and a collection stops all threads
	debug.SetMemoryLimit(emulatorMemory)
	runtime.GOMAXPROCS(emulatorProcs)
	file := os.NewFile(emulatorFD, "control socket")
	conn, err := net.FileConn(file)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := file.Close(); err != nil {
		return err
	}
	s := &server{conn: conn.(*net.UnixConn), links: map[int]*emulated{}}
	for {
		if more, err := s.answer(); err != nil || !more {
			return err
		}
	}
}

// server is the emulator process.
type server struct {
	conn  *net.UnixConn
	links map[int]*emulated
}

// emulated is one link in the emulator process.
type emulated struct {
	fds       [2]int
	conveyors [2]*conveyor
}

// answer serves one request; it returns false when there will be no more.
func (s *server) answer() (bool, error) {
	data, control := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(2*4))
	n, controlLen, _, _, err := s.conn.ReadMsgUnix(data, control)
	if err != nil || n == 0 {
		return false, nil // the laboratory is closed or dead
	}
	var q request
	if err := json.Unmarshal(data[:n], &q); err != nil {
		return false, err
	}
	fds, err := descriptors(control[:controlLen])
	if err != nil {
		return false, err
	}
	r, err := s.do(&q, fds)
	if err != nil {
		r.Error = err.Error()
	}
	if data, err = json.Marshal(r); err != nil {
		return false, err
	}
	_, err = s.conn.Write(data)
	return true, err
}

// descriptors returns the descriptors that came with a message.
func descriptors(control []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	return unix.ParseUnixRights(&messages[0])
}

func (s *server) do(q *request, fds []int) (r reply, err error) {
	if q.Op == opOpen {
		return r, s.open(q, fds)
	}
	link := s.links[q.Link]
	if link == nil {
		return r, fmt.Errorf("there is no link %d", q.Link)
	}
	switch q.Op {
	case opSet:
		return r, link.set(&q.Params)
	case opCounters:
		for i, c := range link.conveyors {
			counters, err := c.counters()
			r.Counters[i] = counters
			if err != nil {
				r.Stopped[i] = err.Error()
			}
		}
	case opClose:
		delete(s.links, q.Link)
		return r, link.close()
	default:
		return r, fmt.Errorf("unknown operation %q", q.Op)
	}
	return r, nil
}

func (s *server) open(q *request, fds []int) error {
	if len(fds) != 2 {
		return fmt.Errorf("a link came with %d descriptors", len(fds))
	}
	link := &emulated{fds: [2]int(fds)}
	both, err := link.settings(&q.Params)
	if err != nil {
		return errors.Join(err, link.close())
	}
	for i := range both {
		c, err := startConveyor(fds[i], fds[1-i], mix(q.Params.Seed+uint64(i)), q.Params.Raw, both[i])
		if err != nil {
			return errors.Join(err, link.close())
		}
		link.conveyors[i] = c
	}
	s.links[q.Link] = link
	return nil
}

// set changes both directions, or with an error none.
func (e *emulated) set(p *LinkParams) error {
	both, err := e.settings(p)
	if err != nil {
		return err
	}
	for i, c := range e.conveyors {
		c.set(both[i])
	}
	return nil
}

// settings reads what p names for both directions.
func (e *emulated) settings(p *LinkParams) (both [2]settings, err error) {
	for i, params := range []Params{p.AB, p.BA} {
		var old settings
		if c := e.conveyors[i]; c != nil {
			old = c.settings()
		}
		if both[i], err = settingsFor(params, p.Start, old); err != nil {
			return both, err
		}
	}
	return both, nil
}

func (e *emulated) close() error {
	for _, c := range e.conveyors {
		if c != nil {
			c.halt()
		}
	}
	return errors.Join(unix.Close(e.fds[0]), unix.Close(e.fds[1]))
}
