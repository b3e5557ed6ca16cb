package apps

import "testing"

// The client's output comes in pieces of any size.
func TestClientReadsEvents(t *testing.T) {
	const output = `{"seq":1,"t":1.5,"latency_ms":40.5,"by":"west"}
{"seq":1,"t":1.5,"latency_ms":50.5,"by":"east","extra":true}
{"seq":2,"t":1.6,"lost":true}
{"summary":true,"requests":2,"replies":1,"lost":1}
`
	for size := 1; size < len(output); size += 7 {
		c := &Client{}
		for rest := output; rest != ""; {
			n := min(size, len(rest))
			if _, err := c.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		events := c.Events()
		if len(events) != 3 || events[0] != (Event{Seq: 1, T: 1.5, LatencyMS: 40.5, By: "west"}) || !events[1].Extra || !events[2].Lost {
			t.Errorf("in pieces of %d: %+v", size, events)
		}
	}
}
