package lab

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// conveyor is the emulator of one direction: a thread that reads frames from
// one device, keeps them in a pipe and writes them to another. It lives in
// the emulator process.
type conveyor struct {
	in, out int // descriptors of the devices, owned by the caller
	wake    int // eventfd, written when stop is set
	done    chan struct{}
	last    time.Time // when the thread last looked for frames

	mu   sync.Mutex
	pipe *pipe
	stop bool
	err  error // why it ended on its own
}

// startConveyor starts the emulator from in to out. Both descriptors must stay
// open until halt has returned.
func startConveyor(in, out int, seed uint64, raw bool, s settings) (*conveyor, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	c := &conveyor{in: in, out: out, wake: wake, done: make(chan struct{}), pipe: newPipe(seed, Params{})}
	if raw {
		c.pipe.header = 0
	}
	c.set(s)
	go c.run()
	return c, nil
}

// settingsFor reads the traces that p names, but takes those that old has already.
func settingsFor(p Params, start time.Time, old settings) (s settings, err error) {
	s = settings{params: p, rtt: old.rtt, capacity: old.capacity, start: start}
	switch {
	case p.RTT == nil:
		s.rtt = nil
	case old.params.RTT == nil || *p.RTT != *old.params.RTT:
		if s.rtt, err = p.RTT.Load(); err != nil {
			return s, err
		}
	}
	switch {
	case p.Capacity == "":
		s.capacity = nil
	case p.Capacity != old.params.Capacity:
		if s.capacity, err = loadCapacity(p.Capacity); err != nil {
			return s, err
		}
	}
	if !start.IsZero() { // it came by its date: give it this process's monotonic reading
		now := time.Now()
		s.start = now.Add(start.Sub(now.Round(0)))
	}
	return s, nil
}

func (c *conveyor) set(s settings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pipe.settings = s
}

func (c *conveyor) settings() settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pipe.settings
}

func (c *conveyor) counters() (Counters, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pipe.counters(), c.err
}

// halt stops the emulator and waits for it.
func (c *conveyor) halt() {
	c.mu.Lock()
	c.stop = true
	c.mu.Unlock()
	one := [8]byte{7: 1}
	_, _ = unix.Write(c.wake, one[:]) // fails only when the counter is full, which wakes too
	<-c.done
	unix.Close(c.wake)
}

func (c *conveyor) run() {
	defer close(c.done)
	runtime.LockOSThread()
	poll := []unix.PollFd{{Fd: int32(c.in), Events: unix.POLLIN}, {Fd: int32(c.wake), Events: unix.POLLIN}}
	buf := make([]byte, maxFrame)
	for {
		err := c.sleep(poll)
		if err == nil {
			var stop bool
			if stop, err = c.step(buf); stop {
				return
			}
		}
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			return
		}
	}
}

// sleep waits for a frame, a wake-up or the next packet that is due, but at
// least until restTime after it last returned: under load that makes batches.
func (c *conveyor) sleep(poll []unix.PollFd) error {
	if rest := restTime - time.Since(c.last); rest > 0 {
		pause := unix.NsecToTimespec(int64(rest))
		_ = unix.Nanosleep(&pause, nil) // a signal may cut it short: no harm
	}
	c.mu.Lock()
	due, ok := c.pipe.next()
	c.mu.Unlock()
	var timeout *unix.Timespec
	if ok {
		t := unix.NsecToTimespec(int64(max(0, time.Until(due))))
		timeout = &t
	}
	if _, err := unix.Ppoll(poll, timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("ppoll: %w", err)
	}
	c.last = time.Now()
	return nil
}

// step reads what has arrived and writes what is due; it reports whether the
// emulator must stop.
func (c *conveyor) step(buf []byte) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range readBurst {
		n, err := unix.Read(c.in, buf)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			return false, fmt.Errorf("read from device: %w", err)
		}
		c.pipe.offer(time.Now(), buf[:n])
	}
	for now := time.Now(); ; {
		k := c.pipe.pop(now)
		if k == nil {
			return c.stop, nil
		}
		if _, err := unix.Write(c.out, k.frame); err != nil {
			c.pipe.refused(k)
		} else {
			c.pipe.delivered(k)
		}
	}
}
