package keys

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func unhex(t *testing.T, s string) [Len]byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return [Len]byte(b)
}

func TestPublicKeyRFC7748(t *testing.T) { // section 6.1
	for private, public := range map[string]string{
		"77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a": "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
		"5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb": "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
	} {
		got := Private(unhex(t, private)).PublicKey()
		if got != Public(unhex(t, public)) {
			t.Errorf("public key of %s is %x, want %s", private, got[:], public)
		}
	}
}

// The private keys were made by Python's hmac, the public ones by wg pubkey.
func TestCarrierKeyGolden(t *testing.T) {
	node := Private{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32}
	want := [Slots][2]string{
		{"mDwdcizQ8wuxlfTlbPwIa6alJxlRY5o/u8Ch6QRSbXs=", "6yfDgCFmF5ZhQ/fK5yf9msOfYEH7gwZUQheD918moX4="},
		{"wFmVeipScEou5Li9aR5+EGH+a5vB/EDRaTVPTuJ0DWo=", "pQWCWuwNA4CUSCMABd6XrMsng5LgYp5IrRct7NbR0R0="},
		{"WE7bpW2QT14ZmoEHdetUFJpIx4vcOylSP1retu5cpXE=", "0iLcGSDDVBPmUvDIHsm2g1kFKVsU+/xlow0BgfRy5TE="},
		{"AKX5gI26ARwZYbCMHLmTHofV9MXpIwXKX9LdkYMQMmE=", "+FmYE+3AUJP31hyHx68dUNc+Y53ciNCzxNVETTQhWnM="},
		{"AFrZCFc8BoSDrG0uGa4/beZPDwxkGbmetR7WO2e7cG0=", "6C5YLxVVZ1v2uif7PmOwbK8POCi3TueYSnUla7NoXnU="},
		{"4BMxeVGf85lHClJADiVGTQu1pddKTgqRMV2xEIw+1GY=", "6xC/RLauAcnGGoqes4n4NgfIAqg37lqQYOgO3U9tHkg="},
		{"0NI6psGZsEP+9eAbeJnA5wlMrLs83cn9qsaznsvICm0=", "Q9hvZji0gHmDPgOaqH4JqzMqwIAaBistohAXjNRHuSY="},
		{"eNqgPDfhl5qMMoz2eV9UgnUj1wpZfGc8ZwVMt5RHYGw=", "0kAIHAaLGnOLVv9HFJ9rNqUB3Dhirgl0pjEKZr+SVko="},
	}
	public := CarrierPublicKeys(node)
	for slot, w := range want {
		k := CarrierKey(node, uint8(slot))
		if k.Base64() != w[0] {
			t.Errorf("slot %d: private key %s, want %s", slot, k.Base64(), w[0])
		}
		if public[slot].String() != w[1] {
			t.Errorf("slot %d: public key %s, want %s", slot, public[slot], w[1])
		}
	}
}

func TestGenerateIsClampedAndFresh(t *testing.T) {
	a, b := Generate(), Generate()
	if a == b {
		t.Error("two generated keys are equal")
	}
	if a[0]&7 != 0 || a[31]&0xc0 != 0x40 {
		t.Errorf("first octet %08b, last octet %08b: not clamped", a[0], a[31])
	}
}

func TestParseErrors(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	for _, c := range []struct {
		in   string
		want error
	}{
		{"", ErrLength},
		{"hello world", ErrEncoding},
		{strings.Repeat("A", 43), ErrEncoding},
		{strings.Repeat("A", 42) + "B=", ErrEncoding}, // trailing bits
		{b64(make([]byte, 31)), ErrLength},
		{b64(make([]byte, 33)), ErrLength},
		{b64(make([]byte, 32)), ErrZero},
	} {
		if _, err := ParsePrivate(c.in); !errors.Is(err, c.want) {
			t.Errorf("ParsePrivate(%q) = %v, want %v", c.in, err, c.want)
		}
		if _, err := ParsePublic(c.in); !errors.Is(err, c.want) {
			t.Errorf("ParsePublic(%q) = %v, want %v", c.in, err, c.want)
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), Len, Len).Draw(t, "key")
		if Private(b) == (Private{}) {
			return
		}
		private, err := ParsePrivate(" " + Private(b).Base64() + "\n")
		if err != nil || private != Private(b) {
			t.Fatalf("private %v, %v", private[:], err)
		}
		public, err := ParsePublic(Public(b).String())
		if err != nil || public != Public(b) {
			t.Fatalf("public %v, %v", public, err)
		}
	})
}

func TestPrivateDoesNotPrint(t *testing.T) {
	k := Generate()
	type holder struct{ Key Private }
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%c", "%U"} {
		fmt.Fprintf(&out, verb+"\n", k)
		fmt.Fprintf(&out, verb+"\n", &k)
		fmt.Fprintf(&out, verb+"\n", holder{k})
		fmt.Fprintf(&out, verb+"\n", []Private{k})
	}
	fmt.Fprintln(&out, k, k.String())
	j, err := json.Marshal(map[string]any{"key": k, "holder": holder{k}})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(j)
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "key", k, "holder", holder{k})
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "key", k, "holder", holder{k})

	for name, secret := range map[string]string{
		"base64":  k.Base64(),
		"hex":     hex.EncodeToString(k[:4]),
		"HEX":     strings.ToUpper(hex.EncodeToString(k[:4])),
		"decimal": fmt.Sprintf("%d %d %d", k[0], k[1], k[2]),
		"commas":  fmt.Sprintf("%d,%d,%d", k[0], k[1], k[2]),
	} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("a private key was printed in %s form", name)
		}
	}
	if n := strings.Count(out.String(), redacted); n < 50 {
		t.Errorf("%q was printed %d times, so the test does not print keys", redacted, n)
	}
}

func TestCarrierPorts(t *testing.T) {
	for k, want := range map[Public]uint16{{}: 61000, {0, 1}: 61001, {0x11, 0xb7}: 65535, {0x11, 0xb8}: 61000, {0xff, 0xff}: 63031} {
		if got := CarrierPort(k); got != want {
			t.Errorf("port %d for the key %x..., want %d", got, k[:2], want)
		}
	}
}
