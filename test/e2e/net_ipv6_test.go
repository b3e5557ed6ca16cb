package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/fogplr/fogplr/test/lab"
)

// IPv6 works inside the overlay and outside of it, in any combination.
func TestIPv6(t *testing.T) {
	t.Parallel()
	for _, outside6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("outside=%v", outside6), func(t *testing.T) {
			w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, IPv6: outside6}, Endpoint6: outside6})
			r, g := w.robots[0], w.gateways[0]
			var files []string
			var stops []func()
			for _, c := range r.lab.Carriers {
				f, stop := capture(t, r.lab.Node, c.Interface, w.file(c.Interface))
				files, stops = append(files, f), append(stops, stop)
			}
			const packets = 200
			l := load{rate: 200, count: packets, size: 200, linger: 500 * time.Millisecond}
			flow6, flow4 := sendBoth(t.Context(), r.end6(), g.end6(), l), sendBoth(t.Context(), r.end(), g.end(), l)
			// 1,232 bytes fill a packet of 1,280, the overlay's MTU; more is
			// fragmented by the sender.
			for _, size := range []string{"56", "1232", "4000"} {
				pings(t, r.lab.Node, "-6", "-s", size, g.ip6.String())
				pings(t, g.lab.Node, "-6", "-s", size, r.ip6.String())
			}
			flow6.wait(t).complete(t, "IPv6 inside")
			flow4.wait(t).complete(t, "IPv4 inside")
			for i, f := range files {
				stops[i]()
				if v4, v6 := datagrams(t, f); outside6 && (v4 > 0 || v6 < 4*packets) || !outside6 && (v6 > 0 || v4 < 4*packets) {
					t.Errorf("%s: %d datagrams by IPv4, %d by IPv6", f, v4, v6)
				}
			}
		})
	}
}

// pings fails the test unless ping with the arguments is answered every time. ping
// itself waits for the last answer for no longer than twice the longest of the
// others, which is little on a busy machine, so it may try again.
func pings(t testing.TB, n *lab.Node, args ...string) {
	t.Helper()
	args = append([]string{"-q", "-c", "5", "-i", "0.05", "-W", "2"}, args...)
	var out string
	var err error
	for range trials {
		out, err = n.Command(t.Context(), "ping", args...).Output()
		if err == nil && strings.Contains(out, " 0% packet loss") {
			return
		}
	}
	t.Errorf("ping %s: %v\n%s", strings.Join(args, " "), err, out)
}

// datagrams counts the UDP datagrams of a capture by the family that carries
// them.
func datagrams(t testing.TB, file string) (v4, v6 int) {
	t.Helper()
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		switch {
		case p.Layer(layers.LayerTypeUDP) == nil:
		case p.Layer(layers.LayerTypeIPv4) != nil:
			v4++
		default:
			v6++
		}
		return nil
	}))
	return v4, v6
}
