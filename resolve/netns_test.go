package resolve

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// insideEnv marks the copy of this program that runs in a network namespace of
// its own: a lookup opens its sockets on many threads, so the whole process must
// be there.
const insideEnv = "FOGPLR_RESOLVE_INSIDE"

// inside runs the rest of the test in a new network namespace, which ends with
// it. It returns false in the process that stays outside.
func inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		run(t, "ip link set lo up")
		return true
	}
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces: run it as root")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig goes by thread
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func run(t *testing.T, commands string) {
	t.Helper()
	for line := range strings.Lines(commands) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
}

// behind makes a carrier with a router behind it: a namespace with the other end
// of a veth pair, called up0 there, set up by commands. f opens the router's
// sockets, which stay there.
func behind(t *testing.T, carrier, commands string, f func()) {
	t.Helper()
	tid := make(chan int)
	made := make(chan bool)
	ready := make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer close(ready)
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
		}
		tid <- unix.Gettid()
		<-made
		run(t, "ip link set lo up\nip link set up0 up\n"+commands)
		f()
	}()
	ns := fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), <-tid)
	run(t, fmt.Sprintf("ip link add %s type veth peer name up0\nip link set up0 netns %s\nip link set %s up", carrier, ns, carrier))
	made <- true
	<-ready
	if t.Failed() {
		t.FailNow()
	}
}

// TestTwoCarriers: two modems with the very same network, whose DNS servers have
// the very same address and give different answers to one name. Each carrier
// hears its own.
func TestTwoCarriers(t *testing.T) {
	if !inside(t) {
		return
	}
	var servers [2]*dnsServer
	dns := netip.MustParseAddrPort("192.168.8.1:53")
	for i := range servers {
		carrier := fmt.Sprint("usb", i)
		address := fmt.Sprintf("198.51.100.%d", 10+i)
		behind(t, carrier, "ip addr add 192.168.8.1/24 dev up0\n", func() {
			servers[i] = listenDNS(t, dns, map[string]reply{
				name + " A":       {addrs: addrs(address)},
				"long.example A":  {addrs: addrs(address), truncated: true},
				"ipv4only.arpa A": {addrs: addrs("192.0.0.170", "192.0.0.171")},
			})
		})
		run(t, fmt.Sprintf("ip addr add 192.168.8.100/24 dev %s\nip route add default via 192.168.8.1 dev %s metric 10%d", carrier, carrier, i))
	}
	run(t, "sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.usb0.rp_filter=0 net.ipv4.conf.usb1.rp_filter=0")
	for i := range servers {
		q := Query{Interface: fmt.Sprint("usb", i), Servers: []netip.AddrPort{dns}}
		for _, what := range []string{name, "long.example"} {
			got, err := q.Lookup(t.Context(), what, IPv4)
			if want := addrs(fmt.Sprintf("198.51.100.%d", 10+i)); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s through %s: %v, %v; want %v", what, q.Interface, got, err, want)
			}
		}
		if n := len(servers[1-i].log()); n != 3*i {
			t.Errorf("the other carrier's server was asked too: %d questions", n)
		}
	}

	// The runner, with a portal behind the one and a move behind the other.
	found := make(chan string, 16)
	r := NewRunner(Config{
		Found:   func(slot int, gateway string, all []netip.AddrPort) { found <- fmt.Sprint(slot, gateway, all) },
		Servers: func(int, string) Servers { return Servers{List: []netip.AddrPort{dns}} },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	defer running.Wait()
	defer cancel()
	heard := func(want ...string) {
		t.Helper()
		for range want {
			select {
			case got := <-found:
				if !slices.Contains(want, got) {
					t.Errorf("found %s, want %s", got, want)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("waited for %s", want)
			}
		}
	}
	r.SetGateways([]Gateway{gateway("west", name+":51820")})
	r.SetCarriers([]Carrier{{Slot: 0, Interface: "usb0", IPv4: true}, {Slot: 1, Interface: "usb1", IPv4: true}})
	heard("0west[198.51.100.10:51820]", "1west[198.51.100.11:51820]")
	for i := range 2 {
		r.Answers(i, "west", netip.MustParseAddrPort(fmt.Sprintf("198.51.100.%d:51820", 10+i)))
	}
	servers[0].set(name+" A", reply{addrs: addrs("192.168.8.1")})
	servers[0].set("ipv4only.arpa A", reply{addrs: addrs("192.168.8.1")})
	servers[1].set(name+" A", reply{addrs: addrs("198.51.100.77")})
	start := time.Now()
	r.Failing(0, "west")
	r.Failing(1, "west")
	heard("0west[192.168.8.1:51820 198.51.100.10:51820]", "1west[198.51.100.77:51820 198.51.100.11:51820]")
	t.Logf("asked again %v after the failure", time.Since(start))
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("asked again after %v", d)
	}
	for end := time.Now().Add(20 * time.Second); !r.Status()[0].Captive; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", r.Status())
		}
	}
	if r.Status()[1].Captive {
		t.Error("the honest network is called captive")
	}
}

// TestMark: the carrier's only way to its DNS server is a table for marked
// sockets.
func TestMark(t *testing.T) {
	if !inside(t) {
		return
	}
	dns := netip.MustParseAddrPort("203.0.113.53:53")
	behind(t, "wwan0", "ip addr add 192.168.8.1/24 dev up0\nip addr add 203.0.113.53/32 dev lo\nsysctl -qw net.ipv4.conf.up0.arp_ignore=1\n", func() {
		listenDNS(t, dns, map[string]reply{name + " A": {addrs: addrs("198.51.100.10")}})
	})
	run(t, `ip addr add 192.168.8.100/24 dev wwan0
		ip route add default via 192.168.8.1 dev wwan0 table 15700
		ip rule add fwmark 0x666f67 oif wwan0 lookup 15700
		sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.wwan0.rp_filter=0`)
	q := Query{Interface: "wwan0", Servers: []netip.AddrPort{dns}}
	soon, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if got, err := q.Lookup(soon, name, IPv4); err == nil {
		t.Errorf("without the mark: %v, %v", got, err)
	}
	q.Mark = 0x666f67
	if got, err := q.Lookup(t.Context(), name, IPv4); err != nil || !slices.Equal(got, addrs("198.51.100.10")) {
		t.Errorf("with the mark: %v, %v", got, err)
	}
}

// TestLinkLocalServer: a router announces its link-local address as DNS server,
// and there is nothing but IPv6.
func TestLinkLocalServer(t *testing.T) {
	if !inside(t) {
		return
	}
	behind(t, "wlan0", "ip addr add fe80::53/64 dev up0 nodad\n", func() {
		listenDNS(t, netip.MustParseAddrPort("[fe80::53%up0]:53"), map[string]reply{
			"ipv4only.arpa AAAA": {addrs: addrs("64:ff9b::c000:aa", "64:ff9b::c000:ab")},
		})
	})
	run(t, "ip addr add fe80::100/64 dev wlan0 nodad")
	found := make(chan []netip.AddrPort, 1)
	r := NewRunner(Config{Found: func(_ int, _ string, all []netip.AddrPort) { found <- all }})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	defer running.Wait()
	defer cancel()
	r.SetGateways([]Gateway{gateway("west", "198.51.100.10:51820")})
	r.SetCarriers([]Carrier{{Slot: 0, Interface: "wlan0", IPv6: true, DNS: addrs("fe80::53")}})
	select {
	case got := <-found:
		if !slices.Equal(got, addrPorts("[64:ff9b::c633:640a]:51820")) {
			t.Errorf("%v", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("no translator found: %+v", r.Status())
	}
}
