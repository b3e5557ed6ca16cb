package e2e

import (
	"fmt"
	"testing"
	"time"
)

const (
	// trials is how often a scenario may be tried.
	trials = 3
	// standstill is how long a machine may hold everything up before DDS programs
	// lose samples by themselves: services keep ten, and two replicas reply to 30
	// calls a second with as many in 170 ms.
	standstill = 100 * time.Millisecond
)

// undisturbed runs a scenario that must not lose anything. It is run again when
// it failed while the machine stood still, because such a run proves nothing;
// whatever fails on a machine that ran, or in every trial, fails the test.
func undisturbed(t *testing.T, scenario func(t testing.TB)) {
	for n := 1; ; n++ {
		m := listenToMetronome()
		x := &trial{TB: t}
		scenario(x)
		pauses := m.stop()
		if len(x.problems) == 0 {
			return
		}
		if len(pauses) == 0 || n == trials {
			for _, p := range x.problems {
				t.Error(p)
			}
			t.Logf("the machine stood still %d times", len(pauses))
			return
		}
		t.Logf("the machine stood still %d times, so this is tried again: %q", len(pauses), x.problems)
	}
}

// trial collects what would fail a test.
type trial struct {
	testing.TB
	problems []string
}

// Errorf implements testing.TB.
func (x *trial) Errorf(format string, args ...any) {
	x.problems = append(x.problems, fmt.Sprintf(format, args...))
}

// Error implements testing.TB.
func (x *trial) Error(args ...any) { x.problems = append(x.problems, fmt.Sprint(args...)) }

// metronome ticks every few milliseconds and notes missing ticks.
type metronome struct {
	done   chan struct{}
	result chan []pause
}

// pause is a time in which the machine stood still.
type pause struct {
	from   time.Time
	length time.Duration
}

func listenToMetronome() *metronome {
	m := &metronome{make(chan struct{}), make(chan []pause)}
	go func() {
		const tick = 5 * time.Millisecond
		var pauses []pause
		for last := time.Now(); ; {
			time.Sleep(tick)
			now := time.Now()
			if missing := now.Sub(last) - tick; missing >= standstill {
				pauses = append(pauses, pause{last, missing})
			}
			last = now
			select {
			case <-m.done:
				m.result <- pauses
				return
			default:
			}
		}
	}()
	return m
}

// stop returns when the machine stood still.
func (m *metronome) stop() []pause {
	close(m.done)
	return <-m.result
}
