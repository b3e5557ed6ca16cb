// Package usage counts what each carrier with a monthly cap has moved, and keeps
// it in a file, so that no restart, crash or wrong clock makes a cap be exceeded.
package usage

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/fogplr/fogplr/internal/files"
)

// fileName is the file in the state directory.
const fileName = "usage.json"

const bookVersion = 1

// month is the layout of entry.Month. Months compare as texts.
const month = "2006-01"

// content is what the file holds.
type content struct {
	Version  int     `json:"version"`
	Carriers []entry `json:"carriers"`
}

// entry is one carrier's month.
type entry struct {
	Carrier string `json:"carrier"`
	Month   string `json:"month"` // by the machine's time zone
	// Bytes is what was used, or a little more while a daemon runs.
	Bytes uint64 `json:"bytes"`
	// Reserve is what would have come in at most after a crash, in bytes.
	Reserve uint64 `json:"reserve,omitempty"`
}

// Clock is one reading of the two clocks.
type Clock struct {
	Wall time.Time     // its month counts; it may be wrong and may leap
	Up   time.Duration // since the daemon's start, which only grows
	// Sure says that the machine has set its clock by others (NTP).
	Sure bool
}

// State is what a carrier has used.
type State struct {
	Used, Cap uint64 // bytes
	Month     string // such as "2026-11"
	// Spent is true when the carrier must not be used in this month any more.
	Spent bool
	// Again is the counter's value at which Count must be called again, and Most the
	// one beyond which nothing more must be sent.
	Again, Most uint64
}

// Book has the use of all carriers. One goroutine at a time.
type Book struct {
	file  string
	kept  content // as the file has it
	live  map[string]*meter
	fresh bool // kept has changed
}

// meter is one carrier of this run.
type meter struct {
	entry
	total     uint64 // of the counter, when last looked at
	rated     Clock  // when the rate was last measured
	ratedAt   uint64 // total then
	coming    uint64 // bytes that would come in if the daemon was killed now
	candidate string // a month that the clock shows and that has not begun yet
	since     time.Duration
}

// Open reads the file in stateDir. A file that cannot be used is an error, and
// then the Book is empty and usable: who counts on caps decides what that means.
func Open(stateDir string) (*Book, error) {
	b := &Book{file: filepath.Join(stateDir, fileName), live: make(map[string]*meter)}
	raw, err := files.Read(b.file, maxFile)
	if err != nil {
		return b, fmt.Errorf("cannot read what carriers have used: %w", err)
	}
	if raw == nil {
		return b, nil
	}
	c, err := decode(raw)
	if err != nil {
		return b, fmt.Errorf("%s: %w", b.file, err)
	}
	b.kept = c
	return b, nil
}

func decode(raw []byte) (content, error) {
	var c content
	if err := files.Decode(raw, maxFile, &c); err != nil {
		return content{}, err
	}
	if c.Version != bookVersion {
		return content{}, fmt.Errorf("it has version %d, not %d", c.Version, bookVersion)
	}
	if len(c.Carriers) > maxCarriers {
		return content{}, fmt.Errorf("it has %d carriers, more than %d", len(c.Carriers), maxCarriers)
	}
	for _, e := range c.Carriers {
		if t, err := time.Parse(month, e.Month); err != nil || t.Format(month) != e.Month {
			return content{}, fmt.Errorf("%q is no month", e.Month)
		}
	}
	return c, nil
}

// Count takes a carrier's counter of bytes moved in this run, both directions, and
// returns what it has used of cap (bytes, not 0) in this month. Call Keep after the
// counts of one round, before much more is moved.
func (b *Book) Count(carrier string, total, cap uint64, now Clock) State {
	m := b.live[carrier]
	if m == nil {
		m = &meter{entry: b.recall(carrier), total: total, rated: now, ratedAt: total}
		b.live[carrier] = m
	}
	m.turn(now)
	m.Bytes += total - min(total, m.total)
	m.total = total
	m.rate(cap, now)

	kept := m.kept(cap)
	limit := cap - kept
	s := m.state(cap)
	s.Again = math.MaxUint64
	s.Most = total + cap - kept/2 - min(cap-kept/2, m.Bytes)
	ahead := max(cap/lease, min(cap/leaseSmall, leaseBytes))
	if s.Spent { // and its gateways know
		ahead, m.coming = 0, 0
	}
	again := b.lease(m, ahead)
	if !s.Spent {
		s.Again = total + min(again, limit) - m.Bytes
	}
	return s
}

// Look returns what a carrier has used of cap (bytes, not 0) by the file alone, and
// counts nothing: what the first Count of a run would find. Again and Most are 0.
func (b *Book) Look(carrier string, cap uint64, now Clock) State {
	m := &meter{entry: b.recall(carrier)}
	m.turn(now)
	return m.state(cap)
}

func (m *meter) state(cap uint64) State {
	return State{Used: m.Bytes, Cap: cap, Month: m.Month, Spent: m.Bytes >= cap-m.kept(cap)}
}

// kept is what of a cap the carrier must not use, in bytes.
func (m *meter) kept(cap uint64) uint64 {
	return max(cap/reserve, min(m.Reserve, cap/mostReserve))
}

// lease has so many bytes more than were used written down, unless most of the
// last such lot is left, and returns at what use that should be looked at again.
func (b *Book) lease(m *meter, ahead uint64) (again uint64) {
	i := slices.IndexFunc(b.kept.Carriers, func(e entry) bool { return e.Carrier == m.Carrier })
	least := m.Bytes + m.coming + ahead/4
	if i >= 0 && b.kept.Carriers[i].Month == m.Month && b.kept.Carriers[i].Bytes >= least && b.kept.Carriers[i].Bytes <= least+ahead {
		return m.Bytes + b.kept.Carriers[i].Bytes - least + 1
	}
	e := m.entry
	e.Bytes += m.coming + ahead
	b.remember(i, e)
	return m.Bytes + ahead - ahead/4 + 1
}

// rate measures how fast the carrier is.
func (m *meter) rate(cap uint64, now Clock) {
	took := now.Up - m.rated.Up
	if took < rateInterval && m.total >= m.ratedAt {
		return
	}
	m.coming = 0
	if m.total > m.ratedAt {
		coming := uint64(float64(m.total-m.ratedAt) * float64(goesOn) / float64(took))
		m.Reserve = max(m.Reserve, coming)
		m.coming = min(coming, cap/mostReserve)
	}
	m.rated, m.ratedAt = now, m.total
}

func (m *meter) begin(month string) { m.Month, m.Bytes, m.Reserve = month, 0, 0 }

// turn begins a new month at once if the clock is sure, else once it has stayed in
// that for a while. A sure clock that shows an earlier month ends one that a wrong
// clock had begun; what was used stays. Others that do change nothing.
func (m *meter) turn(now Clock) {
	shown := now.Wall.Format(month)
	switch {
	case m.Month == "", shown > m.Month && now.Sure:
		m.begin(shown)
		m.candidate = ""
	case shown < m.Month && now.Sure:
		m.Month, m.candidate = shown, ""
	case shown <= m.Month:
		m.candidate = ""
	case m.candidate == "" || shown < m.candidate:
		m.candidate, m.since = shown, now.Up
	case now.Up-m.since >= settles:
		m.begin(shown)
		m.candidate = ""
	}
}

func (b *Book) recall(carrier string) entry {
	for _, e := range b.kept.Carriers {
		if e.Carrier == carrier {
			return e
		}
	}
	return entry{Carrier: carrier}
}

// remember puts e at index i of what is kept, or makes room for it if i is -1.
func (b *Book) remember(i int, e entry) {
	b.fresh = true
	if i >= 0 {
		b.kept.Carriers[i] = e
		return
	}
	if len(b.kept.Carriers) >= maxCarriers {
		oldest := 0
		for i, k := range b.kept.Carriers {
			if k.Month < b.kept.Carriers[oldest].Month {
				oldest = i
			}
		}
		b.kept.Carriers = slices.Delete(b.kept.Carriers, oldest, oldest+1)
	}
	b.kept.Carriers = append(b.kept.Carriers, e)
}

// Keep writes down what must be known after a crash; it does nothing if that is
// in the file already.
func (b *Book) Keep() error {
	if !b.fresh {
		return nil
	}
	b.kept.Version = bookVersion
	raw, err := json.MarshalIndent(b.kept, "", " ")
	if err == nil {
		err = files.Replace(b.file, append(raw, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot keep what carriers have used: %w", err)
	}
	b.fresh = false
	return nil
}

// Close writes down what was really used. Count all carriers before it.
func (b *Book) Close() error {
	for i, e := range b.kept.Carriers {
		m := b.live[e.Carrier]
		if m == nil || m.Month != e.Month || m.Bytes+m.coming == e.Bytes {
			continue
		}
		e = m.entry
		e.Bytes += m.coming
		b.remember(i, e)
	}
	return b.Keep()
}

// Bytes returns a number of bytes in the unit that people think of caps in.
func Bytes(n uint64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.3g GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.3g MB", float64(n)/1e6)
}
