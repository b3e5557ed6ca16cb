package tunnel

import (
	"net/netip"
	"testing"
	"time"
)

// A robot that looks for its gateway at another of its addresses and ports stays
// there: every answer comes from where it was asked. So does the call of a gateway
// that was started again.
func TestPathsStayAtTheAddressAndPortAsked(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.stop["robot0"]()
	w.stop["gateway0"]()
	w.gwCfg[0].MorePorts = []uint16{0, 0}
	w.startGateway(0)
	w.gwCfg[0].MorePorts = nil
	for _, p := range w.gateways[0].wg.bind.ports[1:] {
		w.gwCfg[0].MorePorts = append(w.gwCfg[0].MorePorts, p.v4.sock.Load().port)
	}
	asked := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), w.gwCfg[0].MorePorts[1])
	w.robotCfg[0].Gateways[0].Endpoints = []netip.AddrPort{asked}
	w.startRobot(0)
	for slot := range w.robotCfg[0].Carriers {
		w.robots[0].SetUplink(slot, Uplink{Interface: "lo", Index: 1, Reached: map[netip.Addr]bool{asked.Addr(): true}})
	}
	w.settle()
	stays := func(when string) {
		t.Helper()
		for _, c := range w.robots[0].present() {
			if got := c.wg.sessions()[w.robotCfg[0].Gateways[0].Key].endpoint; got != asked.String() {
				t.Errorf("%s: the path goes to %s, want %v", when, got, asked)
			}
		}
	}
	stays("at first")
	known, ok := w.gateways[0].Contacts()
	if !ok || len(known) != 2 || known[0].Local != asked {
		t.Fatalf("contacts %v, %v", known, ok)
	}
	w.stop["gateway0"]()
	w.gwCfg[0].Contacts = known
	w.startGateway(0)
	calls := func() (n int) {
		for _, s := range w.gateways[0].wg.sessions() {
			if s.handshake != 0 {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(within); calls() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of 2 calls were answered", calls())
		}
	}
	stays("after a restart")
}
