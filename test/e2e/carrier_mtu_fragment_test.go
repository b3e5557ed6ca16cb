package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// IP fragments of one datagram share one fate: with so much loss on both carriers
// that many a fragment gets lost, plr0 gets all fragments of a datagram or none, in
// both directions and families, and the kernel never waits for one in vain.
func TestFragmentsShareOneFate(t *testing.T) {
	t.Parallel()
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{upTo(1500), upTo(1500)}}})
	r, g := w.robots[0], w.gateways[0]
	for slot := range r.lab.Carriers {
		waitSize(t, r, g, slot, expected(1500, usualMTU, false))
	}
	lossy := lab.RoundTrip(10*time.Millisecond, 0, 0.35)
	for _, c := range r.lab.Carriers {
		must(t, c.Link.Set(lossy, lossy))
	}
	atRobot, endRobot := capture(t, r.lab.Node, "plr0", w.file("fragments-robot"))
	atGateway, endGateway := capture(t, g.lab.Node, "plr0", w.file("fragments-west"))
	const count, size = 100, 10_000
	flow4 := sendBoth(t.Context(), r.end(), g.end(), load{rate: 50, count: count, size: size, linger: 500 * time.Millisecond})
	flow6 := sendBoth(t.Context(), r.end6(), g.end6(), load{rate: 50, count: count, size: size, linger: 500 * time.Millisecond})
	got4, got6 := flow4.wait(t), flow6.wait(t)
	endRobot()
	endGateway()
	seen := map[string]map[datagramID]int{r.Name: fragments(t, atRobot), g.Name: fragments(t, atGateway)}
	for from, to := range map[string]string{r.Name: g.Name, g.Name: r.Name} {
		whole, broken := 0, 0
		for d, n := range seen[to] {
			switch {
			case d.from(r) != (from == r.Name): // its own
			case n == seen[from][d]:
				whole++
			default:
				broken++
			}
		}
		t.Logf("from %s: %d datagrams came, %d in part", from, whole, broken)
		if broken > 0 || whole < 20 || whole > 2*count-20 {
			t.Errorf("from %s: of %d datagrams %d came, and of %d a part", from, 2*count, whole, broken)
		}
	}
	for i := range got4 {
		if len(got4[i].Lost) == 0 || len(got6[i].Lost) == 0 || got4[i].Duplicates+got6[i].Duplicates > 0 {
			t.Errorf("%v\n%v", got4[i], got6[i])
		}
	}
	for _, n := range []*lab.Node{r.lab.Node, g.lab.Node} {
		for line := range strings.Lines(output(t, n, "nstat", "-asz", "IpReasmFails", "IpReasmTimeout", "Ip6ReasmFails", "Ip6ReasmTimeout")) {
			if f := strings.Fields(line); strings.HasPrefix(line, "Ip") && f[1] != "0" {
				t.Errorf("%s waited for fragments in vain: %s", n.Name(), line)
			}
		}
	}
	for m, peer := range map[*tunnel.Status]string{status(t, r.Member): g.Name, status(t, g.Member): r.Name} {
		for _, p := range m.Peers {
			if p.Name == peer && p.Incomplete < 20 {
				t.Errorf("%s counts %d incomplete datagrams", m.Name, p.Incomplete)
			}
		}
	}
}

// datagramID tells one datagram in fragments from all others.
type datagramID struct {
	src, dst string
	id       uint32
}

// from reports whether a robot sent it.
func (d datagramID) from(r *robot) bool { return d.src == r.ip.String() || d.src == r.ip6.String() }

func (d datagramID) String() string { return fmt.Sprintf("%s to %s, %x", d.src, d.dst, d.id) }

// fragments counts the IP fragments in a capture by their datagram.
func fragments(t testing.TB, file string) map[datagramID]int {
	t.Helper()
	found := map[datagramID]int{}
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		for _, l := range p.Layers() {
			switch l := l.(type) {
			case *layers.IPv4:
				if l.Flags&layers.IPv4MoreFragments != 0 || l.FragOffset > 0 {
					found[datagramID{l.SrcIP.String(), l.DstIP.String(), uint32(l.Id)}]++
				}
			case *layers.IPv6Fragment:
				flow := p.NetworkLayer().NetworkFlow()
				found[datagramID{flow.Src().String(), flow.Dst().String(), l.Identification}]++
			}
		}
		return nil
	}))
	return found
}
