package systemd_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
)

// The network: the second run's own namespace is the router between the
// robot's two uplinks and the gateways.

type link struct {
	name    string // of the interface in the machine
	address string // of the machine, with the prefix length
	router  string // the other end
	port    string // the router's interface
	metric  int
}

var (
	up0  = link{"up0", "192.0.2.2/26", "192.0.2.1", "to-up0", 100}
	up1  = link{"up1", "192.0.2.66/26", "192.0.2.65", "to-up1", 200}
	west = link{"eth0", "198.51.100.2/24", "198.51.100.1", "to-west", 100}
	east = link{"eth0", "203.0.113.2/24", "203.0.113.1", "to-east", 100}
)

// namespace makes the network namespace of a machine that is to come.
func namespace(t *testing.T, name string) {
	t.Helper()
	host(t, "ip", "netns", "add", name)
	host(t, "ip", "-n", name, "link", "set", "lo", "up")
}

// attach plugs a link into a machine's namespace.
func attach(t *testing.T, name string, l link) {
	t.Helper()
	bits := l.address[strings.IndexByte(l.address, '/'):]
	host(t, "ip", "link", "add", l.port, "type", "veth", "peer", "name", l.name, "netns", name)
	host(t, "ip", "address", "add", l.router+bits, "dev", l.port)
	host(t, "ip", "link", "set", l.port, "up")
	// No link-local addresses, which come and go by themselves.
	host(t, "ip", "-n", name, "link", "set", l.name, "addrgenmode", "none")
	host(t, "ip", "-n", name, "address", "add", l.address, "dev", l.name)
	host(t, "ip", "-n", name, "link", "set", l.name, "up")
	host(t, "ip", "-n", name, "route", "add", "default", "via", l.router, "dev", l.name, "metric", fmt.Sprint(l.metric))
}

// detach pulls the plug.
func detach(t *testing.T, l link) {
	t.Helper()
	host(t, "ip", "link", "delete", l.port)
}

// forward makes this namespace a router.
func forward(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	host(t, "ip", "link", "set", "lo", "up")
}

// routes lists a machine's rules and routes, without those of plr0 and those
// that belong to it: the blackhole that keeps overlay packets from the uplinks.
func routes(m *machine) string {
	m.t.Helper()
	var kept []string
	for _, family := range []string{"-4", "-6"} {
		kept = append(kept, strings.Split(m.must("ip", family, "rule"), "\n")...)
		for line := range strings.SplitSeq(m.must("ip", family, "route", "show", "table", "all"), "\n") {
			if strings.Contains(line, "dev plr0") || strings.HasPrefix(line, "blackhole") {
				continue
			}
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	return strings.Join(kept, "\n")
}

func interfaceIndex(m *machine, name string) int {
	m.t.Helper()
	var index int
	m.in(func() error {
		ifi, err := net.InterfaceByName(name)
		if err == nil {
			index = ifi.Index
		}
		return err
	})
	return index
}

const echoPort, groupPort = 9001, 9002

var group = net.IPv4(239, 255, 0, 1)

// echo returns every datagram that arrives at a port of m, until the test ends.
func echo(m *machine) {
	m.t.Helper()
	var c *net.UDPConn
	m.in(func() (err error) {
		c, err = net.ListenUDP("udp4", &net.UDPAddr{Port: echoPort})
		return err
	})
	m.t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 2048)
		for {
			n, from, err := c.ReadFromUDPAddrPort(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				c.WriteToUDPAddrPort(b[:n], from)
			}
		}
	}()
}

// flow sends a numbered datagram every 10 ms to an echo and notes what comes
// back.
type flow struct {
	stop chan struct{}
	done sync.WaitGroup

	mu         sync.Mutex
	seen       map[string]bool
	duplicates int
	last       time.Time
	gap        time.Duration // the longest time without an answer
}

func startFlow(m *machine, to string) *flow {
	m.t.Helper()
	var c *net.UDPConn
	m.in(func() (err error) {
		c, err = net.ListenUDP("udp4", nil)
		return err
	})
	f := &flow{stop: make(chan struct{}), seen: map[string]bool{}, last: time.Now()}
	dst := netip.AddrPortFrom(netip.MustParseAddr(to), echoPort)
	f.done.Go(func() {
		defer c.Close()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			c.WriteToUDPAddrPort(fmt.Appendf(nil, "%d", n), dst) // refused while there is no way
			select {
			case <-tick.C:
			case <-f.stop:
				return
			}
		}
	})
	f.done.Go(func() {
		b := make([]byte, 2048)
		for {
			n, _, err := c.ReadFromUDPAddrPort(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				f.answer(string(b[:n]))
			}
		}
	})
	return f
}

func (f *flow) answer(number string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[number] {
		f.duplicates++
		return
	}
	f.seen[number] = true
	f.gap = max(f.gap, time.Since(f.last))
	f.last = time.Now()
}

// count returns how many different answers came.
func (f *flow) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.seen)
}

// end stops the flow and returns the longest time without an answer.
func (f *flow) end(t *testing.T) time.Duration {
	t.Helper()
	close(f.stop)
	f.done.Wait()
	if f.duplicates > 0 {
		t.Errorf("%d of %d answers came twice", f.duplicates, len(f.seen))
	}
	return max(f.gap, time.Since(f.last))
}

// hear joins the group on plr0 and returns what is sent to it.
func hear(m *machine) <-chan string {
	m.t.Helper()
	var c *net.UDPConn
	m.in(func() error {
		plr0, err := net.InterfaceByName("plr0")
		if err != nil {
			return err
		}
		c, err = net.ListenMulticastUDP("udp4", plr0, &net.UDPAddr{IP: group, Port: groupPort})
		return err
	})
	m.t.Cleanup(func() { c.Close() })
	heard := make(chan string, 1000)
	go func() {
		b := make([]byte, 2048)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			heard <- string(b[:n])
		}
	}()
	return heard
}

// call sends a datagram to the group through plr0.
func call(m *machine, text string) {
	m.t.Helper()
	m.in(func() error {
		plr0, err := net.InterfaceByName("plr0")
		if err != nil {
			return err
		}
		c, err := net.ListenUDP("udp4", nil)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := ipv4.NewPacketConn(c).SetMulticastInterface(plr0); err != nil {
			return err
		}
		_, err = c.WriteToUDP([]byte(text), &net.UDPAddr{IP: group, Port: groupPort})
		return err
	})
}
