package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Loads of the self-test.
const (
	testedRate   = 2000 // packets/s, for added latency and exactness
	testedDelay  = 20 * time.Millisecond
	testedFlood  = 20_000 // packets/s
	testedLength = 5      // seconds
	testedSize   = 200    // bytes
)

// Exactness is how well this machine emulates links.
type Exactness struct {
	// Added is what a link without any delay adds, and Jitter how far the middle
	// 98 % of it spread: sending and receiving included.
	Added, AddedP99, Jitter time.Duration
	// ErrorP50 and ErrorP99 are how far the delay was from what was asked.
	ErrorP50, ErrorP99 time.Duration
	// Delivered is the share of a flood that came, LateP99 how far behind its time.
	Delivered float64
	LateP99   time.Duration
}

func (e *Exactness) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1e3) }
	return fmt.Sprintf("A link without delay adds %s (99 %%: %s, jitter %s), at %d packets/s.\n"+
		"A delay of %v is wrong by %s (99 %%: %s), at %d packets/s.\n"+
		"Of %d packets/s, %.3f %% come, 99 %% of them within %s of their time.",
		ms(e.Added), ms(e.AddedP99), ms(e.Jitter), testedRate,
		testedDelay, ms(e.ErrorP50), ms(e.ErrorP99), testedRate,
		testedFlood, 100*e.Delivered, ms(e.LateP99))
}

// SelfTest measures the emulator on this machine, as busy as it is. It takes some
// 20 s.
func SelfTest(ctx context.Context) (e *Exactness, err error) {
	l, err := New("selftest")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	a, err := l.Node("a")
	if err != nil {
		return nil, err
	}
	b, err := l.Node("b")
	if err != nil {
		return nil, err
	}
	k, err := l.Link(a, "link", b, "link", LinkParams{})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(a.AddAddress("link", "10.9.0.1/24"), b.AddAddress("link", "10.9.0.2/24")); err != nil {
		return nil, err
	}
	flow := func(rate float64, seconds int) (*FlowReport, error) {
		f := Flow{From: a, To: b, Target: netip.MustParseAddrPort("10.9.0.2:9000"), Rate: rate, Count: int(rate) * seconds, Size: testedSize}
		return f.Run(ctx)
	}
	if _, err := flow(100, 1); err != nil { // the neighbours get to know each other
		return nil, err
	}
	empty, err := flow(testedRate, testedLength)
	if err != nil {
		return nil, err
	}
	delayed := Params{Delay: testedDelay}
	if err := k.Set(delayed, delayed); err != nil {
		return nil, err
	}
	exact, err := flow(testedRate, testedLength)
	if err != nil {
		return nil, err
	}
	flood, err := flow(testedFlood, testedLength)
	if err != nil {
		return nil, err
	}
	wrong, late := offBy(exact, testedDelay), offBy(flood, testedDelay)
	return &Exactness{
		Added: empty.Percentile(0.5), AddedP99: empty.Percentile(0.99), Jitter: empty.Percentile(0.99) - empty.Percentile(0.01),
		ErrorP50: wrong.Percentile(0.5), ErrorP99: wrong.Percentile(0.99),
		Delivered: float64(flood.Received) / float64(flood.Sent), LateP99: late.Percentile(0.99),
	}, nil
}

// offBy returns a report whose latencies are how far those of r are from what was
// asked.
func offBy(r *FlowReport, asked time.Duration) *FlowReport {
	off := &FlowReport{}
	for _, d := range r.Latency {
		off.Latency = append(off.Latency, (d - asked).Abs())
	}
	slices.Sort(off.Latency)
	return off
}
