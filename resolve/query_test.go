package resolve

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) {
	if os.Getenv(insideEnv) != "" {
		os.Exit(m.Run()) // see netns_test.go
	}
	goleak.VerifyTestMain(m)
}

const name = "west.example.org"

// nobody returns an address at which nothing listens.
func nobody(t *testing.T) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func TestLookup(t *testing.T) {
	t.Parallel()
	good := reply{addrs: addrs("198.51.100.11", "198.51.100.10", "198.51.100.11")}
	want := addrs("198.51.100.10", "198.51.100.11")
	many := reply{truncated: true}
	for i := range 40 {
		many.addrs = append(many.addrs, netip.AddrFrom4([4]byte{203, 0, 113, byte(40 - i)}))
	}
	for _, c := range []struct {
		what    string
		servers []reply // to the A question
		want    []netip.Addr
		err     string   // a part of it
		asked   []string // how often each server was, by network
	}{
		{"plain", []reply{good}, want, "", []string{"udp"}},
		{"behind an alias", []reply{{addrs: good.addrs, alias: true}}, want, "", []string{"udp"}},
		{"a forged answer comes first", []reply{{addrs: good.addrs, forged: true}}, want, "", []string{"udp"}},
		{"truncated", []reply{{addrs: good.addrs, truncated: true}}, want, "", []string{"udp tcp"}},
		{"forty addresses", []reply{many}, addrs("203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4", "203.0.113.5", "203.0.113.6", "203.0.113.7", "203.0.113.8"), "", []string{"udp tcp"}},
		{"the first is silent", []reply{{silent: true}, good}, want, "", []string{"udp", "udp"}},
		{"the first fails", []reply{{rcode: dnsmessage.RCodeServerFailure}, good}, want, "", []string{"udp", "udp"}},
		{"the first refuses, the second does not resolve", []reply{{rcode: dnsmessage.RCodeRefused}, {lame: true}, good}, want, "", []string{"udp", "udp", "udp"}},
		{"no such name", []reply{{rcode: dnsmessage.RCodeNameError}, good}, nil, ErrNotFound.Error(), []string{"udp", ""}},
		{"no such record", []reply{{}, good}, nil, ErrNotFound.Error(), []string{"udp", ""}},
		{"only the other family", []reply{{addrs: addrs("2001:db8::1")}}, nil, ErrNotFound.Error(), []string{"udp"}},
		{"all fail", []reply{{rcode: dnsmessage.RCodeServerFailure}, {rcode: dnsmessage.RCodeRefused}}, nil,
			"127.0.0.1 answers with the error ServerFailure\n127.0.0.1 answers with the error Refused", []string{"udp", "udp"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			var q Query
			var servers []*dnsServer
			for _, r := range c.servers {
				s := local(t, map[string]reply{name + " A": r})
				servers = append(servers, s)
				q.Servers = append(q.Servers, s.addr)
			}
			got, err := q.Lookup(t.Context(), name, IPv4)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			for i, s := range servers {
				var networks []string
				for _, a := range s.log() {
					network, question, _ := strings.Cut(a, " ")
					if question != name+" A" {
						t.Errorf("server %d was asked for %q", i, question)
					}
					networks = append(networks, network)
				}
				if got := strings.Join(networks, " "); got != c.asked[i] {
					t.Errorf("server %d was asked by %q, want %q", i, got, c.asked[i])
				}
			}
		})
	}
}

func TestLookupIPv6(t *testing.T) {
	t.Parallel()
	s := local(t, map[string]reply{name + " AAAA": {addrs: addrs("2001:db8::2", "2001:db8::1")}})
	got, err := Query{Servers: []netip.AddrPort{s.addr}}.Lookup(t.Context(), name+".", IPv6)
	if want := addrs("2001:db8::1", "2001:db8::2"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// TestLookupLost: datagrams get lost; the only server is asked again.
func TestLookupLost(t *testing.T) {
	t.Parallel()
	s := local(t, map[string]reply{name + " A": {silent: true}})
	go func() {
		for len(s.log()) == 0 {
			time.Sleep(time.Millisecond)
		}
		s.set(name+" A", reply{addrs: addrs("198.51.100.10")})
	}()
	got, err := Query{Servers: []netip.AddrPort{s.addr}}.Lookup(t.Context(), name, IPv4)
	if err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if n := len(s.log()); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

func TestLookupDead(t *testing.T) {
	t.Parallel()
	silent := local(t, map[string]reply{name + " A": {silent: true}})
	q := Query{Servers: []netip.AddrPort{silent.addr, nobody(t)}}
	start := time.Now()
	got, err := q.Lookup(t.Context(), name, IPv4)
	if got != nil || err == nil || err.Error() != "127.0.0.1 does not answer\n127.0.0.1 runs no DNS server" {
		t.Errorf("%v, %v", got, err)
	}
	if d := time.Since(start); d < lookupTime || d > lookupTime+5*time.Second {
		t.Errorf("took %v, want %v", d, lookupTime)
	}
	if n := len(silent.log()); n != 2 {
		t.Errorf("the silent server was asked %d times, want twice", n)
	}
}

func TestLookupEnds(t *testing.T) {
	t.Parallel()
	silent := local(t, map[string]reply{name + " A": {silent: true}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(silent.log()) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	start := time.Now()
	if _, err := (Query{Servers: []netip.AddrPort{silent.addr}}).Lookup(ctx, name, IPv4); err == nil {
		t.Error("no error")
	}
	if d := time.Since(start); d > lookupTime/2 {
		t.Errorf("it took %v to stop", d)
	}
	if _, err := (Query{Servers: []netip.AddrPort{silent.addr}}).Lookup(ctx, name, IPv4); err == nil {
		t.Error("no error from a context that had ended")
	}
}

func TestLookupErrors(t *testing.T) {
	t.Parallel()
	if _, err := (Query{}).Lookup(t.Context(), name, IPv4); !errors.Is(err, ErrNoServers) {
		t.Error(err)
	}
	q := Query{Servers: []netip.AddrPort{nobody(t)}, Interface: "nothing0"}
	if _, err := q.Lookup(t.Context(), name, IPv4); err == nil || !strings.Contains(err.Error(), "bind the socket to nothing0") {
		t.Error(err)
	}
	if _, err := q.Lookup(t.Context(), strings.Repeat("a", 300), IPv4); err == nil {
		t.Error("a name that is too long")
	}
}

// FuzzUnpack: whatever a network sends is read or refused, and only what was
// asked for comes out.
func FuzzUnpack(f *testing.F) {
	q, err := newQuestion(name, IPv4)
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range []reply{
		{addrs: addrs("198.51.100.10")}, {addrs: addrs("198.51.100.10", "198.51.100.11"), alias: true}, {truncated: true},
		{rcode: dnsmessage.RCodeNameError}, {rcode: dnsmessage.RCodeServerFailure}, {lame: true}, {addrs: addrs("2001:db8::1")},
	} {
		f.Add(message(7, q, r))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		found, truncated, err := unpack(msg, q, 7)
		if (err == nil) != (truncated || len(found) > 0) || len(found) > 0 && (truncated || err != nil) {
			t.Errorf("%v, %v, %v", found, truncated, err)
		}
		for _, a := range found {
			if !a.Is4() {
				t.Errorf("%v came out of an A question", a)
			}
		}
		if err == nil && (len(msg) < 12 || msg[0] != 0 || msg[1] != 7 || msg[2]&0x80 == 0) {
			t.Errorf("took %x for an answer to question 7", msg)
		}
	})
}

// TestPack: the question is what a whole parser reads.
func TestPack(t *testing.T) {
	q, err := newQuestion("West.Example.org.", IPv6)
	if err != nil {
		t.Fatal(err)
	}
	msg, err := pack(q, 0x1234, 2)
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(msg[2:]); err != nil {
		t.Fatal(err)
	}
	if m.ID != 0x1234 || !m.RecursionDesired || m.Response || len(m.Questions) != 1 || m.Questions[0] != q || len(m.Additionals) != 0 {
		t.Errorf("%+v", m)
	}
	if _, _, err := unpack(msg[2:], q, 0x1234); !errors.Is(err, errForeign) {
		t.Errorf("a question is no answer: %v", err)
	}
}

// What a question and its answer take up is told, by UDP and TCP.
func TestLookupIsWeighed(t *testing.T) {
	t.Parallel()
	for _, truncated := range []bool{false, true} {
		s := local(t, map[string]reply{name + " A": {addrs: addrs("198.51.100.10"), truncated: truncated}})
		var moved atomic.Int64
		q := Query{Servers: []netip.AddrPort{s.addr}, Moved: func(n int) { moved.Add(int64(n)) }}
		if _, err := q.Lookup(t.Context(), name, IPv4); err != nil {
			t.Fatal(err)
		}
		question := 12 + len(name) + 2 + 4 // RFC 1035, 4.1
		least := 2 * (question + udpHeaders)
		if truncated {
			least += 9 * tcpHeaders
		}
		if n := int(moved.Load()); n < least || n > 2*least {
			t.Errorf("truncated %v: %d bytes, want %d and a bit", truncated, n, least)
		}
	}
}
