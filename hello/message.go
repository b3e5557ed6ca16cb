package hello

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/pion/stun/v3"
)

// TransactionID names a request and its answer.
type TransactionID = [stun.TransactionIDSize]byte

// What makes requests at least as long as their answers.
const (
	plainPadding = "fogplr reachability check, padded"
	askPadding   = "fogplr asks for a nonce, padded."
)

// Octets of a STUN header and of MESSAGE-INTEGRITY-SHA256 with its own header.
const (
	headerLen = 20
	macLen    = 4 + sha256.Size
)

// attrTimeRefused in the answer to a hello says that WireGuard refused a handshake
// of this carrier for its time stamp. It has no value. The number is one of those
// that receivers may ignore and that nobody has registered.
const attrTimeRefused stun.AttrType = 0xff21

type timeRefused struct{}

// AddTo implements stun.Setter.
func (timeRefused) AddTo(m *stun.Message) error { m.Add(attrTimeRefused, nil); return nil }

var errMalformed = errors.New("not a STUN message of ours")

// IsSTUN tells STUN from WireGuard by the first octet and the magic cookie (RFC
// 8489 section 5): a WireGuard message begins with 1 to 4 and three zeros.
func IsSTUN(d []byte) bool {
	return len(d) >= headerLen && d[0] < 2 && binary.BigEndian.Uint32(d[4:]) == 0x2112a442
}

// PlainRequest returns a binding request that asks for nothing but an answer.
func PlainRequest(id TransactionID) []byte {
	return build(id, stun.BindingRequest, stun.NewSoftware(plainPadding))
}

// Succeeded returns the transaction of a binding success. It proves nothing.
func Succeeded(msg []byte) (id TransactionID, ok bool) {
	m, err := parse(msg)
	if err != nil || m.Type != stun.BindingSuccess {
		return id, false
	}
	return m.TransactionID, true
}

// build encodes a message. Its attributes fit always, so that it cannot fail.
func build(id TransactionID, typ stun.MessageType, attributes ...stun.Setter) []byte {
	all := append([]stun.Setter{stun.NewTransactionIDSetter(id), typ}, attributes...)
	m, err := stun.Build(all...)
	if err != nil {
		panic("hello: " + err.Error())
	}
	return m.Raw
}

// parse decodes a message that is neither longer than MaxMessage nor followed by
// anything. It shares no memory with msg.
func parse(msg []byte) (*stun.Message, error) {
	if len(msg) > MaxMessage || !IsSTUN(msg) || len(msg) != headerLen+int(binary.BigEndian.Uint16(msg[2:])) {
		return nil, errMalformed
	}
	m := stun.New()
	return m, stun.Decode(msg, m)
}

// text returns the value of an attribute, empty if there is none.
func text(m *stun.Message, attribute stun.AttrType) string {
	v, err := m.Get(attribute)
	if err != nil {
		return ""
	}
	return string(v)
}

// mapped is the attribute that tells an address back to who sent from it.
func mapped(at netip.AddrPort) stun.Setter {
	return &stun.XORMappedAddress{IP: at.Addr().Unmap().AsSlice(), Port: int(at.Port())}
}

// integrity sets MESSAGE-INTEGRITY-SHA256 (RFC 8489 section 14.6), which pion/stun
// does not offer. It must be the last attribute.
type integrity [sha256.Size]byte

// AddTo implements stun.Setter.
func (key integrity) AddTo(m *stun.Message) error {
	m.Add(stun.AttrMessageIntegritySHA256, key.sum(m.Raw))
	return nil
}

// sum returns the MAC of all that comes before the attribute, with the length in
// the header as if it were there already.
func (key integrity) sum(before []byte) []byte {
	var header [headerLen]byte
	copy(header[:], before)
	binary.BigEndian.PutUint16(header[2:], uint16(len(before)-headerLen+macLen))
	mac := hmac.New(sha256.New, key[:])
	mac.Write(header[:])
	mac.Write(before[headerLen:])
	return mac.Sum(nil)
}

// verify reports whether m ends with a good MESSAGE-INTEGRITY-SHA256 of full
// length, and has no other.
func (key integrity) verify(m *stun.Message) bool {
	last := len(m.Attributes) - 1
	if last < 0 {
		return false
	}
	for i, a := range m.Attributes {
		if (a.Type == stun.AttrMessageIntegritySHA256) != (i == last) {
			return false
		}
	}
	got := m.Attributes[last].Value
	return len(got) == sha256.Size && hmac.Equal(got, key.sum(m.Raw[:len(m.Raw)-macLen]))
}
