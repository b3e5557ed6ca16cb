package hello

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/stun/v3"
	"pgregory.net/rapid"
)

// refusedFor drives a caller as the prober does on a path that gets no session:
// a handshake a second, the port answers. It returns what the caller sends.
func refusedFor(c *Caller, from time.Time, d time.Duration, each func([]byte, time.Time)) (sent []time.Duration) {
	for t := time.Duration(0); t < d; t += 10 * time.Millisecond {
		now := from.Add(t)
		if t%time.Second == 0 {
			c.Handshake(now)
			c.Reachable(now)
		}
		if msg, next := c.Poll(now); msg != nil {
			sent = append(sent, t)
			each(msg, now)
		} else if !next.IsZero() && !next.After(now) {
			panic("to be polled again at once, with nothing to send")
		}
	}
	return sent
}

func TestCallerAsksAfterTwoHandshakes(t *testing.T) {
	e := newEnd(t)
	for _, c := range []struct {
		name       string
		handshakes int
		reachable  bool
		want       bool
	}{
		{"one handshake", 1, true, false},
		{"two handshakes", 2, true, true},
		{"no answer from the port", 5, false, false},
		{"nothing tried", 0, true, false},
	} {
		caller := NewCaller(e.secret)
		for i := range c.handshakes {
			caller.Handshake(e.start.Add(time.Duration(i) * time.Second))
		}
		if c.reachable {
			caller.Reachable(e.start.Add(time.Second))
		}
		msg, next := caller.Poll(e.start.Add(time.Second))
		if msg != nil || next.IsZero() == c.want {
			t.Errorf("%s: sends %x at once, next at %v", c.name, msg, next)
		}
		msg, _ = caller.Poll(e.start.Add(time.Second + callPatience))
		if (msg != nil) != c.want {
			t.Errorf("%s: sends %x", c.name, msg)
		}
		if msg, _ = caller.Poll(e.start.Add(time.Minute)); c.want && msg != nil {
			t.Errorf("%s: asks though the port has not answered for a minute", c.name)
		}
	}
}

func TestCallerGrowsPatient(t *testing.T) {
	e := newEnd(t)
	c := NewCaller(e.secret)
	sent := refusedFor(c, e.start, time.Hour, func([]byte, time.Time) {})
	if len(sent) < 110 || len(sent) > 135 || sent[0] != time.Second+callPatience {
		t.Errorf("%d messages in an hour, the first at %v", len(sent), sent[0])
	}
	for i := 2; i < len(sent); i++ {
		d, before := sent[i]-sent[i-1], sent[i-1]-sent[i-2]
		if d < before || d > lastRetry+10*time.Millisecond {
			t.Fatalf("%v after %v", d, before)
		}
	}
	if caller := c; caller.Session(1, e.start.Add(time.Hour)) {
		t.Error("blames the clock though the gateway never called")
	}
	if msg, next := c.Poll(e.start.Add(time.Hour)); msg != nil || !next.Equal(e.start.Add(time.Hour+sessionAge)) {
		t.Errorf("with a session: %x, next %v", msg, next)
	}
}

func TestCallerRenewsAnOldSession(t *testing.T) {
	e := newEnd(t)
	c := NewCaller(e.secret)
	c.Session(1, e.start)
	c.Session(2, e.start.Add(sessionAge/2)) // WireGuard renewed it
	if msg, _ := c.Poll(e.start.Add(sessionAge)); msg != nil {
		t.Error("asks for a session that is young")
	}
	if msg, _ := c.Poll(e.start.Add(sessionAge/2 + sessionAge)); msg == nil {
		t.Error("does not ask for one that is old")
	}
	c.Session(0, e.start.Add(time.Hour))
	if msg, next := c.Poll(e.start.Add(time.Hour)); msg != nil || !next.IsZero() {
		t.Error("goes on for a session that was given up")
	}
}

func TestCallerHeedsNobodyElse(t *testing.T) {
	e := newEnd(t)
	id := TransactionID{2}
	word := func(code int, nonce string) []byte {
		return build(id, stun.BindingError, stun.ErrorCode(code), stun.NewNonce(nonce))
	}
	begin := func() (*Caller, time.Time) {
		c := NewCaller(e.secret)
		c.random = func(b []byte) { copy(b, id[:]) }
		c.Handshake(e.start)
		c.Handshake(e.start)
		c.Reachable(e.start)
		now := e.start.Add(callPatience)
		if msg, _ := c.Poll(now); msg == nil {
			t.Fatal("does not ask")
		}
		return c, now
	}
	c, now := begin()
	long := string(bytes.Repeat([]byte{'a'}, maxNonce+1))
	for name, msg := range map[string][]byte{
		"another transaction": build(TransactionID{9}, stun.BindingError, stun.CodeUnauthorized, stun.NewNonce("a")),
		"another error":       word(500, "a"),
		"no error code":       build(id, stun.BindingError, stun.NewNonce("a")),
		"no nonce":            build(id, stun.BindingError, stun.CodeUnauthorized),
		"an endless nonce":    word(401, long),
		"a request":           PlainRequest(id),
		"a success":           build(id, stun.BindingSuccess, mapped(home), integrity(e.secret.mac)),
		"nothing":             nil,
	} {
		if reply := c.Answer(msg, now); reply != nil || !c.Called(now).IsZero() {
			t.Errorf("%s: draws %x, called %v", name, reply, !c.Called(now).IsZero())
		}
	}
	for i := range 5 { // a forger who knows the transaction
		if reply := c.Answer(word(438, "abc"), now); (reply != nil) != (i < answersPerAttempt) {
			t.Errorf("forged answer %d draws %x", i, reply)
		}
	}
	for name, answer := range map[string][]byte{
		"unsigned":   build(id, stun.BindingSuccess, mapped(home)),
		"other key":  build(id, stun.BindingSuccess, mapped(home), integrity{}),
		"not a word": {1, 1},
	} {
		if c.Answer(answer, now); !c.Called(now).IsZero() {
			t.Errorf("a success that is %s counts", name)
		}
	}
	if c.Answer(build(id, stun.BindingSuccess, mapped(home), integrity(e.secret.mac)), now); c.Called(now).IsZero() {
		t.Error("a good success does not count")
	}
	if c.Session(1, now) {
		t.Error("blames the clock though the gateway did not")
	}

	c, now = begin()
	c.Answer(word(401, "abc"), now)
	if reply := c.Answer(word(401, "abc"), now); reply != nil {
		t.Error("insists at once where the gateway does not know it")
	}
	c.Session(1, now)
	if c.Answer(word(401, "abc"), now) != nil {
		t.Error("goes on though there is a session")
	}
}

// TestClocksDoNotMatter plays whole exchanges between nodes whose clocks say
// anything, over networks that lose messages, and holds that the gateway calls.
func TestClocksDoNotMatter(t *testing.T) {
	for _, c := range []struct {
		name           string
		robot, gateway time.Time
	}{
		{"both right", time.Unix(1<<31, 0), time.Unix(1<<31, 0)},
		{"robot in 1970", time.Unix(0, 0), time.Unix(1<<31, 0)},
		{"gateway in 1970", time.Unix(1<<31, 0), time.Unix(0, 0)},
		{"robot a day behind", time.Unix(1<<31-86400, 0), time.Unix(1<<31, 0)},
	} {
		for _, loss := range []int{0, 1, 2} { // every nth message of an exchange is lost
			e := newEnd(t)
			e.greeter = NewGreeter(e.table, c.gateway)
			caller := NewCaller(e.secret)
			calls, n := 0, 0
			carry := func(msg []byte, now time.Time) []byte {
				if n++; msg == nil || loss > 0 && n%(loss+2) == 0 {
					return nil
				}
				a := e.greeter.Answer(msg, home, c.gateway.Add(now.Sub(c.robot)))
				if a.Call {
					calls++
				}
				return a.Reply
			}
			refusedFor(caller, c.robot, 10*time.Second, func(msg []byte, now time.Time) {
				for msg != nil {
					answer := carry(msg, now)
					if n++; answer == nil || loss > 0 && n%(loss+2) == 0 {
						return
					}
					msg = caller.Answer(answer, now)
				}
			})
			if calls == 0 {
				t.Errorf("%s, loss %d: no call in 10 s", c.name, loss)
			}
		}
	}
}

// TestExchangeProperty: whatever is lost, repeated, delayed or forged, the gateway
// calls only for hellos that the carrier sent, at an address where it receives,
// no more than once a second, and it never sends more than it gets.
func TestExchangeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEnd(t)
		c := NewCaller(e.secret)
		now := e.start
		var toGateway, toRobot [][]byte
		sent := map[string]bool{}
		var lastCall time.Time
		send := func(msg []byte) {
			if msg != nil {
				toGateway = append(toGateway, msg)
				sent[string(msg)] = true
			}
		}
		for range rapid.IntRange(10, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "pause")))
			case 1:
				c.Handshake(now)
				c.Reachable(now)
			case 2:
				msg, _ := c.Poll(now)
				send(msg)
			case 3, 4:
				if len(toGateway) == 0 {
					break
				}
				msg := rapid.SampledFrom(toGateway).Draw(t, "message") // and keep it: a copy may come again
				from := rapid.SampledFrom([]netip.AddrPort{home, home, elsewhere}).Draw(t, "from")
				if rapid.IntRange(0, 4).Draw(t, "tamper") == 0 {
					msg = bytes.Clone(msg)
					msg[rapid.IntRange(0, len(msg)-1).Draw(t, "octet")] ^= 1
				}
				a := e.greeter.Answer(msg, from, now)
				if len(a.Reply) > len(msg) {
					t.Fatalf("%d octets answered to %d", len(a.Reply), len(msg))
				}
				if a.Call {
					if from != home || !sent[string(msg)] {
						t.Fatal("called for what the carrier did not send")
					}
					if !lastCall.IsZero() && now.Sub(lastCall) < callSpacing {
						t.Fatal("called twice in a second")
					}
					lastCall = now
				}
				if a.Reply != nil && from == home {
					toRobot = append(toRobot, a.Reply)
				}
			case 5:
				if len(toRobot) > 0 {
					send(c.Answer(rapid.SampledFrom(toRobot).Draw(t, "answer"), now))
				}
			case 6:
				if rapid.IntRange(0, 9).Draw(t, "session") == 0 {
					c.Session(now.UnixNano(), now)
				}
			}
		}
	})
}
