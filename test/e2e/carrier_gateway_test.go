package e2e

import (
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// A gateway has a second address, and a robot behind a translator that lets nothing
// in but from where it sent to looks for it there. All answers come from there, and
// so does the call of a gateway that was killed and started again.
func TestGatewayWithTwoAddresses(t *testing.T) {
	t.Parallel()
	strict := near20
	strict.NAT = lab.NAT{Kind: lab.PortRestricted}
	second := netip.MustParseAddrPort("198.51.100.30:51820")
	w := start(t, options{
		Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{strict}},
		Prepare: func(w *world) {
			must(t, w.gateways[0].lab.Command(t.Context(), "ip", "addr", "add", second.Addr().String()+"/24", "dev", "eth0").Run())
			first := netip.AddrPortFrom(w.gateways[0].lab.Address, wgPort)
			edit(t, w.robots[0].Member, strconv.Quote(first.String()), strconv.Quote(second.String()))
		},
	})
	r, g := w.robots[0], w.gateways[0]
	stays := func(when string) {
		t.Helper()
		if at := r.path(t, g, 0).Endpoint; at != second.String() {
			t.Errorf("%s: the path goes to %s, want %v", when, at, second)
		}
	}
	stays("at first")
	sendBoth(t.Context(), r.end(), g.end(), steady(time.Second)).wait(t).complete(t, "by the second address")
	time.Sleep(contactsKept)
	flow := startTraffic(t, r.end(), g.end())
	must(t, g.Kill())
	run(t, g.Member)
	time.Sleep(3 * time.Second)
	within(t, "no traffic around the gateway's restart", flow.halt(t).longestGap(), resumes+busy)
	stays("after a restart")
	sendBoth(t.Context(), r.end(), g.end(), steady(time.Second)).wait(t).complete(t, "after a restart")
}

// contactsKept is how long a gateway takes to write down where its robots are, at
// most.
const contactsKept = 1500 * time.Millisecond

// A network lets only some UDP ports through, by turns. The robot finds the port of
// the gateway that works.
func TestGatewayOnSeveralPorts(t *testing.T) {
	t.Parallel()
	var ports [2]netip.AddrPort
	w := start(t, options{
		Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20}},
		Prepare: func(w *world) {
			ports[0] = netip.AddrPortFrom(w.gateways[0].lab.Address, wgPort)
			ports[1] = netip.AddrPortFrom(ports[0].Addr(), 443)
			must(t, w.Inet.NFT(fmt.Sprintf(`table inet ports {
	set blocked { type inet_service; elements = { %d } }
	chain forward {
		type filter hook forward priority 0
		udp dport @blocked drop
	}
}`, ports[0].Port())))
			edit(t, w.gateways[0].Member, fmt.Sprintf("listen_port = %d", wgPort), fmt.Sprintf("listen_port = [%d, 4500, %d]", wgPort, ports[1].Port()))
			edit(t, w.robots[0].Member, strconv.Quote(ports[0].String()), fmt.Sprintf("[%q, %q]", ports[0], ports[1]))
		},
	})
	r, g := w.robots[0], w.gateways[0]
	for i, from := range []int{1, 0, 1} { // which one works, and is left
		if at := r.path(t, g, 0).Endpoint; at != ports[from].String() {
			t.Errorf("move %d: the path goes to %s, want %v, which alone is open", i, at, ports[from])
		}
		sendBoth(t.Context(), r.end(), g.end(), steady(time.Second)).wait(t).complete(t, "by "+ports[from].String())
		must(t, w.Inet.NFT(fmt.Sprintf("delete element inet ports blocked { %d }", ports[1-from].Port())))
		must(t, w.Inet.NFT(fmt.Sprintf("add element inet ports blocked { %d }", ports[from].Port())))
		time.Sleep(300 * time.Millisecond) // until answers that were on their way have come
		blocked := time.Now()
		provenSince(t, r, g, r.lab.Carriers[0].Interface, blocked)
		within(t, "proof after a port was blocked", time.Since(blocked), trust+3*time.Second+busy)
	}
}
