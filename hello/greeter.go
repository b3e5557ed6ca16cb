package hello

import (
	"net/netip"
	"sync"
	"time"

	"github.com/pion/stun/v3"
)

// Greeter is the gateway's end: it says what to answer to STUN messages and whom
// to call. It may be used by several goroutines.
type Greeter struct {
	table  *Table
	nonces *Nonces

	mu                   sync.Mutex
	plain, gives, hellos limit
}

// NewGreeter returns one that knows the carriers of t.
func NewGreeter(t *Table, now time.Time) *Greeter {
	return &Greeter{table: t, nonces: NewNonces(now)}
}

// Answer is what becomes of one message.
type Answer struct {
	// Reply goes back to where the message came from, unless it is nil. It is
	// never longer than the message.
	Reply []byte
	// Call: start a handshake with Carrier at the address that the message came
	// from. It is verified that the carrier sent it and receives there.
	Call    bool
	Carrier Key
	// ClockBehind tells why: Table.Refused was called for the carrier lately.
	ClockBehind bool
	// Unknown: call Table.Work until nothing is left, since this may have been a
	// hello of a carrier whose secret is not computed yet. It will be repeated.
	Unknown bool
}

// Answer takes one message that came from that address. It keeps nothing of msg.
func (g *Greeter) Answer(msg []byte, from netip.AddrPort, now time.Time) (a Answer) {
	req, err := parse(msg)
	if err != nil || req.Type != stun.BindingRequest {
		return Answer{}
	}
	if name := text(req, stun.AttrUsername); name != "" {
		a = g.hello(req, name, from, now)
	} else if g.allow(&g.plain, plainPerSecond, now) {
		a.Reply = build(req.TransactionID, stun.BindingSuccess, mapped(from))
	}
	if len(a.Reply) > len(msg) {
		a.Reply = nil
	}
	return a
}

// hello takes a request with a USERNAME.
func (g *Greeter) hello(req *stun.Message, name string, from netip.AddrPort, now time.Time) Answer {
	nonce := text(req, stun.AttrNonce)
	if nonce == "" {
		return g.refuse(req, stun.CodeUnauthorized, from, now)
	}
	at, ok := g.nonces.Take(nonce, from, now)
	switch {
	case !ok:
		return g.refuse(req, stun.CodeStaleNonce, from, now)
	case !g.allow(&g.hellos, hellosPerSecond, now):
		return Answer{}
	}
	carrier, secret, found, complete := g.table.find(name)
	switch {
	case !found && !complete:
		return Answer{Unknown: true}
	case !found || !integrity(secret.mac).verify(req):
		return g.refuse(req, stun.CodeUnauthorized, from, now)
	}
	verdict, clock := g.table.accept(carrier, at, now)
	switch verdict {
	case outdated:
		return g.refuse(req, stun.CodeStaleNonce, from, now)
	case tooSoon:
		return Answer{}
	}
	attributes := []stun.Setter{mapped(from)}
	if clock {
		attributes = append(attributes, timeRefused{})
	}
	return Answer{
		Reply: build(req.TransactionID, stun.BindingSuccess, append(attributes, integrity(secret.mac))...),
		Call:  verdict == fresh, Carrier: carrier, ClockBehind: clock,
	}
}

// refuse answers with an error and a fresh nonce (RFC 8489 section 9.2.4). It is
// the same for a wrong name as for a wrong MAC.
func (g *Greeter) refuse(req *stun.Message, code stun.ErrorCode, from netip.AddrPort, now time.Time) (a Answer) {
	if g.allow(&g.gives, noncesPerSecond, now) {
		a.Reply = build(req.TransactionID, stun.BindingError, code, stun.NewNonce(g.nonces.Give(from, now)))
	}
	return a
}

func (g *Greeter) allow(l *limit, n int, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return l.allow(n, now)
}

// limit allows n events in any one second, counted from its first.
type limit struct {
	since time.Time
	used  int
}

func (l *limit) allow(n int, now time.Time) bool {
	if now.Sub(l.since) >= time.Second {
		l.since, l.used = now, 0
	}
	l.used++
	return l.used <= n
}
