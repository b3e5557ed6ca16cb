package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Capture writes what passes an interface, both ways, to a pcap file.
type Capture struct {
	path   string
	socket *os.File
	file   *os.File
	buf    *bufio.Writer
	pcap   *pcapgo.Writer
	done   chan struct{}

	stopped bool
	err     error // valid once done is closed
}

// Capture starts to write the packets of an interface to the file. Everything
// that passes after it has returned is caught. Close stops it, if Stop has not.
func (n *Node) Capture(iface, file string) (*Capture, error) {
	c := &Capture{path: file, done: make(chan struct{})}
	if err := n.onLink(iface, func(k netlink.Link) error { return c.open(n, k) }); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	go c.run()
	n.lab.mu.Lock()
	n.lab.captures = append(n.lab.captures, c)
	n.lab.mu.Unlock()
	return c, nil
}

func (c *Capture) open(n *Node, k netlink.Link) (err error) {
	err = n.Do(func() (err error) {
		c.socket, err = packetSocket(k.Attrs().Index)
		return err
	})
	if err != nil {
		return err
	}
	if c.file, err = os.Create(c.path); err != nil {
		return errors.Join(err, c.socket.Close())
	}
	linkType := layers.LinkTypeEthernet
	if len(k.Attrs().HardwareAddr) == 0 && k.Attrs().EncapType == "none" {
		linkType = layers.LinkTypeRaw
	}
	c.buf = bufio.NewWriterSize(c.file, 1<<16)
	c.pcap = pcapgo.NewWriterNanos(c.buf)
	return c.pcap.WriteFileHeader(maxFrame, linkType)
}

// packetSocket opens a socket that hears all packets of an interface.
func packetSocket(index int) (*os.File, error) {
	// Protocol 0: it must hear nothing before it is bound to its interface.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	const allProtocols = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // network byte order
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: allProtocols, Ifindex: index}),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "packet socket"), nil
}

// run writes packets until the read deadline, which Stop sets, has passed and
// the socket is empty.
func (c *Capture) run() {
	defer close(c.done)
	raw, err := c.socket.SyscallConn()
	if err != nil {
		c.err = err
		return
	}
	frame, control := make([]byte, maxFrame), make([]byte, 128)
	var readErr error
	drain := func(fd uintptr) bool {
		for {
			n, controlLen, _, _, err := unix.Recvmsg(int(fd), frame, control, unix.MSG_DONTWAIT)
			if errors.Is(err, unix.EAGAIN) {
				return false
			}
			if err == nil {
				err = c.write(frame[:n], control[:controlLen])
			}
			if err != nil {
				readErr = err
				return true
			}
		}
	}
	err = raw.Read(drain)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = raw.Control(func(fd uintptr) { drain(fd) })
	}
	if errors.Is(readErr, unix.ENETDOWN) {
		readErr = nil // the interface went away: the capture ends there
	}
	c.err = errors.Join(err, readErr, c.lost(raw), c.buf.Flush())
}

func (c *Capture) write(frame, control []byte) error {
	at, err := receiveTime(control)
	if err != nil {
		return err
	}
	info := gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(frame), Length: len(frame)}
	return c.pcap.WritePacket(info, frame)
}

// lost returns an error when the kernel had to drop packets.
func (c *Capture) lost(raw syscall.RawConn) error {
	var err error
	controlErr := raw.Control(func(fd uintptr) {
		stats, statsErr := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err = statsErr; err == nil && stats.Drops > 0 {
			err = fmt.Errorf("%d packets are missing", stats.Drops)
		}
	})
	return errors.Join(controlErr, err)
}

// Stop ends the capture. Everything that had passed the interface is in the
// file when it returns; when the kernel could not keep up, that is an error.
// Later calls do nothing.
func (c *Capture) Stop() error {
	if c.stopped {
		return nil
	}
	c.stopped = true
	err := c.socket.SetReadDeadline(time.Unix(1, 0))
	<-c.done
	if err := errors.Join(err, c.err, c.socket.Close(), c.file.Close()); err != nil {
		return fmt.Errorf("capture %s: %w", c.path, err)
	}
	return nil
}
