package lab

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Direction is one direction of an emulated link. Its methods may be called
// from any goroutine at any time.
type Direction struct {
	in, out int // descriptors of the TAP devices, owned by the link
	wake    int // eventfd, written when stop is set
	done    chan struct{}

	mu   sync.Mutex
	pipe *pipe
	stop bool
	err  error // why the emulator ended on its own
}

// startDirection starts the emulator from in to out. Both descriptors must stay
// open until halt has returned.
func startDirection(in, out int, seed uint64, params Params) (*Direction, error) {
	if err := params.check(); err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	d := &Direction{in: in, out: out, wake: wake, done: make(chan struct{}), pipe: newPipe(seed, params)}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) // so that it finds a processor whenever it comes back from the kernel
	ready := make(chan error)
	go d.run(ready)
	if err := <-ready; err != nil {
		d.halt()
		return nil, err
	}
	return d, nil
}

// Params returns the parameters in force.
func (d *Direction) Params() Params {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pipe.params
}

// Set changes the parameters, for packets that arrive from now on; those in
// flight keep the time they were given. A value out of range is an error and
// changes nothing.
func (d *Direction) Set(p Params) error {
	if err := p.check(); err != nil {
		return err
	}
	d.change(func(old *Params) { *old = p })
	return nil
}

// BlackHole switches the black hole on or off and leaves the rest.
func (d *Direction) BlackHole(on bool) {
	d.change(func(p *Params) { p.BlackHole = on })
}

func (d *Direction) change(f func(*Params)) {
	d.mu.Lock()
	f(&d.pipe.params)
	d.mu.Unlock()
}

// Counters returns what became of the packets so far.
func (d *Direction) Counters() Counters {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pipe.counters()
}

// Err tells why the emulator stopped on its own; nil while it runs. It stops
// when the device it reads from is deleted.
func (d *Direction) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// halt stops the emulator and waits for it.
func (d *Direction) halt() {
	d.mu.Lock()
	d.stop = true
	d.mu.Unlock()
	one := [8]byte{7: 1}
	_, _ = unix.Write(d.wake, one[:]) // fails only when the counter is full, which wakes too
	<-d.done
	unix.Close(d.wake)
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - 1)
}

// run is the emulator. Its thread is never unlocked, so it ends with the
// goroutine and takes its priority with it.
func (d *Direction) run(ready chan<- error) {
	defer close(d.done)
	runtime.LockOSThread()
	if err := raisePriority(); err != nil {
		ready <- err
		return
	}
	ready <- nil
	poll := []unix.PollFd{{Fd: int32(d.in), Events: unix.POLLIN}, {Fd: int32(d.wake), Events: unix.POLLIN}}
	buf := make([]byte, maxFrame)
	for {
		if err := d.sleep(poll); err != nil {
			d.fail(err)
			return
		}
		if d.step(buf) {
			return
		}
	}
}

// sleep waits for a frame, a wake-up or the next packet that is due.
func (d *Direction) sleep(poll []unix.PollFd) error {
	d.mu.Lock()
	due, ok := d.pipe.next()
	d.mu.Unlock()
	var timeout *unix.Timespec
	if ok {
		t := unix.NsecToTimespec(int64(max(0, time.Until(due))))
		timeout = &t
	}
	if _, err := unix.Ppoll(poll, timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("ppoll: %w", err)
	}
	return nil
}

// step reads what has arrived and writes what is due; it reports whether the
// emulator must end.
func (d *Direction) step(buf []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range readBurst {
		n, err := unix.Read(d.in, buf)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			d.err = fmt.Errorf("read from TAP device: %w", err)
			return true
		}
		d.pipe.offer(time.Now(), buf[:n])
	}
	for now := time.Now(); ; {
		k := d.pipe.pop(now)
		if k == nil {
			return d.stop
		}
		if _, err := unix.Write(d.out, k.frame); err != nil {
			d.pipe.refused(k)
		} else {
			d.pipe.delivered(k)
		}
	}
}

func (d *Direction) fail(err error) {
	d.mu.Lock()
	d.err = err
	d.mu.Unlock()
}

// raisePriority makes the calling thread a real-time one, so that a busy
// machine does not add delays of its own.
func raisePriority() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: emulatorPriority}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return fmt.Errorf("give an emulator real-time priority: %w", err)
	}
	return nil
}
