package tunnel

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
)

// A carrier tells that it has moved what was asked for, rests from one moment to
// the next, and has its gateway stop, too; the other carrier brings everything.
func TestCarrierRests(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	r, g := w.robots[0], w.gateways[0]
	sent := 0
	exchange := func() {
		t.Helper()
		payload := []byte(fmt.Sprint(sent))
		w.hosts["robot0"].out <- inner(t, "10.77.0.101", "10.77.0.11", layers.IPProtocolUDP, 7400, payload)
		w.hosts["gateway0"].out <- inner(t, "10.77.0.11", "10.77.0.101", layers.IPProtocolUDP, 7400, payload)
		w.hosts["gateway0"].receive(t, within)
		w.hosts["robot0"].receive(t, within)
		sent++
	}
	r.Meter(0, r.Moved(0)+20_000, 0)
	for reached := false; !reached; {
		exchange()
		select {
		case <-r.Metered():
			reached = true
		default:
			if sent > 1000 {
				t.Fatalf("%d bytes were moved and nobody said so", r.Moved(0))
			}
		}
	}
	r.Rest(0, "it must rest")
	if c := r.Status().Carriers[0]; c.Usable || c.Problem != "it must rest" {
		t.Errorf("%+v", c)
	}
	began := time.Now()
	for g.Status().Peers[0].Paths[0].Up {
		exchange()
		if time.Since(began) > 2*time.Second { // by itself it would notice after three
			t.Fatal("the gateway still uses the path")
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // for what was on its way
	if p := g.Status().Peers[0].Paths[0]; p.Stage != "resting" || p.Hint == "" {
		t.Errorf("the gateway says %+v", p)
	}
	before := r.Moved(0)
	for range 200 {
		exchange()
	}
	if moved := r.Moved(0) - before; moved > 0 {
		t.Errorf("a carrier that rests moved %d bytes", moved)
	}
	r.SetUplink(0, loopback())
	w.settle()
	exchange()
	if r.Moved(0) == before || !g.Status().Peers[0].Paths[0].Up {
		t.Error("it is not used again")
	}
}

// Beyond its limit a carrier sends only what is small.
func TestQuotaLimit(t *testing.T) {
	var s socketStats
	data, probe, initiation := make([]byte, 1300), make([]byte, 80), make([]byte, 148)
	data[0], probe[0], initiation[0] = 4, 4, 1
	bufs := [][]byte{data, probe, data, initiation}
	if got := s.within(bufs, headers4); len(got) != 4 {
		t.Errorf("without a limit %d of 4 pass", len(got))
	}
	s.quota.limit.Store(1000)
	s.move(999)
	if got := s.within(bufs, headers4); len(got) != 4 {
		t.Errorf("below the limit %d of 4 pass", len(got))
	}
	s.move(1)
	if got := s.within(bufs, headers4); len(got) != 2 || len(got[0]) != 80 || len(got[1]) != 148 {
		t.Errorf("at the limit %d of 4 pass", len(got))
	}
	if s.txDropped.Load() != 2 || s.unsent.Load() != 2*(1300+headers4) {
		t.Errorf("%d dropped, %d bytes", s.txDropped.Load(), s.unsent.Load())
	}
}
