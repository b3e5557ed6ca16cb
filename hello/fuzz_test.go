package hello

import (
	"bytes"
	"testing"
	"time"
)

// FuzzGreeter feeds a gateway whatever comes by its port.
func FuzzGreeter(f *testing.F) {
	e := newEnd(f)
	f.Add(PlainRequest(TransactionID{1}))
	f.Add(unhexed(goldenAsk))
	f.Add(unhexed(goldenHello))
	f.Add(e.signed("AAAAAAAAAAAAAAAAAAAAAAAAAAAA", e.secret.mac))
	f.Fuzz(func(t *testing.T, msg []byte) {
		before := bytes.Clone(msg)
		e.greeter.plain, e.greeter.gives, e.greeter.hellos = limit{}, limit{}, limit{}
		a := e.greeter.Answer(msg, home, e.start)
		if a.Call {
			t.Error("called by somebody who had no nonce")
		}
		if len(a.Reply) > len(msg) {
			t.Errorf("%d octets answered to %d", len(a.Reply), len(msg))
		}
		if !bytes.Equal(msg, before) {
			t.Error("changes the message")
		}
	})
}

// FuzzCaller feeds a robot whatever comes from the gateway's address, to the
// request for a nonce and to a hello.
func FuzzCaller(f *testing.F) {
	e := newEnd(f)
	f.Add(unhexed(goldenError))
	f.Add(unhexed(goldenAnswer))
	f.Add(unhexed(goldenHello))
	f.Fuzz(func(t *testing.T, msg []byte) {
		for _, nonce := range []string{"", "abc"} {
			c := NewCaller(e.secret)
			c.wait, c.nonce, c.noncedAt = time.Second, nonce, e.start
			if len(msg) >= headerLen {
				copy(c.id[:], msg[8:])
			}
			if reply := c.Answer(msg, e.start); reply != nil {
				if m, err := parse(reply); err != nil || !integrity(e.secret.mac).verify(m) {
					t.Errorf("replies %x", reply)
				}
			}
			if m, err := parse(msg); !c.Called(e.start).IsZero() && (err != nil || !integrity(e.secret.mac).verify(m)) {
				t.Error("takes a success that it cannot verify")
			}
			Succeeded(msg)
		}
	})
}

// FuzzNonce feeds whatever a request may have as its nonce.
func FuzzNonce(f *testing.F) {
	start := time.Now()
	n := NewNonces(start)
	n.key = Key{7}
	f.Add("AAAFXjumMFmbSYEFrFYXcxQkeBHl")
	f.Add("")
	f.Add("!!!!!!!!!!!!!!!!!!!!!!!!!!!!")
	f.Fuzz(func(t *testing.T, nonce string) {
		if at, ok := n.Take(nonce, home, start); ok && n.seal(home, at) != nonce {
			t.Errorf("takes %q", nonce)
		}
	})
}
