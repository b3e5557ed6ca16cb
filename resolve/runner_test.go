package resolve

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// teller collects what a Runner tells.
type teller struct {
	mu   sync.Mutex
	told []string
}

func (r *teller) found(slot int, gateway string, candidates []netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, fmt.Sprint(slot, " ", gateway, " ", candidates))
}

func (r *teller) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told
	r.told = nil
	return told
}

// TestRunner plays an hour with a network that is a table.
func TestRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told teller
		var log bytes.Buffer
		r := NewRunner(Config{Found: told.found, Log: slog.New(slog.NewTextHandler(&log, nil))})
		var mu sync.Mutex
		var cancelled atomic.Int64
		dns := map[string]Answer{}
		set := func(what string, a Answer) { mu.Lock(); dns[what] = a; mu.Unlock() }
		r.look = func(ctx context.Context, q Question) Answer {
			select {
			case <-time.After(answerTime):
			case <-ctx.Done():
				cancelled.Add(1)
				return Answer{Err: ctx.Err()}
			}
			mu.Lock()
			defer mu.Unlock()
			if a, ok := dns[fmt.Sprint(q.Carrier.Slot, q.Name, q.Family)]; ok {
				return a
			}
			return Answer{Err: ErrNotFound}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.Run(ctx) })
		want := func(lines ...string) {
			t.Helper()
			synctest.Wait()
			if got := told.take(); !slices.Equal(got, lines) {
				t.Errorf("told %q, want %q", got, lines)
			}
		}

		set("0west.example.orgIPv4", Answer{Found: addrs("198.51.100.10")})
		r.SetGateways([]Gateway{gateway("west", "west.example.org:51820"), gateway("east", "203.0.113.20:51820")})
		r.SetCarriers([]Carrier{wlan(0, IPv4)})
		want("0 east [203.0.113.20:51820]") // an address needs no answer
		time.Sleep(answerTime)
		want("0 west [198.51.100.10:51820]")
		r.Answers(0, "west", netip.MustParseAddrPort("198.51.100.10:51820"))
		time.Sleep(time.Hour)
		want()

		set("0west.example.orgIPv4", Answer{Found: addrs("198.51.100.77")})
		r.Failing(0, "west")
		time.Sleep(answerTime)
		want("0 west [198.51.100.77:51820 198.51.100.10:51820]")

		// A question is under way when the carrier changes, and when all ends.
		set("0west.example.orgIPv4", Answer{Err: errDead})
		time.Sleep(spacing)
		moved := wlan(0, IPv4)
		moved.Addresses = []netip.Prefix{netip.MustParsePrefix("192.0.2.7/24")}
		r.SetCarriers([]Carrier{moved})
		synctest.Wait()
		time.Sleep(answerTime / 2)
		r.SetCarriers([]Carrier{wlan(0, IPv4)})
		synctest.Wait()
		if n := cancelled.Load(); n != 1 {
			t.Errorf("%d questions were given up, want 1", n)
		}
		time.Sleep(2 * time.Second)
		want()
		if s := r.Status()[0]; len(s.Sentences) != 1 || !strings.Contains(log.String(), "DNS through wlan0 fails: 192.168.1.1 does not answer.") {
			t.Errorf("%+v, log %q", s, log.String())
		}
		set("0west.example.orgIPv4", Answer{Found: addrs("198.51.100.77")})
		time.Sleep(time.Minute)
		want()
		if !strings.Contains(log.String(), "well again") {
			t.Errorf("log %q", log.String())
		}
		r.SetCarriers([]Carrier{wlan(0, IPv4), wlan(1, IPv4)})
		synctest.Wait()
		cancel()
		running.Wait()
		want("1 east [203.0.113.20:51820]")
		r.Failing(0, "west") // after the end nobody listens, and nothing blocks
		r.SetCarriers(nil)
	})
}

// TestRunnerAsks goes through real sockets to a DNS server of the configuration.
func TestRunnerAsks(t *testing.T) {
	t.Parallel()
	s := local(t, map[string]reply{name + " A": {addrs: addrs("198.51.100.10")}})
	found := make(chan []netip.AddrPort, 1)
	r := NewRunner(Config{
		Found: func(_ int, _ string, candidates []netip.AddrPort) { found <- candidates },
		Servers: func(index int, name string) Servers {
			if index != 1 || name != "lo" {
				t.Errorf("asked for the servers of %d %s", index, name)
			}
			return Servers{List: []netip.AddrPort{s.addr}, Source: "the test"}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	defer running.Wait()
	defer cancel()
	r.SetCarriers([]Carrier{{Slot: 3, Interface: "lo", Index: 1, IPv4: true}})
	r.SetGateways([]Gateway{gateway("west", name+":51820")})
	select {
	case got := <-found:
		if !slices.Equal(got, addrPorts("198.51.100.10:51820")) {
			t.Errorf("%v", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing found")
	}
	if got := r.Status()[0].Servers; got.Source != "the test" || !slices.Equal(got.List, []netip.AddrPort{s.addr}) {
		t.Errorf("%+v", got)
	}
}

func TestConfiguredServersWin(t *testing.T) {
	t.Parallel()
	r := NewRunner(Config{Servers: func(int, string) Servers {
		t.Error("the machine's servers were looked for")
		return Servers{}
	}})
	q := Question{Name: name, Family: IPv4, Carrier: Carrier{Interface: "nothing0", IPv4: true, DNS: addrs("::ffff:192.0.2.53", "fe80::53", "192.0.2.54", "192.0.2.55")}}
	a := r.ask(t.Context(), q)
	if want := addrPorts("192.0.2.53:53", "[fe80::53%nothing0]:53", "192.0.2.54:53"); !slices.Equal(a.Asked.List, want) || a.Asked.Source != "the configuration" {
		t.Errorf("%+v", a.Asked)
	}
	if a.Err == nil {
		t.Error("answered through an interface that is not there")
	}
}
