package report

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// markdown is results.md.
func markdown(head Head, sections []section) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", oneLine(head.Title))
	for _, x := range [][2]string{{"Date", head.Date}, {"Machine", head.Machine}, {"Commit", head.Commit}} {
		if x[1] != "" {
			fmt.Fprintf(&b, "- %s: %s\n", x[0], oneLine(x[1]))
		}
	}
	if len(head.Commands) > 0 {
		b.WriteString("- To repeat it:\n\n")
		for _, c := range head.Commands {
			fmt.Fprintf(&b, "      %s\n", oneLine(c))
		}
	}
	fmt.Fprintf(&b, "\n%s\n\n%s\n", verdict(sections), howToRead())
	for _, s := range sections {
		s.markdown(&b)
	}
	return b.Bytes()
}

// verdict tells which experiments failed.
func verdict(sections []section) string {
	var failed []string
	for _, s := range sections {
		if len(s.Failed) > 0 {
			failed = append(failed, oneLine(s.Title))
		}
	}
	switch {
	case len(sections) == 0:
		return "No experiment was run."
	case len(failed) == 0:
		return "In every experiment all came out as it must."
	case len(failed) == 1:
		return fmt.Sprintf("**In one experiment something did not come out as it must: %s.**", failed[0])
	}
	return fmt.Sprintf("**In %d experiments something did not come out as it must: %s.**", len(failed), strings.Join(failed, "; "))
}

func howToRead() string {
	return fmt.Sprintf(`All times are in milliseconds. Of 100 calls sorted by latency p90 is the 90th. A
call that was lost sorts last, so "lost" may stand in place of a quantile. The mean
counts it as %[1]s ms, and so it counts every answer that took longer. A miss is a
call without an answer by the deadline; lost ones are among them. "Longest gap" is
the longest time in which no answer came. Intervals hold with a confidence of
%[2]s.`,
		millis(lostAs), percent(Confidence))
}

func (s section) markdown(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## %s\n", oneLine(s.Title))
	if text := strings.TrimSpace(s.Text); text != "" {
		fmt.Fprintf(b, "\n%s\n", text)
	}
	for _, f := range s.Failed {
		fmt.Fprintf(b, "\n**%s**\n", oneLine(f))
	}
	if len(s.Series) > 0 {
		writeTable(b, s.latencies())
		if t := s.bytes(); len(t) > 1 {
			fmt.Fprintf(b, "\nWhat crossed the carriers:\n")
			writeTable(b, t)
		}
	}
	for _, m := range s.Misses {
		fmt.Fprintf(b, "\n%s:\n", oneLine(m.Title))
		writeTable(b, m.table())
	}
	for _, t := range s.Tables {
		fmt.Fprintf(b, "\n%s:\n", strings.TrimRight(oneLine(t.Title), ".:"))
		writeTable(b, t.Table)
	}
	for _, p := range s.plots {
		fmt.Fprintf(b, "\n![%s](%s)\n", strings.NewReplacer("[", "(", "]", ")").Replace(oneLine(p.alt)), p.file)
	}
}

// latencies has a row for each series.
func (s section) latencies() Table {
	head := []string{"", "calls", "lost", "mean", "p50", "p90", "p99", "p99.9", "max"}
	for _, d := range deadlines {
		head = append(head, "misses at "+millis(d).String())
	}
	t := Table{append(head, "longest gap")}
	for i, f := range s.figures {
		row := []string{s.Series[i].Name, count(f.Calls), countOf(f.Lost, f.LostShare)}
		for _, m := range []Millis{f.Mean, f.P50, f.P90, f.P99, f.P999, f.Max} {
			row = append(row, m.String())
		}
		for _, l := range f.Misses {
			row = append(row, countOf(l.Count, l.Share))
		}
		t = append(t, append(row, f.Gap.String()))
	}
	return t
}

// bytes has a row for each carrier of each series.
func (s section) bytes() Table {
	t := Table{{"", "carrier", "up, MB", "down, MB"}}
	for _, x := range s.Series {
		for _, carrier := range slices.Sorted(maps.Keys(x.Bytes)) {
			n := x.Bytes[carrier]
			t = append(t, []string{x.Name, carrier, megabytes(n.Up), megabytes(n.Down)})
		}
	}
	return t
}

func megabytes(n uint64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) }

// table has a row for each point.
func (m Misses) table() Table {
	t := Table{{"", m.Number, "calls", "missed", "share", "interval of the share", "predicted", "expected to miss", "as predicted"}}
	for _, c := range m.Curves {
		for _, p := range c.Points {
			lo, hi := p.Interval()
			row := []string{c.Name, count(p.Number), count(p.Calls), count(p.Missed), percent(p.Share()), percent(lo) + " to " + percent(hi)}
			if p.Predicted == nil {
				t = append(t, append(row, "–", "–", "–"))
				continue
			}
			from, to := p.Expected()
			agrees := "yes"
			if !p.Agrees() {
				agrees = "**no**"
			}
			t = append(t, append(row, percent(*p.Predicted), count(from)+" to "+count(to), agrees))
		}
	}
	return t
}

// writeTable writes a table with an empty line before it. All columns but the
// first are aligned to the right.
func writeTable(b *bytes.Buffer, t Table) {
	columns := 0
	for _, row := range t {
		columns = max(columns, len(row))
	}
	if columns == 0 {
		return
	}
	b.WriteString("\n")
	for i, row := range t {
		b.WriteString("|")
		for c := range columns {
			cell := ""
			if c < len(row) {
				cell = strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(oneLine(row[c]))
			}
			fmt.Fprintf(b, " %s |", cell)
		}
		b.WriteString("\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---:|", columns-1) + "\n")
		}
	}
}

// oneLine puts a space for every run of white space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// count writes 12000 as 12,000.
func count(n int) string { return message.NewPrinter(language.English).Sprint(n) }

func countOf(n int, share float64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%s (%s)", count(n), percent(share))
}

// percent writes a share with three digits that count.
func percent(share float64) string {
	x := 100 * share
	if x == 0 {
		return "0 %"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	s := strconv.FormatFloat(x, 'f', min(max(digits, 0), 12), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s + " %"
}
