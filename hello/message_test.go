package hello

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v3"
)

// unhexed reads octets that white space may part.
func unhexed(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// The request of RFC 8489 appendix B.1, as erratum 6268 corrects it.
const rfcRequest = `
	0001 0090 2112a442 78ad3433 c6ad72c0 29da412e
	001e 0020 4a3cf38f ef6992bd a952c678 0417da0f 24819415 569e60b2 05c46e41 407f1704
	0015 0029 6f624d61744a6f73324141414366 2f2f3439396b39353464364f4c33346f4c39465354767936347341 000000
	0014 000b 6578616d706c652e6f7267 00
	001d 0004 00020000
	001c 0020 b5c7bf00 5b6c52a2 1c51c5e8 92f81924 136296cb 927c4314 9309278c c6518e65`

func TestIntegrityOfTheStandard(t *testing.T) {
	m, err := parse(unhexed(rfcRequest))
	if err != nil {
		t.Fatal(err)
	}
	key := integrity(sha256.Sum256([]byte("\u30de\u30c8\u30ea\u30c3\u30af\u30b9:example.org:TheMatrIX")))
	if !key.verify(m) {
		t.Error("the standard's own MAC is refused")
	}
	for i := range m.Raw {
		wrong := bytes.Clone(m.Raw)
		wrong[i] ^= 1
		if m, err := parse(wrong); err == nil && key.verify(m) {
			t.Errorf("octet %d changed, and the MAC still passes", i)
		}
	}
}

func TestIntegrityStandsOnceAndLast(t *testing.T) {
	key := integrity{1}
	for name, attributes := range map[string][]stun.Setter{
		"absent":    {stun.NewSoftware("x")},
		"not last":  {key, stun.NewSoftware("x")},
		"twice":     {key, key},
		"nothing":   {},
		"truncated": {stun.RawAttribute{Type: stun.AttrMessageIntegritySHA256, Value: make([]byte, 16)}},
	} {
		m, err := parse(build(TransactionID{1}, stun.BindingRequest, attributes...))
		if err != nil {
			t.Fatal(err)
		}
		if key.verify(m) {
			t.Errorf("%s: passes", name)
		}
	}
}

// Keys and messages that both ends must come to for ever.
const (
	goldenName  = "_4UMzZA1SOtoWHqvrv36Pw"
	goldenMAC   = "e17900e3719960beacbfffa15482a5451769d22213592e0e7bc11df42c62100b"
	goldenPlain = `0001 0028 2112a442 090000000000000000000000
		8022 0021 666f67706c722072656163686162696c69747920636865636b2c20706164646564 000000`
	goldenAsk = `0001 0040 2112a442 010101010101010101010101
		0006 0016 5f34554d7a5a4131534f746f57487176727633365077 0000
		8022 0020 666f67706c722061736b7320666f722061206e6f6e63652c207061646465642e`
	goldenError = `0111 0034 2112a442 010101010101010101010101
		0009 0010 00000401 556e617574686f72697a6564
		0015 001c 41414146586a756d4d466d6253594546724658596378516b6542486c`
	goldenHello = `0001 0060 2112a442 020202020202020202020202
		0006 0016 5f34554d7a5a4131534f746f57487176727633365077 0000
		0015 001c 41414146586a756d4d466d6253594546724658596378516b6542486c
		001c 0020 1a0b4d0ff4ad09aa84cc3331b8d934c5a2653f38caedd49a247fdcc1392812b2`
	goldenAnswer = `0101 0034 2112a442 020202020202020202020202
		0020 0008 0001e62ae112a645
		ff21 0000
		001c 0020 b490f4baf24adc3b40a756580328d0d5ee97828ba64ae916da6ca303958dd572`
)

func goldenKeys() (carrier, gateway Key) {
	for i := range carrier {
		carrier[i], gateway[i] = byte(i+1), byte(0x80+i)
	}
	return carrier, gateway
}

func publicOf(t tester, private Key) Key {
	t.Helper()
	table, err := NewTable(private)
	if err != nil {
		t.Fatal(err)
	}
	return table.public
}

// tester is what testing.TB and rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
}

func TestGoldenExchange(t *testing.T) {
	carrier, gateway := goldenKeys()
	secret, err := CarrierSecret(carrier, publicOf(t, gateway))
	if err != nil {
		t.Fatal(err)
	}
	table, err := NewTable(gateway)
	if err != nil {
		t.Fatal(err)
	}
	table.Set([]Key{publicOf(t, carrier)})
	table.Work(1)
	start := time.Now()
	g := NewGreeter(table, start)
	g.nonces.key = Key{7}
	c := NewCaller(secret)
	serial := byte(0)
	c.random = func(b []byte) {
		serial++
		for i := range b {
			b[i] = serial
		}
	}
	from := netip.MustParseAddrPort("192.0.2.7:51000")
	now := start.Add(90061234 * time.Millisecond)
	table.Refused(publicOf(t, carrier), now)
	c.Handshake(now)
	c.Handshake(now)
	c.Reachable(now)
	now = now.Add(callPatience)
	ask, _ := c.Poll(now)
	challenge := g.Answer(ask, from, now).Reply
	hello := c.Answer(challenge, now)
	welcome := g.Answer(hello, from, now)
	c.Answer(welcome.Reply, now)
	if !welcome.Call || c.Called(now).IsZero() {
		t.Error("no call")
	}
	for _, v := range []struct {
		what, got, want string
	}{
		{"pseudonym", secret.Pseudonym(), goldenName},
		{"MAC key", hex.EncodeToString(secret.mac[:]), goldenMAC},
		{"plain request", hex.EncodeToString(PlainRequest(TransactionID{9})), goldenPlain},
		{"request for a nonce", hex.EncodeToString(ask), goldenAsk},
		{"error with a nonce", hex.EncodeToString(challenge), goldenError},
		{"hello", hex.EncodeToString(hello), goldenHello},
		{"answer", hex.EncodeToString(welcome.Reply), goldenAnswer},
	} {
		if want := strings.Join(strings.Fields(v.want), ""); v.got != want {
			t.Errorf("%s:\n got %s\nwant %s", v.what, v.got, want)
		}
	}
}
