package lab

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRTTTrace(t *testing.T) {
	const ms = time.Millisecond
	table := "a_ms, b_ms\n-1.0,100\n20,200.5\n40,-1\n"
	for _, c := range []struct {
		r     RTT
		since time.Duration
		want  time.Duration
		gone  bool
	}{
		{r: RTT{Column: "a_ms"}, since: -1, want: 10 * ms}, // the first row with service
		{r: RTT{Column: "a_ms"}, since: 0, gone: true},
		{r: RTT{Column: "a_ms"}, since: 999 * ms, gone: true},
		{r: RTT{Column: "a_ms"}, since: time.Second, want: 10 * ms},
		{r: RTT{Column: "a_ms"}, since: 2 * time.Second, want: 20 * ms},
		{r: RTT{Column: "a_ms"}, since: 4 * time.Second, want: 10 * ms}, // it repeats
		{r: RTT{Column: "2"}, since: 0, want: 50 * ms},
		{r: RTT{Column: "b_ms", First: 1}, since: 0, want: 100250 * time.Microsecond},
		{r: RTT{Column: "b_ms", First: 1, Row: 100 * ms, Steps: true}, since: 250 * ms, want: 50 * ms},
		{r: RTT{Column: "a_ms"}, since: 1250 * ms, want: 12500 * time.Microsecond},
		{r: RTT{Column: "a_ms"}, since: 2250 * ms, want: 20 * ms}, // before a hole
		{r: RTT{Column: "a_ms", Steps: true}, since: 1250 * ms, want: 10 * ms},
	} {
		trace, err := c.r.read(strings.NewReader(table))
		if err != nil {
			t.Fatalf("%+v: %v", c.r, err)
		}
		if got, ok := trace.At(c.since); ok == c.gone || ok && got != c.want {
			t.Errorf("%+v at %v: %v, %v, want %v", c.r, c.since, got, ok, c.want)
		}
	}
}

// Spreadsheets write a byte order mark, quotes and CRLF.
func TestTraceOfASpreadsheet(t *testing.T) {
	trace, err := RTT{Column: "a", Steps: true}.read(strings.NewReader("\ufeff\"a\",\"b\"\r\n\"10\",20\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := trace.At(0); !ok || d != 5*time.Millisecond {
		t.Errorf("%v, %v", d, ok)
	}
}

func TestWrongTracesNameTheLine(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"":                      "the file is empty",
		"x,y\n1,2\n":            `line 1: there is no column "a"; the columns are x, y`,
		"a\n1\n2\nfast\n":       `line 4: "fast" is not a round trip`,
		"a\n\n1\nNaN\n":         `line 4: "NaN"`,
		"a\n1e9\n":              "line 2: ",
		"a\n-250\n":             `line 2: "-250"`,
		"a,b\n1,2\n3\n":         "line 3",
		"a\n":                   "no row after the line of names",
		"a,a\n1,2\n":            "two columns are called",
		"a\n-1\n-1\n":           "never has service",
		"a\n\"1\n":              "line 2",
		"a\n1\n\xff\xfe\x00\n2": "line 3",
	} {
		file := filepath.Join(dir, "rtt.csv")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := RTT{File: file, Column: "a"}.Load()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"":          "no time after 0 ms",
		"0\n0\n":    "no time after 0 ms",
		"1\n2\n1\n": "line 3: 1 ms is earlier",
		"1\n-2\n":   `line 2: "-2"`,
		"1\nx\n":    `line 2: "x"`,
	} {
		file := filepath.Join(dir, "capacity")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := CheckCapacity(file)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// queueTwin is the bottleneck queue that the traces were made for, millisecond by
// millisecond: at each opportunity up to 1,500 bytes leave, first come, first
// served, and what is not used is lost.
func queueTwin(at []int, arrivals []int, sizes []int, until int) []int {
	left := make([]int, len(sizes)) // when each packet has left
	sent, done := make([]int, len(sizes)), 0
	period := at[len(at)-1]
	for now := 0; now <= until; now++ {
		for cycle := range now/period + 1 {
			for _, ms := range at {
				if cycle*period+ms != now {
					continue
				}
				for room := opportunity; room > 0 && done < len(sizes) && arrivals[done] <= now; {
					n := min(room, sizes[done]-sent[done])
					sent[done] += n
					room -= n
					if sent[done] == sizes[done] {
						left[done] = now
						done++
					}
				}
			}
		}
	}
	return left
}

func TestCapacityAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var at []int
		var text strings.Builder
		// The last one is not at 0 ms, or nothing would ever leave.
		gaps := append(rapid.SliceOfN(rapid.IntRange(0, 30), 0, 19).Draw(t, "gaps"), rapid.IntRange(1, 30).Draw(t, "last"))
		for _, gap := range gaps {
			last := 0
			if len(at) > 0 {
				last = at[len(at)-1]
			}
			at = append(at, last+gap)
			fmt.Fprintln(&text, last+gap)
		}
		c, err := readCapacity(strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 4000), 1, 20).Draw(t, "sizes")
		arrivals := make([]int, len(sizes))
		for i := 1; i < len(arrivals); i++ {
			arrivals[i] = arrivals[i-1] + rapid.IntRange(0, 40).Draw(t, "pause")
		}
		// Each packet fills three opportunities at most, and each cycle has one.
		want := queueTwin(at, arrivals, sizes, arrivals[len(arrivals)-1]+4*len(sizes)*(at[len(at)-1]+1))
		for i, size := range sizes {
			got, ok := c.send(time.Duration(arrivals[i])*time.Millisecond, size, time.Hour)
			if !ok || got != time.Duration(want[i])*time.Millisecond {
				t.Fatalf("packet %d of %d bytes, at %d ms: left at %v, %v; the twin says %d ms", i, size, arrivals[i], got, ok, want[i])
			}
		}
	})
}

func TestCapacityQueueIsFinite(t *testing.T) {
	c, err := readCapacity(strings.NewReader("10\n20\n"))
	if err != nil {
		t.Fatal(err)
	}
	dropped := 0
	for range 20 {
		if _, ok := c.send(0, opportunity, 50*time.Millisecond); !ok {
			dropped++
		}
	}
	// At 10, 20, 30, 40 and 50 ms one may leave: five packets have a turn within
	// 50 ms.
	if dropped != 15 {
		t.Errorf("%d of 20 packets dropped, want 15", dropped)
	}
	if _, ok := c.send(time.Second, opportunity, 50*time.Millisecond); !ok {
		t.Error("a packet after a pause was dropped")
	}
}

// A link with a trace: what is in flight when a row ends keeps its delay, and the
// next row's packets may overtake it.
func TestPipeReplaysATrace(t *testing.T) {
	const ms = time.Millisecond
	trace, err := RTT{Column: "1", Steps: true}.read(strings.NewReader("rtt\n2000\n-1\n20\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPipe(1, Params{Delay: 5 * ms})
	p.rtt = trace
	offer := func(n int, at time.Duration) { p.offer(epoch.Add(at), frameOf(n, 100)) }
	offer(0, 0) // not started: the first row with service
	p.start = epoch.Add(100 * ms)
	offer(1, 99*ms)
	offer(2, 1099*ms)
	offer(3, 1100*ms) // no service
	offer(4, 2100*ms) // 20 ms
	got := drain(p, epoch.Add(time.Hour))
	want := []flight{{0, 1005 * ms}, {1, 1104 * ms}, {2, 2104 * ms}, {4, 2115 * ms}}
	if fmt.Sprint(got) != fmt.Sprint(want) || p.counters().Lost != 1 {
		t.Errorf("%v, %d lost, want %v", got, p.counters().Lost, want)
	}
}

func TestBigPacketsMeetTheirOwnLoss(t *testing.T) {
	p := newPipe(1, Params{Big: 1000, BigLoss: 1})
	p.offer(epoch, frameOf(0, 1000+ethernetHeader))
	p.offer(epoch, frameOf(1, 1001+ethernetHeader))
	if c := p.counters(); c.InFlight != 1 || c.Lost != 1 {
		t.Errorf("%+v, want the larger of two lost", c)
	}
}

func TestGeneratedTraces(t *testing.T) {
	for kind, columns := range map[string]int{Driving: 4, Indoor: 2} {
		one, err := generate(kind, 7)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := generate(kind, 7)
		other, _ := generate(kind, 8)
		if fmt.Sprint(one) != fmt.Sprint(again) || fmt.Sprint(one) == fmt.Sprint(other) {
			t.Errorf("%s: equal seeds must give equal traces, others different ones", kind)
		}
		if len(one) != columns {
			t.Errorf("%s has %d columns", kind, len(one))
		}
		for i, rows := range one {
			holes := 0
			for _, ms := range rows {
				if ms < 0 {
					holes++
				} else if ms == 0 || ms > 5000 {
					t.Fatalf("%s, column %d: %v ms", kind, i+1, ms)
				}
			}
			share := float64(holes) / float64(len(rows))
			t.Logf("%s, column %d: %.1f %% without service", kind, i+1, 100*share)
			if covered := kind == Indoor && i == 1; covered != (holes == 0) || share > 0.15 {
				t.Errorf("%s, column %d: %.1f %% of the rows without service", kind, i+1, 100*share)
			}
		}
		trace, err := RTT{File: kind, Column: "2", Seed: 7}.Load()
		if err != nil || trace.Rows() != len(one[1]) {
			t.Fatalf("%v, %v", trace, err)
		}
		if d, ok := trace.At(0); ok != (one[1][0] >= 0) || ok && math.Abs(d.Seconds()*2000-one[1][0]) > 0.01 {
			t.Errorf("%s: %v, %v in place of %v ms", kind, d, ok, one[1][0])
		}
	}
	if _, err := (RTT{File: "builtin:flying", Column: "1"}).Load(); err == nil || !strings.Contains(err.Error(), Driving) {
		t.Errorf("error %v", err)
	}
}

func FuzzTraces(f *testing.F) {
	f.Add("a,b\n1,2\n-1,3\n", "1\n2\n2\n")
	f.Fuzz(func(t *testing.T, table, stamps string) {
		if trace, err := (RTT{Column: "a"}).read(strings.NewReader(table)); err == nil {
			trace.At(0)
			trace.At(time.Hour)
		}
		if c, err := readCapacity(strings.NewReader(stamps)); err == nil {
			c.send(0, 1500, time.Second)
			c.send(time.Hour, 65535, time.Second)
		}
	})
}
