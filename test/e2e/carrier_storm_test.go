package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/test/lab"
)

// Half a minute in which anything happens to any of three carriers, while one is
// always well: no request is lost, and nothing is left over.
//
// A carrier is well when nothing is being done to it, its links are as they
// should be, and since the end of the last event on it both ends have proof: the
// robot and both gateways say of its paths that they are up and carry. It may be
// disturbed only while another one is well, and another minute of its own does not
// matter: what left by it before has had the time to arrive.
func TestCarrierStorm(t *testing.T) {
	undisturbed(t, func(t testing.TB) { carrierStorm(t, 30*time.Second) })
}

// Times of a storm.
const (
	// shortEvent and longEvent are the longest events: most are shorter than the
	// trust in a path, some much longer.
	shortEvent, longEvent = 800 * time.Millisecond, 6 * time.Second
	// longShare is the share of long ones.
	longShare = 0.2
	// longestRest is the longest pause of a carrier that is well.
	longestRest = 600 * time.Millisecond
	// inFlight is more than a packet and its answer are under way.
	inFlight = 150 * time.Millisecond
	// comesBack bounds the time until a mended carrier is well: what a robot that
	// had given it up needs, with one handshake lost, on a busy machine.
	comesBack = 10 * time.Second
	// stormMemory is the most that a daemon may have resident, in bytes.
	stormMemory = 150 << 20
	// stormDeadline is within which a request must be answered, stormRate how many
	// there are in a second.
	stormDeadline, stormRate = 200 * time.Millisecond, 50.0
)

// stormCarriers is the part of robot.toml that names the carriers.
func stormCarriers(r *robot) string {
	var text strings.Builder
	for _, c := range r.lab.Carriers {
		fmt.Fprintf(&text, "[[carrier]]\ninterface = %q\n", c.Interface)
	}
	return text.String()
}

// carrierPart is what stands in the place of stormCarriers after a deployment.
var carrierPart = regexp.MustCompile(`(?s)\[\[carrier\]\].*?\[\[gateway\]\]`)

// storm is a storm under way.
type storm struct {
	t    testing.TB
	w    *world
	r    *robot
	from time.Time

	mu    sync.Mutex
	well  []bool // by slot
	lines []string
	times []time.Duration // until mended carriers were well
	errs  []error
}

// carrierStorm makes a world, a storm in it, and compares what there was before
// and what there is afterwards.
func carrierStorm(t testing.TB, lasts time.Duration) {
	n := seed(t)
	w, never := stormWorld(t, n)
	r := w.robots[0]
	small := request(t, w, r, "--rate", "50", "--count", "0", "--deadline-ms", "200", "--lost-after-ms", "2000")
	large := request(t, w, r, "--rate", "50", "--count", "0", "--deadline-ms", "200", "--lost-after-ms", "2000", "--size", "1150", "--reply-size", "1150")
	for _, c := range []*calls{small, large} {
		c.await(t, "west", time.Now())
		c.await(t, "east", time.Now())
	}
	before := holdingsOf(t, w)
	m := listenToMetronome()
	s := &storm{t: t, w: w, r: r, from: time.Now(), well: []bool{true, true, true}}
	s.run(lasts, n)
	pauses := m.stop()
	t.Logf("the storm:\n%s", strings.Join(s.lines, "\n"))
	s.judge("small requests", small, pauses)
	s.judge("large requests", large, pauses)
	t.Logf("%d events; mended carriers were well after %v in the median, %v at worst; the machine stood still %d times",
		len(s.times), quantile(s.times, 0.5), quantile(s.times, 1), len(pauses))

	for _, m := range w.members() {
		if memory := memoryOf(t, m); memory > stormMemory {
			t.Errorf("%s has %d MB resident", m.Name, memory>>20)
		}
	}
	eventually(t, "nothing left over from the storm", func() error { return before.differ(holdingsOf(t, w)) })
	must(t, w.fleet.Stop())
	unchanged(t, "after the robot's stop", never, withoutOverlay(ownNet(t, r.lab.Node)))
	for _, m := range w.members() {
		out, err := m.CLI(t.Context(), "cleanup", "--config", m.Config())
		if err != nil || strings.Contains(out, "ip ") || strings.Contains(out, "sysctl ") { // the sockets of tunnels are all nodes' of the machine
			t.Errorf("fogplr cleanup on %s had something to do: %s, %v", m.Name, out, err)
		}
	}
}

// stormWorld makes a world with all paths up, and also returns the robot's network
// as it was before its daemon.
func stormWorld(t testing.TB, seed uint64) (w *world, never []string) {
	var carriers []lab.CarrierOptions
	for _, delay := range []time.Duration{10 * time.Millisecond, 15 * time.Millisecond, 25 * time.Millisecond} {
		carriers = append(carriers, lab.CarrierOptions{Up: lab.Params{Delay: delay}, Down: lab.Params{Delay: delay}})
	}
	w = build(t, options{Options: lab.Options{Carriers: carriers, Seed: seed}})
	r := w.robots[0]
	text := carrierPart.ReplaceAllLiteralString(read(t, r.Config()), stormCarriers(r)+"[[gateway]]")
	must(t, os.WriteFile(r.Config(), []byte(text), 0o644))
	killSwitch(t, r.lab.Node) // behind it every carrier needs a rule of fogplr's
	never = withoutOverlay(ownNet(t, r.lab.Node))
	w.startAll(t)
	must(t, r.WaitUp(t.Context()))
	for _, m := range w.members() {
		urgent(t, m.Pid())
	}
	answer(t, w)
	return w, never
}

// run rages for that long, and gives the carriers the addresses that they had.
func (s *storm) run(lasts time.Duration, seed uint64) {
	ctx, cancel := context.WithTimeout(s.t.Context(), lasts)
	defer cancel()
	var addresses []netip.Prefix
	var raging sync.WaitGroup
	for slot, c := range s.r.lab.Carriers {
		addresses = append(addresses, c.Address)
		luck := rand.New(rand.NewPCG(seed, uint64(slot)))
		raging.Go(func() { s.rage(ctx, slot, luck) })
	}
	raging.Wait()
	for _, err := range s.errs {
		s.t.Error(err)
	}
	for i, c := range s.r.lab.Carriers {
		must(s.t, errors.Join(c.Unlease(), c.Lease(addresses[i])))
	}
	must(s.t, s.r.WaitUp(s.t.Context()))
}

// rage has one event after the other happen to a carrier until ctx ends.
func (s *storm) rage(ctx context.Context, slot int, luck *rand.Rand) {
	var deck []int // so that everything happens about equally often
	for ctx.Err() == nil {
		rest(ctx, time.Duration(luck.Int64N(int64(longestRest))))
		if len(deck) == 0 {
			deck = luck.Perm(len(stormEvents))
		}
		e := stormEvents[deck[0]]
		deck = deck[1:]
		lasts := time.Duration(luck.Int64N(int64(shortEvent)))
		if luck.Float64() < longShare {
			lasts = time.Duration(luck.Int64N(int64(longEvent)))
		}
		if !s.permit(ctx, slot) {
			return
		}
		if err := s.suffer(slot, e, lasts); err != nil {
			s.mu.Lock()
			s.errs = append(s.errs, fmt.Errorf("%s, %s: %w", s.r.lab.Carriers[slot].Interface, e.name, err))
			s.mu.Unlock()
			return
		}
	}
}

// permit waits until the carrier may be disturbed because another one is well.
func (s *storm) permit(ctx context.Context, slot int) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		for other, well := range s.well {
			if other != slot && well {
				s.well[slot] = false
				s.mu.Unlock()
				return true
			}
		}
		s.mu.Unlock()
		rest(ctx, 10*time.Millisecond)
	}
	return false
}

// suffer has an event happen to a carrier, and returns when it is well again.
func (s *storm) suffer(slot int, e stormEvent, lasts time.Duration) error {
	c := s.r.lab.Carriers[slot]
	s.note(slot, "%s, for %v", e.name, lasts.Round(time.Millisecond))
	mend, err := e.hit(s.w, c, slot)
	if err != nil {
		return err
	}
	if mend != nil {
		time.Sleep(lasts)
		if err := mend(); err != nil {
			return fmt.Errorf("at its end: %w", err)
		}
	}
	mended := time.Now()
	for err := s.ill(slot, mended); err != nil; err = s.ill(slot, mended) {
		if time.Since(mended) > comesBack {
			return fmt.Errorf("not well %v after its end: %w", comesBack, err)
		}
		time.Sleep(30 * time.Millisecond)
	}
	took := time.Since(mended)
	s.note(slot, "well %v after its end", took.Round(time.Millisecond))
	time.Sleep(inFlight)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, took)
	s.well[slot] = true
	return nil
}

// ill says what a carrier lacks to be well, since it was mended.
func (s *storm) ill(slot int, mended time.Time) error {
	name := s.r.lab.Carriers[slot].Interface
	asked := time.Now()
	mine, err := s.r.Status(context.Background())
	if err != nil {
		return err
	}
	for _, g := range s.w.gateways {
		theirs, err := g.Status(context.Background())
		if err != nil {
			return err
		}
		// A proof may have been under way when the carrier was mended.
		p, ok := findPath(mine, g.Name, name)
		if proof := time.Duration(p.LastProof * float64(time.Second)); !ok || !p.Up || !p.Carries || proof < 0 || asked.Add(-proof).Before(mended.Add(inFlight)) {
			return fmt.Errorf("the robot's path: %+v", p)
		}
		back, ok := findPath(theirs, s.r.Name, slotName(slot))
		if heard := time.Duration(back.LastProof * float64(time.Second)); !ok || !back.Up || !back.Carries || asked.Add(-heard).Before(mended.Add(inFlight)) {
			return fmt.Errorf("the path of %s: %+v", g.Name, back)
		}
	}
	return nil
}

func (s *storm) note(slot int, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%8.3f carrier %d: %s", time.Since(s.from).Seconds(), slot, fmt.Sprintf(format, args...)))
}

// judge ends calls, none of which may be lost or late while the machine ran.
func (s *storm) judge(what string, c *calls, pauses []pause) {
	s.t.Helper()
	sum := c.end(s.t)
	s.t.Logf("%s: %+v", what, sum)
	excused := int64(0)
	for _, e := range c.soFar() {
		late := e.First() && e.LatencyMS > float64(stormDeadline.Milliseconds())
		sent := time.Unix(0, int64(e.T*1e9))
		switch {
		case !e.Lost && !late:
		case stoodStill(pauses, sent):
			excused++
		default:
			s.t.Errorf("%s: number %d, sent %.3f s after the beginning, lost=%v, answered after %.1f ms",
				what, e.Seq, sent.Sub(s.from).Seconds(), e.Lost, e.LatencyMS)
		}
	}
	if excused > sum.Requests/50 || sum.Requests < int64(time.Since(s.from).Seconds()*stormRate*9/10) {
		s.t.Errorf("%s: %d of %d lost or late while the machine stood still: it is too busy to tell", what, excused, sum.Requests)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// stormEvent is something that happens to a carrier; hit returns how it ends, nil
// if by itself.
type stormEvent struct {
	name string
	hit  func(w *world, c *lab.Carrier, slot int) (mend func() error, err error)
}

var stormEvents = []stormEvent{
	{"down and up", func(_ *world, c *lab.Carrier, _ int) (func() error, error) { return c.Up, c.Down() }},
	{"cable pulled", func(_ *world, c *lab.Carrier, _ int) (func() error, error) {
		return func() error { return c.Link.Plug(true) }, c.Link.Plug(false)
	}},
	{"renamed and back", func(_ *world, c *lab.Carrier, slot int) (func() error, error) {
		old := c.Interface
		return func() error { return c.Rename(old) }, c.Rename(fmt.Sprintf("usb%d", slot))
	}},
	{"another address", func(_ *world, c *lab.Carrier, _ int) (func() error, error) { return nil, c.Readdress() }},
	{"no address for a while", func(_ *world, c *lab.Carrier, _ int) (func() error, error) {
		return func() error { return c.Lease(c.Address) }, c.Unlease()
	}},
	{"removed and made again", func(w *world, c *lab.Carrier, _ int) (func() error, error) {
		return func() error { return w.Attach(c, c.Interface) }, w.Detach(c)
	}},
	{"black hole", func(_ *world, c *lab.Carrier, _ int) (func() error, error) {
		return func() error { return c.Link.BlackHole(false) }, c.Link.BlackHole(true)
	}},
	{"black hole on the way up", func(_ *world, c *lab.Carrier, _ int) (func() error, error) {
		return func() error { return c.Link.BlackHoleAB(false) }, c.Link.BlackHoleAB(true)
	}},
	{"black hole on the way down", func(_ *world, c *lab.Carrier, _ int) (func() error, error) {
		return func() error { return c.Link.BlackHoleBA(false) }, c.Link.BlackHoleBA(true)
	}},
	{"MTU of 1280", func(_ *world, c *lab.Carrier, _ int) (func() error, error) {
		return func() error { return c.SetMTU(1500) }, c.SetMTU(1280)
	}},
	{"rule deleted", func(w *world, _ *lab.Carrier, slot int) (func() error, error) {
		return nil, deleteRules(w.robots[0].lab.Node, slot)
	}},
	{"routes deleted", func(w *world, _ *lab.Carrier, slot int) (func() error, error) {
		return nil, deleteRoutes(w.robots[0].lab.Node, slot)
	}},
}

// deleteRules deletes fogplr's rules for a carrier. That there are none is an
// error only of those who should have restored them.
func deleteRules(n *lab.Node, slot int) error {
	rules, err := n.Netlink().RuleList(netlink.FAMILY_V4)
	for i := range rules {
		if rules[i].Table == routing.TableBase+slot {
			err = errors.Join(err, n.Netlink().RuleDel(&rules[i]))
		}
	}
	return err
}

// deleteRoutes empties fogplr's table of a carrier.
func deleteRoutes(n *lab.Node, slot int) error {
	routes, err := n.Netlink().RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: routing.TableBase + slot}, netlink.RT_FILTER_TABLE)
	for i := range slices.Backward(routes) {
		err = errors.Join(err, n.Netlink().RouteDel(&routes[i]))
	}
	return err
}
