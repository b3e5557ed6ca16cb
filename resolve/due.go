package resolve

import (
	"errors"
	"net/netip"
	"slices"
	"time"
)

// want is a key that is of use to a carrier now. It is pressed if what is known
// of it does not lead to a gateway.
type want struct {
	key
	pressed bool
}

// wanted returns what is of use to a carrier, the most useful first.
func (b *Book) wanted(c *carrier) []want {
	var all []want
	add := func(name string, f Family, pressed bool) {
		for i := range all {
			if all[i].key == (key{name, f}) {
				all[i].pressed = all[i].pressed || pressed
				return
			}
		}
		all = append(all, want{key{name, f}, pressed})
	}
	anyPressed := false
	for _, g := range b.gateways {
		failing := c.path(g.Name).failing
		pressed := failing || len(b.candidates(c, g)) == 0
		anyPressed = anyPressed || pressed
		for _, e := range g.Endpoints {
			if e.Name == "" {
				continue
			}
			if c.IPv6 {
				add(e.Name, IPv6, pressed)
			}
			if aaaa := c.entries[key{e.Name, IPv6}]; c.IPv4 || c.IPv6 && (failing || aaaa != nil && aaaa.known && len(aaaa.found) == 0) {
				add(e.Name, IPv4, pressed)
			}
		}
	}
	if b.translates(c) {
		add(ipv4only, IPv6, anyPressed)
	}
	if b.dead(c) && (c.IPv4 || c.IPv6) {
		add(ipv4only, IPv4, true)
	}
	return all
}

// dead reports whether every gateway fails on a carrier.
func (b *Book) dead(c *carrier) bool {
	return len(b.gateways) > 0 && !slices.ContainsFunc(b.gateways, func(g Gateway) bool { return !c.path(g.Name).failing })
}

// translates reports whether a carrier needs a translator: it reaches a gateway by
// no address of its own family, or those that it reaches do not answer.
func (b *Book) translates(c *carrier) bool {
	if !c.IPv6 {
		return false
	}
	if c.IPv4 {
		return b.dead(c)
	}
	return slices.ContainsFunc(b.gateways, func(g Gateway) bool {
		v4, v6 := false, false
		for _, ap := range c.known(g) {
			v4, v6 = v4 || ap.Addr().Is4(), v6 || ap.Addr().Is6()
		}
		return v4 && (!v6 || c.path(g.Name).failing)
	})
}

// known returns a gateway's addresses as Candidates takes them.
func (c *carrier) known(g Gateway) []netip.AddrPort {
	var all []netip.AddrPort
	for _, e := range g.Endpoints {
		if e.Name == "" {
			all = append(all, netip.AddrPortFrom(e.Addr, e.Port))
			continue
		}
		for _, f := range []Family{IPv6, IPv4} {
			if known := c.entries[key{e.Name, f}]; known != nil {
				for _, a := range known.found {
					all = append(all, netip.AddrPortFrom(a, e.Port))
				}
			}
		}
	}
	return all
}

// nat64 returns the prefixes that are of use now.
func (b *Book) nat64(c *carrier) []netip.Prefix {
	if e := c.entries[key{ipv4only, IPv6}]; e != nil && b.translates(c) {
		return Prefixes(e.found)
	}
	return nil
}

// candidates returns where a gateway is tried through a carrier. The address that
// answered last is among them, at the end if DNS does not name it any more.
func (b *Book) candidates(c *carrier, g Gateway) []netip.AddrPort {
	all := b.meant(c, g)
	p := c.path(g.Name).proven
	if p.IsValid() && !slices.Contains(all, p) && (p.Addr().Is4() && c.IPv4 || p.Addr().Is6() && c.IPv6) {
		all = append(all[:min(len(all), maxCandidates-1)], p)
	}
	return all
}

// meant is candidates without an address that only has answered before.
func (b *Book) meant(c *carrier, g Gateway) []netip.AddrPort {
	return Candidates(c.known(g), Reach{IPv4: c.IPv4, IPv6: c.IPv6, NAT64: b.nat64(c)})
}

// backoff is the distance of the question after tries+1 that did not help.
func backoff(tries int) time.Duration {
	d := firstRetry
	for ; tries > 0 && d < lastRetry; tries-- {
		d *= 2
	}
	return min(d, lastRetry)
}

// dueAt returns when to ask for w, which is not under way.
func (c *carrier) dueAt(w want) time.Time {
	e := c.entries[w.key]
	switch {
	case e == nil:
		return time.Time{}
	case w.pressed || e.anew || !e.known || e.trouble != nil:
		return e.due
	case c.Metered:
		return e.since.Add(meteredRefresh)
	}
	return e.since.Add(refresh)
}

// room returns when the carrier may ask again: at once, or when the oldest of the
// questions that fill its minute is a minute old.
func (b *Book) room(c *carrier) time.Time {
	limit := perMinute
	if c.Metered {
		limit = meteredPerMinute
	}
	asks := b.asks[c.Slot]
	if len(asks) < limit {
		return time.Time{}
	}
	return asks[len(asks)-limit].Add(time.Minute)
}

func (c *carrier) inFlight() (n int) {
	for _, e := range c.entries {
		if e.asking != 0 {
			n++
		}
	}
	return n
}

// Due returns the questions to ask now, and counts them as asked. Each must be
// answered with Record, unless Waits says that nobody waits for it any more.
func (b *Book) Due(now time.Time) []Question {
	var all []Question
	for _, slot := range b.slots() {
		c := b.carriers[slot]
		flying := c.inFlight()
		for _, w := range b.wanted(c) {
			e := c.entry(w.key)
			if e.asking != 0 || c.dueAt(w).After(now) || flying >= maxInFlight || b.room(c).After(now) {
				continue
			}
			if !w.pressed && e.trouble == nil {
				e.tries = 0 // all is well
			}
			b.lastID++
			e.asking, e.asked, e.anew = b.lastID, now, false
			if e.since.IsZero() {
				e.since = now
			}
			flying++
			c.asked++
			asks := append(b.asks[slot], now)
			b.asks[slot] = asks[max(len(asks)-perMinute, 0):]
			all = append(all, Question{ID: b.lastID, Carrier: c.Carrier, Name: w.name, Family: w.family, Foreign: b.foreign(c)})
		}
	}
	return all
}

// Next returns when Due or News has something next, unless something happens
// before. It is false if nothing will be due by itself.
func (b *Book) Next() (at time.Time, ok bool) {
	for _, c := range b.carriers {
		if c.inFlight() >= maxInFlight {
			continue
		}
		for _, w := range b.wanted(c) {
			if e := c.entries[w.key]; e != nil && e.asking != 0 {
				continue
			}
			due := c.dueAt(w)
			if due = later(due, b.room(c)); !ok || due.Before(at) {
				at, ok = due, true
			}
		}
	}
	for _, c := range b.carriers {
		for _, g := range b.gateways {
			if held := b.held(c, g); !held.IsZero() && (!ok || held.Before(at)) {
				at, ok = held, true
			}
		}
	}
	return at, ok
}

// held is until when a gateway's first addresses are not told, since those that
// would come before them have been asked for, too. It is zero if nothing is held.
func (b *Book) held(c *carrier, g Gateway) (until time.Time) {
	if len(c.path(g.Name).told) > 0 || len(b.candidates(c, g)) == 0 {
		return until
	}
	for _, e := range g.Endpoints {
		if aaaa := c.entries[key{e.Name, IPv6}]; aaaa != nil && aaaa.asking != 0 && !aaaa.known {
			until = later(until, aaaa.asked.Add(resolutionDelay))
		}
	}
	return until
}

// Waits reports whether a question's answer is still of use.
func (b *Book) Waits(q Question) bool {
	c := b.carriers[q.Carrier.Slot]
	if c == nil {
		return false
	}
	e := c.entries[key{q.Name, q.Family}]
	return e != nil && e.asking == q.ID
}

// Record notes what became of a question of Due. Nothing happens if the book does
// not wait for it.
func (b *Book) Record(q Question, a Answer, now time.Time) {
	if !b.Waits(q) {
		return
	}
	c := b.carriers[q.Carrier.Slot]
	k := key{q.Name, q.Family}
	e := c.entries[k]
	e.asking, e.trouble = 0, nil
	c.servers = a.Asked
	switch {
	case a.Err == nil, errors.Is(a.Err, ErrNotFound):
		released := k.portal() && Captive(e.found) && !Captive(a.Found)
		e.found, e.known, e.since = slices.Clone(a.Found), true, now
		if released {
			c.anew(now, k)
		}
	default:
		e.trouble = a.Err
	}
	pressed := slices.ContainsFunc(b.wanted(c), func(w want) bool { return w.name == q.Name && w.family == q.Family && w.pressed })
	if e.trouble != nil || pressed {
		d := backoff(e.tries)
		if k.portal() && Captive(e.found) && !c.Metered {
			d = min(d, captiveRetry)
		}
		e.due = now.Add(d)
		e.tries++
	}
}

// News returns what changed since the last call: every gateway on every carrier
// whose candidates are others than before, also if there are none any more. Of a
// carrier that can send nothing at all there is no news.
func (b *Book) News(now time.Time) []News {
	var all []News
	for _, slot := range b.slots() {
		c := b.carriers[slot]
		if !c.IPv4 && !c.IPv6 {
			continue
		}
		for _, g := range b.gateways {
			p := c.path(g.Name)
			if fresh := b.candidates(c, g); !slices.Equal(fresh, p.told) && !b.held(c, g).After(now) {
				p.told = fresh
				all = append(all, News{Slot: slot, Gateway: g.Name, Candidates: slices.Clone(fresh)})
			}
		}
	}
	return all
}

// foreign returns the networks of the other carriers that are not this one's too.
func (b *Book) foreign(c *carrier) []netip.Prefix {
	var all []netip.Prefix
	for _, slot := range b.slots() {
		if slot == c.Slot {
			continue
		}
		for _, p := range b.carriers[slot].Addresses {
			if !slices.ContainsFunc(c.Addresses, p.Overlaps) {
				all = append(all, p.Masked())
			}
		}
	}
	return all
}

func (b *Book) slots() []int {
	var all []int
	for slot := range b.carriers {
		all = append(all, slot)
	}
	slices.Sort(all)
	return all
}
