package hello

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/stun/v3"
	"pgregory.net/rapid"
)

// end is a gateway with one carrier that it knows, and that carrier.
type end struct {
	table   *Table
	greeter *Greeter
	public  Key // the carrier's
	secret  Secret
	start   time.Time
}

func newEnd(t tester) *end {
	t.Helper()
	carrier, gateway := goldenKeys()
	e := &end{public: publicOf(t, carrier), start: time.Now()}
	var err error
	if e.table, err = NewTable(gateway); err != nil {
		t.Fatal(err)
	}
	if e.secret, err = CarrierSecret(carrier, e.table.public); err != nil {
		t.Fatal(err)
	}
	e.table.Set([]Key{e.public})
	e.table.Work(1)
	e.greeter = NewGreeter(e.table, e.start)
	return e
}

// hello returns one with a nonce that was given to at.
func (e *end) hello(at netip.AddrPort, now time.Time) []byte {
	return e.signed(e.greeter.nonces.Give(at, now), e.secret.mac)
}

func (e *end) signed(nonce string, mac integrity) []byte {
	return build(TransactionID{5}, stun.BindingRequest, stun.NewUsername(e.secret.name), stun.NewNonce(nonce), mac)
}

var (
	home      = netip.MustParseAddrPort("192.0.2.7:51000")
	elsewhere = netip.MustParseAddrPort("192.0.2.8:51000")
)

// errorOf returns the code of an error answer, 0 if it is none.
func errorOf(t *testing.T, answer []byte) int {
	t.Helper()
	if answer == nil {
		return 0
	}
	m, err := parse(answer)
	if err != nil {
		t.Fatal(err)
	}
	var code stun.ErrorCodeAttribute
	if m.Type != stun.BindingError || code.GetFrom(m) != nil {
		return 0
	}
	if text(m, stun.AttrNonce) == "" {
		t.Error("an error without a fresh nonce")
	}
	return int(code.Code)
}

func TestGreeterJudgesHellos(t *testing.T) {
	for _, c := range []struct {
		name string
		from netip.AddrPort
		age  time.Duration
		make func(*end, []byte) []byte
		code int
		call bool
	}{
		{"good", home, 0, nil, 0, true},
		{"just fresh", home, nonceLife - time.Millisecond, nil, 0, true},
		{"old", home, nonceLife, nil, 438, false},
		{"from another address", elsewhere, 0, nil, 438, false},
		{"from another port", netip.AddrPortFrom(home.Addr(), 1), 0, nil, 438, false},
		{"mapped address", netip.AddrPortFrom(netip.AddrFrom16(home.Addr().As16()), home.Port()), 0, nil, 0, true},
		{"no nonce", home, 0, func(e *end, _ []byte) []byte {
			return build(TransactionID{5}, stun.BindingRequest, stun.NewUsername(e.secret.name), integrity(e.secret.mac), stun.NewSoftware(askPadding))
		}, 401, false},
		{"nonce of its own making", home, 0, func(e *end, _ []byte) []byte {
			return e.signed("AAAAAAAAAAAAAAAAAAAAAAAAAAAA", e.secret.mac)
		}, 438, false},
		{"nonce of an earlier run", home, 0, func(e *end, _ []byte) []byte {
			return e.signed(NewNonces(e.start).Give(home, e.start), e.secret.mac)
		}, 438, false},
		{"another key", home, 0, func(e *end, _ []byte) []byte {
			return e.signed(e.greeter.nonces.Give(home, e.start), integrity{1})
		}, 401, false},
		{"another name", home, 0, func(e *end, _ []byte) []byte {
			e.secret.name = "AAAAAAAAAAAAAAAAAAAAAA"
			return e.hello(home, e.start)
		}, 401, false},
		{"an indication", home, 0, func(_ *end, m []byte) []byte { return append([]byte{0, 0x11}, m[2:]...) }, 0, false},
		{"more behind it", home, 0, func(_ *end, m []byte) []byte { return append(bytes.Clone(m), 0) }, 0, false},
		{"cut short", home, 0, func(_ *end, m []byte) []byte { return m[:len(m)-1] }, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnd(t)
			msg := e.hello(home, e.start)
			if c.make != nil {
				msg = c.make(e, msg)
			}
			a := e.greeter.Answer(msg, c.from, e.start.Add(c.age))
			if code := errorOf(t, a.Reply); code != c.code || a.Call != c.call || a.Unknown {
				t.Errorf("error %d, call %v, unknown %v; want error %d, call %v", code, a.Call, a.Unknown, c.code, c.call)
			}
			if a.Call && a.Carrier != e.public {
				t.Error("calls somebody else")
			}
			if len(a.Reply) > len(msg) {
				t.Errorf("%d octets answered to %d", len(a.Reply), len(msg))
			}
		})
	}
}

func TestGreeterRefusesWhateverIsChanged(t *testing.T) {
	e := newEnd(t)
	good := e.hello(home, e.start)
	for i := range good {
		for bit := range 8 {
			msg := bytes.Clone(good)
			msg[i] ^= 1 << bit
			if a := e.greeter.Answer(msg, home, e.start); a.Call {
				t.Errorf("calls though bit %d of octet %d changed", bit, i)
			}
		}
	}
	if a := e.greeter.Answer(good, home, e.start); !a.Call {
		t.Error("does not call for the one that did not change")
	}
}

func TestGreeterCallsOncePerNonceAndSecond(t *testing.T) {
	e := newEnd(t)
	at := func(d time.Duration) time.Time { return e.start.Add(d) }
	first, second := e.hello(home, at(0)), e.hello(home, at(time.Millisecond))
	for i, step := range []struct {
		msg   []byte
		when  time.Duration
		call  bool
		reply bool
		code  int
	}{
		{first, 2 * time.Millisecond, true, true, 0},
		{first, 3 * time.Millisecond, false, true, 0}, // its answer was lost
		{second, 4 * time.Millisecond, false, false, 0},
		{second, callSpacing + 2*time.Millisecond, true, true, 0},
		{first, 2 * time.Second, false, true, 438},
		{second, 20 * time.Second, false, true, 0}, // a copy, much later
		{second, 31 * time.Second, false, true, 438},
	} {
		a := e.greeter.Answer(step.msg, home, at(step.when))
		if code := errorOf(t, a.Reply); a.Call != step.call || (a.Reply != nil) != step.reply || code != step.code {
			t.Errorf("step %d: call %v, reply %v, error %d", i, a.Call, a.Reply != nil, code)
		}
	}
}

func TestGreeterTellsWhetherTheClockIsToBlame(t *testing.T) {
	e := newEnd(t)
	for _, c := range []struct {
		since time.Duration // of the refused handshake, -1 for none
		want  bool
	}{{-1, false}, {0, true}, {29 * time.Second, true}, {30 * time.Second, false}} {
		e.start = e.start.Add(time.Minute)
		if c.since >= 0 {
			e.table.Refused(e.public, e.start.Add(-c.since))
		}
		a := e.greeter.Answer(e.hello(home, e.start), home, e.start)
		m, err := parse(a.Reply)
		if err != nil {
			t.Fatal(err)
		}
		if a.ClockBehind != c.want || m.Contains(attrTimeRefused) != c.want {
			t.Errorf("refused %v ago: %v, in the answer %v", c.since, a.ClockBehind, m.Contains(attrTimeRefused))
		}
	}
	e.table.Refused(Key{1}, e.start) // a stranger: nothing happens
}

func TestGreeterLimitsWhatItAnswers(t *testing.T) {
	e := newEnd(t)
	ask := build(TransactionID{1}, stun.BindingRequest, stun.NewUsername("x"), stun.NewSoftware(askPadding), stun.NewSoftware(askPadding))
	unknown := func() []byte { return e.signed(e.greeter.nonces.Give(home, e.start), integrity{}) }
	count := func(n int, msg []byte, now time.Time) (answers int) {
		for range n {
			if e.greeter.Answer(msg, home, now).Reply != nil {
				answers++
			}
		}
		return answers
	}
	for second := range 3 {
		now := e.start.Add(time.Duration(second) * time.Second)
		if n := count(1000, PlainRequest(TransactionID{1}), now); n != plainPerSecond {
			t.Errorf("%d plain requests answered in second %d", n, second)
		}
		if n := count(3000, ask, now.Add(time.Millisecond)); n != noncesPerSecond {
			t.Errorf("%d nonces given in second %d", n, second)
		}
	}
	e.start = e.start.Add(time.Minute)
	for range hellosPerSecond {
		e.greeter.Answer(unknown(), home, e.start)
	}
	if a := e.greeter.Answer(e.hello(home, e.start), home, e.start); a.Call {
		t.Error("more hellos are verified than allowed")
	}
	if a := e.greeter.Answer(e.hello(home, e.start), home, e.start.Add(time.Second)); !a.Call {
		t.Error("no hello is verified a second later")
	}
}

func TestPlainRequestIsAnswered(t *testing.T) {
	e := newEnd(t)
	for _, from := range []string{"192.0.2.7:51000", "[2001:db8::7]:51000", "[::ffff:192.0.2.7]:51000"} {
		at := netip.MustParseAddrPort(from)
		id := TransactionID{1, 2, 3}
		msg := PlainRequest(id)
		a := e.greeter.Answer(msg, at, e.start)
		if got, ok := Succeeded(a.Reply); !ok || got != id || len(a.Reply) > len(msg) {
			t.Errorf("%s: answered with %x", from, a.Reply)
			continue
		}
		m, _ := parse(a.Reply)
		var got stun.XORMappedAddress
		if err := got.GetFrom(m); err != nil || fmt.Sprintf("%v %d", got.IP, got.Port) != fmt.Sprintf("%v %d", at.Addr().Unmap(), at.Port()) {
			t.Errorf("%s: told to be %v (%v)", from, got, err)
		}
	}
	if a := e.greeter.Answer(build(TransactionID{}, stun.BindingRequest), home, e.start); a.Reply != nil {
		t.Error("answers with more than it got")
	}
	if _, ok := Succeeded(PlainRequest(TransactionID{})); ok {
		t.Error("takes a request for an answer")
	}
}

// TestNoncesAgainstANaiveTwin holds the nonces against a list of what was given.
func TestNoncesAgainstANaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type gift struct {
			to netip.AddrPort
			at time.Time
		}
		start := time.Now()
		now := start
		n := NewNonces(start)
		given := map[string]gift{}
		var texts []string
		port := rapid.Uint16Range(1, 3)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause")))
			who := netip.AddrPortFrom(home.Addr(), port.Draw(t, "port"))
			if rapid.Bool().Draw(t, "give") || len(texts) == 0 {
				text := n.Give(who, now)
				given[text] = gift{who, now}
				texts = append(texts, text)
				continue
			}
			text := rapid.SampledFrom(texts).Draw(t, "nonce")
			g := given[text]
			age := now.Sub(g.at)
			_, ok := n.Take(text, who, now)
			if good := g.to == who && age < nonceLife; ok && !good || !ok && good && age < nonceLife-time.Millisecond {
				t.Fatalf("%v old, given to %v, taken from %v: %v", age, g.to, who, ok)
			}
		}
	})
}
