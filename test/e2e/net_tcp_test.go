package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// iperf is the part of iperf3's JSON report that these tests read.
type iperf struct {
	Error     string `json:"error"`
	Intervals []struct {
		Sum struct {
			Start float64 `json:"start"`
			Bytes float64 `json:"bytes"`
		} `json:"sum"`
	} `json:"intervals"`
	End struct {
		Sum struct {
			Packets float64 `json:"packets"`
			Lost    float64 `json:"lost_packets"`
			Mbps    float64 `json:"bits_per_second"`
		} `json:"sum"`
		SumSent struct {
			Bytes       float64 `json:"bytes"`
			Retransmits int     `json:"retransmits"`
		} `json:"sum_sent"`
	} `json:"end"`
}

// iperfRun is a measurement that runs.
type iperfRun struct {
	client, server *iperf
	err            error
	done           chan struct{}
}

// startIperf starts iperf3 from the robot to the gateway's overlay address.
func startIperf(t testing.TB, r *robot, g *gateway, args ...string) *iperfRun {
	t.Helper()
	run := &iperfRun{client: &iperf{}, server: &iperf{}, done: make(chan struct{})}
	port := fmt.Sprint(newPort())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	server := g.lab.Command(ctx, "iperf3", "-s", "-1", "-J", "-i", "0.1", "-B", g.ip.String(), "-p", port)
	served := make(chan error, 1)
	var text string
	go func() {
		var err error
		text, err = server.Output()
		served <- err
	}()
	eventually(t, "iperf3 -s", func() error {
		out, err := g.lab.Command(ctx, "ss", "-Hltn", "sport", "= :"+port).Output()
		if err == nil && out == "" {
			return fmt.Errorf("nobody listens on port %s", port)
		}
		return err
	})
	go func() {
		defer close(run.done)
		args := append([]string{"-c", g.ip.String(), "-p", port, "-J", "-i", "0.1"}, args...)
		out, err := r.lab.Command(ctx, "iperf3", args...).Output()
		if err == nil {
			err = json.Unmarshal([]byte(out), run.client)
		}
		if err == nil {
			err = <-served
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), run.server)
		}
		run.err = err
	}()
	return run
}

func (r *iperfRun) wait(t testing.TB) {
	t.Helper()
	<-r.done
	if r.err != nil {
		t.Fatalf("iperf3: %v %s", r.err, r.client.Error)
	}
}

// longestStall is the longest time without a byte, in steps of the report's
// intervals, between the first byte and the last.
func (i *iperf) longestStall() time.Duration {
	var longest, last float64 = 0, -1
	for _, v := range i.Intervals {
		if v.Sum.Bytes == 0 {
			continue
		}
		if last >= 0 {
			longest = max(longest, v.Sum.Start-last)
		}
		last = v.Sum.Start
	}
	return time.Duration((longest - 0.1) * float64(time.Second))
}

// TCP inside does not notice that a carrier dies: nothing is lost, ping's packets
// included, and nothing stalls.
func TestTCPGoesOnWhenACarrierDies(t *testing.T) {
	a, b := lab.Params{Delay: 10 * time.Millisecond}, lab.Params{Delay: 15 * time.Millisecond}
	w := start(t, options{Options: lab.Options{
		Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{{Up: a, Down: a}, {Up: b, Down: b}},
	}})
	r, g := w.robots[0], w.gateways[0]
	carrier := r.lab.Carriers[0]
	for _, c := range []struct {
		name      string
		hit, mend func() error
	}{
		{"packets dropped in the network", func() error {
			return w.Inet.NFT(`table ip accident {
	chain forward {
		type filter hook forward priority filter
		iifname "up-a" drop
		oifname "up-a" drop
	}
}`)
		}, func() error { return w.Inet.NFT("delete table ip accident") }},
		{"interface down", func() error { return r.lab.Down(carrier.Interface) }, func() error { return linkUp(r, carrier) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			const seconds = 5
			tcp := startIperf(t, r, g, "-t", fmt.Sprint(seconds), "-b", "20M")
			pings := make(chan string, 1)
			ping := r.lab.Command(t.Context(), "ping", "-q", "-i", "0.02", "-c", fmt.Sprint(50*seconds), "-W", "2", g.ip.String())
			go func() {
				out, _ := ping.Output() // its last lines tell
				pings <- out
			}()
			time.Sleep(seconds * time.Second / 2)
			must(t, c.hit())
			tcp.wait(t)
			out := <-pings
			must(t, c.mend())
			if !regexp.MustCompile(`, 0% packet loss`).MatchString(out) {
				t.Errorf("ping lost packets:\n%s", out)
			}
			sent, stall := tcp.client.End.SumSent, tcp.server.longestStall()
			t.Logf("%.1f MB sent, %d retransmissions, longest stall %v", sent.Bytes/1e6, sent.Retransmits, stall)
			if sent.Bytes < 0.8*20e6/8*seconds {
				t.Errorf("only %.1f MB sent in %d s at 20 Mbit/s", sent.Bytes/1e6, seconds)
			}
			if stall > 100*time.Millisecond {
				t.Errorf("TCP stalled for %v, longer than a round trip of the other carrier", stall)
			}
			// A busy machine's pauses cost a probe segment now and then; twenty
			// segments are in flight on the carrier that dies.
			if sent.Retransmits > 5 {
				t.Errorf("TCP sent %d segments again, though none was lost", sent.Retransmits)
			}
			waitPath(t, r, g.Name, carrier.Interface, true)
			for _, s := range []*tunnel.Status{status(t, r.Member), status(t, g.Member)} {
				if e := s.Peers[0].Elimination; e.Lost > 0 || e.Passed == 0 {
					t.Errorf("%s counts lost packets: %+v", s.Name, e)
				}
			}
		})
	}
}

// gatewayAddress is the one that both carriers of a plain world lead to.
var gatewayAddress = netip.MustParseAddr("198.51.100.10")

// plain is a world of one robot and one gateway joined by veth pairs, without
// emulation, for speed.
func plain(t testing.TB) *world {
	t.Helper()
	l := lab.Test(t, "e2e")
	robotNode, err := l.Node("robot")
	must(t, err)
	gatewayNode, err := l.Node("west")
	must(t, err)
	lw := &lab.World{Lab: l, Robots: []*lab.Robot{{Node: robotNode}}}
	lw.Gateways = []*lab.Gateway{{Node: gatewayNode, Address: gatewayAddress}}
	must(t, gatewayNode.AddAddress("lo", gatewayAddress.String()+"/32"))
	for i, name := range []string{"cell-a", "cell-b"} {
		port := "up-" + name[len(name)-1:]
		must(t, l.Veth(robotNode, name, gatewayNode, port))
		must(t, robotNode.AddAddress(name, fmt.Sprintf("10.%d.0.2/24", i+1)))
		must(t, gatewayNode.AddAddress(port, fmt.Sprintf("10.%d.0.1/24", i+1)))
		must(t, robotNode.AddRoute("default", fmt.Sprintf("10.%d.0.1", i+1), name, 100+i))
		lw.Robots[0].Carriers = append(lw.Robots[0].Carriers, &lab.Carrier{Interface: name})
	}
	w := settle(t, lw, options{})
	w.startAll(t)
	must(t, w.robots[0].WaitUp(t.Context()))
	return w
}

// speed sends UDP through the overlay at that rate and returns the share of the
// packets that the overlay lost: what the receiving iperf3 was too slow for, the
// kernel counts.
func speed(t testing.TB, r *robot, g *gateway, mbps, seconds int, more ...string) (lost float64) {
	t.Helper()
	before := receiveErrors(t, r.lab.Node) + receiveErrors(t, g.lab.Node)
	udp := startIperf(t, r, g, append([]string{"-u", "-b", fmt.Sprintf("%dM", mbps), "-l", "1200", "-t", fmt.Sprint(seconds)}, more...)...)
	udp.wait(t)
	sum := udp.client.End.Sum
	if sum.Packets < 1000 {
		t.Fatalf("iperf3 counted only %.0f packets", sum.Packets)
	}
	slow := receiveErrors(t, r.lab.Node) + receiveErrors(t, g.lab.Node) - before
	lost = max(0, sum.Lost-slow) / sum.Packets
	t.Logf("%d Mbit/s %v: %.0f of %.0f packets lost, %.0f of them by iperf3; the overlay lost %.3f %%", mbps, more, sum.Lost, sum.Packets, slow, 100*lost)
	return lost
}

// receiveErrors counts the UDP packets that programs on a node did not read in
// time. fogplr's own sockets count as well, but lose single copies only.
func receiveErrors(t testing.TB, n *lab.Node) float64 {
	t.Helper()
	names, values, _ := strings.Cut(output(t, n, "grep", "^Udp:", "/proc/net/snmp"), "\n")
	for i, name := range strings.Fields(names) {
		if name == "RcvbufErrors" {
			count, err := strconv.ParseFloat(strings.Fields(values)[i], 64)
			must(t, err)
			return count
		}
	}
	t.Fatal("/proc/net/snmp does not tell RcvbufErrors")
	return 0
}

// The overlay itself loses nothing at ordinary rates; and when its sockets
// overflow, status counts it.
func TestSpeedAddsNoLoss(t *testing.T) {
	w := plain(t)
	r, g := w.robots[0], w.gateways[0]
	for _, c := range []struct {
		mbps int
		way  []string
	}{{10, nil}, {50, nil}, {50, []string{"-R"}}, {100, nil}} {
		lost := speed(t, r, g, c.mbps, 3, c.way...)
		for try := 0; try < 2 && c.mbps <= 50 && lost > 0.01; try++ { // other programs come and go
			lost = min(lost, speed(t, r, g, c.mbps, 3, c.way...))
		}
		if c.mbps <= 50 && lost > 0.01 {
			t.Errorf("at %d Mbit/s %v, %.2f %% of the packets were lost", c.mbps, c.way, lost*100)
		}
	}
	t.Logf("gateway's socket: %+v", *status(t, g.Member).Socket)

	// A gateway that cannot read for a while: its socket overflows.
	before := overflow(status(t, g.Member))
	udp := startIperf(t, r, g, "-u", "-b", "100M", "-l", "1200", "-t", "3")
	time.Sleep(time.Second)
	must(t, syscall.Kill(g.Pid(), syscall.SIGSTOP))
	time.Sleep(1200 * time.Millisecond)
	must(t, syscall.Kill(g.Pid(), syscall.SIGCONT))
	udp.wait(t)
	eventually(t, "count of what the socket lost", func() error {
		if s := status(t, g.Member); overflow(s) == before {
			return fmt.Errorf("%+v", *s.Socket)
		}
		return nil
	})
	t.Logf("after the gateway stood still: %+v", *status(t, g.Member).Socket)
}

func overflow(s *tunnel.Status) uint64 { return s.Socket.RxOverflow }
