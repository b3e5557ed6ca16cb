package e2e

import (
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// only is a world of one robot with one carrier and the gateway west.
func only(t testing.TB, c lab.CarrierOptions) (*world, *robot, *gateway) {
	t.Helper()
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{c}}})
	return w, w.robots[0], w.gateways[0]
}

// resumes is how long traffic over a single carrier may stand still when its
// address has changed: some probe intervals.
const resumes = time.Second

// The address of a robot's only carrier changes while packets flow, as by DHCP:
// the next probe leaves from the new one, and the gateway answers there. The path
// does not die of it.
func TestReaddressedWhileRunning(t *testing.T) {
	t.Parallel()
	_, r, g := only(t, near20)
	c := r.lab.Carriers[0]
	// What fogplr does wrong it does each time; what else goes on here comes and
	// goes.
	proof, gap := patience, patience
	for range 3 {
		flow := startTraffic(t, r.end(), g.end())
		must(t, c.Readdress())
		changed := time.Now()
		provenSince(t, r, g, c.Interface, changed)
		proof = min(proof, time.Since(changed))
		seenFrom(t, r, g, 0, c.Address.Addr().String()+":")
		time.Sleep(300 * time.Millisecond)
		gap = min(gap, flow.halt(t).longestGap())
	}
	within(t, "proof after a new address", proof, resumes)
	within(t, "no traffic", gap, resumes)
	if n := deaths(t, r, g, 0); n > 0 {
		t.Errorf("the path was given up %d times", n)
	}
}

// A carrier loses its address, and gets another one later. In between nothing
// leaves by it, from whichever address, and afterwards all comes from the new one.
func TestNoStaleSourceAddress(t *testing.T) {
	t.Parallel()
	staleSource(t, 3*time.Second)
}

// staleSource leaves the carrier without an address for that long.
func staleSource(t *testing.T, without time.Duration) {
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20, near20}}})
	r, g := w.robots[0], w.gateways[0]
	b := r.lab.Carriers[1]
	old := b.Address
	file, stop := capture(t, w.Inet, upstream(0, 1), w.file("stale"))
	flow := startTraffic(t, r.end(), g.end())
	must(t, b.Unlease())
	gone := time.Now().Add(100 * time.Millisecond) // for what was on its way
	waitPath(t, r, g.Name, b.Interface, false)
	time.Sleep(without)
	leased := time.Now()
	must(t, b.Lease(other(old)))
	within(t, "path up after a new address", waitPath(t, r, g.Name, b.Interface, true), time.Second+busy)
	seenFrom(t, r, g, 1, b.Address.Addr().String()+":")
	time.Sleep(300 * time.Millisecond)
	flow.halt(t).complete(t, "a carrier without an address")
	stop()
	all, late, fresh := sources(t, file, wgPort, time.Time{}), sources(t, file, wgPort, gone), sources(t, file, wgPort, leased)
	t.Logf("datagrams to the gateway by source: %v, since the address was lost %v, since the new one %v", all, late, fresh)
	if all[old.Addr()] == 0 || fresh[b.Address.Addr()] == 0 {
		t.Errorf("nothing was captured from the old address or from the new one, so this shows nothing")
	}
	for from, n := range late {
		if from != b.Address.Addr() || n != fresh[from] {
			t.Errorf("%d datagrams from %v after %v was lost, %d of them after %v came", n, from, old, fresh[from], b.Address)
		}
	}
	for _, line := range udpSockets(t, r) {
		must(t, mentions(line, "%"))
	}
}

// A carrier falls silent for long and keeps its address, as in a garage. When it
// comes back it has another address, and is used again at once.
func TestSilentCarrierReturnsWithAnotherAddress(t *testing.T) {
	t.Parallel()
	silentReturn(t, 4*time.Second)
}

// silentReturn has the only carrier silent for that long.
func silentReturn(t *testing.T, silent time.Duration) {
	_, r, g := only(t, near20)
	c := r.lab.Carriers[0]
	flow := startTraffic(t, r.end(), g.end())
	must(t, c.Link.BlackHole(true))
	began := time.Now()
	within(t, "path down after its last sign of life", waitPath(t, r, g.Name, c.Interface, false), trust+busy)
	time.Sleep(silent - time.Since(began))
	must(t, c.Readdress())
	must(t, c.Link.BlackHole(false))
	within(t, "path up after its return", waitPath(t, r, g.Name, c.Interface, true), time.Second+busy)
	seenFrom(t, r, g, 0, c.Address.Addr().String()+":")
	flow.halt(t)
	sendBoth(t.Context(), r.end(), g.end(), steady(time.Second)).wait(t).complete(t, "after the return")
}

// The translator of a carrier gets another public address, and the robot no event
// of any kind: the gateway learns it from the next authenticated packet, while
// packets flow, and while none do.
func TestTranslatorGetsAnotherAddress(t *testing.T) {
	t.Parallel()
	natted := near20
	natted.NAT = lab.NAT{Kind: lab.PortRestricted}
	_, r, g := only(t, natted)
	c := r.lab.Carriers[0]
	at := func() string { return pathOf(t, status(t, g.Member), r.Name, slotName(0)).Endpoint }
	old := at()
	flow := startTraffic(t, r.end(), g.end())
	must(t, c.Renumber())
	waitMoved(t, r, g, old)
	within(t, "no traffic while the translator changes", flow.halt(t).longestGap(), resumes+busy)

	// The robot itself sends nothing but probes now.
	old = at()
	listening := send(t.Context(), g.end(), r.end(), steady(2*time.Second))
	time.Sleep(300 * time.Millisecond)
	must(t, c.Renumber())
	waitMoved(t, r, g, old)
	within(t, "nothing comes while the translator changes", listening.wait(t).LongestGap, resumes+busy)

	time.Sleep(2 * time.Second) // until the path is idle
	old = at()
	must(t, c.Renumber())
	within(t, "the new address learnt from an idle robot", waitMoved(t, r, g, old), idleInterval+busy)
	sendBoth(t.Context(), r.end(), g.end(), steady(time.Second)).wait(t).complete(t, "after the translator's changes")
	if n := deaths(t, r, g, 0); n > 0 {
		t.Errorf("the path was given up %d times", n)
	}
}

// Carriers get other IPv4 addresses and other IPv6 prefixes while DDS programs
// call each other: the calls go on, and DDS sees nothing at all, no participant
// and no endpoint anew.
func TestDDSSeesNoNewAddress(t *testing.T) {
	t.Parallel()
	undisturbed(t, ddsReaddressed)
}

func ddsReaddressed(t testing.TB) {
	w := build(t, options{Options: lab.Options{IPv6: true, Carriers: []lab.CarrierOptions{near20, near20}}})
	r, west, east := w.robots[0], w.gateways[0], w.gateways[1]
	reachBy(t, r, east, east.lab.Address6)
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	for _, m := range []int{r.Pid(), west.Pid(), east.Pid()} {
		urgent(t, m)
	}
	index := indexOf(t, r)
	clients := callBoth(t, w, r)
	time.Sleep(time.Second) // for the end of discovery
	onRobot := recordPLR0(t, w, r.lab.Node, "addresses")
	a, b := r.lab.Carriers[0], r.lab.Carriers[1]
	change := func(what string, fs ...func() error) {
		t.Helper()
		began := time.Now()
		for _, f := range fs {
			must(t, f())
		}
		changed := time.Now()
		for slot, c := range r.lab.Carriers {
			provenSince(t, r, west, c.Interface, changed)
			provenSince(t, r, east, c.Interface, changed)
			seenFrom(t, r, west, slot, c.Address.Addr().String()+":")
			seenFrom(t, r, east, slot, "["+c.Address6.Addr().String()+"]:")
		}
		for i, c := range clients {
			c.await(t, "west", changed)
			c.await(t, "east", changed)
			wait := longestWait(c.soFar(), began, time.Now())
			t.Logf("%s, %s: at most %v between two replies", what, vendors[i].name, wait.Round(time.Millisecond))
			if wait > quick {
				t.Errorf("%s, %s: no reply for %v", what, vendors[i].name, wait)
			}
		}
	}
	change("another IPv4 address of one carrier", a.Readdress)
	change("another IPv6 prefix of one carrier", a.Readdress6)
	change("everything of both carriers at once", a.Readdress, b.Readdress, a.Readdress6, b.Readdress6)
	rediscovered(t, "robot", onRobot(), 3*len(vendors))
	for i, c := range clients {
		s := c.end(t)
		t.Logf("%s: %+v", vendors[i].name, s)
		if s.Lost > 0 {
			t.Errorf("%s: %d of %d calls lost", vendors[i].name, s.Lost, s.Requests)
		}
	}
	if now := indexOf(t, r); now != index {
		t.Errorf("plr0 had the index %d and has %d", index, now)
	}
}
