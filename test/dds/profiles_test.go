package dds

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/fogplr/fogplr/internal/dds"
	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/lab"
)

const (
	iface    = "plr0"
	uplink   = "wan0"
	requests = 20
	large    = 100_000 // bytes in a request and in a reply: 80 packets
)

func TestMain(m *testing.M) {
	lab.Main()
	os.Exit(m.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// side is a node with its profiles.
type side struct {
	node *lab.Node
	env  []string
}

// newSide gives a node its addresses (one or, with a space between, several) on
// plr0, and profiles for them unless bare.
func newSide(t *testing.T, n *lab.Node, addresses string, mtu int, bare bool) side {
	t.Helper()
	must(t, n.SetMTU(iface, mtu))
	o := dds.Overlay{Interface: iface, MTU: mtu}
	for _, a := range strings.Fields(addresses) {
		o.Addresses = append(o.Addresses, netip.MustParsePrefix(a).Addr())
		must(t, n.AddAddress(iface, a))
	}
	if bare {
		return side{node: n}
	}
	f, err := dds.Write(filepath.Join(t.TempDir(), n.Name()), o)
	must(t, err)
	return side{n, []string{"CYCLONEDDS_URI=file://" + f.Cyclone, "FASTRTPS_DEFAULT_PROFILES_FILE=" + f.FastDDS}}
}

func (s side) program(ctx context.Context, t *testing.T, name string, args ...string) *lab.Cmd {
	t.Helper()
	path, err := apps.Path(name)
	must(t, err)
	c := s.node.Command(ctx, path, args...)
	c.Env = s.env
	return c
}

// seen is what a capture of RTPS shows.
type seen struct {
	packets, largest int // IP packets, and bytes of the largest
	fragments        int // IP fragments
	rtps             int // RTPS messages
}

func look(t *testing.T, pcap string) (s seen) {
	t.Helper()
	must(t, lab.ReadPcap(pcap, func(p gopacket.Packet) error {
		length := 0
		if ip, ok := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4); ok {
			length = int(ip.Length)
			if ip.FragOffset > 0 || ip.Flags&layers.IPv4MoreFragments != 0 {
				s.fragments++
			}
		} else if ip, ok := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6); ok {
			length = 40 + int(ip.Length)
			if p.Layer(layers.LayerTypeIPv6Fragment) != nil {
				s.fragments++
			}
		} else {
			return nil
		}
		s.packets++
		s.largest = max(s.largest, length)
		if udp, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP); ok && len(udp.Payload) > 4 && string(udp.Payload[:4]) == "RTPS" {
			s.rtps++
		}
		return nil
	}))
	return s
}

// call runs one service and one client and returns what the client saw and what
// passed plr0. Between two sides with profiles nothing may pass the uplink.
func call(t *testing.T, prefix string, client, server side) (apps.Summary, seen) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pcap, clear := filepath.Join(t.TempDir(), "plr0.pcap"), filepath.Join(t.TempDir(), "uplink.pcap")
	capture, err := client.node.Capture(iface, pcap)
	must(t, err)
	var outside *lab.Capture
	if profiles := len(client.env) > 0 && len(server.env) > 0; profiles {
		outside, err = client.node.Capture(uplink, clear)
		must(t, err)
	}
	service := server.program(ctx, t, prefix+"rpc_server", "--domain", "7")
	must(t, service.Start())
	out, err := client.program(ctx, t, prefix+"rpc_client", "--domain", "7", "--count", fmt.Sprint(requests), "--rate", "10",
		"--size", fmt.Sprint(large), "--reply-size", fmt.Sprint(large), "--settle-ms", "500").Output()
	must(t, err)
	must(t, service.Stop(10*time.Second))
	must(t, capture.Stop())
	if outside != nil {
		must(t, outside.Stop())
		if leaked := look(t, clear); leaked.rtps > 0 {
			t.Errorf("%d RTPS messages on the uplink", leaked.rtps)
		}
	}
	var s apps.Summary
	must(t, apps.ParseSummary([]byte(out), &s))
	return s, look(t, pcap)
}

// Large requests and replies arrive, and no packet is larger than plr0 carries:
// neither vendor leaves fragmenting to IP. Nothing goes another way than plr0.
func TestMessagesFitTheOverlay(t *testing.T) {
	for _, vendor := range []struct{ name, prefix string }{{"Cyclone", ""}, {"Fast", "fast_"}} {
		for _, c := range []struct {
			name, a, b string
			mtu        int
		}{
			{"IPv4", "10.77.0.2/16", "10.77.0.11/16", 1280},
			{"IPv6", "fd77::2/64", "fd77::11/64", 1280},
			{"both", "fd77::2/64 10.77.0.2/16", "fd77::11/64 10.77.0.11/16", 1280},
			{"jumbo", "10.77.0.2/16", "10.77.0.11/16", 9000},
		} {
			if vendor.name == "Fast" && c.name == "IPv6" {
				continue // there is no profile for it
			}
			t.Run(vendor.name+c.name, func(t *testing.T) {
				l := lab.Test(t, "dds")
				a, b := nodes(t, l, true)
				summary, seen := call(t, vendor.prefix, newSide(t, a, c.a, c.mtu, false), newSide(t, b, c.b, c.mtu, false))
				if summary.Replies != requests || summary.Lost != 0 {
					t.Errorf("%d replies to %d requests, %d lost", summary.Replies, summary.Requests, summary.Lost)
				}
				least := 2 * requests * large / c.mtu
				if seen.fragments != 0 || seen.largest > c.mtu || seen.rtps < least {
					t.Errorf("%d fragments, largest packet %d bytes with an MTU of %d, %d RTPS messages (at least %d carry the data)",
						seen.fragments, seen.largest, c.mtu, seen.rtps, least)
				}
				if seen.largest < c.mtu*9/10 {
					t.Errorf("the largest packet has %d bytes: the MTU of %d is not used", seen.largest, c.mtu)
				}
				t.Logf("%+v", seen)
			})
		}
	}
}

// A program without the profile, such as one that was started elsewhere, sends
// larger messages. They arrive.
func TestProgramsWithoutTheProfileAreHeard(t *testing.T) {
	for _, vendor := range []struct{ name, prefix string }{{"Cyclone", ""}, {"Fast", "fast_"}} {
		t.Run(vendor.name, func(t *testing.T) {
			l := lab.Test(t, "dds")
			a, b := nodes(t, l, false)
			summary, seen := call(t, vendor.prefix, newSide(t, a, "10.77.0.2/16", 1280, false), newSide(t, b, "10.77.0.11/16", 1280, true))
			if summary.Replies != requests || summary.Lost != 0 {
				t.Errorf("%d replies to %d requests, %d lost", summary.Replies, summary.Requests, summary.Lost)
			}
			if seen.fragments == 0 {
				t.Error("no IP fragment was seen, so this tries nothing")
			}
			t.Logf("%+v", seen)
		})
	}
}

// nodes returns two nodes joined by a link that is plr0 at both ends and, with
// uplinks, by one that has the default routes and that the kernel prefers.
func nodes(t *testing.T, l *lab.Lab, uplinks bool) (a, b *lab.Node) {
	t.Helper()
	a, err := l.Node("robot")
	must(t, err)
	b, err = l.Node("gateway")
	must(t, err)
	if uplinks {
		must(t, l.Veth(a, uplink, b, uplink))
		for i, n := range []*lab.Node{a, b} {
			must(t, n.AddAddress(uplink, fmt.Sprintf("192.0.2.%d/24", 1+i)))
			must(t, n.AddAddress(uplink, fmt.Sprintf("2001:db8::%d/64", 1+i)))
			must(t, n.AddRoute("0.0.0.0/0", fmt.Sprintf("192.0.2.%d", 2-i), uplink, 100))
			must(t, n.AddRoute("::/0", fmt.Sprintf("2001:db8::%d", 2-i), uplink, 100))
		}
	}
	must(t, l.Veth(a, iface, b, iface))
	return a, b
}
