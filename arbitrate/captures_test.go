package arbitrate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/pcapgo"

	"github.com/fogplr/fogplr/rtps"
)

// captured is the IP packets of one datagram.
type captured struct {
	at      time.Time
	packets [][]byte
}

// readCapture returns the datagrams of a capture of package rtps.
func readCapture(t testing.TB, file string) (all []captured) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := pcapgo.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	open := map[string][][]byte{}
	for {
		b, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		key, more := "", false
		switch {
		case b[0]>>4 == 4 && (b[6]&0x3f != 0 || b[7] != 0):
			key, more = fmt.Sprintf("%x%x", b[4:6], b[12:20]), b[6]&0x20 != 0
		case b[0]>>4 == 6 && b[6] == 44:
			key, more = fmt.Sprintf("%x%x", b[44:48], b[8:40]), b[43]&1 != 0
		}
		open[key] = append(open[key], b)
		if !more {
			all = append(all, captured{info.Timestamp, open[key]})
			delete(open, key)
		}
	}
}

// fromClient says that the packet is from the host of the client.
func fromClient(p []byte) bool {
	if p[0]>>4 == 4 {
		return p[15] == 1
	}
	return p[23] == 1
}

// got is what a reader has of a sample of a writer of replies.
type got struct {
	id        rtps.RequestID
	fragments map[rtps.FragmentNumber]bool
	whole     bool // and it was not a GAP before
	gap       bool
}

// sampleName names a sample.
type sampleName struct {
	writer rtps.GUID
	n      rtps.SequenceNumber
}

// deliver notes what is in the packets for readers of replies.
func deliver(packets [][]byte, repliers map[rtps.GUID]bool, have map[sampleName]*got) {
	for _, p := range packets {
		var d rtps.Datagram
		var m rtps.Message
		if !d.Read(p) || !m.Read(d.Payload, d.Whole) {
			continue
		}
		for s := (rtps.Submessage{}); m.Next(&s); {
			data, _ := s.Data()
			k := pieces{1, 1, 1}
			switch s.Kind {
			case rtps.KindDataFrag:
				f, _ := s.DataFrag()
				data, k = f.Data, pieces{f.FragmentStart, rtps.FragmentNumber(f.FragmentsInSubmessage), f.Fragments()}
			case rtps.KindGap:
				if g, _ := s.Gap(); repliers[rtps.GUID{Prefix: m.Source, Entity: g.Writer}] {
					for n := g.Start; n < g.List.Base; n++ {
						sampleIn(have, sampleName{rtps.GUID{Prefix: m.Source, Entity: g.Writer}, n}).gap = true
					}
				}
				continue
			}
			w := rtps.GUID{Prefix: m.Source, Entity: data.Writer}
			if data.Seq == 0 || !repliers[w] {
				continue
			}
			h := sampleIn(have, sampleName{w, data.Seq})
			if id, ok := requestOf(&m, &data, rtps.RoleReply); ok && k.first == 1 {
				h.id = id
			}
			for i := range k.count {
				h.fragments[k.first+i] = true
			}
			h.whole = h.whole || !h.gap && len(h.fragments) == int(k.total)
		}
	}
}

func sampleIn(have map[sampleName]*got, n sampleName) *got {
	if have[n] == nil {
		have[n] = &got{fragments: map[rtps.FragmentNumber]bool{}}
	}
	return have[n]
}

// repliersIn returns the writers of replies that the datagrams announce.
func repliersIn(all []captured) map[rtps.GUID]bool {
	repliers := map[rtps.GUID]bool{}
	for _, c := range all {
		var d rtps.Datagram
		var m rtps.Message
		if !d.Read(c.packets[0]) || !m.Read(d.Payload, d.Whole) {
			continue
		}
		for s := (rtps.Submessage{}); m.Next(&s); {
			if data, ok := s.Data(); ok && data.Writer == rtps.EntityPublicationsWriter {
				e, _ := data.Endpoint()
				if _, role, ok := rtps.ServiceOf(e.Topic); ok && role == rtps.RoleReply {
					repliers[e.GUID] = true
				}
			}
		}
	}
	return repliers
}

// replay has an Arbiter see a capture, a new one after each datagram if
// restarts, made from a snapshot. It returns which writers'
// replies got through.
func replay(t *testing.T, all []captured, restarts bool) (map[rtps.RequestID][]rtps.GUID, Counters) {
	t.Helper()
	repliers, have := repliersIn(all), map[sampleName]*got{}
	count := func(packets [][]byte) { deliver(packets, repliers, have) }
	a, total := New(all[0].at), Counters{}
	for _, c := range all {
		if restarts {
			data, err := a.Snapshot(c.at)
			if err != nil {
				t.Fatal(err)
			}
			total = sum(total, a.Counters())
			a = New(c.at)
			if err := a.Restore(c.at, data); err != nil {
				t.Fatal(err)
			}
		}
		packets := make([][]byte, len(c.packets))
		for i := range packets {
			packets[i] = bytes.Clone(c.packets[i])
		}
		if !fromClient(packets[0]) {
			count(a.In(c.at, packets))
			continue
		}
		for _, p := range packets {
			a.Out(c.at, p)
		}
	}
	count(a.Tick(all[len(all)-1].at.Add(time.Minute)))
	through := map[rtps.RequestID][]rtps.GUID{}
	for n, h := range have {
		if h.whole {
			through[h.id] = append(through[h.id], n.writer)
		}
	}
	return through, sum(total, a.Counters())
}

func sum(a, b Counters) Counters {
	a.Requests += b.Requests
	a.Replies += b.Replies
	a.Delivered += b.Delivered
	a.Withheld += b.Withheld
	a.Unknown += b.Unknown
	a.Parked += b.Parked
	a.Refused += b.Refused
	return a
}

// In real traffic of both vendors, each request gets exactly one reply of the two.
func TestCaptures(t *testing.T) {
	for name, requests := range map[string]int{
		"cyclone-small": 3, "cyclone-frag": 1, "cyclone-ipfrag": 1, "cyclone-ipfrag6": 1, "cyclone-loss": 3, "cyclone-late": 12,
		"fast-small": 3, "fast-frag": 1, "fast-ipfrag": 1, "fast-loss": 3, "fast-late": 12,
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprint(name, restarts), func(t *testing.T) {
				all := readCapture(t, filepath.Join("..", "rtps", "testdata", name+".pcap.gz"))
				through, counters := replay(t, all, restarts)
				if len(through) != requests {
					t.Errorf("%d of %d requests were answered", len(through), requests)
				}
				if restarts && !strings.Contains(name, "small") && !strings.Contains(name, "late") {
					return // which fragments came is not in a snapshot: both replies pass
				}
				for id, by := range through {
					if len(by) != 1 {
						t.Errorf("request %+v was answered by %v", id, by)
					}
				}
				if counters.Unknown > 0 || counters.Refused > 0 || counters.Requests != uint64(requests) ||
					!strings.Contains(name, "late") && counters.Withheld != uint64(requests) {
					t.Errorf("%+v", counters)
				}
			})
		}
	}
}
