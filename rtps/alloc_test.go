package rtps

import "testing"

// readAll reads all of a message that the packet path may ask for. It returns a
// number that depends on it, so that nothing is optimized away.
func readAll(b []byte) (sum int) {
	var m Message
	var s Submessage
	if !m.Read(b, len(b)) {
		return 0
	}
	for m.Next(&s) {
		d, ok := s.Data()
		if f, frag := s.DataFrag(); frag {
			d, ok = f.Data, true
		}
		if ok {
			sum += readSample(&m, &d)
		}
		if h, ok := s.Heartbeat(); ok {
			sum += int(h.Last)
		}
		if h, ok := s.HeartbeatFrag(); ok {
			sum += int(h.Last)
		}
		if a, ok := s.AckNack(); ok {
			for n, ok := a.Missing.Next(0); ok; n, ok = a.Missing.Next(n + 1) {
				sum += int(n)
			}
		}
		if n, ok := s.NackFrag(); ok && n.Missing.Contains(3) {
			sum++
		}
		if g, ok := s.Gap(); ok && g.Covers(3) {
			sum++
		}
	}
	return sum
}

func readSample(m *Message, d *Data) (sum int) {
	for q, p := (Parameter{}), d.InlineQos; p.Next(&q); {
		sum += len(q.Value)
	}
	if e, ok := d.Endpoint(); ok {
		if name, role, ok := ServiceOf(e.Topic); ok {
			action, _ := ActionOf(name)
			sum += len(action) + int(role)
		}
	}
	if p, ok := d.Participant(); ok {
		sum += int(p.Lease)
	}
	cyclone, _ := d.CycloneRequest()
	request, _ := d.FastRequest(m.Source)
	reply, _ := RelatedIdentity(d.InlineQos)
	return sum + int(cyclone.Number+request.Number+reply.Number)
}

// Nothing on the packet path allocates.
func TestNoAllocations(t *testing.T) {
	for _, name := range []string{"testdata/cyclone-loss.pcap.gz", "testdata/fast-loss.pcap.gz"} {
		messages := readMessages(t, name)
		sum := 0
		n := testing.AllocsPerRun(10, func() {
			for _, c := range messages {
				sum += readAll(c.whole)
			}
		})
		if n != 0 || sum == 0 {
			t.Errorf("%s: %v allocations, sum %d", name, n, sum)
		}
	}
}

var sink int

// What reading one message of a capture costs.
func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"cyclone-small", "cyclone-frag", "fast-small"} {
		b.Run(name, func(b *testing.B) {
			messages := readMessages(b, "testdata/"+name+".pcap.gz")
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				sink += readAll(messages[i%len(messages)].whole)
			}
		})
	}
}
