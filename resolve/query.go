package resolve

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// ErrNoServers says that there is no DNS server to ask.
var ErrNoServers = errors.New("no DNS server is known")

// errSilent is all that a network without a way to the server has to say.
var errSilent = errors.New("does not answer")

// Query is how one carrier asks: through sockets that are bound to it, its own
// DNS servers and no others.
//
// It speaks DNS itself because net.Resolver takes its patience, the number of its
// attempts and whether it asks at all from the machine's resolv.conf and
// nsswitch.conf, which are not the carrier's, and leaves goroutines behind that
// wait for a dead network.
type Query struct {
	// Interface is the carrier's (SO_BINDTODEVICE); empty binds to none.
	Interface string
	// Mark is the SO_MARK of the sockets, 0 for none; it needs CAP_NET_ADMIN.
	Mark uint32
	// Servers are asked in this order, three of them at most.
	Servers []netip.AddrPort
	// Moved is told what questions and answers take up on the network, in bytes with
	// all headers, about that by TCP; nil for nobody. Several goroutines call it.
	Moved func(bytes int)
}

// Lookup asks for the addresses of one family that an absolute name has. It
// returns them sorted and without repetitions, eight at most, so that servers
// which turn the order round with every answer do not turn candidates round.
//
// The first server is asked, and after a second of silence or an error the next
// one as well; the first that knows decides. The error is ErrNotFound,
// ErrNoServers, or tells for each server what is wrong with it. Lookup ends
// within five seconds or with ctx; nothing that it started goes on behind it.
func (q Query) Lookup(ctx context.Context, name string, f Family) ([]netip.Addr, error) {
	question, err := newQuestion(name, f)
	if err != nil {
		return nil, err
	}
	if len(q.Servers) == 0 {
		return nil, ErrNoServers
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()

	servers := q.Servers[:min(len(q.Servers), maxServers)]
	complaints := make([]error, len(servers)) // by server
	results := make(chan result, maxTries)
	tries, pending := 0, 0
	next := func() {
		for ; tries < maxTries && tries < 2*len(servers) && ctx.Err() == nil; tries++ {
			i := tries % len(servers)
			if complaints[i] != nil {
				continue
			}
			running.Go(func() { results <- q.ask(ctx, i, servers[i], question) })
			tries++
			pending++
			return
		}
	}
	silence := time.NewTicker(hedge)
	defer silence.Stop()
	for next(); pending > 0; {
		select {
		case r := <-results:
			pending--
			if r.err == nil || errors.Is(r.err, ErrNotFound) {
				return tidy(r.found), r.err
			}
			complaints[r.server] = fmt.Errorf("%v %w", servers[r.server].Addr(), r.err)
			if pending == 0 {
				next()
			}
		case <-silence.C:
			next()
		}
	}
	if err := errors.Join(complaints...); err != nil {
		return nil, err
	}
	return nil, ctx.Err() // over before it began
}

// tidy sorts addresses, drops repetitions and what is beyond maxAddresses.
func tidy(found []netip.Addr) []netip.Addr {
	slices.SortFunc(found, netip.Addr.Compare)
	found = slices.Compact(found)
	return found[:min(len(found), maxAddresses)]
}

// result is what became of one try.
type result struct {
	server int
	found  []netip.Addr
	err    error
}

func (q Query) ask(ctx context.Context, i int, server netip.AddrPort, question dnsmessage.Question) result {
	found, truncated, err := q.exchange(ctx, "udp", server, question)
	if truncated {
		found, truncated, err = q.exchange(ctx, "tcp", server, question)
	}
	switch {
	case truncated:
		err = errors.New("truncates even what it sends by TCP")
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		err = errSilent
	}
	return result{i, found, err}
}

// exchange asks one server by UDP or TCP (RFC 1035, section 4.2).
func (q Query) exchange(ctx context.Context, network string, server netip.AddrPort, question dnsmessage.Question) ([]netip.Addr, bool, error) {
	d := net.Dialer{Control: q.bind}
	c, err := d.DialContext(ctx, network, server.String())
	if err != nil {
		return nil, false, plainly(err)
	}
	defer c.Close()
	if q.Moved != nil {
		c = newWeighed(c, network, q.Moved)
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	var id [2]byte
	_, _ = rand.Read(id[:]) // never fails
	talk := overUDP
	if network == "tcp" {
		talk = overTCP
	}
	found, truncated, err := talk(c, question, binary.BigEndian.Uint16(id[:]))
	return found, truncated, plainly(err)
}

func overUDP(c net.Conn, question dnsmessage.Question, id uint16) ([]netip.Addr, bool, error) {
	msg, err := pack(question, id, 0)
	if err != nil {
		return nil, false, err
	}
	if _, err := c.Write(msg); err != nil {
		return nil, false, err
	}
	buf := make([]byte, udpAnswer)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return nil, false, err
		}
		// What is not for us may be forged; the true answer may still come.
		if found, truncated, err := unpack(buf[:n], question, id); !errors.Is(err, errForeign) {
			return found, truncated, err
		}
	}
}

func overTCP(c net.Conn, question dnsmessage.Question, id uint16) ([]netip.Addr, bool, error) {
	msg, err := pack(question, id, 2)
	if err != nil {
		return nil, false, err
	}
	binary.BigEndian.PutUint16(msg, uint16(len(msg)-2))
	if _, err := c.Write(msg); err != nil {
		return nil, false, err
	}
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return nil, false, err
	}
	answer := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(c, answer); err != nil {
		return nil, false, err
	}
	return unpack(answer, question, id)
}

// bind ties a socket to the carrier before it is connected.
func (q Query) bind(_, _ string, c syscall.RawConn) error {
	var err error
	cerr := c.Control(func(fd uintptr) {
		if q.Mark != 0 {
			if e := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(q.Mark)); e != nil {
				err = fmt.Errorf("mark the socket (needs CAP_NET_ADMIN): %w", e)
				return
			}
		}
		if q.Interface != "" {
			if e := unix.BindToDevice(int(fd), q.Interface); e != nil {
				err = fmt.Errorf("bind the socket to %s: %w", q.Interface, e)
			}
		}
	})
	return errors.Join(cerr, err)
}

// plainly words the errors that networks cause so that they end a sentence which
// begins with the server's address.
func plainly(err error) error {
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return errors.New("runs no DNS server")
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EADDRNOTAVAIL):
		return errors.New("cannot be reached")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET):
		return errors.New("hangs up")
	}
	return err
}
