package hello

import (
	"crypto/ecdh"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Table finds a carrier by its pseudonym. A secret costs an X25519, some 50 us, so
// that those of 32,768 carriers would hold a start up; and most gateways never
// get a hello. So they are computed by Work, which its owner calls when a hello
// came that nobody is known for. It may be used by several goroutines.
type Table struct {
	private *ecdh.PrivateKey
	public  Key

	mu     sync.Mutex
	all    map[Key]*entry // by the carrier's public key
	byName map[string]*entry
	todo   []*entry // without a secret yet
	taken  int      // from todo by a Work that has not ended
}

// entry is one carrier. All but carrier is guarded by Table.mu.
type entry struct {
	carrier Key
	secret  Secret
	gone    bool
	// The last hello that was verified: when its nonce was given, in milliseconds
	// since the gateway's start, and when it came.
	nonce  uint64
	called time.Time
	// refused is when WireGuard last refused its handshake for its time stamp.
	refused time.Time
}

// NewTable returns an empty table for the gateway with that private key.
func NewTable(gateway Key) (*Table, error) {
	private, err := ecdh.X25519().NewPrivateKey(gateway[:])
	if err != nil {
		return nil, fmt.Errorf("gateway key: %w", err)
	}
	return &Table{
		private: private, public: Key(private.PublicKey().Bytes()),
		all: make(map[Key]*entry), byName: make(map[string]*entry),
	}, nil
}

// Set says which carriers there are, by their public keys. What is known of those
// that stay is kept.
func (t *Table) Set(carriers []Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stay := make(map[Key]bool, len(carriers))
	for _, k := range carriers {
		stay[k] = true
		if t.all[k] == nil {
			e := &entry{carrier: k}
			t.all[k] = e
			t.todo = append(t.todo, e)
		}
	}
	for k, e := range t.all {
		if !stay[k] {
			e.gone = true
			delete(t.all, k)
			delete(t.byName, e.secret.name)
		}
	}
	t.todo = slices.DeleteFunc(t.todo, func(e *entry) bool { return e.gone })
}

// Work computes up to n secrets and returns how many are left to compute.
func (t *Table) Work(n int) (left int) {
	t.mu.Lock()
	n = min(n, len(t.todo))
	now := t.todo[:n:n]
	t.todo = t.todo[n:]
	t.taken += n
	left = len(t.todo)
	t.mu.Unlock()
	for _, e := range now {
		s, err := derive(t.private, e.carrier, e.carrier, t.public)
		t.mu.Lock()
		t.taken--
		if err == nil && !e.gone { // WireGuard, too, refuses a key of low order
			e.secret = s
			t.byName[s.name] = e
		}
		t.mu.Unlock()
	}
	return left
}

// find returns the carrier's key and secret. complete tells whether one that is
// not found is not known.
func (t *Table) find(name string) (carrier Key, s Secret, found, complete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byName[name]
	if e == nil {
		return carrier, s, false, len(t.todo)+t.taken == 0
	}
	return e.carrier, e.secret, true, true
}

// Refused says that WireGuard refused a handshake of that carrier because its
// time stamp was not later than an earlier one.
func (t *Table) Refused(carrier Key, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.all[carrier]; e != nil {
		e.refused = now
	}
}

// accept notes a verified hello and says what becomes of it, and whether the
// carrier's clock is why it came.
func (t *Table) accept(carrier Key, nonce uint64, now time.Time) (a acceptance, clock bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.all[carrier]
	if e == nil { // it has just gone
		return tooSoon, false
	}
	clock = !e.refused.IsZero() && now.Sub(e.refused) < clockFor
	switch {
	case e.called.IsZero():
	case nonce < e.nonce:
		return outdated, clock
	case nonce == e.nonce:
		return repeated, clock
	case now.Sub(e.called) < callSpacing:
		return tooSoon, clock
	}
	e.nonce, e.called = nonce, now
	return fresh, clock
}

type acceptance int

const (
	fresh    acceptance = iota // the carrier is called
	repeated                   // the same hello once more: its answer was lost, or it is a copy
	outdated                   // a later one came before
	tooSoon                    // it may be repeated in a while
)
