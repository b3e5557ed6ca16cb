package resolve

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fataler is a test or a property.
type fataler interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// sim plays a book against networks whose DNS is a table. Answers take 50 ms.
type sim struct {
	t     fataler
	b     *Book
	start time.Time
	now   time.Time
	// dns answers by "SLOT NAME TYPE"; what is not in it is not found.
	dns    map[string]Answer
	asks   []asking
	flying []landing
	told   map[string][]netip.AddrPort // by "SLOT GATEWAY"
}

type asking struct {
	at   time.Time
	what string
}

type landing struct {
	at time.Time
	q  Question
	a  Answer
}

const answerTime = 50 * time.Millisecond

func newSim(t fataler) *sim {
	start := time.Now()
	return &sim{t: t, b: NewBook(), start: start, now: start, dns: map[string]Answer{}, told: map[string][]netip.AddrPort{}}
}

func (s *sim) answers(what string, all ...string) { s.dns[what] = Answer{Found: addrs(all...)} }

func (s *sim) fails(what string, err error) { s.dns[what] = Answer{Err: err} }

// run plays for d.
func (s *sim) run(d time.Duration) {
	s.t.Helper()
	end := s.now.Add(d)
	for {
		s.turn()
		next := end
		if at, ok := s.b.Next(); ok && at.Before(next) {
			next = at
		}
		for _, l := range s.flying {
			if l.at.Before(next) {
				next = l.at
			}
		}
		if next.Equal(s.now) && s.now.Equal(end) {
			return
		}
		if next.Before(s.now) {
			s.t.Fatalf("at %v the book wants to be asked at %v", s.now.Sub(s.start), next.Sub(s.start))
		}
		s.now = next
	}
}

// turn does all that is to be done now.
func (s *sim) turn() {
	s.t.Helper()
	var still []landing
	for _, l := range s.flying {
		if l.at.After(s.now) {
			still = append(still, l)
			continue
		}
		s.b.Record(l.q, l.a, s.now)
	}
	s.flying = still
	for _, q := range s.b.Due(s.now) {
		what := fmt.Sprintf("%d %s %s", q.Carrier.Slot, q.Name, map[Family]string{IPv4: "A", IPv6: "AAAA"}[q.Family])
		s.asks = append(s.asks, asking{s.now, what})
		a, ok := s.dns[what]
		if !ok {
			a.Err = ErrNotFound
		}
		s.flying = append(s.flying, landing{s.now.Add(answerTime), q, a})
	}
	if more := s.b.Due(s.now); len(more) > 0 {
		s.t.Fatalf("Due wants %v again", more)
	}
	if at, ok := s.b.Next(); ok && !at.After(s.now) {
		s.t.Fatalf("Next is %v ago, and Due has nothing", s.now.Sub(at))
	}
	for _, n := range s.b.News(s.now) {
		s.told[fmt.Sprintf("%d %s", n.Slot, n.Gateway)] = n.Candidates
	}
}

// since returns what was asked from a time on, sorted, and forgets it.
func (s *sim) asked() []string {
	var all []string
	for _, a := range s.asks {
		all = append(all, a.what)
	}
	s.asks = nil
	slices.Sort(all)
	return all
}

func (s *sim) wantAsked(want ...string) {
	s.t.Helper()
	slices.Sort(want)
	if got := s.asked(); !slices.Equal(got, want) {
		s.t.Errorf("asked %q, want %q", got, want)
	}
}

func (s *sim) wantTold(path string, want ...string) {
	s.t.Helper()
	if got := s.told[path]; !slices.Equal(got, addrPorts(want...)) {
		s.t.Errorf("candidates of %s: %v, want %v", path, got, want)
	}
}

func (s *sim) fail(slot int, gateways ...string) {
	for _, g := range gateways {
		s.b.Failing(slot, g, s.now)
	}
}

func (s *sim) up(slot int, gateway, at string) {
	s.b.Answers(slot, gateway, netip.MustParseAddrPort(at), s.now)
}

// busiest returns the most questions of a carrier in any minute.
func (s *sim) busiest(slot int) (most int) {
	var times []time.Time
	for _, a := range s.asks {
		if strings.HasPrefix(a.what, fmt.Sprint(slot)+" ") {
			times = append(times, a.at)
		}
	}
	for i, from := range times {
		n, _ := slices.BinarySearchFunc(times, from.Add(time.Minute), func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
		most = max(most, n-i)
	}
	return most
}

func (s *sim) status(slot int) Status {
	s.t.Helper()
	for _, st := range s.b.Status(s.now) {
		if st.Slot == slot {
			return st
		}
	}
	s.t.Fatalf("no status of carrier %d", slot)
	return Status{}
}

// says checks that the sentences are those that begin with want.
func (s *sim) says(slot int, want ...string) {
	s.t.Helper()
	got := s.status(slot).Sentences
	ok := len(got) == len(want)
	for i := range want {
		ok = ok && strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		s.t.Errorf("says %q, want %q", got, want)
	}
}

func wlan(slot int, families ...Family) Carrier {
	return Carrier{Slot: slot, Interface: fmt.Sprintf("wlan%d", slot), Index: slot + 1,
		IPv4: slices.Contains(families, IPv4), IPv6: slices.Contains(families, IPv6)}
}

func gateway(name string, endpoints ...string) Gateway {
	g := Gateway{Name: name}
	for _, s := range endpoints {
		name, port, _ := strings.Cut(s, ":")
		number, _ := strconv.Atoi(port)
		e := Endpoint{Name: name, Port: uint16(number)}
		if at, err := netip.ParseAddrPort(s); err == nil {
			e = Endpoint{Addr: at.Addr(), Port: at.Port()}
		}
		g.Endpoints = append(g.Endpoints, e)
	}
	return g
}

// play makes a sim of these carriers and gateways.
func play(t fataler, carriers []Carrier, gateways ...Gateway) *sim {
	s := newSim(t)
	s.b.SetGateways(gateways)
	s.b.SetCarriers(carriers, s.now)
	return s
}
