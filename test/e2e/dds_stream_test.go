package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/lab"
)

// flowing finds a report of stream_sub with samples.
var flowing = regexp.MustCompile(`"received":[1-9]`)

// Streams go on in both directions while robot and gateway are restarted ten
// times: what arrives arrives once.
func TestDDSOneCopy(t *testing.T) {
	const restarts = 10
	w := startUrgent(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, west := w.robots[0], w.gateways[0]
	// Best effort, so that nothing is sent again on purpose.
	type stream struct {
		pub, sub *lab.Cmd
		out      bytes.Buffer
		seen     func() []ddsPacket
	}
	streams := map[string]*stream{"down": {}, "up": {}}
	for topic, s := range streams {
		pubAt, pubM, subAt, subM := west.lab.Node, west.Member, r.lab.Node, r.Member
		if topic == "up" {
			pubAt, pubM, subAt, subM = subAt, subM, pubAt, pubM
		}
		s.seen = recordPLR0(t, w, subAt, topic)
		s.sub = ddsProgram(t, subAt, subM, "stream_sub", "--topic", topic)
		s.sub.Stdout = &s.out
		must(t, s.sub.Start())
		s.pub = ddsProgram(t, pubAt, pubM, "stream_pub", "--topic", topic, "--count", "0", "--rate", "200", "--linger-ms", "0")
		must(t, s.pub.Start())
	}
	for _, s := range streams {
		eventually(t, "the streams flow", func() error {
			if !flowing.MatchString(read(t, s.sub.Log())) {
				return fmt.Errorf("nothing was received; the log is %s", s.sub.Log())
			}
			return nil
		})
	}
	began := time.Now()
	for range restarts {
		must(t, r.Stop())
		must(t, west.Stop())
		beginUrgent(t, west.Member)
		beginUrgent(t, r.Member)
		again := time.Now()
		must(t, r.WaitUp(t.Context()))
		if took := time.Since(again); took > time.Second {
			t.Logf("all paths up only %v after both were started", took.Round(time.Millisecond))
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("%d restarts of both in %v", restarts, time.Since(began).Round(time.Millisecond))
	for topic, s := range streams {
		must(t, s.pub.Stop(patience))
		must(t, s.sub.Stop(patience))
		var sum apps.StreamSummary
		must(t, apps.ParseSummary(s.out.Bytes(), &sum))
		t.Logf("%s: %+v", topic, sum)
		from := west.ip
		if topic == "up" {
			from = r.ip
		}
		copies := map[rtpsData]int{}
		most := 0
		for _, p := range s.seen() {
			for _, d := range p.data {
				if p.src == from && userWriter(d.writer) {
					copies[d]++
					most = max(most, copies[d])
				}
			}
		}
		if most != 1 || len(copies) < int(sum.Received) {
			t.Errorf("%s: %d samples of %d received were on plr0, up to %d times", topic, len(copies), sum.Received, most)
		}
		if sum.Sources != 1 || sum.Duplicates > 0 || sum.OutOfOrder > 0 || sum.Received < 10*restarts {
			t.Errorf("%s: %+v", topic, sum)
		}
	}
}

// userWriter tells the writers of an application from the builtin ones (RTPS
// 2.3, 9.3.1.2).
func userWriter(entity uint32) bool { return entity>>6&3 == 0 }

// Samples of 200 kB cross the overlay in DDS's own fragments: no datagram needs
// to be split by IP.
func TestDDSLargeSamples(t *testing.T) {
	const size, count = 200_000, 8
	w := startUrgent(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, west := w.robots[0], w.gateways[0]
	seen := map[string]func() []ddsPacket{
		"robot": recordPLR0(t, w, r.lab.Node, "large"),
		"west":  recordPLR0(t, w, west.lab.Node, "large"),
	}
	for _, v := range vendors {
		serve(t, west, v)
		c := startCalls(t, r, v, "--rate", "4", "--settle-ms", "200",
			"--count", strconv.Itoa(count), "--size", strconv.Itoa(size), "--reply-size", strconv.Itoa(size))
		s := c.finish(t)
		t.Logf("%s: p50 %.0f ms, most %.0f ms", v.name, s.P50MS, s.MaxMS)
		if s.Replies != count {
			t.Errorf("%s: %+v", v.name, s)
		}
	}
	for at, stop := range seen {
		fragments, data := 0, map[string]int{}
		packets := stop()
		for _, p := range packets {
			if p.fragment {
				fragments++
			}
			for _, d := range p.data {
				if d.frag > 0 {
					data[d.prefix]++
				}
			}
		}
		t.Logf("%s: %d packets, %d of them IP fragments; DDS fragments by participant: %d", at, len(packets), fragments, len(data))
		if fragments > 0 {
			t.Errorf("%s: %d IP fragments", at, fragments)
		}
		// A client and a server for each vendor, and no fragment beyond a packet.
		for prefix, n := range data {
			if n < count*size/1280 {
				t.Errorf("%s: only %d fragments of participant %x", at, n, prefix)
			}
		}
		if len(data) != 2*len(vendors) {
			t.Errorf("%s: fragments of %d participants", at, len(data))
		}
	}
}

// A carrier goes silent, then a gateway dies: no call is lost.
func TestDDSLosses(t *testing.T) { undisturbed(t, losses) }

func losses(t testing.TB) {
	link := lab.CarrierOptions{Up: lab.RoundTrip(20*time.Millisecond, 2*time.Millisecond, 0), Down: lab.RoundTrip(20*time.Millisecond, 2*time.Millisecond, 0)}
	w := startUrgent(t, options{Options: lab.Options{Carriers: []lab.CarrierOptions{link, link}}})
	r, west := w.robots[0], w.gateways[0]
	clients := callBoth(t, w, r)
	began := time.Now()
	must(t, r.lab.Carriers[0].Link.BlackHole(true))
	time.Sleep(4 * time.Second) // beyond the death of its paths
	must(t, west.Kill())
	time.Sleep(4 * time.Second)
	ended := time.Now()
	time.Sleep(500 * time.Millisecond) // for the replies to the last requests
	if pathOf(t, status(t, r.Member), "east", "cell-a").Up || pathOf(t, status(t, r.Member), "west", "cell-b").Up {
		t.Error("paths are up that cannot be")
	}
	t.Log(dropped(t, r.Member))
	t.Log(dropped(t, w.gateways[1].Member))
	for i, c := range clients {
		wait := longestWait(c.soFar(), began, ended)
		_ = c.Stop(patience) // status 1 says that something was lost, which is judged here
		s := c.finish(t)
		t.Logf("%s: %+v; at most %v between two replies", vendors[i].name, s, wait.Round(time.Millisecond))
		if s.Lost > 0 || s.Requests-s.Replies > 3 || s.Requests < 200 {
			t.Errorf("%s: %+v", vendors[i].name, s)
		}
		if wait > time.Second {
			t.Errorf("%s: %v without a reply", vendors[i].name, wait)
		}
	}
}
