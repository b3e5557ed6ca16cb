package routing

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// lab is a robot's network namespace. It and the routers' have no names: they
// vanish with the test's process, however it ends.
type lab struct {
	t     *testing.T
	home  netns.NsHandle
	asked int // questions so far, see ask
}

// newLab moves the test's goroutine into a network namespace of its own.
func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces and interfaces: run it as root")
	}
	runtime.LockOSThread()
	before, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	home, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		home.Close()
		if err := netns.Set(before); err != nil {
			t.Errorf("the thread stays in the test's namespace: %v", err)
			return // locked, so that it ends with the goroutine
		}
		before.Close()
		runtime.UnlockOSThread()
	})
	l := &lab{t: t, home: home}
	l.run("ip link set lo up")
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// run runs commands, one a line, in the namespace the thread is in.
func (l *lab) run(commands string) {
	l.t.Helper()
	for _, line := range lines(commands) {
		if out, err := l.try(line); err != nil {
			l.t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
}

func (l *lab) try(line string) (string, error) {
	words := strings.Fields(line)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	return string(out), err
}

// in runs f in another namespace.
func (l *lab) in(ns netns.NsHandle, f func()) {
	l.t.Helper()
	l.must(netns.Set(ns))
	defer func() { l.must(netns.Set(l.home)) }()
	f()
}

// router is what stands behind one carrier: a namespace with an echo server.
type router struct {
	ns       netns.NsHandle
	received atomic.Int64
}

const echoPort = 4789

// router makes a veth pair with the robot's end called name, and an echo server
// on the given addresses behind it. The server puts id before what it returns.
// setup has commands for the far namespace, where the interface is called up0.
func (l *lab) router(name, id, setup string, serve ...string) *router {
	l.t.Helper()
	ns, err := netns.New()
	l.must(err)
	r := &router{ns: ns}
	l.must(netns.Set(l.home))
	l.t.Cleanup(func() { ns.Close() })
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	l.must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "up0", PeerNamespace: netlink.NsFd(ns)}))
	l.run("ip link set " + name + " addrgenmode none\nip link set " + name + " up")
	l.in(ns, func() {
		// Asked by ARP for an address behind it, a router does not answer.
		l.run("ip link set lo up\nip link set up0 addrgenmode none\nip link set up0 up\nsysctl -qw net.ipv4.conf.up0.arp_ignore=1\n" + setup)
		for _, a := range serve {
			c, err := net.ListenPacket("udp", netip.AddrPortFrom(addr(a), echoPort).String())
			l.must(err)
			l.t.Cleanup(func() { c.Close() })
			go r.echo(c, id)
		}
	})
	return r
}

func (r *router) echo(c net.PacketConn, id string) {
	buf := make([]byte, 2048)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		r.received.Add(1)
		_, _ = c.WriteTo(append([]byte(id+" "), buf[:n]...), from)
	}
}

// bound opens a socket as the daemon does: bound to the carrier, marked.
func (l *lab) bound(name string) net.PacketConn {
	l.t.Helper()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) {
			if err = unix.BindToDevice(int(fd), name); err == nil {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, Mark)
			}
		})
		if cerr != nil {
			return cerr
		}
		return err
	}}
	c, err := lc.ListenPacket(context.Background(), "udp", ":0")
	l.must(err)
	l.t.Cleanup(func() { c.Close() })
	return c
}

// ask sends to the echo server by c and returns who answered, or an error. It
// asks again, with another number, for as long as patience lasts.
func (l *lab) ask(c net.PacketConn, to string, patience time.Duration) (id string, err error) {
	dst := net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr(to), echoPort))
	buf := make([]byte, 2048)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		l.asked++
		question := fmt.Sprintf("question %d", l.asked)
		if _, err = c.WriteTo([]byte(question), dst); err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		for err == nil {
			var n int
			n, _, err = c.ReadFrom(buf)
			// A late answer to an earlier question is none.
			if id, ok := strings.CutSuffix(string(buf[:n]), " "+question); ok && err == nil {
				return id, nil
			}
		}
	}
	return "", err
}

// heard waits until the router has received what is under way, and counts it.
func (r *router) heard() int64 {
	for last := int64(-1); ; time.Sleep(200 * time.Millisecond) {
		n := r.received.Load()
		if n == last {
			return n
		}
		last = n
	}
}

func (l *lab) answers(name, to, want string) {
	l.t.Helper()
	got, err := l.ask(l.bound(name), to, soon)
	if err != nil || got != want {
		l.t.Errorf("%s to %s: %q, %v; want an answer from %s", name, to, got, err, want)
	}
}

func (l *lab) silent(name, to string) {
	l.t.Helper()
	if got, err := l.ask(l.bound(name), to, 400*time.Millisecond); err == nil {
		l.t.Errorf("%s to %s answers before anything is set up (%q): the test proves nothing", name, to, got)
	}
}

// persistentTUN makes a TUN device as the daemon's predecessor left it, and
// opens it again.
func (l *lab) persistentTUN(name string) *os.File {
	l.t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	l.must(err)
	req, err := unix.NewIfreq(name)
	l.must(err)
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	l.must(unix.IoctlIfreq(fd, unix.TUNSETIFF, req))
	l.must(unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1))
	f := os.NewFile(uintptr(fd), name)
	l.t.Cleanup(func() { f.Close() })
	return f
}

func (l *lab) sysctl(key string) string {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(key, ".", "/")))
	l.must(err)
	return strings.TrimSpace(string(text))
}

// snapshot is all rules and routes as ip(8) shows them, and all rp_filter.
func (l *lab) snapshot() []string {
	l.t.Helper()
	var all []string
	for _, c := range []string{"ip rule", "ip -6 rule", "ip -4 route show table all", "ip -6 route show table all"} {
		out, err := l.try(c)
		l.must(err)
		for _, line := range lines(out) {
			all = append(all, c+": "+line)
		}
	}
	files, err := filepath.Glob(ipv4Conf + "/*/rp_filter")
	l.must(err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		l.must(err)
		all = append(all, f+": "+strings.TrimSpace(string(text)))
	}
	slices.Sort(all)
	return all
}

// unchanged fails where two snapshots differ, leaving out lines that have one of
// the words.
func (l *lab) unchanged(before, after []string, but ...string) {
	l.t.Helper()
	keep := func(all, other []string, sign string) {
		for _, line := range all {
			if !slices.Contains(other, line) && !slices.ContainsFunc(but, func(w string) bool { return strings.Contains(line, w) }) {
				l.t.Errorf("%s %s", sign, line)
			}
		}
	}
	keep(before, after, "lost:")
	keep(after, before, "left:")
}

func (l *lab) manager(dir string) *Manager {
	l.t.Helper()
	m, err := New(dir, "plr0", slog.New(slog.NewTextHandler(logWriter{l.t}, nil)))
	l.must(err)
	l.t.Cleanup(func() { _ = m.Close() })
	return m
}

type logWriter struct{ t *testing.T }

func (w logWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// modems makes n carriers usb0.. with the very same address and gateway, each
// with a router that serves gw1. place is where their default routes go, with
// one %s for the interface and one %d for its number.
func (l *lab) modems(n int, place string) []Want {
	l.t.Helper()
	var wants []Want
	for i := range n {
		name := "usb" + strconv.Itoa(i)
		l.router(name, name, "ip addr add 192.168.8.1/24 dev up0\nip addr add "+gw1+"/32 dev lo", gw1)
		l.run("ip addr add 192.168.8.100/24 dev " + name)
		l.run(fmt.Sprintf("ip route add default via 192.168.8.1 "+place, name, i))
		wants = append(wants, carrier(name, i, gw1))
	}
	return wants
}
