package lab

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// RTT names a column of a table of round-trip times: a CSV file with a line of
// names and then one row for each interval, in milliseconds, -1 where there was
// no service. A link that replays it takes half of the row's value for each
// direction, in addition to Params.Delay, and loses everything in a row without
// service. Packets overtake others where the delay falls faster than time goes:
// the rows were measured one by one. After the last row the first one comes again.
type RTT struct {
	File   string        // or Driving or Indoor
	Column string        // its name, or its number from 1
	Row    time.Duration // how long a row lasts; 0 means 1 s
	First  int           // the row to begin with, from 0
	Seed   uint64        // of a generated one
	// Steps keeps the delay all through a row. Without it the delay goes evenly from
	// one row to the next, where both have service: a radio that stood still releases
	// its packets at once and in order, so that its rows fall by a second each second,
	// and steps would let packets overtake others that did not.
	Steps bool
}

// RTTTrace is a column that was read.
type RTTTrace struct {
	rows  []time.Duration // round trips, negative without service
	row   time.Duration
	first int
	still time.Duration // before the replay starts

	steps bool
}

// Load reads the column. Errors name the file and the line.
func (r RTT) Load() (*RTTTrace, error) {
	if strings.HasPrefix(r.File, builtin) {
		text, err := generated(r.File, r.Seed)
		if err != nil {
			return nil, err
		}
		return r.read(strings.NewReader(text))
	}
	f, err := os.Open(r.File)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := r.read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.File, err)
	}
	return t, nil
}

func (r RTT) read(f io.Reader) (*RTTTrace, error) {
	text := bufio.NewReader(f)
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = text.Discard(len(byteOrderMark))
	}
	table := csv.NewReader(text)
	table.TrimLeadingSpace, table.ReuseRecord = true, true
	names, err := table.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty; its first line names the columns")
	}
	if err != nil {
		return nil, err
	}
	column, err := find(names, r.Column)
	if err != nil {
		return nil, err
	}
	t := &RTTTrace{row: r.Row, first: r.First, still: -1, steps: r.Steps}
	if t.row == 0 {
		t.row = time.Second
	}
	for {
		record, err := table.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := table.FieldPos(column)
		ms, err := strconv.ParseFloat(strings.TrimSpace(record[column]), 64)
		if err != nil || math.IsNaN(ms) || ms > maxRTT || ms < 0 && ms != -1 {
			return nil, fmt.Errorf("line %d: %q is not a round trip in ms: want 0 to %g, or -1 for no service", line, short(record[column]), float64(maxRTT))
		}
		if len(t.rows) == maxRows {
			return nil, fmt.Errorf("line %d: more than %d rows", line, maxRows)
		}
		t.rows = append(t.rows, time.Duration(ms*float64(time.Millisecond)))
	}
	if len(t.rows) == 0 {
		return nil, errors.New("there is no row after the line of names")
	}
	if r.First < 0 || r.First >= len(t.rows) {
		return nil, fmt.Errorf("row %d to begin with, but there are %d", r.First, len(t.rows))
	}
	for i := range t.rows {
		if d := t.rows[(t.first+i)%len(t.rows)]; d >= 0 {
			t.still = d
			return t, nil
		}
	}
	return nil, fmt.Errorf("column %s never has service", r.Column)
}

// byteOrderMark opens files of some programs.
const byteOrderMark = "\ufeff"

// short is a text of a file for a message.
func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// find returns the column of that name, or else of that number.
func find(names []string, name string) (int, error) {
	var listed []string
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		listed = append(listed, strings.Trim(strconv.Quote(short(names[i])), `"`))
	}
	if i := slices.Index(names, name); i >= 0 {
		if slices.Contains(names[i+1:], name) {
			return 0, fmt.Errorf("line 1: two columns are called %q; give the number of one, from 1", name)
		}
		return i, nil
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(names) {
		return n - 1, nil
	}
	return 0, fmt.Errorf("line 1: there is no column %q; the columns are %s", name, strings.Join(listed, ", "))
}

// Rows returns how many rows there are.
func (t *RTTTrace) Rows() int { return len(t.rows) }

// At returns the delay of one direction at a time since the start of the replay,
// and false if there is no service. Before the start it is that of the first row
// that has service.
func (t *RTTTrace) At(since time.Duration) (time.Duration, bool) {
	if since < 0 {
		return t.still / 2, true
	}
	n := int(since / t.row)
	d := t.rows[(t.first+n)%len(t.rows)]
	if d < 0 {
		return 0, false
	}
	if next := t.rows[(t.first+n+1)%len(t.rows)]; !t.steps && next >= 0 {
		d += time.Duration(float64(next-d) * float64(since%t.row) / float64(t.row))
	}
	return d / 2, true
}

// opportunity is how many bytes may leave at each line of a capacity trace.
const opportunity = 1500

// capacity replays a file of times, in milliseconds, at each of which 1,500 bytes
// may leave the queue. The file repeats at its end, its last time being its
// length. It keeps its place, so each direction has its own.
type capacity struct {
	at   []time.Duration
	next int // opportunity in use, counted through all repetitions
	left int // bytes left in it
}

func loadCapacity(file string) (*capacity, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := readCapacity(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// CheckCapacity reads a capacity trace and says what is wrong with it: the file,
// the line, and what was expected.
func CheckCapacity(file string) error {
	_, err := loadCapacity(file)
	return err
}

func readCapacity(f io.Reader) (*capacity, error) {
	c := &capacity{left: opportunity}
	lines := bufio.NewScanner(f)
	n := 1
	for ; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		ms, err := strconv.ParseUint(text, 10, 32)
		at := time.Duration(ms) * time.Millisecond
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %q is not a time in whole milliseconds", n, short(text))
		case len(c.at) > 0 && at < c.at[len(c.at)-1]:
			return nil, fmt.Errorf("line %d: %d ms is earlier than the line before", n, ms)
		case len(c.at) == maxOpportunities:
			return nil, fmt.Errorf("line %d: more than %d lines", n, maxOpportunities)
		}
		c.at = append(c.at, at)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n, err)
	}
	if len(c.at) == 0 || c.at[len(c.at)-1] == 0 {
		return nil, errors.New("the file has no time after 0 ms, so nothing would ever leave")
	}
	return c, nil
}

func (c *capacity) time(n int) time.Duration {
	return time.Duration(n/len(c.at))*c.at[len(c.at)-1] + c.at[n%len(c.at)]
}

// send returns when a packet of size bytes that arrives at since has left, false
// if it would wait longer than queue for its turn.
func (c *capacity) send(since time.Duration, size int, queue time.Duration) (time.Duration, bool) {
	if c.left == 0 {
		c.next, c.left = c.next+1, opportunity
	}
	if c.time(c.next) < since {
		period := c.at[len(c.at)-1]
		cycle := int((since - 1) / period) // whose last opportunity is not before since
		i := sort.Search(len(c.at), func(i int) bool { return time.Duration(cycle)*period+c.at[i] >= since })
		c.next, c.left = cycle*len(c.at)+i, opportunity
	}
	if c.time(c.next)-since > queue {
		return 0, false
	}
	for ; size > c.left; c.next++ {
		size -= c.left
		c.left = opportunity
	}
	c.left -= size
	return c.time(c.next), true
}
