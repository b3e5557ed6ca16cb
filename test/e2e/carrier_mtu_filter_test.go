package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// A network begins to drop UDP datagrams of more than 300 bytes on one carrier,
// under traffic; small probes go on to pass. The path stays up, status names what
// it does not carry, and then nothing large is sent on it any more, nor in parts:
// only what fits. Nothing is lost, as there is another carrier.
func TestFilterOfLargePackets(t *testing.T) {
	t.Parallel()
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{upTo(1500), upTo(1500)}}})
	r, g := w.robots[0], w.gateways[0]
	for slot := range r.lab.Carriers {
		waitSize(t, r, g, slot, expected(1500, usualMTU, false))
	}
	flows := []traffic{
		largeLoad(t, r, g, 100, usualMTU-28),
		largeLoad(t, r, g, 50, 500), // larger than what passes, smaller than any path should take
		largeLoad(t, r, g, 50, 200), // just passes
		largeLoad(t, r, g, 50, 50),
	}
	time.Sleep(300 * time.Millisecond)
	began := time.Now()
	must(t, w.Inet.NFT(`table inet scrubbing {
	chain forward {
		type filter hook forward priority 0
		iifname "up-a" udp length > 300 drop
		oifname "up-a" udp length > 300 drop
	}
}`))
	named := path.StageLargeLost
	took := waitStatus(t, r.Member, "the path is named", patience, func(s *tunnel.Status) error {
		if p := pathOf(t, s, g.Name, r.lab.Carriers[0].Interface); p.Stage != named.String() || p.Hint != named.Hint() || !p.Up || !p.Carries {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	within(t, "named", took, 6*time.Second+busy)
	// The search goes on below what any path should take.
	waitStatus(t, g.Member, "what still passes", patience, func(s *tunnel.Status) error {
		if p := pathOf(t, s, r.Name, slotName(0)); p.Largest > path.FrameFor(300+20, 1308, false) || p.Largest < 112 || p.Parts != 0 {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	within(t, "what still passes is known", time.Since(began), patience)
	stop := bothEnds(t, w, r, 0)
	before := r.path(t, g, 0)
	from := time.Now()
	time.Sleep(time.Second)
	after := r.path(t, g, 0)
	atRobot, atGateways := stop()
	for way, sent := range map[string][]crossing{"up": between(atRobot, from, time.Now(), true), "down": between(atGateways, from, time.Now(), false)} {
		large := 0
		for _, c := range sent {
			if c.size > 300+20 {
				large++
			}
		}
		if small := len(sent) - large; small < 25 || large > 4 { // which are probes of the search
			t.Errorf("%s: %d small packets were sent, and %d large ones of up to %d bytes", way, small, large, greatest(sent))
		}
	}
	if after.TxParts != before.TxParts || after.Stage != named.String() || !after.Carries {
		t.Errorf("%d parts were sent on a path that takes only small packets: %+v", after.TxParts-before.TxParts, after)
	}
	text, err := r.CLI(t.Context(), "status", "--socket", r.Socket())
	must(t, err)
	if err := mentions(strings.Join(strings.Fields(text), " "), "up, large packets lost", "cell-a to west: "+named.Hint()); err != nil {
		t.Error(err)
	}
	for _, f := range flows {
		f.cancel()
	}
	for _, f := range flows {
		f.wait(t).complete(t, "while one carrier drops large packets")
	}
	if n := deaths(t, r, g, 0); n > 0 {
		t.Errorf("the path was given up %d times, though small probes pass", n)
	}
}
