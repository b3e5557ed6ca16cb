package resolve

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Config is what a Runner needs. Only Found must be there.
type Config struct {
	// Mark is the SO_MARK of the questions' sockets, 0 for none.
	Mark uint32
	// Found is told where a gateway can be tried through a carrier, in order,
	// whenever that changes; none at all is news too. The calls come one after the
	// other from the goroutine of Run, which waits for each. The slice is the
	// callee's.
	Found func(slot int, gateway string, candidates []netip.AddrPort)
	// Moved is told what questions take up on a carrier's network, see Query.Moved;
	// nil for nobody.
	Moved func(slot int, bytes int)
	// Servers finds the DNS servers of an interface; nil looks at this machine.
	Servers func(index int, name string) Servers
	// Log gets each new sentence of the status; nil for none.
	Log *slog.Logger
}

// Runner keeps a Book and asks its questions. Its methods may be called at any
// time by any goroutine; they do not wait for the network.
type Runner struct {
	cfg Config
	// look asks one question; tests put their own there.
	look func(ctx context.Context, q Question) Answer
	wake chan struct{} // something changed

	mu   sync.Mutex
	book *Book
}

// NewRunner returns a Runner that does nothing before Run.
func NewRunner(cfg Config) *Runner {
	if cfg.Servers == nil {
		cfg.Servers = ThisSystem().Servers
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	r := &Runner{cfg: cfg, wake: make(chan struct{}, 1), book: NewBook()}
	r.look = r.ask
	return r
}

// SetCarriers says which carriers there are; see Book.SetCarriers.
func (r *Runner) SetCarriers(all []Carrier) {
	r.update(func(now time.Time) { r.book.SetCarriers(all, now) })
}

// SetGateways says which gateways there are; see Book.SetGateways.
func (r *Runner) SetGateways(all []Gateway) {
	r.update(func(time.Time) { r.book.SetGateways(all) })
}

// Failing says that a path does not answer; see Book.Failing.
func (r *Runner) Failing(slot int, gateway string) {
	r.update(func(now time.Time) { r.book.Failing(slot, gateway, now) })
}

// Answers says where a gateway answers; see Book.Answers.
func (r *Runner) Answers(slot int, gateway string, from netip.AddrPort) {
	r.update(func(now time.Time) { r.book.Answers(slot, gateway, from, now) })
}

// Status returns what is known of each carrier, by slot.
func (r *Runner) Status() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.Status(time.Now())
}

func (r *Runner) update(change func(now time.Time)) {
	r.mu.Lock()
	change(time.Now())
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// outcome is a question with its answer.
type outcome struct {
	q Question
	a Answer
}

// flight is a question under way.
type flight struct {
	q      Question
	cancel context.CancelFunc
}

// Run asks and tells until ctx ends. It must run once at most; when it returns,
// nothing that it started is left.
func (r *Runner) Run(ctx context.Context) {
	var flying sync.WaitGroup
	defer flying.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan outcome)
	flights := map[uint64]flight{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	said := map[int][]string{}
	for {
		due, news, next := r.turn(flights)
		for _, q := range due {
			one, end := context.WithCancel(ctx)
			flights[q.ID] = flight{q, end}
			flying.Go(func() {
				defer end()
				select {
				case results <- outcome{q, r.look(one, q)}:
				case <-ctx.Done():
				}
			})
		}
		for _, n := range news {
			r.cfg.Found(n.Slot, n.Gateway, n.Candidates)
		}
		r.report(said)
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		case o := <-results:
			delete(flights, o.q.ID)
			r.mu.Lock()
			r.book.Record(o.q, o.a, time.Now())
			r.mu.Unlock()
		}
	}
}

// turn returns what to ask and to tell now, and how long to sleep then. It ends
// the flights that nobody waits for.
func (r *Runner) turn(flights map[uint64]flight) (due []Question, news []News, sleep time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range flights {
		if !r.book.Waits(f.q) {
			f.cancel()
		}
	}
	now := time.Now()
	due, news = r.book.Due(now), r.book.News(now)
	at, ok := r.book.Next()
	if !ok {
		return due, news, time.Hour
	}
	return due, news, max(at.Sub(now), 0)
}

// report logs what is new in the status.
func (r *Runner) report(said map[int][]string) {
	for _, s := range r.Status() {
		for _, sentence := range s.Sentences {
			if !slices.Contains(said[s.Slot], sentence) {
				r.cfg.Log.Warn(sentence, "slot", s.Slot)
			}
		}
		if len(said[s.Slot]) > 0 && len(s.Sentences) == 0 {
			r.cfg.Log.Info("DNS of a carrier is well again", "slot", s.Slot)
		}
		said[s.Slot] = s.Sentences
	}
}

// ask asks one question through the network.
func (r *Runner) ask(ctx context.Context, q Question) Answer {
	servers := Servers{Source: "the configuration"}
	for _, a := range q.Carrier.DNS {
		if a = a.Unmap(); a.Is6() && a.IsLinkLocalUnicast() {
			a = a.WithZone(q.Carrier.Interface)
		}
		servers.List = append(servers.List, netip.AddrPortFrom(a, portDNS))
	}
	if len(servers.List) == 0 {
		servers = r.cfg.Servers(q.Carrier.Index, q.Carrier.Interface)
		servers.List = usable(servers, q)
	}
	servers.List = servers.List[:min(len(servers.List), maxServers)]
	query := Query{Interface: q.Carrier.Interface, Mark: r.cfg.Mark, Servers: servers.List}
	if r.cfg.Moved != nil {
		query.Moved = func(bytes int) { r.cfg.Moved(q.Carrier.Slot, bytes) }
	}
	found, err := query.Lookup(ctx, q.Name, q.Family)
	return Answer{Found: found, Err: err, Asked: servers}
}

// usable leaves out servers of a family that the carrier cannot send, and those
// of other carriers' networks.
func usable(s Servers, q Question) (list []netip.AddrPort) {
	for _, ap := range s.List {
		a := ap.Addr()
		if a.Is4() && !q.Carrier.IPv4 || a.Is6() && !q.Carrier.IPv6 && !a.IsLinkLocalUnicast() {
			continue
		}
		if s.Shared && slices.ContainsFunc(q.Foreign, func(p netip.Prefix) bool { return p.Contains(a) }) {
			continue
		}
		list = append(list, ap)
	}
	return list
}
