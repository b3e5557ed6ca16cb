package hello

import (
	"crypto/rand"
	"time"

	"github.com/pion/stun/v3"
)

// Caller is the robot's end on one path: it decides when the gateway is to be
// asked for a handshake, and asks. It must be used by one goroutine at a time; the
// caller locks. Times passed in must have a monotonic reading and must not go
// back. What Poll and Answer return is sent from the carrier's socket to the
// gateway's endpoint, and what comes from there goes to Answer.
//
//	+---------+   2 handshakes unanswered while the gateway's   +---------+
//	|  quiet  |   port answers, or a session 140 s old          | asking  | request without nonce,
//	|         | ----------------------------------------------> |         | 1 s apart, growing to 30 s
//	+---------+                                                 +---------+
//	     ^  ^                                                      |   ^
//	     |  |  a new    +---------+      error 401 with a nonce    |   | nonce 30 s old, or
//	     |  |  session  | greeted | <------------------------------+   | refused as unknown
//	     |  +---------- |         | -----------------------------------+
//	     |              +---------+  hello, repeated as above          |
//	     |                   | a success that is verified              |
//	     |                   v                                         |
//	     |  a new       +---------+                                    |
//	     +------------- | called  | -----------------------------------+
//	        session     +---------+  no session after 2 s
type Caller struct {
	secret Secret
	random func([]byte) // for transactions

	// Evidence.
	handshakes  int // since the last session
	lastTry     time.Time
	reachableAt time.Time
	stamp       int64     // of the session that there is, 0 for none
	formedAt    time.Time // when it was first seen, zero if there is none

	// The attempt at hand.
	asked    time.Time     // when Poll last returned a message
	wait     time.Duration // from then to the next one, 0 while quiet
	drawn    int           // messages that answers drew since then
	id       TransactionID // of the last message
	nonce    string        // empty while asking
	noncedAt time.Time
	calledAt time.Time // when the gateway said that it would call, zero before

	clock bool // it said that it refused a handshake for its time
}

// NewCaller returns a quiet one.
func NewCaller(s Secret) *Caller {
	return &Caller{secret: s, random: func(b []byte) { _, _ = rand.Read(b) }}
}

// Handshake says that the robot itself started a handshake, since the path has no
// proof.
func (c *Caller) Handshake(now time.Time) {
	c.handshakes++
	c.lastTry = now
}

// Reachable says that the gateway's port answered a plain binding request.
func (c *Caller) Reachable(now time.Time) { c.reachableAt = now }

// Session tells which session the device has to that gateway: 0 for none, or else
// a number that differs from one to the next. Call it before Poll. It returns true
// when the session is new and the gateway called because it had refused this
// robot's handshakes for their time: the robot's clock is behind what it was.
func (c *Caller) Session(stamp int64, now time.Time) (clockBehind bool) {
	if stamp == c.stamp {
		return false
	}
	c.stamp, c.formedAt = stamp, time.Time{}
	if stamp == 0 {
		return false
	}
	clockBehind = c.clock
	c.formedAt = now
	c.handshakes, c.wait, c.clock = 0, 0, false
	c.nonce, c.calledAt = "", time.Time{}
	return clockBehind
}

// Called returns until when the gateway, which has said that it starts the
// handshake, should be left to do so; zero if it has not. Two handshakes that meet
// come to nothing.
func (c *Caller) Called(now time.Time) (until time.Time) {
	if c.calledAt.IsZero() || now.Sub(c.calledAt) >= holdFor {
		return time.Time{}
	}
	return c.calledAt.Add(holdFor)
}

// due returns when a first attempt may begin, false if there is no reason for one.
func (c *Caller) due(now time.Time) (at time.Time, ok bool) {
	if c.handshakes >= callAfter && !c.reachableAt.IsZero() && now.Sub(c.reachableAt) < reachableFor {
		return c.lastTry.Add(callPatience), true
	}
	return c.formedAt.Add(sessionAge), !c.formedAt.IsZero()
}

// Poll returns a message to send now, nil if there is none, and when to call
// again at the latest, zero if only an event can change that.
func (c *Caller) Poll(now time.Time) (msg []byte, next time.Time) {
	at, ok := c.due(now)
	if !ok {
		return nil, time.Time{}
	}
	if c.wait > 0 {
		at = c.asked.Add(c.wait)
	}
	if !c.calledAt.IsZero() && at.Before(c.calledAt.Add(holdFor)) {
		at = c.calledAt.Add(holdFor)
	}
	if now.Before(at) {
		return nil, at
	}
	c.asked, c.drawn, c.calledAt = now, 0, time.Time{}
	c.wait = min(max(c.wait+c.wait/2, firstRetry), lastRetry)
	return c.message(now), now.Add(c.wait)
}

// message returns a hello if there is a nonce for it, else the request for one.
// The same hello keeps its transaction.
func (c *Caller) message(now time.Time) []byte {
	if c.nonce != "" && now.Sub(c.noncedAt) < nonceLife {
		return build(c.id, stun.BindingRequest, stun.NewUsername(c.secret.name), stun.NewNonce(c.nonce), integrity(c.secret.mac))
	}
	c.nonce = ""
	c.random(c.id[:])
	return build(c.id, stun.BindingRequest, stun.NewUsername(c.secret.name), stun.NewSoftware(askPadding))
}

// Answer takes a STUN message that came from the gateway's endpoint, and returns
// what to send at once, nil if nothing.
func (c *Caller) Answer(msg []byte, now time.Time) (reply []byte) {
	m, err := parse(msg)
	if err != nil || c.wait == 0 || m.TransactionID != c.id || !c.calledAt.IsZero() {
		return nil
	}
	switch m.Type {
	case stun.BindingSuccess:
		if c.nonce == "" || !integrity(c.secret.mac).verify(m) {
			return nil
		}
		c.nonce = "" // it serves once
		c.calledAt = now
		c.clock = c.clock || m.Contains(attrTimeRefused)
	case stun.BindingError:
		return c.challenged(m, now)
	}
	return nil
}

// challenged takes an error answer. It is not authenticated, so all that it can do
// is to spoil one attempt.
func (c *Caller) challenged(m *stun.Message, now time.Time) []byte {
	var code stun.ErrorCodeAttribute
	nonce := text(m, stun.AttrNonce)
	switch {
	case code.GetFrom(m) != nil || code.Code != stun.CodeUnauthorized && code.Code != stun.CodeStaleNonce:
		return nil
	case code.Code == stun.CodeUnauthorized && c.nonce != "":
		c.nonce = "" // it does not know this carrier: ask anew, later
		return nil
	case nonce == "" || len(nonce) > maxNonce || c.drawn >= answersPerAttempt:
		return nil
	}
	c.drawn++
	c.nonce, c.noncedAt = nonce, now
	c.random(c.id[:])
	return c.message(now)
}
