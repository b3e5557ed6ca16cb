package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// vendor is a DDS implementation with programs of ours.
type vendor struct {
	name   string
	prefix string // of the programs' names
	domain string // its own, so that both vendors can run at once
	ttl1   bool   // its multicast has a time to live of 1
}

var vendors = []vendor{
	{name: "Cyclone DDS", domain: "0"},
	{name: "Fast DDS", prefix: "fast_", domain: "1", ttl1: true},
}

// startUrgent is start for tests of DDS; see urgent.
func startUrgent(t testing.TB, o options) *world {
	t.Helper()
	w := start(t, o)
	for _, r := range w.robots {
		urgent(t, r.Pid())
	}
	for _, g := range w.gateways {
		urgent(t, g.Pid())
	}
	return w
}

// beginUrgent starts a member's daemon, urgently.
func beginUrgent(t testing.TB, m *deploy.Member) {
	t.Helper()
	must(t, m.Start(lasting(t)))
	urgent(t, m.Pid())
}

// urgent puts a daemon before what else runs on this machine. A DDS program that
// waits a third of a second for its turn loses samples by itself: services keep
// the last ten.
func urgent(t testing.TB, pid int) {
	t.Helper()
	must(t, unix.Setpriority(unix.PRIO_PGRP, pid, urgency)) // all its threads
}

// urgency is the niceness of daemons and DDS programs in these tests.
const urgency = -10

// ddsEnv is the environment that points DDS programs of a member's node at plr0:
// what `eval "$(fogplr env)"` sets. All nodes share one file system, so each has
// a folder of its own for the profiles.
func ddsEnv(t testing.TB, n *lab.Node, m *deploy.Member) []string {
	t.Helper()
	out := output(t, n, "env", "--ignore-environment", "PATH="+os.Getenv("PATH"), "sh", "-euc",
		`vars=$("$0" env --config "$1" --dir "$2"); eval "$vars"; env`, program(t), m.Config(), filepath.Join(m.Dir, "dds"))
	var env []string
	for line := range strings.Lines(out) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.Contains(name, "DDS") || strings.Contains(name, "RTPS") {
			env = append(env, strings.TrimSpace(line))
		}
	}
	if len(env) < 2 {
		t.Fatalf("fogplr env sets too little for two vendors: %q", env)
	}
	return env
}

// ddsProgram prepares one of our programs with the environment of `fogplr env`.
func ddsProgram(t testing.TB, n *lab.Node, m *deploy.Member, name string, args ...string) *lab.Cmd {
	t.Helper()
	c := n.Command(lasting(t), "nice", append([]string{"-n", strconv.Itoa(urgency), app(t, name)}, args...)...)
	c.Env = ddsEnv(t, n, m)
	return c
}

// serve starts the service of a vendor on a gateway, under the gateway's name.
func serve(t testing.TB, g *gateway, v vendor) *lab.Cmd {
	t.Helper()
	c := ddsProgram(t, g.lab.Node, g.Member, v.prefix+"rpc_server", "--name", g.Name, "--domain", v.domain)
	must(t, c.Start())
	return c
}

// calls is a running RPC client with what it printed so far.
type calls struct {
	*lab.Cmd
	client *apps.Client
}

// call is an event with the time at which it happened, seconds since 1970.
type call struct {
	apps.Event
	at float64
}

// startCalls starts a client on a robot.
func startCalls(t testing.TB, r *robot, v vendor, args ...string) *calls {
	t.Helper()
	cmd := ddsProgram(t, r.lab.Node, r.Member, v.prefix+"rpc_client", append([]string{"--domain", v.domain}, args...)...)
	c := &calls{cmd, apps.NewClient(cmd)}
	must(t, c.Start())
	return c
}

// soFar returns the events until now.
func (c *calls) soFar() (all []call) {
	for _, e := range c.client.Events() {
		all = append(all, call{e, e.T + e.LatencyMS/1e3})
	}
	return all
}

// await waits until a reply by that server (any if empty) to a request sent after
// since has come, and returns when it came, in time after since.
func (c *calls) await(t testing.TB, by string, since time.Time) time.Duration {
	t.Helper()
	began := seconds(since)
	var came float64
	eventually(t, fmt.Sprintf("a reply by %q", by), func() error {
		for _, e := range c.soFar() {
			if !e.Lost && e.T > began && (by == "" || e.By == by) {
				came = e.at
				return nil
			}
		}
		return fmt.Errorf("none; the client's log is %s", c.Log())
	})
	return time.Duration((came - began) * 1e9)
}

// finish waits for the client's end and returns its summary.
func (c *calls) finish(t testing.TB) apps.Summary {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(60 * time.Second):
		t.Fatalf("the client does not end; its log is %s", c.Log())
	}
	s, err := c.client.Finish()
	if err != nil {
		t.Fatalf("%v; the client's log is %s", err, c.Log())
	}
	return s
}

// dropped tells what a node itself dropped.
func dropped(t testing.TB, m *deploy.Member) string {
	t.Helper()
	s := status(t, m)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: no path %d, not taken by plr0 %d", s.Name, s.Out.NoPath, s.In.TUNErrors)
	sockets := map[string]*tunnel.SocketStatus{"socket": s.Socket}
	for i := range s.Carriers {
		sockets[s.Carriers[i].Interface] = &s.Carriers[i].Socket
	}
	for name, k := range sockets {
		if k != nil {
			fmt.Fprintf(&b, "; %s: not sent %d and %d, not read in time %d", name, k.TxDropped, k.TxErrors, k.RxOverflow)
		}
	}
	for _, p := range s.Peers {
		for _, l := range p.Paths {
			if l.TxDropped > 0 {
				fmt.Fprintf(&b, "; %s by %s: %d too old", p.Name, l.Carrier, l.TxDropped)
			}
		}
	}
	return b.String()
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// longestWait is the longest time between two first replies that came between
// two moments, these included.
func longestWait(events []call, from, to time.Time) time.Duration {
	at := []float64{seconds(from), seconds(to)}
	for _, e := range events {
		if e.First() && e.at > at[0] && e.at < at[1] {
			at = append(at, e.at)
		}
	}
	slices.Sort(at)
	longest := 0.0
	for i := range at[1:] {
		longest = max(longest, at[i+1]-at[i])
	}
	return time.Duration(longest * 1e9)
}

// ddsPacket is what the tests want to know of an IP packet on plr0.
type ddsPacket struct {
	at        time.Time
	src, dst  netip.Addr
	ttl       uint8
	fragment  bool // one of several
	data      []rtpsData
	multicast bool
}

// rtpsData is a DATA or DATA_FRAG submessage (RTPS 2.3, 9.4.5.3).
type rtpsData struct {
	prefix string // of the writer's GUID
	writer uint32 // entity id
	number uint64 // of the sample
	frag   uint32 // number of the first fragment, 0 for DATA
}

// Entity ids of the builtin writers (RTPS 2.3, table 9.1, with 9.3.1.3).
const (
	spdpWriter          = 0x000100c2
	sedpPublications    = 0x000003c2
	sedpSubscriptions   = 0x000004c2
	submessageData      = 0x15
	submessageDataFrag  = 0x16
	rtpsHeaderLen       = 20
	submessageHeaderLen = 4
)

// packetsIn reads a capture of plr0.
func packetsIn(t testing.TB, file string) []ddsPacket {
	t.Helper()
	var all []ddsPacket
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		ip, ok := p.NetworkLayer().(*layers.IPv4)
		if !ok {
			return nil
		}
		k := ddsPacket{at: p.Metadata().Timestamp, ttl: ip.TTL, fragment: ip.Flags&layers.IPv4MoreFragments != 0 || ip.FragOffset != 0}
		k.src, _ = netip.AddrFromSlice(ip.SrcIP.To4())
		k.dst, _ = netip.AddrFromSlice(ip.DstIP.To4())
		k.multicast = k.dst.IsMulticast()
		if udp, ok := p.TransportLayer().(*layers.UDP); ok && bytes.HasPrefix(udp.Payload, []byte(lab.RTPSMagic)) {
			k.data = rtpsDataIn(udp.Payload)
		}
		all = append(all, k)
		return nil
	}))
	return all
}

func rtpsDataIn(message []byte) []rtpsData {
	if len(message) < rtpsHeaderLen {
		return nil
	}
	var found []rtpsData
	prefix := string(message[8:rtpsHeaderLen])
	for rest := message[rtpsHeaderLen:]; len(rest) >= submessageHeaderLen; {
		if bytes.HasPrefix(rest, []byte(lab.RTPSMagic)) && len(rest) >= rtpsHeaderLen {
			// The kernel was given several datagrams of one flow at once (UDP_SEGMENT)
			// and shows them to a capture as one.
			prefix = string(rest[8:rtpsHeaderLen])
			rest = rest[rtpsHeaderLen:]
			continue
		}
		var order binary.ByteOrder = binary.BigEndian
		if rest[1]&1 == 1 {
			order = binary.LittleEndian
		}
		size := int(order.Uint16(rest[2:]))
		if size == 0 || size > len(rest)-submessageHeaderLen {
			size = len(rest) - submessageHeaderLen
		}
		body := rest[submessageHeaderLen : submessageHeaderLen+size]
		if (rest[0] == submessageData || rest[0] == submessageDataFrag) && size >= 24 {
			d := rtpsData{prefix: prefix, writer: binary.BigEndian.Uint32(body[8:]),
				number: uint64(order.Uint32(body[12:]))<<32 | uint64(order.Uint32(body[16:]))}
			if rest[0] == submessageDataFrag {
				d.frag = order.Uint32(body[20:])
			}
			found = append(found, d)
		}
		rest = rest[submessageHeaderLen+size:]
	}
	return found
}

// countData counts the data for which f is true.
func countData(all []ddsPacket, f func(*ddsPacket, rtpsData) bool) int {
	n := 0
	for i := range all {
		for _, d := range all[i].data {
			if f(&all[i], d) {
				n++
			}
		}
	}
	return n
}

// recordPLR0 starts to capture a member's plr0; the returned function ends it and
// returns what passed.
func recordPLR0(t testing.TB, w *world, n *lab.Node, what string) func() []ddsPacket {
	t.Helper()
	file := w.file(n.Name(), what+".pcap")
	c, err := n.Capture("plr0", file)
	must(t, err)
	return func() []ddsPacket {
		t.Helper()
		must(t, c.Stop())
		return packetsIn(t, file)
	}
}

// callBoth serves on both gateways with every vendor, and starts a client of
// each on the robot; both gateways answer when it returns.
func callBoth(t testing.TB, w *world, r *robot) []*calls {
	t.Helper()
	var clients []*calls
	for _, v := range vendors {
		for _, g := range w.gateways {
			serve(t, g, v)
		}
		clients = append(clients, startCalls(t, r, v, "--servers", "2", "--count", "0", "--settle-ms", "500"))
	}
	for _, c := range clients {
		c.await(t, "west", time.Now())
		c.await(t, "east", time.Now())
	}
	return clients
}
