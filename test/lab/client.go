package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// emulator is a laboratory's handle on its emulator process.
type emulator struct {
	cmd  *exec.Cmd
	end  chan struct{} // closed to let go of the thread that started the process
	mu   sync.Mutex
	conn *net.UnixConn
	next int // number of the next link
}

// startEmulator runs this program again, as emulator.
func startEmulator(log *os.File) (*emulator, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "emulator"), os.NewFile(uintptr(pair[1]), "laboratory")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	e := &emulator{cmd: exec.Command("/proc/self/exe"), end: make(chan struct{}), conn: conn.(*net.UnixConn)}
	e.cmd.Env = append(os.Environ(), emulatorEnv+"=1")
	e.cmd.ExtraFiles = []*os.File{theirs} // emulatorFD
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	go e.start(result)
	if err := <-result; err != nil {
		return nil, errors.Join(fmt.Errorf("start the emulator: %w", err), conn.Close())
	}
	return e, nil
}

// start starts the process from a real-time thread, whose priority it inherits,
// and keeps the thread, whose death it would not survive.
func (e *emulator) start(result chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	err := raisePriority()
	if err == nil {
		err = e.cmd.Start()
	}
	result <- err
	if err == nil {
		<-e.end
	}
}

// call sends one request, with descriptors, and waits for the reply.
func (e *emulator) call(q request, fds ...int) (r reply, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	data, err := json.Marshal(q)
	if err != nil {
		return r, err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	err = e.conn.SetDeadline(time.Now().Add(emulatorPatience))
	if err == nil {
		_, _, err = e.conn.WriteMsgUnix(data, rights, nil)
	}
	buf := make([]byte, maxMessage)
	n := 0
	if err == nil {
		n, err = e.conn.Read(buf)
	}
	if err == nil {
		err = json.Unmarshal(buf[:n], &r)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return r, fmt.Errorf("the emulator did not answer within %v: is the machine too busy? %w", emulatorPatience, err)
	}
	if err != nil {
		return r, fmt.Errorf("the emulator does not answer (main or TestMain must call lab.Main first): %w", err)
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

// open starts a link on two TAP devices and returns its number. The caller
// keeps its own copies of the descriptors.
func (e *emulator) open(p LinkParams, a, b int) (int, error) {
	e.mu.Lock()
	id := e.next
	e.next++
	e.mu.Unlock()
	_, err := e.call(request{Op: opOpen, Link: id, Params: p}, a, b)
	return id, err
}

// close ends the process.
func (e *emulator) close() error {
	defer close(e.end)
	killer := time.AfterFunc(emulatorPatience, func() { _ = e.cmd.Process.Kill() })
	defer killer.Stop()
	err := e.conn.Close()
	if waitErr := e.cmd.Wait(); waitErr != nil {
		err = errors.Join(err, fmt.Errorf("the emulator ended: %w", waitErr))
	}
	return err
}

// raisePriority makes the calling thread a real-time one.
func raisePriority() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: emulatorPriority}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return fmt.Errorf("get real-time priority: %w", err)
	}
	return nil
}
