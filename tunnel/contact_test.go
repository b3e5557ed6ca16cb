package tunnel

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
)

// A gateway that is killed and started again knows its robots' carriers from
// its last run, so that neither they nor traffic must bring them back, and also
// when WireGuard would not let them start a handshake yet.
func TestRestartedGatewayCallsItsRobots(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.settle() // which is less than 5 s ago when the gateway goes
	known, ok := w.gateways[0].Contacts()
	if !ok || len(known) != 4 || known[0].Key != w.gwCfg[0].Robots[0].Keys[0] {
		t.Fatalf("%d contacts of four carriers: %v", len(known), known)
	}
	p := inner(t, "10.77.0.11", "10.77.0.101", layers.IPProtocolUDP, 7400, []byte("to an idle robot"))
	for _, c := range []struct {
		name     string
		contacts []Contact
		allowed  time.Duration
	}{
		{"known", known, 2 * time.Second},
		{"moved", []Contact{{Key: known[0].Key, Endpoint: netip.MustParseAddrPort("127.0.0.1:9")}, known[1]}, 2 * time.Second},
		{"not configured any more", append([]Contact{{Key: Key{1}, Endpoint: known[0].Endpoint}}, known...), 2 * time.Second},
	} {
		w.stop["gateway0"]()
		w.gwCfg[0].Contacts = c.contacts
		w.startGateway(0)
		began := time.Now()
		// Another crash right now must not forget anybody.
		if again, ok := w.gateways[0].Contacts(); !ok || len(again) != min(len(c.contacts), len(known)) {
			t.Errorf("%s: %d contacts of %d, %v", c.name, len(again), len(c.contacts), ok)
		}
		for came := false; !came; {
			w.hosts["gateway0"].out <- p
			select {
			case <-w.hosts["robot0"].in:
				came = true
			case <-time.After(10 * time.Millisecond):
			}
			if time.Since(began) > 20*time.Second {
				t.Fatalf("%s: nothing came", c.name)
			}
		}
		took := time.Since(began)
		t.Logf("%s: traffic after %v", c.name, took)
		if took > c.allowed {
			t.Errorf("%s: no traffic for %v after the restart", c.name, took)
		}
	}
	w.stop["gateway0"]()
	if all, ok := w.gateways[0].Contacts(); ok {
		t.Errorf("a gateway that has ended knows %v", all)
	}
}
