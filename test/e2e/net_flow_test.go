package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// lastPort is the port of the newest flow: each has its own, so that
// stragglers of one never count in the next.
var lastPort atomic.Uint32

// newPort returns a port that no other flow uses.
func newPort() uint16 { return uint16(20000 + lastPort.Add(1)%20000) }

// load is the traffic of a flow.
type load struct {
	rate   float64 // packets/s
	count  int
	size   int // UDP payload in bytes
	linger time.Duration
}

// steady is 200 packets/s for that long.
func steady(d time.Duration) load {
	const rate = 200
	return load{rate: rate, count: int(d.Seconds() * rate), size: 200, linger: 500 * time.Millisecond}
}

// stream is a flow that runs.
type stream struct {
	name   string
	report *lab.FlowReport
	err    error
	done   chan struct{}
}

func begin(ctx context.Context, name string, f lab.Flow) *stream {
	s := &stream{name: name, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.report, s.err = f.Run(ctx)
	}()
	return s
}

// wait waits for the end of the flow.
func (s *stream) wait(t testing.TB) *lab.FlowReport {
	t.Helper()
	<-s.done
	must(t, s.err)
	return s.report
}

// end is one end of a flow through the overlay.
type end struct {
	node *lab.Node
	ip   netip.Addr
}

func (r *robot) end() end    { return end{r.lab.Node, r.ip} }
func (r *robot) end6() end   { return end{r.lab.Node, r.ip6} }
func (g *gateway) end() end  { return end{g.lab.Node, g.ip} }
func (g *gateway) end6() end { return end{g.lab.Node, g.ip6} }

// send starts a flow.
func send(ctx context.Context, from, to end, l load) *stream {
	return begin(ctx, fmt.Sprintf("%s to %s", from.node.Name(), to.node.Name()), lab.Flow{
		From: from.node, To: to.node, Source: from.ip, Target: netip.AddrPortFrom(to.ip, newPort()),
		Rate: l.rate, Count: l.count, Size: l.size, Linger: l.linger,
	})
}

// duplex is a flow each way between two nodes.
type duplex [2]*stream

func sendBoth(ctx context.Context, a, b end, l load) duplex {
	return duplex{send(ctx, a, b, l), send(ctx, b, a, l)}
}

// reports are what the flows of a duplex saw, up and down.
type reports [2]*lab.FlowReport

func (d duplex) wait(t testing.TB) reports {
	t.Helper()
	return reports{d[0].wait(t), d[1].wait(t)}
}

// complete fails the test unless every packet of both flows came exactly once.
func (r reports) complete(t testing.TB, what string) {
	t.Helper()
	for i, way := range []string{"robot to gateway", "gateway to robot"} {
		exactlyOnce(t, what+", "+way, r[i])
	}
}

// exactlyOnce fails the test unless every packet came, and came once.
func exactlyOnce(t testing.TB, what string, r *lab.FlowReport) {
	t.Helper()
	if len(r.Lost) > 0 || r.Duplicates > 0 || r.SendErrors > 0 {
		t.Errorf("%s: %v; the first lost: %v", what, r, r.Lost[:min(10, len(r.Lost))])
	}
}

// p99s are 99th percentiles of the latencies, up and down.
func (r reports) p99s() [2]time.Duration {
	return [2]time.Duration{r[0].Percentile(0.99), r[1].Percentile(0.99)}
}

// series collects 99th percentiles of repeated runs, each way.
type series [2][]time.Duration

func (s *series) add(r reports) {
	for i, p := range r.p99s() {
		s[i] = append(s[i], p)
	}
}

// quantile returns the share p (0 to 1) of d in ascending order.
func quantile(d []time.Duration, p float64) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[min(len(d)-1, int(p*float64(len(d))))]
}

// notSlower fails the test when the latency of the runs is above that of the
// references by more than 2 ms and 20 %. twin is a reference that was measured
// run by run at the same times. With a few runs the best of them counts: what
// fogplr does wrong it does in each, what other programs of this machine do comes
// and goes. With ten or more it is the median.
func (s *series) notSlower(t testing.TB, what string, twin series, references ...series) {
	t.Helper()
	for i, way := range []string{"robot to gateway", "gateway to robot"} {
		var calm time.Duration
		for _, r := range references {
			if len(r[i]) > 0 {
				calm = max(calm, quantile(r[i], 0.5))
			}
		}
		excess := make([]time.Duration, len(s[i]))
		for k, got := range s[i] {
			excess[k] = got - max(calm, twin[i][k])*6/5
		}
		share := 0.0
		if len(excess) >= 10 {
			share = 0.5
		}
		t.Logf("%s, %s: p99 %v; the twin's %v; at other times %v", what, way, s[i], twin[i], calm)
		if quantile(excess, share) > 2*time.Millisecond {
			t.Errorf("%s, %s: p99 latencies of %v, but of %v where nothing happened at the same times, and %v at others",
				what, way, s[i], twin[i], calm)
		}
	}
}
