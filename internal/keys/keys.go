package keys

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// carrierInfo opens the HKDF info string of carrier keys; the slot number
// follows as one byte. It never changes: gateways hold the public halves.
const carrierInfo = "fogplr carrier key v1"

// redacted is what a private key prints as.
const redacted = "(private key, not shown)"

// Private is a Curve25519 private key. It does not print: use Base64 where the
// key itself is wanted. (An unexported struct field is the exception, since fmt
// calls no methods there: never print a struct that has one.)
type Private [Len]byte

// Public is a Curve25519 public key.
type Public [Len]byte

// Errors of ParsePrivate and ParsePublic. None of them, nor what wraps them,
// repeats what was read.
var (
	ErrEncoding = errors.New("not a base64 text")
	ErrLength   = errors.New("not 32 bytes long")
	ErrZero     = errors.New("all zero")
)

// Generate returns a new private key, clamped as RFC 7748 section 5 says.
func Generate() Private {
	var k Private
	_, _ = rand.Read(k[:]) // never fails: it ends the program instead
	k.clamp()
	return k
}

// ParsePrivate reads a private key from base64; white space around it is
// ignored. Errors wrap ErrEncoding, ErrLength or ErrZero.
func ParsePrivate(s string) (Private, error) {
	b, err := parse(s)
	return Private(b), err
}

// ParsePublic reads a public key from base64; white space around it is ignored.
// Errors wrap ErrEncoding, ErrLength or ErrZero.
func ParsePublic(s string) (Public, error) {
	b, err := parse(s)
	return Public(b), err
}

func parse(s string) (k [Len]byte, err error) {
	b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(s))
	if err != nil {
		return k, ErrEncoding
	}
	if len(b) != Len {
		return k, fmt.Errorf("%w but %d", ErrLength, len(b))
	}
	copy(k[:], b)
	if k == [Len]byte{} {
		return k, ErrZero
	}
	return k, nil
}

// PublicKey returns the public half of k.
func (k Private) PublicKey() Public {
	p, err := ecdh.X25519().NewPrivateKey(k[:])
	if err != nil {
		panic("keys: " + err.Error()) // only the length can be wrong
	}
	return Public(p.PublicKey().Bytes())
}

// CarrierKey derives the private key of carrier slot (0 to Slots-1) from a
// robot's node key: HKDF-SHA256 (RFC 5869) without salt, info carrierInfo and
// the slot, clamped.
func CarrierKey(node Private, slot uint8) Private {
	b, err := hkdf.Key(sha256.New, node[:], nil, carrierInfo+string([]byte{slot}), Len)
	if err != nil {
		panic("keys: " + err.Error()) // only the length can be wrong
	}
	k := Private(b)
	k.clamp()
	return k
}

// CarrierPort returns the UDP port that the carrier with that key asks for. It
// is always the same, so that a restart changes nothing for NATs and gateways.
func CarrierPort(k Public) uint16 {
	return firstPort + (uint16(k[0])<<8|uint16(k[1]))%(lastPort-firstPort+1)
}

// CarrierPublicKeys returns the public keys of all carrier slots of a robot,
// index = slot: what a gateway's carrier_keys holds.
func CarrierPublicKeys(node Private) [Slots]Public {
	var out [Slots]Public
	for slot := range out {
		out[slot] = CarrierKey(node, uint8(slot)).PublicKey()
	}
	return out
}

func (k *Private) clamp() {
	k[0] &= 248
	k[31] = k[31]&127 | 64
}

// Base64 returns the key itself, as it stands in a key file.
func (k Private) Base64() string { return base64.StdEncoding.EncodeToString(k[:]) }

// String does not return the key.
func (k Private) String() string { return redacted }

// Format prints the same as String for every verb, so that no verb of fmt
// shows the key.
func (k Private) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue keeps the key out of log/slog.
func (k Private) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps the key out of JSON and other encodings.
func (k Private) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// String returns the key in base64.
func (k Public) String() string { return base64.StdEncoding.EncodeToString(k[:]) }

// MarshalText returns the key in base64.
func (k Public) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *Public) UnmarshalText(b []byte) (err error) {
	*k, err = ParsePublic(string(b))
	return err
}
