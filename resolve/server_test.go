package resolve

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// reply is what a test's DNS server answers.
type reply struct {
	addrs     []netip.Addr
	rcode     dnsmessage.RCode
	truncated bool // by UDP
	lame      bool // neither authoritative nor recursive
	silent    bool
	forged    bool // a wrong answer with another id comes first
	alias     bool // the addresses stand behind a CNAME
}

// dnsServer answers by UDP and TCP at one address. Its zone is asked with
// "NAME TYPE", as in "west.example.org A"; other questions are NXDOMAIN.
type dnsServer struct {
	addr netip.AddrPort
	udp  net.PacketConn
	tcp  net.Listener
	done sync.WaitGroup

	mu    sync.Mutex
	zone  map[string]reply
	asked []string // "udp NAME TYPE"
}

// listenDNS opens the server's sockets in the namespace that the calling thread
// is in; port 0 takes any.
func listenDNS(t testing.TB, at netip.AddrPort, zone map[string]reply) *dnsServer {
	t.Helper()
	udp, err := net.ListenPacket("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	s := &dnsServer{udp: udp, zone: zone, addr: udp.LocalAddr().(*net.UDPAddr).AddrPort()}
	if s.tcp, err = net.Listen("tcp", s.addr.String()); err != nil {
		t.Fatal(err)
	}
	s.done.Go(s.serveUDP)
	s.done.Go(s.serveTCP)
	t.Cleanup(func() {
		_ = s.udp.Close()
		_ = s.tcp.Close()
		s.done.Wait()
	})
	return s
}

// local is a server on loopback.
func local(t testing.TB, zone map[string]reply) *dnsServer {
	return listenDNS(t, netip.MustParseAddrPort("127.0.0.1:0"), zone)
}

func (s *dnsServer) set(question string, r reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone[question] = r
}

func (s *dnsServer) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func (s *dnsServer) serveUDP() {
	buf := make([]byte, 4096)
	for {
		n, from, err := s.udp.ReadFrom(buf)
		if err != nil {
			return
		}
		for _, msg := range s.answer("udp", buf[:n]) {
			_, _ = s.udp.WriteTo(msg, from)
		}
	}
}

func (s *dnsServer) serveTCP() {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return
		}
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err == nil {
			msg := make([]byte, binary.BigEndian.Uint16(length[:]))
			if _, err := io.ReadFull(c, msg); err == nil {
				for _, a := range s.answer("tcp", msg) {
					_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...))
				}
			}
		}
		_ = c.Close()
	}
}

func (s *dnsServer) answer(network string, msg []byte) [][]byte {
	var m dnsmessage.Message
	if m.Unpack(msg) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	name := strings.TrimSuffix(q.Name.String(), ".") + " " + strings.TrimPrefix(q.Type.String(), "Type")
	s.mu.Lock()
	s.asked = append(s.asked, network+" "+name)
	r, known := s.zone[name]
	s.mu.Unlock()
	if !known {
		r.rcode = dnsmessage.RCodeNameError
	}
	if r.silent {
		return nil
	}
	var out [][]byte
	if r.forged {
		out = append(out, []byte("noise"), message(m.ID+1, q, reply{addrs: []netip.Addr{netip.MustParseAddr("6.6.6.6")}}))
	}
	if r.truncated = r.truncated && network == "udp"; r.truncated {
		r.addrs = nil
	}
	return append(out, message(m.ID, q, r))
}

// message is an answer to q.
func message(id uint16, q dnsmessage.Question, r reply) []byte {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, Response: true, RecursionAvailable: !r.lame, RCode: r.rcode, Truncated: r.truncated},
		Questions: []dnsmessage.Question{q},
	}
	owner := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60}
	if r.alias {
		alias := dnsmessage.MustNewName("alias.example.net.")
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: owner, Body: &dnsmessage.CNAMEResource{CNAME: alias}})
		owner.Name = alias
	}
	for _, a := range r.addrs {
		var body dnsmessage.ResourceBody = &dnsmessage.AAAAResource{AAAA: a.As16()}
		if a.Is4() {
			body = &dnsmessage.AResource{A: a.As4()}
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: owner, Body: body})
	}
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

func addrs(all ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range all {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func addrPorts(all ...string) []netip.AddrPort {
	var out []netip.AddrPort
	for _, s := range all {
		out = append(out, netip.MustParseAddrPort(s))
	}
	return out
}
