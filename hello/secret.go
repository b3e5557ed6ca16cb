package hello

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
)

// Key is a Curve25519 private or public key.
type Key = [32]byte

// The HKDF info strings; the public keys of carrier and gateway follow. They
// change with the protocol.
const (
	nameInfo = "fogplr hello v1 name"
	macInfo  = "fogplr hello v1 mac"
)

const (
	nameOctets = 16
	nameLen    = 22 // as text, in characters
)

// Secret is what one carrier and one gateway share: X25519 of their keys, and
// from it by HKDF-SHA256 (RFC 5869) without salt a pseudonym and a key for MACs,
// each bound to both public keys. It does not print.
type Secret struct {
	name string // in base64url: what USERNAME may hold
	mac  [sha256.Size]byte
}

// CarrierSecret returns the secret as the carrier computes it: from its private
// key and the gateway's public one. It fails for a public key of low order.
func CarrierSecret(carrier, gateway Key) (Secret, error) {
	private, err := ecdh.X25519().NewPrivateKey(carrier[:])
	if err != nil {
		return Secret{}, fmt.Errorf("carrier key: %w", err)
	}
	return derive(private, gateway, Key(private.PublicKey().Bytes()), gateway)
}

// derive computes the secret of private and remote, which are the two ends'
// keys in either order.
func derive(private *ecdh.PrivateKey, remote, carrier, gateway Key) (s Secret, err error) {
	public, err := ecdh.X25519().NewPublicKey(remote[:])
	if err != nil {
		return s, fmt.Errorf("public key: %w", err)
	}
	shared, err := private.ECDH(public)
	if err != nil {
		return s, fmt.Errorf("public key: %w", err)
	}
	both := string(carrier[:]) + string(gateway[:])
	name, err := hkdf.Key(sha256.New, shared, nil, nameInfo+both, nameOctets)
	if err != nil {
		return s, err
	}
	mac, err := hkdf.Key(sha256.New, shared, nil, macInfo+both, len(s.mac))
	if err != nil {
		return s, err
	}
	s.name = base64.RawURLEncoding.EncodeToString(name)
	copy(s.mac[:], mac)
	return s, nil
}

// Pseudonym returns the name that the carrier goes by at that gateway, 22
// characters. It reveals neither key; whoever sees it twice knows it again.
func (s Secret) Pseudonym() string { return s.name }

// Format prints the pseudonym alone, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "hello secret of "+s.name) }

// LogValue keeps the key out of log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue("hello secret of " + s.name) }
