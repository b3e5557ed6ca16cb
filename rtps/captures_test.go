package rtps

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every message of the captures reads as tshark reads it, and what the first
// fragment of it holds reads the same.
func TestCaptures(t *testing.T) {
	captures, err := filepath.Glob("testdata/*.pcap.gz")
	if err != nil || len(captures) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	kinds := map[Kind]int{}
	for _, capture := range captures {
		t.Run(strings.TrimSuffix(filepath.Base(capture), ".pcap.gz"), func(t *testing.T) {
			rows := readRows(t, strings.TrimSuffix(capture, ".pcap.gz")+".txt")
			for _, m := range readMessages(t, capture) {
				if !bytes.HasPrefix(m.whole, []byte(magic)) {
					continue // Cyclone DDS wakes its own threads with one octet
				}
				row, known := rows[m.frame]
				if !known {
					t.Errorf("packet %s: tshark sees no RTPS in it", m.frame)
					continue
				}
				delete(rows, m.frame)
				comparesTo(t, row, m, kinds)
			}
			for frame := range rows {
				t.Errorf("packet %s: not read", frame)
			}
		})
	}
	for _, k := range []Kind{
		KindData, KindDataFrag, KindHeartbeat, KindHeartbeatFrag, KindAckNack, KindNackFrag, KindGap,
		KindInfoTS, KindInfoDst,
	} {
		if kinds[k] == 0 {
			t.Errorf("the captures hold no submessage of kind %#02x", byte(k))
		}
	}
	t.Logf("submessages by kind: %v", kinds)
}

// captured is the payload of a UDP datagram.
type captured struct {
	frame string // number of the packet that completed it
	whole []byte
	first int // octets in the first fragment
}

// comparesTo reads a message, and compares it column by column with what tshark
// wrote.
func comparesTo(t *testing.T, row map[string]string, c captured, kinds map[Kind]int) {
	t.Helper()
	got := map[string][]string{}
	add := func(column, format string, values ...any) {
		got[column] = append(got[column], fmt.Sprintf(format, values...))
	}
	var m, part Message
	if !m.Read(c.whole, len(c.whole)) || !part.Read(c.whole[:c.first], len(c.whole)) {
		t.Errorf("packet %s: not read", c.frame)
		return
	}
	var topics []string
	for s, p := (Submessage{}), (Submessage{}); m.Next(&s); {
		kinds[s.Kind]++
		if part.Next(&p) && (p.Kind != s.Kind || p.Start != s.Start || p.End != s.End || p.Cut != (s.End > c.first)) {
			t.Errorf("packet %s: %+v of the whole is %+v in the first fragment", c.frame, s, p)
		}
		add("rtps.sm.id", "0x%02x", byte(s.Kind))
		if s.Kind < 0x80 {
			add("rtps.sm.flags", "0x%02x", s.Flags)
		}
		topics = append(topics, describe(t, &s, add)...)
	}
	if m.Unread() != 0 {
		t.Errorf("packet %s: %d octets are not read", c.frame, m.Unread())
	}
	add("rtps.version", "0x%02x%02x", m.Version[0], m.Version[1])
	add("rtps.vendorId", "0x%02x%02x", m.Vendor[0], m.Vendor[1])
	add("rtps.guidPrefix.src", "%v", m.Source)
	if m.Destination != (Prefix{}) {
		add("rtps.guidPrefix.dst", "%v", m.Destination)
	}
	// tshark repeats these two where a sample of discovery has them.
	for _, column := range []string{"rtps.version", "rtps.vendorId"} {
		row[column], _, _ = strings.Cut(row[column], ",")
	}
	for _, column := range []string{
		"rtps.version", "rtps.vendorId", "rtps.guidPrefix.src", "rtps.guidPrefix.dst", "rtps.sm.id",
		"rtps.sm.flags", "rtps.sm.rdEntityId", "rtps.sm.wrEntityId", "rtps.sm.seqNumber",
		"rtps.data_frag.number", "rtps.data_frag.num_fragments", "rtps.data_frag.sample_size",
		"rtps.heartbeat_count", "rtps.acknack.count", "rtps.param.id", "rtps.param.endpoint_guid",
	} {
		if g := strings.Join(got[column], ","); g != row[column] {
			t.Errorf("packet %s, %s: %q, and tshark %q", c.frame, column, g, row[column])
		}
	}
	// tshark also names topics of endpoints that it knows from before.
	named := strings.Split(row["rtps.param.topicName"]+","+row["rtps.param.typeName"], ",")
	for _, name := range topics {
		if !slices.Contains(named, name) {
			t.Errorf("packet %s: %q is read, and tshark has %q", c.frame, name, named)
		}
	}
}

// describe adds the columns of one submessage, and returns the names in it if it
// announces an endpoint.
func describe(t *testing.T, s *Submessage, add func(column, format string, values ...any)) (topics []string) {
	t.Helper()
	ok := true
	entities := func(reader, writer EntityID, numbers ...SequenceNumber) {
		add("rtps.sm.rdEntityId", "0x%v", reader)
		add("rtps.sm.wrEntityId", "0x%v", writer)
		for _, n := range numbers {
			add("rtps.sm.seqNumber", "%d", n)
		}
	}
	switch s.Kind {
	case KindData:
		var d Data
		d, ok = s.Data()
		entities(d.Reader, d.Writer, d.Seq)
		topics = describeSample(&d, add)
	case KindDataFrag:
		var f DataFrag
		f, ok = s.DataFrag()
		entities(f.Reader, f.Writer, f.Seq)
		add("rtps.data_frag.number", "%d", f.FragmentStart)
		add("rtps.data_frag.num_fragments", "%d", f.FragmentsInSubmessage)
		add("rtps.data_frag.sample_size", "%d", f.SampleSize)
		topics = describeSample(&f.Data, add)
	case KindHeartbeat:
		var h Heartbeat
		h, ok = s.Heartbeat()
		entities(h.Reader, h.Writer, h.First, h.Last)
		add("rtps.heartbeat_count", "%d", h.Count)
	case KindHeartbeatFrag:
		var h HeartbeatFrag
		h, ok = s.HeartbeatFrag()
		entities(h.Reader, h.Writer, h.Seq)
	case KindAckNack:
		var a AckNack
		a, ok = s.AckNack()
		entities(a.Reader, a.Writer, a.Missing.Base)
		add("rtps.acknack.count", "%d", a.Count)
	case KindNackFrag:
		var n NackFrag
		n, ok = s.NackFrag()
		entities(n.Reader, n.Writer, n.Seq)
	case KindGap:
		var g Gap
		g, ok = s.Gap()
		entities(g.Reader, g.Writer, g.Start, g.List.Base)
	}
	if !ok {
		t.Errorf("%+v is not read", *s)
	}
	return topics
}

func describeSample(d *Data, add func(column, format string, values ...any)) (topics []string) {
	lists := []Parameters{d.InlineQos}
	if l, _ := d.list(); d.Writer.Builtin() {
		lists = append(lists, l)
	}
	for _, l := range lists {
		q, e := Parameter{}, cut
		for more := true; more; {
			if more, e = l.next(&q); more {
				add("rtps.param.id", "0x%04x", uint16(q.ID))
			}
		}
		if e == ended {
			add("rtps.param.id", "0x0001")
		}
	}
	if d.Writer != EntityPublicationsWriter && d.Writer != EntitySubscriptionsWriter {
		return nil
	}
	e, ok := d.Endpoint()
	if ok && d.HasPayload {
		add("rtps.param.endpoint_guid", "%v", strings.ReplaceAll(e.GUID.String(), ":", ""))
	}
	if ok && !e.Gone {
		topics = append(topics, string(e.Topic), string(e.Type))
	}
	return topics
}

// readRows returns what tshark wrote: by packet number, then by column.
func readRows(t *testing.T, name string) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	columns := strings.Split(lines[0], "\t")
	rows := map[string]map[string]string{}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, value := range strings.Split(line, "\t") {
			row[columns[i]] = value
		}
		rows[row["frame.number"]] = row
	}
	return rows
}

// readMessages returns the payloads of all whole datagrams of a capture.
func readMessages(t testing.TB, capture string) (messages []captured) {
	t.Helper()
	for _, k := range readCapture(t, capture) {
		_, udp, _ := k.join(t)
		_, first, _ := train{packets: k.packets[:1]}.join(t)
		messages = append(messages, captured{fmt.Sprint(k.number), udp[8:], len(first) - 8})
	}
	return messages
}
