package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/fogplr/fogplr/internal/tables"
	"github.com/fogplr/fogplr/test/lab"
)

// link reads the keys of one direction of a carrier's link.
type link struct {
	own    *tables.Table // [carrier.up] or [carrier.down], nil without
	base   *tables.Table // the carrier's
	seed   uint64        // of traces that are built in
	traces *traces
}

// companions are the keys that have no effect unless one of others is there.
var companions = []struct {
	key    string
	others []string
}{
	{"distribution", []string{"jitter"}},
	{"queue", []string{"rate_mbit", "capacity"}},
	{"big", []string{"big_loss"}},
	{"big_loss", []string{"big"}},
	{"reorder_delay", []string{"reorder"}},
	{"trace_row", []string{"trace"}},
	{"trace_first", []string{"trace"}},
	{"trace_steps", []string{"trace"}},
}

// directions reads the two directions of a carrier's link.
func directions(t *tables.Table, seed uint64, read *traces) (up, down lab.Params) {
	const expected = "a table with the keys of one direction"
	u := link{t.Sub("up", expected), t, seed, read}
	d := link{t.Sub("down", expected), t, seed, read}
	up, down = u.params(), d.params()
	for _, c := range companions {
		lonely := [2]bool{!u.hasOne(c.others), !d.hasOne(c.others)}
		expected := strings.Join(c.others, " or ") + " beside it, without which it has no effect"
		for i, own := range []*tables.Table{u.own, d.own} {
			if lonely[i] && own != nil && own.Has(c.key) {
				own.Wrong(c.key, expected)
			}
		}
		if lonely[0] && lonely[1] && t.Has(c.key) {
			t.Wrong(c.key, expected)
		}
	}
	for _, own := range []*tables.Table{u.own, d.own} {
		if own != nil {
			finish(own)
		}
	}
	return up, down
}

// at returns the table that has the say about key.
func (l *link) at(key string) *tables.Table {
	l.base.Ask(key)
	if l.own != nil && l.own.Ask(key) {
		return l.own
	}
	return l.base
}

func (l *link) hasOne(keys []string) bool {
	for _, key := range keys {
		if l.at(key).Has(key) {
			return true
		}
	}
	return false
}

func (l *link) duration(key string, lo time.Duration) time.Duration {
	return l.at(key).Duration(key, lo, maxDelay, 0)
}

func (l *link) share(key string) float64 { return l.at(key).Share(key, 0) }

func (l *link) bytes(key string, lo int64) int {
	return int(l.at(key).Integer(key, lo, maxPacket, 0))
}

func (l *link) params() lab.Params {
	p := lab.Params{
		Delay:     l.duration("delay", 0),
		Jitter:    l.duration("jitter", 0),
		Loss:      l.share("loss"),
		Burst:     l.burst(),
		Rate:      1e6 * l.at("rate_mbit").Real("rate_mbit", 0, maxRate, 0, ", where 0 means no limit"),
		Capacity:  l.capacity(),
		Queue:     l.duration("queue", minPositive),
		MTU:       l.bytes("mtu", minMTU),
		Big:       l.bytes("big", 1),
		BigLoss:   l.share("big_loss"),
		BlackHole: l.at("black_hole").Bool("black_hole"),
		Duplicate: l.share("duplicate"),
		Reorder:   l.share("reorder"),
		// Nothing would mean the default here and for the queue.
		ReorderDelay: l.duration("reorder_delay", minPositive),
		RTT:          l.trace(),
	}
	if tables.Choice(l.at("distribution"), "distribution", "uniform", "uniform", "normal") == "normal" {
		p.Distribution = lab.Normal
	}
	if p.Rate > 0 && p.Capacity != "" {
		key := "capacity"
		if t := l.at("rate_mbit"); t == l.own {
			key = "rate_mbit"
		}
		t := l.at(key)
		t.Wrong(key, `only one of rate_mbit and capacity for a direction (in [carrier.up] and [carrier.down], rate_mbit = 0 and capacity = "" take away what holds for both)`)
	}
	return p
}

func (l *link) burst() *lab.GilbertElliott {
	b := l.at("burst").Sub("burst", "a table, { to_bad = 0.01, to_good = 0.2, loss_good = 0, loss_bad = 1 }")
	if b == nil {
		return nil
	}
	for _, key := range []string{"to_bad", "to_good"} {
		b.Need(key, "the probability, for each packet, of that change of state")
	}
	g := &lab.GilbertElliott{
		ToBad:    b.Share("to_bad", 0),
		ToGood:   b.Share("to_good", 0),
		LossGood: b.Share("loss_good", 0),
		LossBad:  b.Share("loss_bad", 1),
	}
	finish(b)
	return g
}

// cancels reports whether s is the empty text by which one direction takes away
// what holds for both.
func (l *link) cancels(t *tables.Table, s string) bool { return s == "" && t == l.own }

func (l *link) capacity() string {
	const expected = "a file of times in whole milliseconds, one a line, at each of which 1,500 bytes may leave"
	t := l.at("capacity")
	s, ok := t.Text("capacity", expected)
	if !ok || l.cancels(t, s) {
		return ""
	}
	if s == "" {
		t.Wrong("capacity", expected)
		return ""
	}
	file := t.Locate(s)
	if err := l.traces.checkCapacity(file); err != nil {
		t.Fail("capacity", fmt.Sprintf("%s, which cannot be replayed (%v)", tables.Show(s), err), expected)
	}
	return file
}

func (l *link) trace() *lab.RTT {
	t, first := l.at("trace"), l.at("trace_first")
	row := l.at("trace_row").Duration("trace_row", time.Millisecond, maxRow, defaultRow)
	from := int(first.Integer("trace_first", 0, maxFirst, 0))
	steps := l.at("trace_steps").Bool("trace_steps")
	s, ok := t.Text("trace", traceExpected)
	if !ok || l.cancels(t, s) {
		return nil
	}
	r, err := splitTrace(s, t.Locate)
	r.Row, r.First, r.Seed, r.Steps = row, from, l.seed, steps
	rows := 0
	if err == nil {
		rows, err = l.traces.rows(r)
	}
	switch {
	case err != nil:
		t.Fail("trace", fmt.Sprintf("%s, which cannot be replayed (%v)", tables.Show(s), err), traceExpected)
	case from >= rows:
		first.Fail("trace_first", tables.Show(int64(from)), fmt.Sprintf("a row from 0 to %d, since %s has no more", rows-1, r.File))
	}
	return &r
}
