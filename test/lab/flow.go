package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// FlowText opens every packet of a Flow, for searches with FindPlain.
const FlowText = "fogplr test flow"

// flowHeader is FlowText, a number (4 bytes) and the time of sending (8 bytes).
const flowHeader = len(FlowText) + 12

// Flow is a stream of numbered UDP packets at a steady rate, to measure what a
// network does to them.
type Flow struct {
	From, To *Node
	Source   netip.Addr     // address to send from; the zero value leaves it to routing
	Target   netip.AddrPort // where To listens
	Rate     float64        // packets/s
	Count    int            // packets
	Size     int            // UDP payload in bytes, at least 28; less is raised to it
	Linger   time.Duration  // how long to listen after the last was sent; 0 means 1 s
}

// FlowReport tells what arrived.
type FlowReport struct {
	Sent       int
	SendErrors int // refused by the kernel; they count as lost
	Received   int // different packets
	Duplicates int
	OutOfOrder int   // arrived after a later one
	Lost       []int // numbers, from 0
	// Latency of every first arrival, ascending, by the kernel's receive stamp.
	Latency []time.Duration
	// LongestGap is the longest time between two first arrivals.
	LongestGap time.Duration
}

// Percentile returns the latency below which the share p (0 to 1) of the
// packets stayed, 0 when none arrived.
func (r *FlowReport) Percentile(p float64) time.Duration {
	if len(r.Latency) == 0 {
		return 0
	}
	return r.Latency[min(len(r.Latency)-1, int(p*float64(len(r.Latency))))]
}

func (r *FlowReport) String() string {
	return fmt.Sprintf("sent %d (%d errors), received %d, lost %d, duplicates %d, out of order %d, latency p50 %v p99 %v max %v, longest gap %v",
		r.Sent, r.SendErrors, r.Received, len(r.Lost), r.Duplicates, r.OutOfOrder,
		r.Percentile(0.5), r.Percentile(0.99), r.Percentile(1), r.LongestGap)
}

// Run sends the flow and returns what arrived; it blocks meanwhile. When ctx
// ends, it stops sending, and the report covers what was sent.
func (f Flow) Run(ctx context.Context) (*FlowReport, error) {
	f.Size = max(f.Size, flowHeader)
	if f.Linger == 0 {
		f.Linger = time.Second
	}
	receiver, err := f.listen()
	if err != nil {
		return nil, err
	}
	defer receiver.Close()
	type heard struct {
		arrivals []arrival
		err      error
	}
	result := make(chan heard)
	go func() {
		arrivals, err := hear(receiver, f.Count)
		result <- heard{arrivals, err}
	}()
	r := &FlowReport{}
	sendErr := f.From.Do(func() error { return f.send(ctx, r) })
	if sendErr == nil {
		time.Sleep(f.Linger)
	}
	deadlineErr := receiver.SetReadDeadline(time.Unix(1, 0))
	h := <-result
	if err := errors.Join(sendErr, deadlineErr, h.err); err != nil {
		return nil, fmt.Errorf("flow from %s to %s: %w", f.From.name, f.To.name, err)
	}
	r.sum(h.arrivals)
	return r, nil
}

func (f Flow) listen() (conn *net.UDPConn, err error) {
	err = f.To.Do(func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(f.Target))
		return err
	})
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var optErr error
	err = raw.Control(func(fd uintptr) {
		optErr = errors.Join(
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer))
	})
	if err := errors.Join(err, optErr); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// send runs on a thread of its own in the sender's node. It has the emulator's
// priority, so that a busy machine does not turn a steady flow into bursts.
func (f Flow) send(ctx context.Context, r *FlowReport) error {
	if err := raisePriority(); err != nil {
		return err
	}
	conn, err := net.DialUDP("udp", sourceOf(f.Source), net.UDPAddrFromAddrPort(f.Target))
	if err != nil {
		return err
	}
	defer conn.Close()
	packet := make([]byte, f.Size)
	copy(packet, FlowText)
	interval := time.Duration(float64(time.Second) / f.Rate)
	start := monotonic()
	for i := 0; i < f.Count && ctx.Err() == nil; i++ {
		if err := sleepUntil(start + time.Duration(i)*interval); err != nil {
			return err
		}
		binary.BigEndian.PutUint32(packet[len(FlowText):], uint32(i))
		binary.BigEndian.PutUint64(packet[len(FlowText)+4:], uint64(time.Now().UnixNano()))
		r.Sent++
		if _, err := conn.Write(packet); err != nil {
			r.SendErrors++
		}
	}
	return nil
}

func sourceOf(a netip.Addr) *net.UDPAddr {
	if !a.IsValid() {
		return nil
	}
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
}

func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail for this clock
	return time.Duration(t.Nano())
}

// sleepUntil sleeps more exactly than Go's timers do.
func sleepUntil(t time.Duration) error {
	at := unix.NsecToTimespec(int64(t))
	for {
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// arrival is one packet of a flow as it was received.
type arrival struct {
	number  int
	at      time.Time
	latency time.Duration
}

// hear collects packets until the read deadline has passed.
func hear(conn *net.UDPConn, expected int) ([]arrival, error) {
	all := make([]arrival, 0, 2*expected)
	packet, control := make([]byte, maxFrame), make([]byte, 128)
	for {
		n, controlLen, _, _, err := conn.ReadMsgUDPAddrPort(packet, control)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return all, nil
		case errors.Is(err, syscall.ECONNREFUSED):
			continue
		case err != nil:
			return nil, err
		}
		if n < flowHeader || string(packet[:len(FlowText)]) != FlowText {
			continue
		}
		at, err := receiveTime(control[:controlLen])
		if err != nil {
			return nil, err
		}
		sent := time.Unix(0, int64(binary.BigEndian.Uint64(packet[len(FlowText)+4:])))
		all = append(all, arrival{int(binary.BigEndian.Uint32(packet[len(FlowText):])), at, at.Sub(sent)})
	}
}

// receiveTime returns the time at which the kernel received a packet, by its
// SO_TIMESTAMPNS control message. It does not allocate: garbage collections
// would disturb what is measured.
func receiveTime(control []byte) (time.Time, error) {
	for len(control) > 0 {
		header, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return time.Time{}, err
		}
		if header.Level == unix.SOL_SOCKET && header.Type == unix.SO_TIMESTAMPNS && len(data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[8:]))), nil
		}
		control = rest
	}
	return time.Time{}, errors.New("packet without a time stamp")
}

func (r *FlowReport) sum(arrivals []arrival) {
	seen := make([]bool, r.Sent)
	highest, last := -1, time.Time{}
	for _, a := range arrivals {
		if a.number >= r.Sent {
			continue // of an earlier flow
		}
		if seen[a.number] {
			r.Duplicates++
			continue
		}
		seen[a.number] = true
		r.Received++
		r.Latency = append(r.Latency, a.latency)
		if a.number < highest {
			r.OutOfOrder++
		}
		highest = max(highest, a.number)
		if !last.IsZero() {
			r.LongestGap = max(r.LongestGap, a.at.Sub(last))
		}
		last = a.at
	}
	slices.Sort(r.Latency)
	for i, ok := range seen {
		if !ok {
			r.Lost = append(r.Lost, i)
		}
	}
}
