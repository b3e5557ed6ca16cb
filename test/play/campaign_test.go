package play_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/play"
	"github.com/fogplr/fogplr/test/scenario"
	"github.com/fogplr/fogplr/test/tunnels"
)

func TestMain(m *testing.M) {
	lab.Main()
	os.Exit(m.Run())
}

// singleFaults are what a call must survive while another carrier and another
// gateway are well. The robot itself is not among them: there is one.
var singleFaults = []scenario.Fault{
	{Kind: scenario.BlackHole, Direction: scenario.BothWays, Carrier: "any"},
	{Kind: scenario.BlackHole, Direction: scenario.Up, Carrier: "any"},
	{Kind: scenario.BlackHole, Direction: scenario.Down, Carrier: "any"},
	{Kind: scenario.LinkDown, Carrier: "any"},
	{Kind: scenario.Unplug, Carrier: "any"},
	{Kind: scenario.AddressChange, Carrier: "any"},
	{Kind: scenario.Replug, Carrier: "any"},
	{Kind: scenario.NATRebind, Carrier: "any"},
	{Kind: scenario.GatewayKill, Gateway: "any"},
	{Kind: scenario.GatewayStop, Gateway: "any"},
	{Kind: scenario.GatewayRestart, Gateway: "any"},
	{Kind: scenario.ServerStop, Gateway: "any"},
	{Kind: scenario.ServerKill, Gateway: "any"},
}

// campaign lets single faults happen, one after the other, each of a kind, place
// and length that the seed chooses, and fails the test if a call was lost.
func campaign(t *testing.T, seed uint64, faults int) {
	r := rand.New(rand.NewPCG(seed, 1))
	s, err := scenario.Load("../lab/scenarios/campaign.toml")
	if err != nil {
		t.Fatal(err)
	}
	s.SetSeed(seed)
	tunnel, err := tunnels.ByName("fogplr", tunnels.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := testLog{t}
	inject := func(ctx context.Context, st *play.Standing) error {
		for i := range faults {
			f := singleFaults[r.IntN(len(singleFaults))]
			if f.Carrier != "" {
				f.Carrier = s.Carriers[r.IntN(len(s.Carriers))].Interface
			} else {
				f.Gateway = s.Gateways[r.IntN(len(s.Gateways))].Name
			}
			if f.Kind.Lasts() {
				f.For = 300*time.Millisecond + time.Duration(r.IntN(3500))*time.Millisecond
			}
			fmt.Fprintf(log, "%d: %s", i+1, play.Describe(&f))
			if err := st.Suffer(ctx, &f); err != nil {
				return fmt.Errorf("%s: %w", play.Describe(&f), err)
			}
			if err := st.Whole(ctx); err != nil {
				return fmt.Errorf("after %s: %w", play.Describe(&f), err)
			}
		}
		return nil
	}
	result, err := play.Run(t.Context(), s, play.Options{Tunnel: tunnel, Log: io.Discard, Instead: inject})
	if err != nil {
		t.Fatal(err)
	}
	for i := range result.Work {
		w := &result.Work[i]
		f := result.Series(w, w.Name).Figures()
		t.Logf("%s: %d calls in %v, %d lost, p99 %v ms, slowest %v ms, longest gap %v ms", w.Name, f.Calls, result.Duration.Round(time.Second), f.Lost, f.P99, f.Max, f.Gap)
		if f.Lost > 0 || f.Calls < faults*10 {
			t.Errorf("%s: %d of %d calls lost", w.Name, f.Lost, f.Calls)
		}
	}
}

// testLog writes lines to a test's log.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}

func TestNoCallIsLostBySingleFaults(t *testing.T) { campaign(t, 1, len(singleFaults)) }
