package tunnel

import (
	"net/netip"
	"slices"
	"time"
)

// candidates are the addresses at which a carrier may find a gateway, and which of
// them its path uses. As in RFC 8305 all are asked at once, and the first one in
// order gets a head start. A path that is up stays where it is, unless it is bad
// there for long: some networks treat one port or one family worse than another.
// The caller holds node.mu.
type candidates struct {
	configured []netip.AddrPort // what they were at first
	all        []candidate      // in order of preference
	used       netip.AddrPort
	// routes are the addresses that the carrier has a route to; the map is not changed.
	routes map[netip.Addr]bool
	// searching is true while the path is not up; the others are of this search.
	searching bool
	asked     time.Time // when the first requests went out, zero before
	tries     int       // handshakes at the one in use

	badSince time.Time // the path is up and bad, zero if it is not
	// moved is when a path that was up moved here from shunned, which is not
	// listened to any more: what is on its way from there would draw it back.
	moved   time.Time
	shunned netip.AddrPort
}

type candidate struct {
	at       netip.AddrPort
	asked    bool      // in this search
	answered bool      // and so it did
	bad      time.Time // when a path was last moved away from it, or had to come back
}

// set replaces the candidates. The one in use goes on being used while the path
// is up, even if it is not among them.
func (c *candidates) set(all []netip.AddrPort, routes map[netip.Addr]bool) {
	old := c.all
	c.all = nil
	for _, at := range all[:min(len(all), maxCandidates)] {
		n := candidate{at: at}
		if i := slices.IndexFunc(old, func(o candidate) bool { return o.at == at }); i >= 0 {
			n = old[i]
		}
		c.all = append(c.all, n)
	}
	c.route(routes)
}

// heir returns those of a new path to the same gateway: the addresses are the same,
// and nothing is known of them.
func (c *candidates) heir() candidates {
	h := candidates{configured: c.configured, routes: c.routes, searching: true}
	for _, x := range c.all {
		h.all = append(h.all, candidate{at: x.at})
	}
	return h
}

// route takes which addresses the carrier has a route to.
func (c *candidates) route(routes map[netip.Addr]bool) { c.routes = routes }

// reached says whether the carrier has a route to a candidate.
func (c *candidates) reached(x candidate) bool { return c.routes[x.at.Addr()] }

// usable says whether the carrier has a route to one of them, or to the one in use
// of a path that is up, which need not be among them any more.
func (c *candidates) usable() bool {
	return !c.searching && c.routes[c.used.Addr()] || slices.ContainsFunc(c.all, c.reached)
}

// up says whether the path is up, which begins and ends searches.
func (c *candidates) up(up bool) {
	if up == !c.searching {
		return
	}
	c.searching = !up
	c.asked, c.tries = time.Time{}, 0
	c.badSince, c.moved, c.shunned = time.Time{}, time.Time{}, netip.AddrPort{}
	for i := range c.all {
		c.all[i].asked, c.all[i].answered = false, false
	}
}

// ask returns the candidates to send a request to: all of them if a round of
// requests is due, else those that came after the first one of this search, such as
// the other family of a name.
func (c *candidates) ask(round bool, now time.Time) (to []netip.AddrPort) {
	if c.asked.IsZero() && !round {
		return nil
	}
	if c.asked.IsZero() {
		c.asked = now
	}
	for i := range c.all {
		if x := &c.all[i]; c.reached(*x) && (round || !x.asked) {
			x.asked = true
			to = append(to, x.at)
		}
	}
	return to
}

// answer notes that from answered a request.
func (c *candidates) answer(from netip.AddrPort) {
	for i := range c.all {
		if c.all[i].at == from {
			c.all[i].answered = true
		}
	}
}

// choose decides which candidate a search uses. turned is true when that is
// another than before and another one was in use, so that a handshake with it is
// due. It wants to be asked again at next, unless that is zero.
func (c *candidates) choose(now time.Time) (turned bool, next time.Time) {
	if !c.searching || !c.usable() {
		return false, time.Time{}
	}
	i := slices.IndexFunc(c.all, func(x candidate) bool { return x.at == c.used })
	if i < 0 || !c.reached(c.all[i]) {
		return c.turn(slices.IndexFunc(c.all, c.reached)), time.Time{}
	}
	other := c.after(i, func(x candidate) bool { return c.reached(x) && x.answered })
	switch ends := c.asked.Add(headStart); {
	case c.tries >= candidateTries && other >= 0:
		return c.turn(other), time.Time{}
	case c.tries >= candidateTries:
		return c.turn(c.after(i, c.reached)), time.Time{}
	case c.all[i].answered || other < 0 || c.asked.IsZero():
		return false, time.Time{}
	case now.Before(ends):
		return false, ends
	}
	return c.turn(slices.IndexFunc(c.all, func(x candidate) bool { return c.reached(x) && x.answered })), time.Time{}
}

// better moves a path that is up to another candidate when it has been bad for
// long, and back when no proof came there; proof is when the last one did. to is
// valid if it is to send there from now on. It wants to be asked again at next,
// unless that is zero.
func (c *candidates) better(bad bool, proof, now time.Time) (to netip.AddrPort, next time.Time) {
	if !c.moved.IsZero() {
		ends := c.moved.Add(moveTrial)
		switch {
		case proof.After(c.moved.Add(moveSettles)):
			c.moved = time.Time{}
		case now.Before(ends):
			return to, ends
		default:
			return c.move(c.shunned, now), time.Time{}
		}
	}
	switch {
	case !bad:
		c.badSince = time.Time{}
		return to, next
	case c.badSince.IsZero():
		c.badSince = now
	}
	if due := c.badSince.Add(badFor); now.Before(due) {
		return to, due
	}
	i := slices.IndexFunc(c.all, func(x candidate) bool { return x.at == c.used })
	j := c.after(max(i, 0), func(x candidate) bool {
		return c.reached(x) && x.at != c.used && (x.bad.IsZero() || now.Sub(x.bad) >= badRemembered)
	})
	if i < 0 || j < 0 {
		return to, next
	}
	to = c.move(c.all[j].at, now)
	return to, now.Add(moveTrial)
}

// move leaves the candidate in use for another one. Moving back is for good.
func (c *candidates) move(to netip.AddrPort, now time.Time) netip.AddrPort {
	for i := range c.all {
		if c.all[i].at == c.used {
			c.all[i].bad = now
		}
	}
	back := to == c.shunned
	c.used, c.shunned = to, c.used
	c.badSince, c.moved = time.Time{}, now
	if back {
		c.moved = time.Time{}
	}
	return to
}

// listen returns the addresses to listen to.
func (c *candidates) listen() (all []netip.AddrPort) {
	all = append(all, c.used)
	for _, x := range c.all {
		if x.at != c.shunned {
			all = append(all, x.at)
		}
	}
	return all
}

// has reports whether at is a candidate.
func (c *candidates) has(at netip.AddrPort) bool {
	return slices.ContainsFunc(c.all, func(x candidate) bool { return x.at == at })
}

// use makes at the one in use, since the gateway is known to be there.
func (c *candidates) use(at netip.AddrPort) {
	if c.used != at {
		c.used = at
		c.tries = 0
	}
}

// greet returns where a hello goes: to the candidate in use, unless it does not
// answer and another one does.
func (c *candidates) greet() netip.AddrPort {
	to := c.used
	for _, x := range c.all {
		switch {
		case !c.reached(x) || !x.answered:
		case x.at == c.used:
			return x.at
		case to == c.used:
			to = x.at
		}
	}
	return to
}

// after returns the first candidate behind i, in a circle, for which ok is true,
// -1 if there is none other than i.
func (c *candidates) after(i int, ok func(candidate) bool) int {
	for n := 1; n < len(c.all); n++ {
		if j := (i + n) % len(c.all); ok(c.all[j]) {
			return j
		}
	}
	return -1
}

func (c *candidates) turn(i int) bool {
	c.tries = 0
	if i < 0 {
		return false
	}
	had := c.used.IsValid()
	c.used = c.all[i].at
	return had
}
