package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Nameserver is a DNS server on a node. It answers by UDP what it was told with
// Set, and that there is no such name else. Its methods may be called from any
// goroutine. Close of the laboratory ends it.
type Nameserver struct {
	conn net.PacketConn
	done chan struct{}

	mu    sync.Mutex
	zone  map[string][]netip.Addr
	lie   []netip.Addr
	asked []Question
}

// Question is one that a Nameserver was asked.
type Question struct {
	At   time.Time
	From netip.Addr
	Name string // without the final dot
	Type string // "A", "AAAA"
}

// Nameserver starts a DNS server at port 53 of one of the node's addresses.
func (n *Node) Nameserver(at netip.Addr) (*Nameserver, error) {
	s := &Nameserver{zone: map[string][]netip.Addr{}, done: make(chan struct{})}
	err := n.Do(func() (err error) {
		s.conn, err = net.ListenPacket("udp", netip.AddrPortFrom(at, 53).String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("name server at %v: %w", at, err)
	}
	go s.serve()
	n.lab.mu.Lock()
	n.lab.servers = append(n.lab.servers, s)
	n.lab.mu.Unlock()
	return s, nil
}

// Set gives a name its addresses, of both families, in the place of those it had.
func (s *Nameserver) Set(name string, addresses ...netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone[name] = slices.Clone(addresses)
}

// Lie answers every question with those addresses, whatever the name, as a captive
// portal does. None end that.
func (s *Nameserver) Lie(addresses ...netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lie = slices.Clone(addresses)
}

// Asked returns the questions so far, the oldest first.
func (s *Nameserver) Asked() []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *Nameserver) close() error {
	err := s.conn.Close()
	<-s.done
	return err
}

func (s *Nameserver) serve() {
	defer close(s.done)
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // what ICMP says about an asker that has gone
		}
		if answer, err := s.answer(buf[:n], from); err == nil {
			_, _ = s.conn.WriteTo(answer, from) // an asker that has gone asks again
		}
	}
}

// answer returns the message that answers msg.
func (s *Nameserver) answer(msg []byte, from net.Addr) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(msg); err != nil {
		return nil, err
	}
	if len(m.Questions) != 1 || m.Response {
		return nil, errors.New("not one question")
	}
	q := m.Questions[0]
	name := strings.TrimSuffix(q.Name.String(), ".")
	s.mu.Lock()
	s.asked = append(s.asked, Question{time.Now(), from.(*net.UDPAddr).AddrPort().Addr().Unmap(), name, strings.TrimPrefix(q.Type.String(), "Type")})
	found, known := s.zone[name]
	if len(s.lie) > 0 {
		found, known = s.lie, true
	}
	s.mu.Unlock()
	m = dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range found {
		var body dnsmessage.ResourceBody
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			body = &dnsmessage.AResource{A: a.As4()}
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		default:
			continue
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60}, Body: body})
	}
	return m.Pack()
}
