package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	Main()
	if os.Getenv(abandonEnv) != "" {
		abandon()
	}
	goleak.VerifyTestMain(m)
}

// pair makes two nodes with one link: 10.9.0.1/24 on a, 10.9.0.2/24 on b. They
// know each other's hardware address and do not speak IPv6, so that nothing but
// the test's packets crosses the link.
func pair(t *testing.T, p LinkParams) (a, b *Node, k *Link) {
	t.Helper()
	l := Test(t, "test")
	a, b = mustNode(t, l, "a"), mustNode(t, l, "b")
	for _, n := range []*Node{a, b} {
		must(t, n.Sysctl("net.ipv6.conf.default.disable_ipv6", "1"))
	}
	k, err := l.Link(a, "link", b, "link", p)
	must(t, err)
	must(t, a.AddAddress("link", "10.9.0.1/24"))
	must(t, b.AddAddress("link", "10.9.0.2/24"))
	acquaint(t, a, b, "10.9.0.2")
	acquaint(t, b, a, "10.9.0.1")
	return a, b, k
}

// acquaint tells n the hardware address of other.
func acquaint(t *testing.T, n, other *Node, address string) {
	t.Helper()
	here, err := n.Netlink().LinkByName("link")
	must(t, err)
	there, err := other.Netlink().LinkByName("link")
	must(t, err)
	must(t, n.Netlink().NeighSet(&netlink.Neigh{
		LinkIndex: here.Attrs().Index, State: netlink.NUD_PERMANENT,
		IP: net.ParseIP(address), HardwareAddr: there.Attrs().HardwareAddr,
	}))
}

func flow(t *testing.T, a, b *Node, rate float64, count, size int) *FlowReport {
	t.Helper()
	r, err := Flow{From: a, To: b, Target: netip.MustParseAddrPort("10.9.0.2:4000"), Rate: rate, Count: count, Size: size}.Run(t.Context())
	must(t, err)
	return r
}

func countersAB(t *testing.T, k *Link) Counters {
	t.Helper()
	ab, _, err := k.Counters()
	must(t, err)
	return ab
}

func mustNode(t *testing.T, l *Lab, name string) *Node {
	t.Helper()
	n, err := l.Node(name)
	must(t, err)
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDelayIsExact(t *testing.T) {
	for _, delay := range []time.Duration{0, 20 * time.Millisecond} {
		a, b, k := pair(t, Both(Params{Delay: delay}, 1))
		const attempts = 3 // what else the machine does may spoil some
		for i := 1; ; i++ {
			r := flow(t, a, b, 2000, 4000, 200)
			t.Logf("delay %v at 2,000 packets/s: %v; emulator late by %v at most", delay, r, countersAB(t, k).Latest)
			if len(r.Lost) > 0 || r.Duplicates > 0 || r.OutOfOrder > 0 {
				t.Errorf("a link without loss: %v", r)
			}
			if r.Latency[0] < delay {
				t.Errorf("a packet took %v, less than %v", r.Latency[0], delay)
			}
			if r.Percentile(0.5) < delay+time.Millisecond && r.Percentile(0.99) < delay+3*time.Millisecond {
				break
			}
			if i == attempts {
				t.Errorf("delay %v, %d times in a row: p50 %v, p99 %v", delay, attempts, r.Percentile(0.5), r.Percentile(0.99))
				break
			}
		}
	}
}

func TestJitterStaysInBounds(t *testing.T) {
	a, b, _ := pair(t, Both(Params{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond}, 1))
	r := flow(t, a, b, 100, 200, 200)
	t.Logf("20 ms +- 5 ms at 100 packets/s: min %v, %v", r.Latency[0], r)
	if r.Latency[0] < 15*time.Millisecond || r.Latency[0] > 17*time.Millisecond || r.Percentile(0.95) < 23*time.Millisecond {
		t.Errorf("p0 %v, p95 %v", r.Latency[0], r.Percentile(0.95))
	}
	if r.OutOfOrder > 0 {
		t.Errorf("%d packets overtook others", r.OutOfOrder)
	}
}

func TestManyPackets(t *testing.T) {
	const rate, count = 20_000, 60_000
	a, b, k := pair(t, Both(Params{Delay: 10 * time.Millisecond}, 1))
	before := cpuTime(t, k)
	r := flow(t, a, b, rate, count, 200)
	t.Logf("20,000 packets/s: %v; emulator late by %v at most; the emulator used %v of CPU for %v of traffic",
		r, countersAB(t, k).Latest, cpuTime(t, k)-before, count*time.Second/rate)
	if len(r.Lost) > count/100 {
		t.Errorf("%d of %d packets lost: %+v", len(r.Lost), count, countersAB(t, k))
	}
	if r.Percentile(0.5) > 15*time.Millisecond {
		t.Errorf("the emulator does not keep up: p50 %v", r.Percentile(0.5))
	}
}

// cpuTime returns what the emulator has used so far (proc_pid_stat(5), fields 14
// and 15, in hundredths of a second).
func cpuTime(t *testing.T, k *Link) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", k.emulator.cmd.Process.Pid))
	must(t, err)
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		must(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func TestLossShare(t *testing.T) {
	a, b, k := pair(t, Both(Params{Loss: 0.05}, 1))
	r := flow(t, a, b, 4000, 8000, 100)
	c := countersAB(t, k)
	// Five standard deviations are 98 packets.
	if lost := len(r.Lost); lost < 300 || lost > 500 || uint64(lost) != c.Lost {
		t.Errorf("lost %d of 8000, want about 400; counters %+v", lost, c)
	}
}

func TestSameSeedLosesTheSamePackets(t *testing.T) {
	params := Both(Params{Loss: 0.1, Burst: &GilbertElliott{0.02, 0.2, 0, 0.7}}, 42)
	var lost [][]int
	for range 2 {
		a, b, _ := pair(t, params)
		lost = append(lost, flow(t, a, b, 2000, 1000, 100).Lost)
	}
	if !slices.Equal(lost[0], lost[1]) || len(lost[0]) < 50 {
		t.Errorf("first run lost %v, second %v", lost[0], lost[1])
	}
}

func TestRateAndQueue(t *testing.T) {
	// 2 Mbit/s offered to a link of 1 Mbit/s with 50 ms of queue.
	a, b, k := pair(t, Both(Params{Rate: 1e6, Queue: 50 * time.Millisecond}, 1))
	const size, rate, count = 958, 250, 500 // 1000 bytes on the wire
	r := flow(t, a, b, rate, count, size)
	if r.Received < 100 || r.Received > 285 {
		t.Errorf("%d of %d packets passed half the rate; counters %+v", r.Received, count, countersAB(t, k))
	}
	if p := r.Percentile(0.9); p < 45*time.Millisecond || p > 70*time.Millisecond {
		t.Errorf("p90 of the delay is %v, want about the queue of 50 ms", p)
	}
}

func TestChangesWhileRunning(t *testing.T) {
	a, b, k := pair(t, LinkParams{})
	check := func(what string, want int) {
		t.Helper()
		if r := flow(t, a, b, 1000, 50, 100); r.Received != want {
			t.Errorf("%s: %v", what, r)
		}
	}
	check("at first", 50)
	must(t, k.BlackHoleAB(true))
	check("black hole", 0)
	if c := countersAB(t, k); c.Swallowed != 50 || c.Received != 100 {
		t.Errorf("counters %+v", c)
	}
	must(t, k.BlackHoleAB(false))
	check("no black hole", 50)
	must(t, k.BlackHole(true))
	check("black hole in both directions", 0)
	must(t, k.Set(Params{MTU: 100}, Params{MTU: 200}))
	check("too big", 0)
	must(t, k.Set(Params{}, Params{Loss: 0.5}))
	check("at last", 50)
	if k.Set(Params{Loss: 2}, Params{}) == nil {
		t.Error("a loss of 2 is accepted")
	}
	if got, want := k.Params(), (LinkParams{BA: Params{Loss: 0.5}}); got != want {
		t.Errorf("parameters are %+v, want %+v", got, want)
	}
}

func TestLinkEvents(t *testing.T) {
	a, b, k := pair(t, LinkParams{})
	running := func(n *Node) bool {
		t.Helper()
		i, err := n.Netlink().LinkByName("link")
		must(t, err)
		return i.Attrs().RawFlags&unix.IFF_LOWER_UP != 0
	}
	must(t, k.Plug(false))
	if running(a) || !running(b) {
		t.Error("the cable is out at a, but the interfaces do not show it")
	}
	must(t, k.Plug(true))
	if !running(a) {
		t.Error("the cable is in again, but a does not see it")
	}
	must(t, b.Down("link"))
	flow(t, a, b, 1000, 10, 100)
	if c := countersAB(t, k); c.Refused == 0 {
		t.Errorf("b is down, but nothing was refused: %+v", c)
	}
	must(t, b.Up("link"))

	must(t, a.lab.Remove(k))
	if _, err := a.Netlink().LinkByName("link"); err == nil {
		t.Error("the link was removed, but its interface is there")
	}
	_, err := a.lab.Link(a, "link", b, "link", LinkParams{})
	must(t, err)
}

// A program in the node may delete the interface under the emulator.
func TestDeviceDeletedFromInside(t *testing.T) {
	a, _, k := pair(t, LinkParams{})
	must(t, a.onLink("link", a.Netlink().LinkDel))
	for range 500 {
		if _, _, err := k.Counters(); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the emulator runs on without its device")
}

func TestCloseLeavesNothing(t *testing.T) {
	l, err := New("close")
	must(t, err)
	a, b := mustNode(t, l, "a"), mustNode(t, l, "b")
	_, err = l.Link(a, "x", b, "x", LinkParams{})
	must(t, err)
	must(t, l.Veth(a, "y", b, "y"))
	_, err = a.Capture("x", filepath.Join(l.Dir(), "x.pcap"))
	must(t, err)
	stubborn := a.Command(context.Background(), "sh", "-c", "trap '' TERM; sleep 100 & setsid sleep 100 & wait")
	must(t, stubborn.Start())
	time.Sleep(100 * time.Millisecond)
	var ns unix.Stat_t
	must(t, unix.Stat(a.path, &ns))
	if pids, err := processesIn(&ns); err != nil || len(pids) != 3 {
		t.Errorf("processes in the namespace: %v, %v", pids, err)
	}
	must(t, l.Close())
	if pids, err := processesIn(&ns); err != nil || len(pids) != 0 {
		t.Errorf("processes left: %v, %v", pids, err)
	}
	for _, path := range []string{a.path, b.path, l.record, l.Dir()} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}

// A link that cannot be made leaves nothing half done.
func TestFailedLink(t *testing.T) {
	l := Test(t, "test")
	a, b := mustNode(t, l, "a"), mustNode(t, l, "b")
	if _, err := l.Link(a, "x", b, "a-name-that-is-too-long", LinkParams{}); err == nil {
		t.Error("a name of more than 15 characters is accepted")
	}
	if _, err := l.Link(a, "x", b, "x", Both(Params{Loss: 3}, 0)); err == nil {
		t.Error("a loss of 3 is accepted")
	}
	if _, err := l.Link(a, "x", b, "x", LinkParams{}); err != nil {
		t.Errorf("after two failures: %v", err)
	}
	if _, err := l.Node("a"); err == nil {
		t.Error("two nodes of one name are accepted")
	}
}

// A program that forgot to call Main must not start itself again and again.
func TestForgottenMain(t *testing.T) {
	t.Setenv(emulatorEnv, "1")
	if _, err := New("test"); err == nil || !strings.Contains(err.Error(), "lab.Main") {
		t.Errorf("New in the copy of the program gave %v", err)
	}
}

const abandonEnv = "FOGPLR_LAB_TEST_ABANDON"

// abandon builds a laboratory with a program that outlives it, tells its names
// and dies.
func abandon() {
	l, err := New("abandon")
	if err != nil {
		panic(err)
	}
	n, err := l.Node("a")
	if err != nil {
		panic(err)
	}
	if err := n.Command(context.Background(), "setsid", "-f", "sleep", "100").Run(); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(n.path + "\n" + l.record + "\n" + l.Dir() + "\n")
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func TestSweep(t *testing.T) {
	program, err := os.Executable()
	must(t, err)
	c := exec.Command(program)
	c.Env = append(os.Environ(), abandonEnv+"=1")
	out, err := c.Output()
	if err == nil || c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the laboratory's owner should have been killed: %v", err)
	}
	names := strings.Fields(string(out))
	defer os.RemoveAll(names[2])
	var ns unix.Stat_t
	must(t, unix.Stat(names[0], &ns))
	if pids, err := processesIn(&ns); err != nil || len(pids) != 1 {
		t.Fatalf("processes of the dead laboratory: %v, %v", pids, err)
	}
	living := Test(t, "living")
	n := mustNode(t, living, "a")
	must(t, Sweep())
	if pids, err := processesIn(&ns); err != nil || len(pids) != 0 {
		t.Errorf("processes left: %v, %v", pids, err)
	}
	for _, path := range names[:2] {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	for _, path := range []string{n.path, living.record} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("a living laboratory lost %s: %v", path, err)
		}
	}
}

func TestCommand(t *testing.T) {
	l := Test(t, "test")
	n := mustNode(t, l, "a")
	c := n.Command(t.Context(), "sh", "-c", `echo "$WORD"; echo problem >&2; ls /proc/sys/net/ipv4/conf`)
	c.Env = []string{"WORD=hello"}
	out, err := c.Output()
	must(t, err)
	if out != "hello\nall\ndefault\nlo\n" {
		t.Errorf("output %q", out)
	}
	log, err := os.ReadFile(c.Log())
	must(t, err)
	if !strings.Contains(string(log), "problem") || !strings.Contains(string(log), "hello") {
		t.Errorf("log %q", log)
	}
	if err := n.Command(t.Context(), "no-such-program").Run(); err == nil {
		t.Error("a program that does not exist was run")
	}
	var exit *exec.ExitError
	if err := n.Command(t.Context(), "sh", "-c", "exit 3").Run(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("exit 3 gave %v", err)
	}
	polite := n.Command(t.Context(), "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.01; done")
	must(t, polite.Start())
	time.Sleep(50 * time.Millisecond)
	must(t, polite.Stop(5*time.Second))
	stubborn := n.Command(t.Context(), "sh", "-c", "trap '' TERM; while :; do sleep 0.01; done")
	must(t, stubborn.Start())
	time.Sleep(50 * time.Millisecond)
	if err := stubborn.Stop(50 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "SIGTERM") {
		t.Errorf("a program that ignores SIGTERM gave %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	endless := n.Command(ctx, "sleep", "100")
	must(t, endless.Start())
	cancel()
	if err := endless.Wait(); err == nil {
		t.Error("a cancelled program ended without error")
	}
	must(t, endless.Kill()) // after the end: no error
}

func TestCapture(t *testing.T) {
	a, b, _ := pair(t, Both(Params{Delay: 5 * time.Millisecond}, 1))
	file := filepath.Join(a.lab.Dir(), "b.pcap")
	c, err := b.Capture("link", file)
	must(t, err)
	const count = 2000
	flow(t, a, b, 10_000, count, 300)
	must(t, a.Do(func() error { return sendWireGuard() }))
	time.Sleep(100 * time.Millisecond)
	must(t, c.Stop())
	must(t, c.Stop())
	found, err := FindPlain(file, "not there", FlowText)
	must(t, err)
	if len(found) != count || found[0].Text != FlowText || found[0].Packet != 1 || !strings.Contains(found[0].Dump, "UDP") {
		t.Errorf("found %d packets of %d", len(found), count)
	}
	w, err := CountWireGuard(file)
	must(t, err)
	want := WireGuardCount{Initiations: 1, Responses: 1, Cookies: 1, Data: 2, Keepalives: 1, DataBytes: 32 + 100, OtherUDP: count + 1}
	if w != want {
		t.Errorf("counted %+v, want %+v", w, want)
	}
	if _, err := b.Capture("nothing", file); err == nil {
		t.Error("an interface that does not exist was captured")
	}
}

// sendWireGuard sends datagrams of the form of every WireGuard message, and one
// that is too short.
func sendWireGuard() error {
	conn, err := net.Dial("udp", "10.9.0.2:4001")
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, m := range []struct {
		kind uint32
		size int
	}{{1, 148}, {2, 92}, {3, 64}, {4, 32}, {4, 100}, {4, 31}} {
		b := make([]byte, m.size)
		binary.LittleEndian.PutUint32(b, m.kind)
		for { // the first refusal of a closed port is reported here
			if _, err = conn.Write(b); !errors.Is(err, syscall.ECONNREFUSED) {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
