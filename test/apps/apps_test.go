package apps

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"

	"github.com/fogplr/fogplr/test/lab"
)

func TestMain(m *testing.M) {
	lab.Main()
	m.Run()
}

// payload is what fill_payload in common.c writes.
const payload = "fogplr test payload "

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a client's node and a server's node in one subnet.
type world struct {
	client, server *lab.Node
	link           *lab.Link
}

func newWorld(t *testing.T, p lab.Params) *world {
	t.Helper()
	l := lab.Test(t, "apps")
	w := &world{}
	var err error
	w.client, err = l.Node("client")
	must(t, err)
	w.server, err = l.Node("server")
	must(t, err)
	w.link, err = l.Link(w.client, "eth0", w.server, "eth0", lab.Both(p, 1))
	must(t, err)
	must(t, w.client.AddAddress("eth0", "10.9.0.1/24"))
	must(t, w.server.AddAddress("eth0", "10.9.0.2/24"))
	return w
}

func command(t *testing.T, n *lab.Node, program string, args ...string) *lab.Cmd {
	t.Helper()
	path, err := Path(program)
	must(t, err)
	return n.Command(t.Context(), path, args...)
}

func start(t *testing.T, n *lab.Node, program string, args ...string) *lab.Cmd {
	t.Helper()
	c := command(t, n, program, args...)
	must(t, c.Start())
	return c
}

// call runs a client to its end.
func call(t *testing.T, c *lab.Cmd) (s Summary, events []Event, err error) {
	t.Helper()
	out, err := c.Output()
	if parseErr := ParseSummary([]byte(out), &s); parseErr != nil {
		t.Fatal(parseErr, err)
	}
	for line := range strings.Lines(out) {
		if e, ok := ParseEvent([]byte(line)); ok {
			events = append(events, e)
		}
	}
	return s, events, err
}

// vendors are the program names' prefixes.
var vendors = []struct{ name, prefix string }{{"Cyclone DDS", ""}, {"Fast DDS", "fast_"}}

// Two servers answer every request. The link loses nothing: with a history of
// ten samples, as ROS 2 services have, and a heartbeat every three seconds, Fast
// DDS cannot repair every loss at this rate.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.RoundTrip(20*time.Millisecond, 2*time.Millisecond, 0))
			west := start(t, w.server, v.prefix+"rpc_server", "--name", "west")
			east := start(t, w.server, v.prefix+"rpc_server", "--name", "east", "--delay-ms", "30")
			s, events, err := call(t, command(t, w.client, v.prefix+"rpc_client", "--servers=2", "--count=100", "--rate", "30",
				"--size", "2000", "--reply-size", "3000", "--settle-ms", "500"))
			must(t, err)
			t.Logf("%+v", s)
			if s.Requests != 100 || s.Replies != 100 || s.Lost != 0 || s.Extra != 100 || s.Pending != 0 {
				t.Errorf("summary %+v", s)
			}
			if s.P50MS < 18 || s.P50MS > 45 || s.MaxMS < s.P99MS || s.P99MS < s.P50MS {
				t.Errorf("latencies %+v", s)
			}
			if s.By["west"].First <= s.By["east"].First || s.By["west"].All != 100 || s.By["east"].All != 100 {
				t.Errorf("who replied: %+v", s.By)
			}
			first := 0
			for _, e := range events {
				if e.First() {
					first++
				}
			}
			if len(events) != 200 || first != 100 {
				t.Errorf("%d events, %d first replies", len(events), first)
			}
			must(t, west.Stop(5*time.Second))
			must(t, east.Stop(5*time.Second))
		})
	}
}

func TestServerDies(t *testing.T) {
	t.Parallel()
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Params{})
			server := start(t, w.server, v.prefix+"rpc_server")
			time.AfterFunc(4*time.Second, func() { _ = server.Kill() })
			s, _, err := call(t, command(t, w.client, v.prefix+"rpc_client", "--count", "100", "--rate", "20", "--lost-after-ms", "500",
				"--deadline-ms", "100"))
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("the client ended with %v, want status 1", err)
			}
			if s.Lost == 0 || s.Replies == 0 || s.Missed < s.Lost || s.Replies+s.Lost != 100 {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	for _, v := range vendors {
		w := newWorld(t, lab.Params{})
		_, err := command(t, w.client, v.prefix+"rpc_client", "--match-timeout-s", "0.5").Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: the client ended with %v, want status 1", v.name, err)
		}
	}
}

// SIGTERM ends a client without an end, and filtered multicast does not keep it.
func TestTerminate(t *testing.T) {
	t.Parallel()
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Params{})
			start(t, w.server, v.prefix+"rpc_server")
			var out bytes.Buffer
			client := command(t, w.client, v.prefix+"rpc_client", "--count", "0", "--rate", "50")
			client.Stdout = &out
			must(t, client.Start())
			time.Sleep(4 * time.Second)
			must(t, w.client.NFT(`table inet filter {
				chain out { type filter hook output priority filter; meta pkttype multicast drop; ip daddr 224.0.0.0/4 drop; }
				chain in { type filter hook input priority filter; ip daddr 224.0.0.0/4 drop; }
			}`))
			must(t, client.Stop(5*time.Second))
			var s Summary
			must(t, ParseSummary(out.Bytes(), &s))
			if s.Requests < 20 || s.Replies < s.Requests-2 {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reliability []string
		lossless    bool
	}{{nil, false}, {[]string{"--reliable"}, true}} {
		t.Run(fmt.Sprint(c.reliability), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Params{Delay: 5 * time.Millisecond})
			var out bytes.Buffer
			sub := command(t, w.server, "stream_sub", append([]string{"--seconds", "30", "--depth", "0"}, c.reliability...)...)
			sub.Stdout = &out
			must(t, sub.Start())
			pub := start(t, w.client, "stream_pub", append([]string{"--count", "1000", "--rate", "200", "--settle-ms", "500", "--depth", "0"}, c.reliability...)...)
			time.Sleep(2 * time.Second)
			must(t, w.link.Set(lab.Params{Loss: 0.2, Duplicate: 0.1}, lab.Params{}))
			must(t, pub.Wait())
			must(t, sub.Stop(5*time.Second))
			var s StreamSummary
			must(t, ParseSummary(out.Bytes(), &s))
			t.Logf("%+v", s)
			if s.Sources != 1 || s.Received+s.Lost < 900 || s.Duplicates != 0 || c.lossless != (s.Lost == 0) || c.lossless != (s.LongestHole == 0) {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

// The wire is what rmw_cyclonedds and rmw_fastrtps write.
func TestWireFormat(t *testing.T) {
	t.Parallel()
	const size = 100
	header := func(seq uint64) []byte { // sequence number, length of the data, size of the reply, text
		b := binary.LittleEndian.AppendUint64(nil, seq)
		b = binary.LittleEndian.AppendUint32(b, size)
		b = binary.LittleEndian.AppendUint32(b, 64)
		return append(b, payload...)
	}
	fast := binary.LittleEndian.AppendUint32([]byte{0, 1, 0, 0}, size) // encapsulation, length
	fast = append(binary.LittleEndian.AppendUint32(fast, 64), payload...)
	cycloneReply := append(append(header(2)[:8], 64, 0, 0, 0), "west\x00"+payload...)
	fastReply := append([]byte{0, 1, 0, 0, 64, 0, 0, 0}, "west\x00"+payload...)
	const related = "\x0f\x80\x18\x00" // PID_RELATED_SAMPLE_IDENTITY as Fast DDS 2.9 numbers it, 24 bytes
	for _, v := range []struct {
		prefix         string
		request, reply [][]byte
	}{
		{"", [][]byte{header(2)}, [][]byte{cycloneReply}},
		{"fast_", [][]byte{[]byte(related), fast}, [][]byte{[]byte(related), fastReply}},
	} {
		w := newWorld(t, lab.Params{})
		file := filepath.Join(t.TempDir(), "wire.pcap")
		capture, err := w.client.Capture("eth0", file)
		must(t, err)
		start(t, w.server, v.prefix+"rpc_server", "--name", "west")
		_, _, err = call(t, command(t, w.client, v.prefix+"rpc_client", "--count", "5", "--size", fmt.Sprint(size)))
		must(t, err)
		must(t, capture.Stop())
		for what, parts := range map[string][][]byte{
			"request": v.request, "reply": v.reply,
			"topic of requests": {[]byte("rq/echoRequest\x00")}, "topic of replies": {[]byte("rr/echoReply\x00")},
			"type": {[]byte("fogplr_test::srv::dds_::Echo_Request_\x00")},
		} {
			if !seen(t, file, parts) {
				t.Errorf("%srpc: no packet holds the %s, %q", v.prefix, what, parts)
			}
		}
	}
}

// seen reports whether one packet of the file holds all parts.
func seen(t *testing.T, file string, parts [][]byte) bool {
	t.Helper()
	found := false
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		all := true
		for _, part := range parts {
			all = all && bytes.Contains(p.Data(), part)
		}
		found = found || all
		return nil
	}))
	return found
}
