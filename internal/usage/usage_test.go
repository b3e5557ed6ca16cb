package usage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const gigabyte = 1_000_000_000

func day(text string) time.Time {
	t, err := time.ParseInLocation("2006-01-02", text, time.Local)
	if err != nil {
		panic(err)
	}
	return t
}

func open(t testing.TB, dir string) *Book {
	t.Helper()
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestACapHoldsForItsMonth(t *testing.T) {
	b := open(t, t.TempDir())
	for _, c := range []struct {
		wall  string
		up    time.Duration
		total uint64
		used  uint64
		spent bool
		month string
	}{
		{"2026-11-29", 0, 1000, 0, false, "2026-11"}, // the counter of a run need not begin at 0
		{"2026-11-29", time.Hour, 1000 + gigabyte/2, gigabyte / 2, false, "2026-11"},
		{"2026-11-29", 2 * time.Hour, 1000 + gigabyte*99/100, gigabyte * 99 / 100, true, "2026-11"},
		{"2026-12-01", 3 * time.Hour, 1000 + gigabyte, gigabyte, true, "2026-11"}, // not settled yet
		{"2026-12-01", 4*time.Hour - 1, 1000 + gigabyte, gigabyte, true, "2026-11"},
		{"2026-12-01", 4 * time.Hour, 2000 + gigabyte, 1000, false, "2026-12"},
		{"1970-01-01", 9 * time.Hour, 3000 + gigabyte, 2000, false, "2026-12"},  // wrong clocks
		{"2076-01-01", 10 * time.Hour, 4000 + gigabyte, 3000, false, "2026-12"}, // do not begin
		{"2026-12-02", 19 * time.Hour, 4000 + gigabyte, 3000, false, "2026-12"}, // a month
		{"2076-01-01", 20 * time.Hour, 5000 + gigabyte, 4000, false, "2026-12"},
		{"2026-12-02", 40 * time.Hour, 100, 4000, false, "2026-12"}, // a counter that began anew
		{"2026-12-02", 40 * time.Hour, 200, 4100, false, "2026-12"},
	} {
		got := b.Count("wwan0", c.total, gigabyte, Clock{Wall: day(c.wall), Up: c.up})
		if got.Used != c.used || got.Cap != gigabyte || got.Month != c.month || got.Spent != c.spent || got.Again <= c.total {
			t.Errorf("%s, %v: %+v, want %+v", c.wall, c.up, got, c)
		}
	}
}

// A look finds what the next run will find, and changes nothing.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	then := Clock{Wall: day("2026-11-29"), Sure: true}
	for id, moved := range map[string]uint64{"low": gigabyte / 10, "high": gigabyte * 98 / 100, "spent": gigabyte} {
		b.Count(id, 0, gigabyte, then)
		b.Count(id, moved, gigabyte, Clock{Wall: then.Wall, Up: time.Hour, Sure: true})
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	spent := 0
	for _, now := range []Clock{then, {Wall: day("2026-12-01")}, {Wall: day("2026-12-01"), Sure: true}, {Wall: day("1970-01-01")}} {
		for _, id := range []string{"low", "high", "spent", "new"} {
			got, want := open(t, dir).Look(id, gigabyte, now), open(t, dir).Count(id, 77, gigabyte, now)
			want.Again, want.Most = 0, 0
			if got != want {
				t.Errorf("%s, %v: %+v, want %+v", id, now.Wall, got, want)
			}
			if got.Spent {
				spent++
			}
		}
	}
	if spent != 3 {
		t.Errorf("spent %d times, want while the month is not over", spent)
	}
}

// Whatever moves and whenever the daemon is killed or stopped, what the file says
// is never less than what was moved, and not much more.
func TestNoCrashForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "usage")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		clock := Clock{Wall: day("2026-11-29")}
		cap := rapid.Uint64Range(1, 20*gigabyte).Draw(t, "cap")
		moved, runs := uint64(0), rapid.IntRange(1, 8).Draw(t, "runs")
		for range runs {
			b, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			total := uint64(0)
			b.Count("wwan0", 0, cap, clock)
			for range rapid.IntRange(0, 20).Draw(t, "rounds") {
				step := rapid.Uint64Range(0, gigabyte).Draw(t, "step")
				total += step
				moved += step
				s := b.Count("wwan0", total, cap, clock)
				if err := b.Keep(); err != nil {
					t.Fatal(err)
				}
				if s.Used < moved || s.Used > moved+uint64(runs)*max(cap/lease, leaseBytes) {
					t.Fatalf("%d used, but %d were moved", s.Used, moved)
				}
				if s.Spent != (s.Used >= cap-cap/reserve) {
					t.Fatalf("%+v", s)
				}
			}
			if rapid.Bool().Draw(t, "stopped") {
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// A carrier that moves as fast as it can, is counted when it asks for it, goes on
// receiving when it was stopped or killed, which may be at any moment, moves no more
// than its cap, and most of that if it is not killed.
func TestACapIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var disk content
		cap := rapid.Uint64Range(1e6, 10*gigabyte).Draw(t, "cap")
		lag := time.Duration(rapid.IntRange(1, 2900).Draw(t, "lag ms")) * time.Millisecond
		rate := float64(cap) / 20 * rapid.Float64Range(0.1, 1).Draw(t, "rate") // bytes/s
		const tick = 2 * time.Millisecond
		wall := day("2026-11-29")
		moved, kills := uint64(0), 0
		for spent := false; !spent; kills++ {
			b := &Book{kept: disk, live: make(map[string]*meter)}
			lives := time.Duration(rapid.IntRange(50, 20_000).Draw(t, "lives ms")) * time.Millisecond
			total := uint64(0)
			s := b.Count("wwan0", 0, cap, Clock{Wall: wall})
			for up := time.Duration(0); up < lives && !s.Spent; up += tick {
				if total >= s.Again {
					s = b.Count("wwan0", total, cap, Clock{Wall: wall, Up: up})
				}
				disk.Carriers = slices.Clone(b.kept.Carriers) // Keep
				step := uint64(rate * tick.Seconds())
				total += step
				moved += step
			}
			if spent = s.Spent; spent && total > 0 {
				moved += uint64(rate * lag.Seconds())
			} else if !spent && lives >= 2*rateInterval { // else nothing is known of its rate
				moved += uint64(rate * goesOn.Seconds())
			}
		}
		if moved > cap || kills == 1 && moved < cap*83/100 {
			t.Fatalf("%d of %d bytes were moved at a rate of %.0f, killed %d times", moved, cap, rate, kills-1)
		}
	})
}

// How much may come in after a crash is known after one.
func TestTheReserveIsKept(t *testing.T) {
	dir, at := t.TempDir(), Clock{Wall: day("2026-11-29")}
	b := open(t, dir)
	b.Count("wwan0", 0, gigabyte, at)
	at.Up = 10 * time.Second
	b.Count("wwan0", gigabyte/6, gigabyte, at)
	if err := b.Keep(); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir).Count("wwan0", 0, gigabyte, at)
	least := uint64(gigabyte/6 + gigabyte/20)
	if s.Used < least || s.Used > least+leaseBytes || s.Used+s.Most+1 < gigabyte-gigabyte/40 || s.Used+s.Most > gigabyte-gigabyte/40+1 || s.Spent {
		t.Errorf("after a crash: %+v", s)
	}
}

func TestMonthsPassWhileOff(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		wall  string
		sure  bool
		used  uint64
		month string
	}{
		{"2026-11-29", false, 0, "2026-11"}, // the first month is believed
		{"2026-11-30", false, 500, "2026-11"},
		{"1970-01-01", false, 1000, "2026-11"},
		{"2026-12-01", false, 1500, "2026-11"}, // not so soon
		{"2026-12-01", true, 0, "2026-12"},
		{"2076-01-01", false, 500, "2026-12"}, // broken battery
		{"2076-01-01", true, 0, "2076-01"},    // and a broken time server
		{"2026-12-02", true, 500, "2026-12"},  // set right: what was used stays
		{"2027-01-01", true, 0, "2027-01"},
	} {
		b := open(t, dir)
		now := Clock{Wall: day(c.wall), Sure: c.sure}
		if s := b.Count("wwan0", 0, gigabyte, now); s.Used != c.used || s.Month != c.month {
			t.Errorf("%s, sure %v: %+v, want %d in %s", c.wall, c.sure, s, c.used, c.month)
		}
		b.Count("wwan0", 500, gigabyte, now)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManyCarriersAreForgottenOldestFirst(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	b.Count("old", 0, gigabyte, Clock{Wall: day("2026-01-01")})
	for i := range maxCarriers {
		b.Count(string(rune('A'+i)), 0, gigabyte, Clock{Wall: day("2026-11-29")})
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b = open(t, dir); len(b.kept.Carriers) != maxCarriers || b.recall("old").Month != "" {
		t.Errorf("%d carriers, %+v", len(b.kept.Carriers), b.recall("old"))
	}
}

func TestWrongFilesAreErrors(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "version": `{"version":2,"carriers":[]}`, "month": `{"version":1,"carriers":[{"carrier":"a","month":"2026-13","bytes":1}]}`,
		"negative": `{"version":1,"carriers":[{"carrier":"a","month":"2026-11","bytes":-1}]}`, "more": `{"version":1,"carriers":[],"x":1}`,
		"huge": strings.Repeat(" ", maxFile+1),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := Open(dir)
		if err == nil || !strings.Contains(err.Error(), fileName) {
			t.Errorf("%s: error %v", name, err)
		}
		if s := b.Count("wwan0", 1, gigabyte, Clock{Wall: day("2026-11-29")}); s.Month != "2026-11" {
			t.Errorf("%s: the book is not usable: %+v", name, s)
		}
	}
	if err := open(t, filepath.Join(t.TempDir(), "is", "not", "there")).Close(); err != nil {
		t.Errorf("nothing to keep, and yet %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"carriers":[{"carrier":"wwan0","month":"2026-11","bytes":1000}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if c, err := decode(raw); err == nil && len(c.Carriers) > maxCarriers {
			t.Errorf("%d carriers", len(c.Carriers))
		}
	})
}
