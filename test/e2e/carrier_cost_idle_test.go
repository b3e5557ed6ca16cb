package e2e

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// mostOwn is what fogplr itself may move on a carrier in a day, in bytes.
const mostOwn = 10_000_000

// mostSwitches is how often in a second the threads of an idle robot's daemon may
// wake: some 55 on a quiet machine, 160 with beats that do not slow down.
const mostSwitches = 120

// Without traffic a robot with three carriers and two gateways moves little on each
// of them, whatever the round trip time, less where data costs, and says how much.
// It does not keep its machine awake, and still nothing becomes stale. Another one,
// behind a translator that forgets soon, finds out how soon.
func TestIdleRobots(t *testing.T) {
	t.Parallel()
	idleRobots(t, forgetsSoon, 32*time.Second)
}

// idleRobots has them idle for that long.
func idleRobots(t *testing.T, nat forgetful, quiet time.Duration) {
	x := newIdle(t, nat)
	x.measure(func(began time.Time) {
		learnMapping(t, x.w, x.w.robots[1], nat)
		time.Sleep(quiet - time.Since(began))
	})
	x.stopped()
}

// idle is a world with an idle robot. A second robot has one carrier, behind a
// translator.
type idle struct {
	t     testing.TB
	w     *world
	r     *robot
	start time.Time
	files []string // captures of the carriers
	stops []func()
}

func newIdle(t testing.TB, nat forgetful) *idle {
	far := lab.CarrierOptions{Up: lab.Params{Delay: 300 * time.Millisecond}, Down: lab.Params{Delay: 300 * time.Millisecond}}
	w := build(t, options{Options: lab.Options{Robots: 2, Carriers: []lab.CarrierOptions{near20, far, near20, nat.natted()}}})
	x := &idle{t: t, w: w, r: w.robots[0]}
	setCarriers(t, x.r, `interface = "cell-a"`, `interface = "cell-b"`, "interface = \"cell-c\"\nmonthly_cap = \"5GB\"")
	setCarriers(t, w.robots[1], `interface = "cell-d"`+nat.extra)
	for _, c := range x.r.lab.Carriers[:3] {
		file, stop := capture(t, x.r.lab.Node, c.Interface, w.file(c.Interface))
		x.files, x.stops = append(x.files, file), append(x.stops, stop)
	}
	x.start = time.Now()
	w.startAll(t)
	for _, r := range w.robots {
		must(t, r.WaitUp(t.Context()))
	}
	answer(t, w)
	return x
}

// setCarriers gives a robot that is not started yet those carriers.
func setCarriers(t testing.TB, r *robot, carriers ...string) {
	t.Helper()
	text := carrierPart.ReplaceAllLiteralString(read(t, r.Config()), "[[carrier]]\n"+strings.Join(carriers, "\n[[carrier]]\n")+"\n[[gateway]]")
	must(t, os.WriteFile(r.Config(), []byte(text), 0o644))
}

// measure counts what passes the carriers during meanwhile, once the robot has
// settled.
func (x *idle) measure(meanwhile func(began time.Time)) {
	t := x.t
	t.Helper()
	seldom := path.DefaultConfig().MaxIdle.Seconds()
	waitStatus(t, x.r.Member, "an idle robot", patience, func(s *tunnel.Status) error {
		for _, p := range s.Peers {
			for _, l := range p.Paths {
				if l.IdleProbe < seldom || l.Search != path.SearchComplete.String() {
					return fmt.Errorf("%s: %+v", p.Name, l)
				}
			}
		}
		return nil
	})
	began, before := time.Now(), switches(t, x.r.Member)
	meanwhile(began)
	lasted := time.Since(began)
	woken := float64(switches(t, x.r.Member)-before) / lasted.Seconds()
	t.Logf("an idle daemon's threads wake %.0f times a second", woken)
	if woken > mostSwitches {
		t.Errorf("an idle daemon's threads wake %.0f times a second", woken)
	}
	s := status(t, x.r.Member)
	for _, stop := range x.stops {
		stop()
	}
	var moved []int
	for i, c := range s.Carriers {
		all, _ := wireBytes(t, x.files[i], x.start)
		idle, packets := wireBytes(t, x.files[i], began)
		daily := float64(idle) * float64(day) / float64(lasted)
		t.Logf("%s: %d bytes in %v, %d packets, which is %.2f MB a day; since the start %d, and status says %d, %d a day",
			c.Interface, idle, lasted.Round(time.Second), packets, daily/1e6, all, c.OwnBytes, c.OwnPerDay)
		if idle == 0 || daily > mostOwn {
			t.Errorf("%s: %.0f bytes a day", c.Interface, daily)
		}
		if math.Abs(float64(c.OwnBytes)-float64(all)) > 0.03*float64(all) {
			t.Errorf("%s: status says %d bytes, %d were captured", c.Interface, c.OwnBytes, all)
		}
		if c.OwnPerDay > 0 && math.Abs(float64(c.OwnPerDay)-daily) > 0.1*daily {
			t.Errorf("%s: status says %d bytes a day, by captures it is %.0f", c.Interface, c.OwnPerDay, daily)
		}
		moved = append(moved, idle)
	}
	const probe = 2 * 108 // and its answer
	if near, far := moved[0], moved[1]; max(near, far)-min(near, far) > 2*len(x.w.gateways)*probe {
		t.Errorf("%d bytes with a round trip of 20 ms, %d with 600 ms", near, far)
	}
	if moved[2] >= moved[0] {
		t.Errorf("%d bytes where data costs, %d elsewhere", moved[2], moved[0])
	}
}

// stopped stops the idle robot, whose heart beats slowly, for longer than the
// deadline. Of what is sent meanwhile nothing is delivered; the next request is
// answered.
func (x *idle) stopped() {
	t := x.t
	t.Helper()
	must(t, unix.Kill(x.r.Pid(), unix.SIGSTOP))
	time.Sleep(100 * time.Millisecond)
	f := send(t.Context(), x.r.end(), x.w.gateways[0].end(), load{rate: 50, count: 25, size: 100, linger: 3 * time.Second})
	time.Sleep(2 * time.Second)
	must(t, unix.Kill(x.r.Pid(), unix.SIGCONT))
	if report := f.wait(t); report.Received > 0 {
		t.Errorf("packets from before a standstill came after it: %v", report)
	}
	if s := firstRequest(t, x.w, x.r); s.Lost > 0 {
		t.Errorf("the first request after a standstill: %+v", s)
	}
}

// firstRequest sends one request, and tells what became of it.
func firstRequest(t testing.TB, w *world, r *robot) apps.Summary {
	t.Helper()
	return request(t, w, r, "--count", "1", "--lost-after-ms", "1000", "--linger-ms", "100").finish(t)
}

// wireBytes counts fogplr's datagrams in a capture, with the headers of UDP and IP,
// of those that were seen after a moment.
func wireBytes(t testing.TB, file string, after time.Time) (bytes, packets int) {
	t.Helper()
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		udp, ok := p.TransportLayer().(*layers.UDP)
		if ok && (udp.DstPort == wgPort || udp.SrcPort == wgPort) && p.Metadata().Timestamp.After(after) {
			ip := p.NetworkLayer()
			bytes += len(ip.LayerContents()) + len(ip.LayerPayload())
			packets++
		}
		return nil
	}))
	return bytes, packets
}

var switchesLine = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:\s+(\d+)$`)

// switches is how often a daemon's threads went to sleep so far.
func switches(t testing.TB, m *deploy.Member) (n int) {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", m.Pid()))
	must(t, err)
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", m.Pid(), thread.Name()))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has just ended
		}
		must(t, err)
		k, err := strconv.Atoi(switchesLine.FindStringSubmatch(string(text))[1])
		must(t, err)
		n += k
	}
	return n
}
