package play

import (
	"fmt"
	"slices"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/report"
	"github.com/fogplr/fogplr/test/scenario"
)

// Oracle returns what calls would take over the carriers that are named (all if
// only is empty) if each packet took the carrier that is best at its moment: the
// least delay on the way up and, when the request is there and was worked on, the
// least on the way down. A call is lost when no carrier has service. Packets'
// sizes and what programs take do not count. It is an error when a link has
// anything besides delay and a trace, since then luck decides by packet.
func Oracle(s *scenario.Scenario, only []string, calls []Call, work time.Duration) ([]time.Duration, error) {
	var up, down []way
	for _, c := range s.Carriers {
		if len(only) > 0 && !slices.Contains(only, c.Interface) {
			continue
		}
		for _, d := range []struct {
			params lab.Params
			ways   *[]way
		}{{c.Up, &up}, {c.Down, &down}} {
			w, err := wayOf(d.params)
			if err != nil {
				return nil, fmt.Errorf("carrier %s: %w", c.Interface, err)
			}
			*d.ways = append(*d.ways, w)
		}
	}
	all := make([]time.Duration, len(calls))
	for i, c := range calls {
		all[i] = report.Lost
		if there, ok := best(up, c.At); ok {
			if back, ok := best(down, c.At+there+work); ok {
				all[i] = there + work + back
			}
		}
	}
	return all, nil
}

// way is one direction of a link whose delay depends on the time alone.
type way struct {
	delay time.Duration
	trace *lab.RTTTrace
}

func wayOf(p lab.Params) (w way, err error) {
	w.delay = p.Delay
	if p.RTT != nil {
		if w.trace, err = p.RTT.Load(); err != nil {
			return w, err
		}
	}
	p.Delay, p.RTT = 0, nil
	if p != (lab.Params{}) {
		return w, fmt.Errorf("luck or size decides about its packets, so that the ideal is not known: %+v", p)
	}
	return w, nil
}

func best(ways []way, at time.Duration) (least time.Duration, ok bool) {
	for _, w := range ways {
		d := w.delay
		if w.trace != nil {
			recorded, service := w.trace.At(at)
			if !service {
				continue
			}
			d += recorded
		}
		if !ok || d < least {
			least, ok = d, true
		}
	}
	return least, ok
}
