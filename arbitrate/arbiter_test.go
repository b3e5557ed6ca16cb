package arbitrate

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/rtps"
)

func TestFirstReplyWins(t *testing.T) {
	r := newRig(t, 3)
	r.ask(1)
	r.want("the first", r.in(r.answer(1, 1, 1)), "1:1")
	r.want("the second", r.in(r.answer(0, 1, 1)), "0:-1")
	r.want("the second again", r.in(r.answer(0, 1, 1)), "0:-1")
	r.want("the first again", r.in(r.answer(1, 1, 1)), "1:1")
	r.want("the third, with a HEARTBEAT", r.in(r.answer(2, 1, 1).heartbeat(0, replyWriter, 1, 1, 2, false)), "2:-1 2:beat")
	r.now = 10 * time.Minute
	r.tick()
	r.want("the second, late", r.in(r.answer(0, 1, 1)), "0:-1")
	if c := r.a.Counters(); c.Requests != 1 || c.Replies != 3 || c.Delivered != 1 || c.Withheld != 2 {
		t.Errorf("%+v", c)
	}
}

func TestOldRequestPasses(t *testing.T) {
	r := newRig(t, 2)
	r.ask(1)
	r.want("the first", r.in(r.answer(1, 1, 1)), "1:1")
	r.now = requestAge + time.Minute
	r.tick()
	r.want("the second", r.in(r.answer(0, 1, 1)), "0:1")
}

func TestUnknownRequestPasses(t *testing.T) {
	r := newRig(t, 2)
	r.want("one", r.in(r.answer(0, 1, 5)), "0:1")
	r.want("the other", r.in(r.answer(1, 1, 5)), "1:1")
	if c := r.a.Counters(); c.Unknown != 2 || c.Replies != 0 {
		t.Errorf("%+v", c)
	}
}

// A reply of a replica that the reader may not know wins nothing.
func TestUnmatchedWinsNothing(t *testing.T) {
	for name, almost := range map[string]func(*rig){
		"nothing":        func(*rig) {},
		"HEARTBEAT only": func(r *rig) { r.in(r.theirs(1).to(here).heartbeat(0, replyWriter, 1, 0, 1, false)) },
		"ACKNACK before": func(r *rig) {
			r.out(r.mine().to(replica(1)).ackNack(readerHere, replyWriter, 1, 1, true))
			r.in(r.theirs(1).to(here).heartbeat(0, replyWriter, 1, 0, 1, false))
		},
		"pre-emptive ACKNACK": func(r *rig) {
			r.in(r.theirs(1).to(here).heartbeat(0, replyWriter, 1, 0, 1, false))
			r.out(r.mine().to(replica(1)).ackNack(readerHere, replyWriter, 1, 0, false))
		},
		"another reader's": func(r *rig) {
			r.in(r.theirs(1).to(here).heartbeat(0, replyWriter, 1, 0, 1, false))
			r.out(r.mine().to(replica(1)).ackNack(readerHere+0x100, replyWriter, 1, 1, true))
		},
		"HEARTBEAT elsewhere": func(r *rig) {
			r.in(r.theirs(1).to(replica(7)).heartbeat(0, replyWriter, 1, 0, 1, false))
			r.out(r.mine().to(replica(1)).ackNack(readerHere, replyWriter, 1, 1, true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			r.announce(1)
			almost(r)
			r.ask(1)
			r.want("not matched", r.in(r.answer(1, 1, 1)), "1:1")
			r.want("matched", r.in(r.answer(0, 1, 1)), "0:1")
			r.want("not matched, again", r.in(r.answer(1, 1, 1)), "1:-1")
		})
	}
}

// What a reader cannot hand out yet waits here, and its HEARTBEAT does not.
func TestParked(t *testing.T) {
	r := newRig(t, 2)
	for n := range int64(4) {
		r.ask(n + 1)
	}
	beat := func(m *writer) *writer { return m.heartbeat(0, replyWriter, 1, 4, 2, false) }
	r.want("2, without 1", r.in(beat(r.answer(0, 2, 2))), "0:beat")
	r.want("3, without 1", r.in(r.answer(0, 3, 3)), "")
	r.want("3 again", r.in(r.answer(0, 3, 3)), "")
	r.want("the other's reply to 2", r.in(r.answer(1, 1, 2)), "1:1 0:-2")

	p := r.out(r.mine().to(replica(0)).ackNack(readerHere, replyWriter, 1, 2, false, 0, 2, 3))
	var d rtps.Datagram
	var m rtps.Message
	var s rtps.Submessage
	d.Read(p)
	m.Read(d.Payload, d.Whole)
	m.Next(&s)
	m.Next(&s)
	k, _ := s.AckNack()
	if !k.Missing.Contains(1) || k.Missing.Contains(3) || !k.Missing.Contains(4) || checksum(p[12:16], p[16:20], p[20:]) != 0xffff {
		t.Errorf("what is parked is asked for: %+v", k)
	}

	r.want("1", r.in(r.answer(0, 1, 1)), "0:1 0:3")
	r.want("the other's reply to 3", r.in(r.answer(1, 2, 3)), "1:-2")
	r.want("4", r.in(r.answer(0, 4, 4)), "0:4")
	if c := r.a.Counters(); c.Parked != 2 || c.Released != 1 || c.Delivered != 4 || c.Unasked != 1 {
		t.Errorf("%+v", c)
	}
}

func TestParkedForTooLong(t *testing.T) {
	r := newRig(t, 2)
	r.ask(1)
	r.ask(2)
	r.want("2, without 1", r.in(r.answer(0, 2, 2)), "")
	if due := r.a.Due(); due != epoch.Add(parkAge) {
		t.Errorf("due at %v", due.Sub(epoch))
	}
	r.now = parkAge
	r.want("a second later", r.tick(), "0:2")
	r.want("3, not parked any more", r.in(r.answer(0, 3, 1)), "0:3")
}

// More than there is room for is not parked.
func TestParkedIsBounded(t *testing.T) {
	r := newRig(t, 2)
	for n := range int64(parkedEach + 2) {
		r.ask(n + 1)
	}
	for n := range rtps.SequenceNumber(parkedEach) {
		r.want("one", r.in(r.answer(0, n+2, int64(n+2))), "")
	}
	r.want("one more", r.in(r.answer(0, parkedEach+2, parkedEach+2)), fmt.Sprintf("0:%d", parkedEach+2))
	if c := r.a.Counters(); c.Overflow != 1 || c.Parked != parkedEach {
		t.Errorf("%+v", c)
	}
	within(t, r.a)
}

// What a reader's acknowledgement frees is delivered by the next call.
func TestFreedByAcknowledgement(t *testing.T) {
	r := newRig(t, 2)
	r.ask(2)
	r.want("2, without 1", r.in(r.answer(0, 2, 2)), "")
	r.out(r.mine().to(replica(0)).ackNack(readerHere, replyWriter, 2, 2, true))
	if due := r.a.Due(); due.After(epoch.Add(r.now)) {
		t.Errorf("due in %v", due.Sub(epoch))
	}
	r.want("the next call", r.tick(), "0:2")
	r.want("the one after", r.tick(), "")
}

// Nothing waits for a replica that does not live, or is the only one.
func TestNothingWaitsForNobody(t *testing.T) {
	r := newRig(t, 1)
	r.ask(2)
	r.want("the only replica", r.in(r.answer(0, 2, 2)), "0:2")

	r = newRig(t, 2)
	r.now = time.Minute // longer than the other's lease
	r.ask(2)
	r.want("the other is silent", r.in(r.answer(0, 2, 2)), "0:2")

	r = newRig(t, 2)
	r.ask(2)
	r.in(r.theirs(1).gone(rtps.EntityParticipantWriter, rtps.GUID{Prefix: replica(1), Entity: rtps.EntityParticipant}))
	r.want("the other has left", r.in(r.answer(0, 2, 2)), "0:2")
}

func TestLeaving(t *testing.T) {
	r := newRig(t, 2)
	r.ask(2)
	r.want("parked", r.in(r.answer(0, 2, 2)), "")
	g := rtps.GUID{Prefix: replica(0), Entity: replyWriter}
	r.want("its writer goes", r.in(r.theirs(0).gone(rtps.EntityPublicationsWriter, g)), "0:9 0:2")
	r.announce(0)
	r.ask(3)
	r.want("not matched any more", r.in(r.answer(0, 3, 3)), "0:3")
	r.want("the other", r.in(r.answer(1, 1, 3)), "1:1")

	// Nobody there may speak for a participant here.
	r.in(r.theirs(0).gone(rtps.EntityParticipantWriter, rtps.GUID{Prefix: here, Entity: rtps.EntityParticipant}))
	if s := r.a.Services(10); len(s) != 1 || s[0].Clients != 1 || s[0].Servers != 2 || s[0].Name != "/echo" {
		t.Errorf("%+v", s)
	}
	r.out(r.mine().gone(rtps.EntityParticipantWriter, rtps.GUID{Prefix: here, Entity: rtps.EntityParticipant}))
	if s := r.a.Services(10); len(s) != 0 || r.a.requests.count != 3-1 {
		t.Errorf("%+v, %d requests", s, r.a.requests.count)
	}
}

// What was lost between here and the reader was not delivered.
func TestLostInTheHost(t *testing.T) {
	r := newRig(t, 2)
	r.ask(1)
	r.want("the first", r.in(r.answer(0, 1, 1)), "0:1")
	r.out(r.mine().to(replica(0)).ackNack(readerHere, replyWriter, 1, 2, false, 0))
	r.want("the second; the reader's wish crossed the first", r.in(r.answer(1, 1, 1)), "1:-1")
	r.ask(2)
	r.want("the first", r.in(r.answer(0, 2, 2)), "0:2")
	r.now = 2 * doubtAfter
	r.out(r.mine().to(replica(0)).ackNack(readerHere, replyWriter, 2, 3, false, 0))
	r.want("the second", r.in(r.answer(1, 2, 2)), "1:2")
	r.want("the first again", r.in(r.answer(0, 2, 2)), "0:-2")
}

// What a writer took back was not delivered, though it seems to be when the reader
// asks for something before it.
func TestLostBeforeWhatWasTakenBack(t *testing.T) {
	r := newRig(t, 2)
	r.ask(1)
	r.ask(2)
	r.want("1", r.in(r.answer(0, 1, 1)), "0:1")
	payload := append(le.AppendUint64(le.AppendUint64([]byte{0, 1, 0, 0}, 77), 2), make([]byte, 280)...)
	r.want("part of 2", r.in(r.theirs(0).frag(0, replyWriter, 2, nil, payload, 100, 1)), "0:2/1")
	r.want("GAP", r.in(r.theirs(0).gap(0, replyWriter, 2, 3)), "0:-2")
	r.now = 2 * doubtAfter
	r.out(r.mine().to(replica(0)).ackNack(readerHere, replyWriter, 1, 2, false, 0))
	r.want("1 again", r.in(r.answer(0, 1, 1)), "0:1")
	r.want("the other's reply to 2", r.in(r.answer(1, 1, 2)), "1:1")
}

// A reader that was matched later never got what was written before.
func TestLateReader(t *testing.T) {
	r := newRig(t, 2)
	// A second client, of which it cannot be told which reader is whose.
	ask, late := rtps.EntityID(0x1003), rtps.EntityID(0x2004)
	r.out(r.mine().sedp(rtps.GUID{Prefix: here, Entity: ask}, "rq/echoRequest", 2))
	r.out(r.mine().sedp(rtps.GUID{Prefix: here, Entity: late}, "rr/echoReply", 2))
	r.out(r.mine().data(0, ask, 1, nil, le.AppendUint64(le.AppendUint64([]byte{0, 1, 0, 0}, 77), 1)))
	r.want("2, without 1", r.in(r.answer(0, 2, 1)), "0:2")
	r.in(r.theirs(0).to(here).heartbeat(late, replyWriter, 1, 2, 3, false))
	r.out(r.mine().to(replica(0)).ackNack(late, replyWriter, 3, 1, true))
	r.want("1, for the first reader", r.in(r.theirs(0).to(here).gap(readerHere, replyWriter, 1, 2)), "0:-1")
	r.want("the other replica", r.in(r.answer(1, 1, 1)), "1:1")
}

// What follows a large sample in its datagram is read, but cannot be changed.
func TestFragmentedDatagram(t *testing.T) {
	for _, large := range []int{200, 4000} {
		r := newRig(t, 1)
		r.announce(1)
		r.ask(1)
		r.ask(2)
		payload := append(le.AppendUint64(le.AppendUint64([]byte{0, 1, 0, 0}, 77), 1), make([]byte, large)...)
		m := r.theirs(1).to(here).heartbeat(0, replyWriter, 1, 0, 1, false)
		r.in(m)
		r.out(r.mine().to(replica(1)).ackNack(readerHere, replyWriter, 1, 1, true))
		m = r.theirs(1).data(0, replyWriter, 1, nil, payload)
		m.b = append(m.b, r.answer(1, 2, 2).b[20:]...)
		packets := split(udp(address(10, 7411), hereTo, 1, m.b), 1000)
		if got := r.a.In(epoch, packets); len(got) != len(packets) {
			t.Errorf("%d packets of %d", len(got), len(packets))
		}
		r.want("the other's 1", r.in(r.answer(0, 1, 1)), "0:-1")
		r.want("the other's 2", r.in(r.answer(0, 2, 2)), "0:-2")

		m.b = append(r.theirs(0).data(0, replyWriter, 3, nil, payload).b, r.answer(0, 4, 2).b[20:]...)
		before := udp(address(10, 7411), hereTo, 1, m.b)
		packets = split(bytes.Clone(before), 1000)
		got := r.a.In(epoch, packets)
		whole := bytes.Clone(got[0])
		for _, p := range got[1:] {
			whole = append(whole, p[20:]...)
		}
		if checksum(whole[12:16], whole[16:20], whole[20:]) != 0xffff || bytes.Equal(whole[28:], before[28:]) {
			t.Error("the first sample was not withheld, or the checksum is wrong")
		}
		if c := r.a.Counters(); large == 4000 && c.Refused != 1 {
			t.Errorf("%+v", c)
		}
	}
}

// After a restart, what a reader lacks is not known before it has said so.
func TestRestart(t *testing.T) {
	r := newRig(t, 2)
	r.ask(1)
	r.want("the first", r.in(r.answer(0, 1, 1)), "0:1")
	data, err := r.a.Snapshot(epoch.Add(r.now))
	if err != nil {
		t.Fatal(err)
	}
	r.a, r.now = New(epoch.Add(time.Hour)), time.Hour
	if err := r.a.Restore(epoch.Add(r.now), data); err != nil {
		t.Fatal(err)
	}
	r.want("the second", r.in(r.answer(1, 1, 1)), "1:-1")
	r.ask(2)
	r.want("something may have come meanwhile", r.in(r.answer(0, 3, 2)), "0:3")
	r.out(r.mine().to(replica(0)).ackNack(readerHere, replyWriter, 4, 9, true))
	r.want("the second", r.in(r.answer(1, 2, 2)), "1:-2")

	for _, broken := range []string{"", "{", `{"version":2}`, `{"version":1,"pairs":[{"reader":"0g"}]}`} {
		if New(epoch).Restore(epoch, []byte(broken)) == nil {
			t.Errorf("%q is taken", broken)
		}
	}
}

// What goes to the port of one process is not delivered to another.
func TestPorts(t *testing.T) {
	r := newRig(t, 2)
	other := rtps.Prefix{1, 16, 'd'}
	r.out(message(rtps.VendorCyclone, other).sedp(rtps.GUID{Prefix: other, Entity: readerHere}, "rr/echoReply", 1))
	in := func(port uint16, m *writer) string {
		return show(t, r.a.In(epoch, [][]byte{udp(address(10, 7411), address(1, port), 1, m.b)}))
	}
	for i := range 2 {
		in(7413, r.theirs(i).to(other).heartbeat(0, replyWriter, 1, 0, 2, false))
		r.out(message(rtps.VendorCyclone, other).to(replica(i)).ackNack(readerHere, replyWriter, 1, 1, true))
	}
	r.ask(1)
	r.want("the other process's copy", in(7413, r.answer(0, 1, 1)), "0:1")
	r.want("the second replica", in(7411, r.answer(1, 1, 1)), "1:1")
	r.want("the first replica", in(7411, r.answer(0, 1, 1)), "0:-1")
}

// The services of an action are services, and each has its own requests.
func TestActions(t *testing.T) {
	r := newRig(t, 2)
	topic := "/fib/_action/get_result"
	r.out(r.mine().sedp(rtps.GUID{Prefix: here, Entity: 0x503}, "rq"+topic+"Request", 3))
	r.out(r.mine().sedp(rtps.GUID{Prefix: here, Entity: 0x604}, "rr"+topic+"Reply", 3))
	for i := range 2 {
		r.in(r.theirs(i).sedp(rtps.GUID{Prefix: replica(i), Entity: 0x503}, "rr"+topic+"Reply", 3))
		r.in(r.theirs(i).to(here).heartbeat(0, 0x503, 1, 0, 2, false))
		r.out(r.mine().to(replica(i)).ackNack(0x604, 0x503, 1, 1, true))
	}
	payload := le.AppendUint64(le.AppendUint64([]byte{0, 1, 0, 0}, 77), 1)
	r.ask(1)
	r.out(r.mine().data(0, 0x503, 1, nil, payload))
	r.want("the service", r.in(r.answer(0, 1, 1)), "0:1")
	r.want("the action", r.in(r.theirs(1).data(0, 0x503, 1, nil, payload)), "1:1")
	r.now = 10 * time.Minute
	r.want("the action's second", r.in(r.theirs(0).data(0, 0x503, 1, nil, payload)), "0:-1")
	if s := r.a.Services(10); len(s) != 2 || s[1].Name != topic || s[1].Action != "/fib" {
		t.Errorf("%+v", s)
	}
}

// A writer's own GAP takes numbers out of the way.
func TestWritersGap(t *testing.T) {
	r := newRig(t, 2)
	r.ask(5)
	r.want("GAP", r.in(r.theirs(0).to(here).gap(readerHere, replyWriter, 1, 4)), "0:-1")
	r.want("behind it", r.in(r.answer(0, 4, 5)), "0:4")
	r.want("the second", r.in(r.answer(1, 1, 5)), "1:-1")
}

// A GAP for one reader takes nothing from another.
func TestWritersGapForAnother(t *testing.T) {
	r := newRig(t, 2)
	r.now = time.Minute // the other is silent, so that nothing is parked
	r.ask(1)
	r.want("2, without 1", r.in(r.answer(0, 2, 1)), "0:2")
	r.want("GAP", r.in(r.theirs(0).to(here).gap(readerHere+0x100, replyWriter, 1, 3)), "0:-1")
	r.want("1", r.in(r.answer(0, 1, 9)), "0:1")
	r.want("the second", r.in(r.answer(1, 1, 1)), "1:-1")
}

// Many requests of one service push out none of another.
func TestManyRequests(t *testing.T) {
	r := newRig(t, 2)
	e := r.a.learn(rtps.GUID{Prefix: here, Entity: 0x5003}, "/slow", rtps.RoleRequest, true)
	id := rtps.RequestID{Number: 1}
	r.a.requests.add(e.service, id, 0)
	for n := range int64(3 * maxAsked) {
		r.ask(n + 1)
	}
	if r.a.requests.get(requestKey{e.service.number, id}) == nil || r.a.requests.count != maxAsked+1 {
		t.Errorf("%d requests are known", r.a.requests.count)
	}
	r.want("the newest", r.in(r.answer(0, 1, 3*maxAsked)), "0:1")
	r.want("the newest, again", r.in(r.answer(1, 1, 3*maxAsked)), "1:-1")
	r.want("too old", r.in(r.answer(0, 2, 1)), "0:2")
}

// Fragments without a request of their own follow the first one.
func TestFragments(t *testing.T) {
	r := newRig(t, 2)
	payload := append(le.AppendUint64(le.AppendUint64([]byte{0, 1, 0, 0}, 77), 1), make([]byte, 280)...)
	part := func(i, k int) *writer { return r.theirs(i).frag(0, replyWriter, 1, nil, payload, 100, k) }
	r.ask(1)
	for k, want := range []string{"0:1/1", "0:1/2"} {
		r.want("the first", r.in(part(0, k+1)), want)
		r.want("the second", r.in(part(1, k+1)), strings.Replace(want, "0", "1", 1))
	}
	r.want("the first is whole", r.in(part(0, 3)), "0:1/3")
	r.want("the second", r.in(part(1, 3)), "1:-1")
	r.want("the second again", r.in(part(1, 2)), "1:-1")

	// The last fragment of a sample is parked: it is not asked for.
	part = func(i, k int) *writer { return r.theirs(i).frag(0, replyWriter, 3, nil, payload, 100, k) }
	payload[12]++ // the number of its request
	r.ask(2)
	r.want("3, without 2", r.in(part(0, 1)), "0:3/1")
	r.want("3, without 2", r.in(part(0, 2)), "0:3/2")
	r.want("the last of 3", r.in(part(0, 3)), "")
	for want, parts := range map[rtps.Kind][]int{rtps.KindNackFrag: {0, 2}, rtps.KindPad: {2}} {
		p := r.out(r.mine().nackFrag(readerHere, replyWriter, 3, 1, 7, parts...))
		if p[48] != byte(rtps.KindNackFrag) {
			t.Error("a NACK_FRAG for nobody was changed")
		}
		p = r.out(r.mine().to(replica(0)).nackFrag(readerHere, replyWriter, 3, 1, 7, parts...))
		if p[64] != byte(want) || checksum(p[12:16], p[16:20], p[20:]) != 0xffff {
			t.Errorf("asking for %v became %x", parts, p[64:])
		}
	}
	r.want("2", r.in(r.answer(0, 2, 9)), "0:2 0:3/3")
}
