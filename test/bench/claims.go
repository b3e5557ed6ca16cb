package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/play"
	"github.com/fogplr/fogplr/test/report"
	"github.com/fogplr/fogplr/test/scenario"
)

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Figures of the exponent: how many carriers, how many calls a second, and how
// often a call over one of them misses.
const (
	mostCarriers = 4
	exponentRate = 500
	missOfOne    = 0.1
)

// exponent counts misses over one to four carriers that lose packets without
// regard to each other.
func exponent(ctx context.Context, b *bench) (*report.Experiment, error) {
	loss := 1 - math.Sqrt(1-missOfOne) // in each direction
	curve := report.Curve{Name: "fogplr"}
	e := &report.Experiment{ID: "exponent", Title: "Independent carriers: every further one multiplies"}
	for n := 1; n <= mostCarriers; n++ {
		s := callScenario(fmt.Sprintf("exponent-%d", n), b.Short, b.Seed)
		s.Gateways = s.Gateways[:1]
		w := &s.Workloads[0]
		w.Vendor, w.Rate, w.LostAfter = "udp", exponentRate, 2*time.Second
		for i := range n {
			p := lab.Params{Delay: time.Duration(8+4*i) * time.Millisecond, Loss: loss}
			s.Carriers = append(s.Carriers, scenario.Carrier{CarrierOptions: lab.CarrierOptions{
				Interface: fmt.Sprintf("cell-%c", 'a'+i), Up: p, Down: p,
			}})
		}
		results, err := b.together(ctx, e.ID, []variant{{plural(n, "carrier"), "fogplr", nil, s}})
		if err != nil {
			return nil, err
		}
		work, err := calls(results[0])
		if err != nil {
			return nil, err
		}
		// A call misses if no copy of the request comes, or none of the reply.
		miss := 1 - math.Pow(1-math.Pow(loss, float64(n)), 2)
		p := report.Point{Number: n, Calls: len(work.Calls), Missed: work.Lost(), Predicted: &miss}
		if !p.Agrees() {
			lo, hi := p.Expected()
			e.Failed = append(e.Failed, fmt.Sprintf("With %s %d of %d calls missed; independent losses give %d to %d.", plural(n, "carrier"), p.Missed, p.Calls, lo, hi))
		}
		curve.Points = append(curve.Points, p)
	}
	e.Misses = []report.Misses{{Title: "Calls that missed over independent carriers", Number: "carriers", Curves: []report.Curve{curve}}}
	e.Text = fmt.Sprintf("Calls by single datagrams, %d a second for %v, to one gateway. Each link loses %.2f %% of the packets of each direction, so that a call over one carrier misses with a probability of %.0f %%. "+
		"With n carriers a request is lost only if all n copies are, and so is the reply.", exponentRate, b.Short, 100*loss, 100*missOfOne)
	return e, nil
}

// Figures of the replicas.
const (
	mostGateways = 3
	pauseEvery   = 2 * time.Second
	pauseFor     = 300 * time.Millisecond
	replicaRTT   = 20 * time.Millisecond
	replicaDue   = 100 * time.Millisecond
)

// replicas counts misses with one to three gateways whose servers pause.
func replicas(ctx context.Context, b *bench) (*report.Experiment, error) {
	e := &report.Experiment{ID: "replicas", Title: "Servers that pause: every further replica multiplies"}
	var variants []variant
	for n := 1; n <= mostGateways; n++ {
		s := callScenario(fmt.Sprintf("replicas-%d", n), b.Short, b.Seed)
		s.Gateways = nil
		for i := range n {
			s.Gateways = append(s.Gateways, scenario.Gateway{Name: fmt.Sprintf("cloud-%d", i+1), PauseEvery: pauseEvery, PauseFor: pauseFor})
		}
		s.Workloads[0].Deadline = replicaDue
		p := lab.Params{Delay: replicaRTT / 2}
		for _, name := range []string{"cell-a", "cell-b"} {
			s.Carriers = append(s.Carriers, scenario.Carrier{CarrierOptions: lab.CarrierOptions{Interface: name, Up: p, Down: p}})
		}
		if n == mostGateways { // and one of them is lost, and comes back slowly
			s.Faults = []scenario.Fault{{At: b.Short / 3, Kind: scenario.GatewayKill, Gateway: "cloud-1", For: b.Short / 6}}
		}
		variants = append(variants, variant{plural(n, "gateway"), "fogplr", nil, s})
	}
	results, err := b.together(ctx, e.ID, variants)
	if err != nil {
		return nil, err
	}
	curve := report.Curve{Name: "fogplr"}
	for i, r := range results {
		work, err := calls(r)
		if err != nil {
			return nil, err
		}
		p := report.Point{Number: i + 1, Calls: len(work.Calls)}
		for _, c := range work.Calls {
			if c.Latency == report.Lost || c.Latency > replicaDue {
				p.Missed++
			}
		}
		predicted := 1.0
		for _, g := range variants[i].s.Gateways {
			predicted *= lateShare(variants[i].s, g.Name, work.Calls)
		}
		p.Predicted = &predicted
		curve.Points = append(curve.Points, p)
		e.Series = append(e.Series, r.Series(work, variants[i].name))
	}
	e.Misses = []report.Misses{{Title: fmt.Sprintf("Calls that missed %v", replicaDue), Number: "gateways", Curves: []report.Curve{curve}}}
	e.Text = fmt.Sprintf("Calls at 30 Hz (Cyclone DDS) for %v. On each gateway the server stops now and then, as for a garbage collection: every %v for %v, both means of exponential distributions. "+
		"With three gateways one of them is also killed, after a third of the time, and comes back after another sixth. "+
		"The prediction multiplies, over the gateways, the share of the calls that each by itself would answer too late, by its pauses. The calls of one pause miss together, so that the intervals, which take calls for independent, are too narrow.",
		b.Short, pauseEvery, pauseFor)
	return e, nil
}

// comesBack is how long a server that was killed takes to answer again once it was
// started: DDS has to find it.
const comesBack = time.Second

// lateShare is the share of calls that a gateway by itself would answer too late,
// by what the scenario does to it.
func lateShare(s *scenario.Scenario, gateway string, calls []play.Call) float64 {
	faults := play.Pauses(s)
	for _, f := range s.Faults {
		f.For += comesBack
		faults = append(faults, f)
	}
	late := 0
	for _, c := range calls {
		arrives := c.At + replicaRTT/2
		if slices.ContainsFunc(faults, func(f scenario.Fault) bool {
			return f.Gateway == gateway && f.At <= arrives && f.At+f.For-arrives > replicaDue-replicaRTT
		}) {
			late++
		}
	}
	return float64(late) / float64(len(calls))
}

// failTunnels are compared when something fails.
var failTunnels = []struct{ name, tunnel string }{
	{"fogplr", "fogplr"}, {"WireGuard, one carrier", "wireguard"}, {"WireGuard, fail-over", "failover"},
}

func failCarrier(ctx context.Context, b *bench) (*report.Experiment, error) {
	return fail(ctx, b, "failover-carrier", "The best carrier becomes a black hole",
		scenario.Fault{Kind: scenario.BlackHole, Direction: scenario.BothWays, Carrier: "cell-a"})
}

func failGateway(ctx context.Context, b *bench) (*report.Experiment, error) {
	return fail(ctx, b, "failover-gateway", "A gateway is lost", scenario.Fault{Kind: scenario.GatewayKill, Gateway: "west"})
}

// fail lets one thing fail for the middle third of the time.
func fail(ctx context.Context, b *bench, id, title string, f scenario.Fault) (*report.Experiment, error) {
	f.At, f.For = b.Short/3, b.Short/3
	s := callScenario(id, b.Short, b.Seed)
	s.Faults = []scenario.Fault{f}
	for i, name := range []string{"cell-a", "cell-b"} {
		p := lab.RoundTrip(time.Duration(30+15*i)*time.Millisecond, 6*time.Millisecond, 0.005)
		s.Carriers = append(s.Carriers, scenario.Carrier{CarrierOptions: lab.CarrierOptions{Interface: name, Up: p, Down: p}})
	}
	var variants []variant
	for _, t := range failTunnels {
		only := []string{"cell-a", "cell-b"}
		if t.tunnel == "wireguard" {
			only = only[:1]
		}
		variants = append(variants, variant{t.name, t.tunnel, only, s})
	}
	results, err := b.together(ctx, id, variants)
	if err != nil {
		return nil, err
	}
	e := &report.Experiment{ID: id, Title: title, Events: []report.Event{{At: f.At, Text: title}, {At: f.At + f.For, Text: "it is over"}}}
	for i, r := range results {
		work, err := calls(r)
		if err != nil {
			return nil, err
		}
		e.Series = append(e.Series, r.Series(work, variants[i].name))
		if lost := work.Lost(); i == 0 && lost > 0 {
			e.Failed = append(e.Failed, fmt.Sprintf("fogplr lost %d of %d calls.", lost, len(work.Calls)))
		}
	}
	e.Text = fmt.Sprintf("Calls at 30 Hz (Cyclone DDS, replicas on two gateways) for %v over two carriers with round trips of 30 and 45 ms. "+
		"From a third of the time on to two thirds this is so: %s. No interface goes down, and nobody is told.", b.Short, play.Describe(&scenario.Fault{Kind: f.Kind, Carrier: f.Carrier, Gateway: f.Gateway}))
	return e, nil
}
