package rtps

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seen is a submessage of an application's writer or reader in a capture, and
// what its receiver knows of it.
type seen struct {
	Submessage
	message Message
	frame   string
	data    Data // if it is a sample
	piece   DataFrag
}

func (s *seen) sample() bool { return s.Kind == KindData || s.Kind == KindDataFrag }

// readSeen returns the submessages of the captures of a vendor, each capture by
// itself.
func readSeen(t *testing.T, vendor string) map[string][]seen {
	t.Helper()
	captures, err := filepath.Glob("testdata/" + vendor + "-*.pcap.gz")
	if err != nil || len(captures) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	all := map[string][]seen{}
	for _, capture := range captures {
		name := strings.TrimSuffix(filepath.Base(capture), ".pcap.gz")
		for _, c := range readMessages(t, capture) {
			if !bytes.HasPrefix(c.whole, []byte(magic)) {
				continue
			}
			var m Message
			if !m.Read(c.whole, len(c.whole)) {
				t.Fatalf("%s, packet %s: not read", name, c.frame)
			}
			for s := (seen{frame: c.frame}); m.Next(&s.Submessage); {
				s.message = m
				switch s.Kind {
				case KindData:
					s.data, _ = s.Data()
				case KindDataFrag:
					s.piece, _ = s.DataFrag()
					s.data = s.piece.Data
				}
				all[name] = append(all[name], s)
			}
		}
	}
	return all
}

// application returns the samples that are the application's.
func application(all []seen) (samples []seen) {
	for _, s := range all {
		if s.sample() && !s.data.Writer.Builtin() {
			samples = append(samples, s)
		}
	}
	return samples
}

// Cyclone DDS 0.10: a sample of a service has no inline QoS; 16 octets at the
// beginning of its payload say which request it is, so that only the first
// fragment has them. It names no reader, unless it is sent again.
func TestCycloneSamples(t *testing.T) {
	again := 0
	for name, all := range readSeen(t, "cyclone") {
		for _, s := range application(all) {
			if s.Flags&flagInlineQos != 0 {
				t.Errorf("%s, packet %s: there is inline QoS", name, s.frame)
			}
			if directed := s.data.Reader != EntityUnknown; directed != (s.message.Destination != Prefix{}) {
				t.Errorf("%s, packet %s: for reader %v of %v", name, s.frame, s.data.Reader, s.message.Destination)
			} else if directed {
				again++
			}
			first := s.Kind == KindData || s.piece.FragmentStart == 1
			id, ok := s.data.CycloneRequest()
			if known := ok && id.Number >= 1 && id.Number <= 12; first && !known {
				t.Errorf("%s, packet %s: request %+v %v", name, s.frame, id, ok)
			} else if !first && known {
				t.Errorf("%s, packet %s: a later fragment has request %+v", name, s.frame, id)
			}
		}
	}
	if again == 0 {
		t.Error("no capture has a retransmission")
	}
}

// Fast DDS 2.9: every fragment of a sample of a service has inline QoS with the
// related identity, by its old number alone. A request names its client's reader,
// and no number; the reply names that reader, and the number that the request has
// for DDS.
func TestFastSamples(t *testing.T) {
	for name, all := range readSeen(t, "fast") {
		asked, answers := map[RequestID]bool{}, 0
		for _, s := range application(all) {
			var ids []ParameterID
			for p, q := s.data.InlineQos, (Parameter{}); p.Next(&q); {
				ids = append(ids, q.ID)
			}
			if !slices.Equal(ids, []ParameterID{PIDRelatedIdentityVendor}) {
				t.Errorf("%s, packet %s: inline QoS %04x", name, s.frame, ids)
			}
			id, _ := RelatedIdentity(s.data.InlineQos)
			if s.data.Reader == EntityUnknown {
				t.Errorf("%s, packet %s: no reader is named", name, s.frame)
			}
			if id.Client.Prefix == s.message.Source {
				if id.Client.Entity != 0x204 || id.Number != -1<<32 {
					t.Errorf("%s, packet %s: request %+v", name, s.frame, id)
				}
				asked[RequestID{id.Client, int64(s.data.Seq)}] = true
				continue
			}
			answers++
			if !asked[id] || s.data.Reader != id.Client.Entity || s.message.Destination != id.Client.Prefix {
				t.Errorf("%s, packet %s: reply to %+v, for reader %v of %v", name, s.frame, id, s.data.Reader, s.message.Destination)
			}
		}
		if answers == 0 {
			t.Errorf("%s: no replies", name)
		}
	}
}

// Before a writer's first sample, each reader that it is for has acknowledged a
// HEARTBEAT of that writer, with either vendor. Cyclone DDS also sends an
// ACKNACK before any, which is not final, with number 0.
func TestReadersAcknowledgeBeforeTheFirstSample(t *testing.T) {
	early := map[string]int{}
	for _, vendor := range []string{"cyclone", "fast"} {
		for name, all := range readSeen(t, vendor) {
			beats, acknowledged := map[GUID]bool{}, map[GUID]int{}
			for _, s := range all {
				switch {
				case s.Kind == KindHeartbeat:
					h, _ := s.Heartbeat()
					beats[GUID{s.message.Source, h.Writer}] = true
				case s.Kind == KindAckNack:
					a, _ := s.AckNack()
					writer := GUID{s.message.Destination, a.Writer}
					switch {
					case a.Writer.Builtin():
					case beats[writer] && a.Final:
						acknowledged[writer]++
					case !beats[writer]:
						early[vendor]++
						if a.Final || a.Count > 0 || a.Missing.Base > 1 {
							t.Errorf("%s, packet %s: ACKNACK %+v before any HEARTBEAT", name, s.frame, a)
						}
					}
				case s.sample() && !s.data.Writer.Builtin():
					if w := (GUID{s.message.Source, s.data.Writer}); acknowledged[w] == 0 {
						t.Errorf("%s, packet %s: nobody has acknowledged a HEARTBEAT of %v", name, s.frame, w)
					}
				}
			}
			if len(acknowledged) != 3 {
				t.Errorf("%s: %d writers were acknowledged", name, len(acknowledged))
			}
		}
	}
	if early["cyclone"] == 0 || early["fast"] != 0 {
		t.Errorf("ACKNACKs before any HEARTBEAT: %v", early)
	}
}
