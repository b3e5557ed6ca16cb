package resolve

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Carrier is what the book must know of one carrier.
type Carrier struct {
	// Slot is the carrier's number, which it keeps for life.
	Slot int
	// Interface and Index are its present name and number in the kernel.
	Interface string
	Index     int
	// IPv4 and IPv6 say that it has an address of that family to send from and a
	// route that leads beyond the link.
	IPv4, IPv6 bool
	// Addresses are its own, with the prefix length of their network.
	Addresses []netip.Prefix
	// DNS are its servers by configuration; if there are any, no others are asked.
	DNS []netip.Addr
	// Metered says that its data costs: it is asked through more seldom.
	Metered bool
}

func (c Carrier) equal(o Carrier) bool {
	return c.Slot == o.Slot && c.Interface == o.Interface && c.Index == o.Index &&
		c.IPv4 == o.IPv4 && c.IPv6 == o.IPv6 && c.Metered == o.Metered &&
		slices.Equal(c.Addresses, o.Addresses) && slices.Equal(c.DNS, o.DNS)
}

// Gateway is a gateway's name and where it listens, in the user's order.
type Gateway struct {
	Name      string
	Endpoints []Endpoint
}

// Book is what is known of all gateways' addresses, carrier by carrier, and when
// to ask for what again. It must be used by one goroutine at a time. Times passed
// in must have a monotonic reading and must not go back.
//
// A name is asked for at once when carrier or gateway are new, after a change of
// the link, and when a path through it fails; then at growing distances until the
// path answers; and every ten minutes while all is well. What was found stays in
// use until another answer comes, and the address by which a gateway answered
// last stays behind newer ones, since DNS may lie. A gateway whose endpoints are
// addresses causes no question, except where
//
//   - a carrier without IPv4 needs a translator (NAT64) to reach it, or
//   - every gateway fails on a carrier: then it may be a captive portal, or its
//     IPv4 may be a translation whose daemon died (464XLAT). A portal is asked
//     again every twenty seconds, since nothing else tells that it lets users
//     through; then everything is asked anew.
type Book struct {
	carriers map[int]*carrier
	gateways []Gateway
	// asks are the last questions of each slot, oldest first. They outlive the
	// carrier: a modem that comes and goes keeps its bound.
	asks   map[int][]time.Time
	lastID uint64
}

// carrier is what is known of one.
type carrier struct {
	Carrier
	entries map[key]*entry
	paths   map[string]*path // by gateway
	asked   uint64
	servers Servers // asked last
}

// key is what can be asked.
type key struct {
	name   string
	family Family
}

// portal says that the answer tells whether the network is a captive portal.
func (k key) portal() bool { return k == key{ipv4only, IPv4} }

// entry is what is known of a key.
type entry struct {
	found   []netip.Addr // by the last answer
	known   bool         // there was an answer, if only that there is nothing
	trouble error        // why the last question had none
	since   time.Time    // of the last answer, or of the first question

	asking uint64    // the question under way, 0 for none
	asked  time.Time // when it was sent last
	anew   bool      // the link changed since
	tries  int       // questions in a row that did not help
	due    time.Time // when to ask again while what is known does not help
}

// path is what is known of a carrier and a gateway.
type path struct {
	failing bool
	up      time.Time      // since when it answers, zero for never
	proven  netip.AddrPort // where it answered last, of what DNS said
	told    []netip.AddrPort
}

// Question is one to be asked now through a carrier.
type Question struct {
	ID      uint64
	Carrier Carrier
	Name    string
	Family  Family
	// Foreign are networks of other carriers: DNS servers in them are not this
	// carrier's.
	Foreign []netip.Prefix
}

// Answer is what became of a question.
type Answer struct {
	// Found is the answer, if Err is nil.
	Found []netip.Addr
	// Err is ErrNotFound if there are no such addresses; anything else is no
	// answer.
	Err error
	// Asked are the servers.
	Asked Servers
}

// News is where a gateway can be tried through a carrier from now on.
type News struct {
	Slot       int
	Gateway    string
	Candidates []netip.AddrPort
}

// NewBook returns an empty book.
func NewBook() *Book { return &Book{carriers: map[int]*carrier{}, asks: map[int][]time.Time{}} }

// SetCarriers says which carriers there are. One that is not as before counts as
// changed; see Changed.
func (b *Book) SetCarriers(all []Carrier, now time.Time) {
	there := map[int]bool{}
	for _, c := range all {
		there[c.Slot] = true
		known, ok := b.carriers[c.Slot]
		if !ok {
			known = &carrier{Carrier: c, entries: map[key]*entry{}, paths: map[string]*path{}}
			b.carriers[c.Slot] = known
		}
		c.Addresses, c.DNS = slices.Clone(c.Addresses), slices.Clone(c.DNS)
		if !known.equal(c) {
			known.Carrier = c
			b.Changed(c.Slot, now)
		}
	}
	maps.DeleteFunc(b.carriers, func(slot int, _ *carrier) bool { return !there[slot] })
}

// SetGateways says which gateways there are. One whose endpoints are others than
// before is a new one.
func (b *Book) SetGateways(all []Gateway) {
	names, same := map[string]bool{ipv4only: true}, map[string]bool{}
	for _, g := range all {
		same[g.Name] = slices.ContainsFunc(b.gateways, func(o Gateway) bool {
			return o.Name == g.Name && slices.Equal(o.Endpoints, g.Endpoints)
		})
		for _, e := range g.Endpoints {
			names[e.Name] = true
		}
	}
	b.gateways = slices.Clone(all)
	for i := range b.gateways {
		b.gateways[i].Endpoints = slices.Clone(all[i].Endpoints)
	}
	for _, c := range b.carriers {
		maps.DeleteFunc(c.paths, func(gateway string, _ *path) bool { return !same[gateway] })
		maps.DeleteFunc(c.entries, func(k key, _ *entry) bool { return !names[k.name] })
	}
}

// Changed says that something happened to a carrier's link: another network,
// another address, the signal back. Everything is asked anew, and questions under
// way are forgotten, since their answers would go to the old address.
func (b *Book) Changed(slot int, now time.Time) {
	c := b.carriers[slot]
	if c == nil {
		return
	}
	if e := c.entries[key{ipv4only, IPv4}]; e != nil {
		e.found, e.known = nil, false // a verdict about another network
	}
	c.anew(now, key{})
}

// anew has everything but one key asked again, and forgets what is under way.
func (c *carrier) anew(now time.Time, but key) {
	for k, e := range c.entries {
		if k != but {
			e.asking, e.tries, e.anew = 0, 0, true
			e.due = later(now, e.asked.Add(spacing))
		}
	}
}

// Failing says that the path to a gateway does not answer, although it should
// have by now: one that was up, or one that was tried for some seconds. Repeated
// calls do nothing.
func (b *Book) Failing(slot int, gateway string, now time.Time) {
	c := b.carriers[slot]
	if c == nil || !b.has(gateway) || c.path(gateway).failing {
		return
	}
	p := c.path(gateway)
	p.failing = true
	news := p.up.IsZero() || now.Sub(p.up) >= calm
	p.up = time.Time{}
	for _, w := range b.wanted(c) {
		e := c.entries[w.key]
		if e == nil || !w.pressed {
			continue
		}
		if news {
			e.tries = 0
		}
		distance := spacing
		if e.tries > 0 {
			distance = backoff(e.tries - 1)
		}
		if due := later(now, e.asked.Add(distance)); due.Before(e.due) {
			e.due = due
		}
	}
}

// Answers says that a gateway answers at one of the candidates. Repeated calls do
// nothing.
func (b *Book) Answers(slot int, gateway string, from netip.AddrPort, now time.Time) {
	c := b.carriers[slot]
	if c == nil || !b.has(gateway) {
		return
	}
	p := c.path(gateway)
	p.failing = false
	if p.up.IsZero() {
		p.up = now
	}
	if slices.Contains(p.told, from) {
		p.proven = from
	}
}

func (b *Book) has(gateway string) bool {
	return slices.ContainsFunc(b.gateways, func(g Gateway) bool { return g.Name == gateway })
}

func (c *carrier) path(gateway string) *path {
	p := c.paths[gateway]
	if p == nil {
		p = &path{}
		c.paths[gateway] = p
	}
	return p
}

func (c *carrier) entry(k key) *entry {
	e := c.entries[k]
	if e == nil {
		e = &entry{}
		c.entries[k] = e
	}
	return e
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
