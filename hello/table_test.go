package hello

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

func randomKeys(n int) []Key {
	keys := make([]Key, n)
	for i := range keys {
		_, _ = rand.Read(keys[i][:])
	}
	return keys
}

func TestTableFindsThoseThereAre(t *testing.T) {
	_, gateway := goldenKeys()
	table, err := NewTable(gateway)
	if err != nil {
		t.Fatal(err)
	}
	carriers := randomKeys(5)
	var public []Key
	var names []string
	for _, c := range carriers {
		s, err := CarrierSecret(c, table.public)
		if err != nil {
			t.Fatal(err)
		}
		public, names = append(public, publicOf(t, c)), append(names, s.Pseudonym())
	}
	known := func() (n int) {
		for i, name := range names {
			if key, s, found, _ := table.find(name); found {
				n++
				if key != public[i] || s.Pseudonym() != name {
					t.Errorf("%s found as another", name)
				}
			}
		}
		return n
	}
	lowOrder := Key{} // X25519 with it is zero
	table.Set(append([]Key{lowOrder}, public[:3]...))
	if _, _, _, complete := table.find(names[0]); complete {
		t.Error("says that a name is not known before it was computed")
	}
	if left := table.Work(2); left != 2 || known() != 1 {
		t.Errorf("%d left, %d known", left, known())
	}
	table.Set(public[1:4]) // the first one goes, a fourth comes
	if n := known(); n != 0 {
		t.Errorf("%d known after the one has gone", n)
	}
	if left := table.Work(100); left != 0 || known() != 3 {
		t.Errorf("%d left, %d known", left, known())
	}
	if _, _, found, complete := table.find(names[4]); found || !complete {
		t.Error("a name that nobody has")
	}
	now := time.Now()
	table.accept(public[1], 7, now)
	table.Set(public[1:3])
	if a, _ := table.accept(public[1], 7, now.Add(time.Minute)); a != repeated {
		t.Error("a change forgets the nonce that was used")
	}
	if a, _ := table.accept(public[3], 7, now); a == fresh {
		t.Error("accepts one that has gone")
	}
}

func TestTableWorksWhileAsked(t *testing.T) {
	_, gateway := goldenKeys()
	table, _ := NewTable(gateway)
	public := randomKeys(64)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			table.Set(public[i*8:])
			for table.Work(3) > 0 {
				table.find("nobody")
			}
		})
	}
	wg.Wait()
	for table.Work(10) > 0 {
	}
	if _, _, _, complete := table.find("nobody"); !complete {
		t.Error("not complete when nothing is left")
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	e := newEnd(t)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", e.secret)
	said := fmt.Sprintf("%v %+v %#v %s %x %d", e.secret, e.secret, e.secret, e.secret, e.secret, e.secret) + log.String()
	if n := strings.Count(said, e.secret.Pseudonym()); n != 7 {
		t.Errorf("the pseudonym stands %d times in %q", n, said)
	}
	if strings.Contains(said, fmt.Sprintf("%x", e.secret.mac[:4])) || strings.Contains(said, fmt.Sprint(e.secret.mac[:4])) {
		t.Error("prints the key")
	}
}

func TestSecretNeedsBothKeys(t *testing.T) {
	carrier, gateway := goldenKeys()
	seen := map[string]bool{}
	for _, c := range []Key{carrier, {1}} {
		for _, g := range []Key{publicOf(t, gateway), publicOf(t, Key{2})} {
			s, err := CarrierSecret(c, g)
			if err != nil {
				t.Fatal(err)
			}
			seen[s.Pseudonym()] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d pseudonyms for four pairs of keys", len(seen))
	}
	if _, err := CarrierSecret(carrier, Key{}); err == nil {
		t.Error("takes a gateway's key of low order")
	}
}

// BenchmarkTable is what one carrier costs a gateway when the first hello comes
// from somebody whom it does not know yet.
func BenchmarkTable(b *testing.B) {
	_, gateway := goldenKeys()
	table, _ := NewTable(gateway)
	table.Set(randomKeys(b.N))
	b.ResetTimer()
	table.Work(b.N)
}

// BenchmarkGreeter is what a hello costs, and what its refusal does.
func BenchmarkGreeter(b *testing.B) {
	e := newEnd(b)
	now := e.start
	for name, msg := range map[string][]byte{"nonce": e.signed("", e.secret.mac), "hello": e.hello(home, now)} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				now = now.Add(time.Microsecond)
				e.greeter.gives, e.greeter.hellos = limit{}, limit{}
				e.greeter.Answer(msg, home, now)
			}
		})
	}
}
