package tunnel

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/replicate"
)

// A carrier that takes the slot of another one has nothing of that one's, but for
// where its gateways were found. One that is renamed has all that it had.
func TestASlotGoesToAnother(t *testing.T) {
	r, c, found := newIdleRobot(t)
	var log bytes.Buffer
	r.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	configure := func(name, id string) (CarrierStatus, PathStatus) {
		t.Helper()
		c.Carriers = slices.Clone(c.Carriers)
		c.Carriers[0].Interface, c.Carriers[0].ID = name, id
		if err := r.Configure(c); err != nil {
			t.Fatal(err)
		}
		r.SetUplink(0, Uplink{Interface: name, Problem: "not there"})
		s := r.Status()
		return s.Carriers[0], s.Peers[0].Paths[0]
	}
	configure("modem9", "mac:9")
	stats := &r.carriers[0].wg.bind.stats
	stats.txDropped.Store(12)
	stats.move(1500)
	stats.failed(errors.New("no buffer space available"))
	r.peers[0].links[0].Load().txFrames.Store(7)
	failLatently(t, &r.peers[0].latent)

	log.Reset()
	s, p := configure("modem10", "mac:9")
	if s.Interface != "modem10" || s.Socket.TxDropped != 12 || s.Socket.WireBytes != 1500 || s.Socket.LastError == "" || p.TxFrames != 7 || p.LatentErrors != 1 {
		t.Errorf("renamed: %+v, %+v", s, p)
	}
	if !strings.Contains(log.String(), "another name") {
		t.Errorf("renamed: %s", &log)
	}

	log.Reset()
	s, p = configure("u6", "mac:6")
	if s.Interface != "u6" || s.Socket != (SocketStatus{}) || s.OwnBytes != 0 || r.Moved(0) != 0 || p.Carrier != "u6" || p.TxFrames != 0 || p.LatentErrors != 0 {
		t.Errorf("another carrier: %+v, %+v", s, p)
	}
	if strings.Contains(log.String(), "another name") {
		t.Errorf("another carrier: %s", &log)
	}
	if all := r.peers[0].links[0].Load().ways.all; len(all) != len(found) || all[0].at != found[0] {
		t.Errorf("it looks for the gateway at %+v, want %v", all, found)
	}
}

// A device has its carrier's name, also when the one before it had the same, and
// those that stay keep theirs.
func TestDevicesHaveTheirNames(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("WireGuard's sockets are root's")
	}
	r, c, _ := newIdleRobot(t)
	other, _ := newKey(t)
	first := Carrier{Interface: "fogtest0", ID: "a", Key: c.Carriers[0].Key}
	second := Carrier{Interface: "fogtest0", ID: "b", Key: c.Carriers[0].Key}
	third := Carrier{Interface: "fogtest0", ID: "b", Key: other, Slot: 1}
	beside := Carrier{Interface: "fogtest1", ID: "c", Key: c.Carriers[0].Key}
	before := map[Carrier]*carrier{}
	for i, carriers := range [][]Carrier{{first}, {second}, {third}, {beside, third}, {third}, {first}} {
		c.Carriers = carriers
		if err := r.Configure(c); err != nil || len(r.carriers) != len(carriers) {
			t.Fatalf("%d: %d carriers, %v", i, len(r.carriers), err)
		}
		now := map[Carrier]*carrier{}
		for k, got := range r.carriers {
			now[got.Carrier] = got
			if was := before[got.Carrier]; got.Carrier != carriers[k] || got.wg.uapi == nil || was != nil && was != got {
				t.Errorf("%d: %+v, %+v", i, got.Carrier, got.wg.uapi)
			}
		}
		before = now
	}
}

// failLatently makes a latent error of slot 0.
func failLatently(t *testing.T, d *replicate.LatentDetector) {
	t.Helper()
	now := time.Now()
	for i := range 80 {
		frames := [replicate.MaxSlot + 1]int{1: 100}
		if i < 40 {
			frames[0] = 100
		}
		now = now.Add(upkeepInterval)
		d.Observe(now, &frames, 3)
	}
	if d.Errors(0) != 1 {
		t.Fatalf("%d latent errors", d.Errors(0))
	}
}

// Its paths come up while those of other slots stay so.
func TestASlotGoesToAnotherUnderWay(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.settle()
	r, c := w.robots[0], w.robotCfg[0]
	c.Carriers = slices.Clone(c.Carriers)
	c.Carriers[0].ID = "mac:6"
	other := r.carriers[1]
	if err := r.Configure(c); err != nil {
		t.Fatal(err)
	}
	if r.carriers[1] != other || !r.Status().Peers[0].Paths[1].Up {
		t.Error("the other carrier was disturbed")
	}
	r.SetUplink(0, loopback())
	w.settle()
}
