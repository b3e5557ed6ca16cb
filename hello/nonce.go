package hello

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
	"time"
)

// A nonce is, in base64url, the time since the gateway's start in milliseconds
// (6 octets) and a MAC over it and the address it was given to (15 octets).
const (
	nonceTime   = 6
	nonceMAC    = 15
	nonceOctets = nonceTime + nonceMAC
	nonceLen    = nonceOctets * 4 / 3 // as text, in characters; no padding needed
)

// Nonces gives nonces out and takes them back without remembering any. Its key
// is made at the start, so that those of an earlier run are refused. It may be
// used by several goroutines.
type Nonces struct {
	key   [sha256.Size]byte
	start time.Time
}

// NewNonces returns one with a random key.
func NewNonces(now time.Time) *Nonces {
	n := &Nonces{start: now}
	_, _ = rand.Read(n.key[:]) // never fails: it ends the program instead
	return n
}

// Give returns a nonce for whoever receives at that address.
func (n *Nonces) Give(to netip.AddrPort, now time.Time) string {
	return n.seal(to, uint64(now.Sub(n.start).Milliseconds()))
}

func (n *Nonces) seal(to netip.AddrPort, at uint64) string {
	b := make([]byte, nonceTime, nonceOctets+sha256.Size)
	for i := range b {
		b[i] = byte(at >> (8 * (nonceTime - 1 - i)))
	}
	mac := hmac.New(sha256.New, n.key[:])
	mac.Write(b)
	addr := to.Addr().Unmap().As16()
	mac.Write(addr[:])
	mac.Write([]byte{byte(to.Port() >> 8), byte(to.Port())})
	return base64.RawURLEncoding.EncodeToString(mac.Sum(b)[:nonceOctets])
}

// Take reports whether nonce was given to that address in the last 30 s, and
// when: milliseconds since the start.
func (n *Nonces) Take(nonce string, from netip.AddrPort, now time.Time) (at uint64, ok bool) {
	var b [nonceOctets]byte
	if len(nonce) != nonceLen {
		return 0, false
	}
	if _, err := base64.RawURLEncoding.Strict().Decode(b[:], []byte(nonce)); err != nil {
		return 0, false
	}
	for _, o := range b[:nonceTime] {
		at = at<<8 | uint64(o)
	}
	if !hmac.Equal([]byte(n.seal(from, at)), []byte(nonce)) {
		return 0, false
	}
	age := now.Sub(n.start) - time.Duration(at)*time.Millisecond
	return at, age < nonceLife
}
