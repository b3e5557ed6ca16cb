package e2e

import (
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/deploy"
)

// quick is how soon calls must flow again after a restart. A quarter of a second
// is usual, and the machine may be busy.
const quick = 1500 * time.Millisecond

// While calls go on at 30 Hz, the robot's daemon is restarted, then a gateway is
// killed and started again. The DDS programs find each other once, at the
// beginning, and never again; requests from outside the gaps are all answered.
func TestDDSRestarts(t *testing.T) { undisturbed(t, restarts) }

func restarts(t testing.TB) {
	w := startUrgent(t, options{})
	r, west := w.robots[0], w.gateways[0]
	index := indexOf(t, r)
	var clients []*calls
	for _, v := range vendors {
		for _, g := range w.gateways {
			serve(t, g, v)
		}
		clients = append(clients, startCalls(t, r, v, "--servers", "2", "--count", "0", "--lost-after-ms", "4000"))
	}
	for _, c := range clients {
		c.await(t, "west", time.Now())
		c.await(t, "east", time.Now())
	}
	time.Sleep(time.Second) // for the end of discovery
	onRobot := recordPLR0(t, w, r.lab.Node, "restart")
	onWest := recordPLR0(t, w, west.lab.Node, "restart")

	gap := func(what string, m *deploy.Member, down func() error, by string) (from, to time.Time) {
		t.Helper()
		from = time.Now()
		must(t, down())
		gone := time.Now()
		beginUrgent(t, m)
		back := time.Now()
		for i, c := range clients {
			after := c.await(t, by, back)
			to = time.Now()
			t.Logf("%s, %s: %v to stop, %v to start, calls flow %v after that", what, vendors[i].name,
				gone.Sub(from).Round(time.Millisecond), back.Sub(gone).Round(time.Millisecond), after.Round(time.Millisecond))
			if after > quick {
				t.Errorf("%s, %s: calls flow again only %v after the start", what, vendors[i].name, after)
			}
		}
		return from, to
	}
	from, to := gap("robot restarted", r.Member, r.Stop, "")
	if now := indexOf(t, r); now != index {
		t.Errorf("plr0 had the index %d and has %d", index, now)
	}
	gap("gateway killed and started", west.Member, west.Kill, "west")

	seen := map[string][]ddsPacket{"robot": onRobot(), "west": onWest()}
	for i, c := range clients {
		_ = c.Stop(patience) // status 1 says that something was lost, which is judged here
		s := c.finish(t)
		t.Logf("%s: %+v", vendors[i].name, s)
		// A KEEP_LAST 10 writer forgets what it could not send during a gap; the
		// rest arrives. The other gateway's gap is no gap for the calls.
		for _, e := range c.soFar() {
			sent := time.Unix(0, int64(e.T*1e9))
			if e.Lost && (sent.Before(from.Add(-100*time.Millisecond)) || sent.After(to)) {
				t.Errorf("%s: lost the request sent %v after the robot's stop began; its gap was %v", vendors[i].name, sent.Sub(from), to.Sub(from))
			}
		}
		if s.Lost > int64(to.Sub(from).Seconds()*30)+1 {
			t.Errorf("%s: %d requests lost in a gap of %v", vendors[i].name, s.Lost, to.Sub(from))
		}
	}
	// Each vendor has a client and two servers; a gateway sees its own server.
	rediscovered(t, "robot", seen["robot"], 3*len(vendors))
	rediscovered(t, "west", seen["west"], 2*len(vendors))
}

// rediscovered fails the test if a capture has descriptions of endpoints, or other
// participants than those that were there at its beginning.
func rediscovered(t testing.TB, at string, packets []ddsPacket, participants int) {
	t.Helper()
	first := packets[0].at
	seen := map[string]bool{}
	for i := range packets {
		p := &packets[i]
		for _, d := range p.data {
			seen[d.prefix] = true
			if d.writer == sedpPublications || d.writer == sedpSubscriptions {
				t.Errorf("%s: an endpoint is described anew %v after the beginning, from %v to %v", at, p.at.Sub(first), p.src, p.dst)
			}
		}
	}
	if len(seen) != participants {
		t.Errorf("%s: %d packets of %d participants, want %d", at, len(packets), len(seen), participants)
	}
}

// indexOf is the index of a robot's plr0.
func indexOf(t testing.TB, r *robot) int {
	t.Helper()
	link, err := r.lab.Netlink().LinkByName("plr0")
	must(t, err)
	return link.Attrs().Index
}
