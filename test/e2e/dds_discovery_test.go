package e2e

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// DDS programs on robot and gateways find each other with nothing but what
// `fogplr env` sets: the announcements arrive by multicast, exactly once, the
// endpoints' descriptions by unicast in both directions. Then the robot's calls
// are answered by both gateways.
func TestDDSDiscovery(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) { discover(t, v) })
	}
}

func discover(t *testing.T, v vendor) {
	w := startUrgent(t, options{})
	r, west, east := w.robots[0], w.gateways[0], w.gateways[1]
	onRobot := recordPLR0(t, w, r.lab.Node, "plr0")
	onWest := recordPLR0(t, w, west.lab.Node, "plr0")
	onEast := recordPLR0(t, w, east.lab.Node, "plr0")
	servers := []*lab.Cmd{serve(t, west, v), serve(t, east, v)}
	began := time.Now()
	c := startCalls(t, r, v, "--servers", "2", "--count", "60", "--settle-ms", "300")
	if took := c.await(t, "", began); took > 5*time.Second {
		t.Errorf("the first reply came only after %v", took)
	}
	s := c.finish(t)
	if s.Requests != 60 || s.Replies != 60 || s.By["west"].All != 60 || s.By["east"].All != 60 {
		t.Errorf("calls: %+v", s)
	}
	t.Logf("calls: p50 %.1f ms, p99 %.1f ms; first by west %d, by east %d", s.P50MS, s.P99MS, s.By["west"].First, s.By["east"].First)

	for _, server := range servers {
		must(t, server.Stop(patience))
	}
	time.Sleep(500 * time.Millisecond) // for the last ones on their way
	seen := map[string][]ddsPacket{"robot": onRobot(), "west": onWest(), "east": onEast()}
	address := map[string]netip.Addr{"robot": r.ip, "west": west.ip, "east": east.ip}
	spdp := func(at, from string) int {
		return countData(seen[at], func(p *ddsPacket, d rtpsData) bool {
			return p.multicast && p.src == address[from] && d.writer == spdpWriter
		})
	}
	for _, g := range []string{"west", "east"} {
		for _, way := range [][2]string{{"robot", g}, {g, "robot"}} {
			from, to := way[0], way[1]
			sent, arrived := spdp(from, from), spdp(to, from)
			if sent == 0 || arrived != sent {
				t.Errorf("%s sent %d announcements by multicast, %d arrived at %s", from, sent, arrived, to)
			}
			for _, writer := range []uint32{sedpPublications, sedpSubscriptions} {
				n := countData(seen[to], func(p *ddsPacket, d rtpsData) bool {
					return p.src == address[from] && p.dst == address[to] && d.writer == writer
				})
				if n == 0 {
					t.Errorf("no description of an endpoint (writer %08x) came by unicast from %s to %s", writer, from, to)
				}
			}
		}
	}
	// Gateways do not hear each other, and nobody hears himself again.
	if n := spdp("west", "east") + spdp("east", "west"); n > 0 {
		t.Errorf("%d announcements went from gateway to gateway", n)
	}
	// The time to live is nobody's business on the way: Fast DDS sends with 1.
	sent, arrived := multicastTTLs(seen["robot"], r.ip), multicastTTLs(seen["west"], r.ip)
	if !slices.Equal(sent, arrived) || v.ttl1 != slices.Equal(sent, []uint8{1}) {
		t.Errorf("multicast was sent with TTL %v and arrived with %v", sent, arrived)
	}
	for at, packets := range seen {
		if n := countData(packets, func(p *ddsPacket, d rtpsData) bool { return p.multicast && d.writer != spdpWriter }); n > 0 {
			t.Errorf("%s: %d samples other than announcements went by multicast", at, n)
		}
	}
}

// multicastTTLs lists the different times to live of what an address sent by
// multicast.
func multicastTTLs(packets []ddsPacket, from netip.Addr) []uint8 {
	var found []uint8
	for _, p := range packets {
		if p.multicast && len(p.data) > 0 && p.src == from && !slices.Contains(found, p.ttl) {
			found = append(found, p.ttl)
		}
	}
	return found
}

// Cyclone DDS says itself that it uses plr0, with multicast; and its own
// measuring program works as it does on any network.
func TestDDSCycloneSelectsPLR0(t *testing.T) {
	w := startUrgent(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	g := w.gateways[0]
	trace := w.file("cyclone.log")
	c := ddsProgram(t, g.lab.Node, g.Member, "rpc_server")
	for i, v := range c.Env {
		if strings.HasPrefix(v, "CYCLONEDDS_URI=") {
			c.Env[i] += ",<Tracing><Verbosity>config</Verbosity><OutputFile>" + trace + "</OutputFile></Tracing>"
		}
	}
	must(t, c.Start())
	var log string
	eventually(t, "Cyclone starts", func() error {
		b, err := os.ReadFile(trace)
		if err != nil {
			return err
		}
		log = string(b)
		return mentions(log, "Multicast Ports:")
	})
	must(t, mentions(log, "selected interfaces: plr0 (", "ownip: udp/"+g.ip.String(), "SPDP MC: udp/239.255.0.1"))
	for _, bad := range []string{"not multicast-capable", "disabling multicast"} {
		if strings.Contains(log, bad) {
			t.Errorf("%q in:\n%s", bad, log)
		}
	}
	eventually(t, "Cyclone has joined the group on plr0", func() error {
		return mentions(output(t, g.lab.Node, "ip", "maddr", "show", "dev", "plr0"), "239.255.0.1")
	})

	r := w.robots[0]
	pong := g.lab.Command(lasting(t), "ddsperf", "pong")
	pong.Env = ddsEnv(t, g.lab.Node, g.Member)
	must(t, pong.Start())
	ping := r.lab.Command(lasting(t), "ddsperf", "-D", "4", "-Q", "minmatch:1", "-Q", "initwait:10", "-Q", "roundtrips:50", "ping", "30Hz")
	ping.Env = ddsEnv(t, r.lab.Node, r.Member)
	if err := ping.Run(); err != nil {
		t.Errorf("ddsperf: %v", err)
	}
	must(t, pong.Kill())
}
