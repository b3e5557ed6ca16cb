package tunnel

import (
	"encoding/hex"
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// inner builds an inner packet with gopacket, the reader that did not write
// classify.
func inner(t testing.TB, src, dst string, proto layers.IPProtocol, port uint16, payload []byte) []byte {
	t.Helper()
	s, d := netip.MustParseAddr(src), netip.MustParseAddr(dst)
	var network gopacket.SerializableLayer
	var sum gopacket.NetworkLayer
	if s.Is4() {
		ip := &layers.IPv4{Version: 4, TTL: 1, Protocol: proto, SrcIP: net.IP(s.AsSlice()), DstIP: net.IP(d.AsSlice())}
		network, sum = ip, ip
	} else {
		ip := &layers.IPv6{Version: 6, HopLimit: 1, NextHeader: proto, SrcIP: net.IP(s.AsSlice()), DstIP: net.IP(d.AsSlice())}
		network, sum = ip, ip
	}
	all := []gopacket.SerializableLayer{network}
	if proto == layers.IPProtocolUDP {
		udp := &layers.UDP{SrcPort: 7400, DstPort: layers.UDPPort(port)}
		if err := udp.SetNetworkLayerForChecksum(sum); err != nil {
			t.Fatal(err)
		}
		all = append(all, udp)
	}
	all = append(all, gopacket.Payload(payload))
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestClassify(t *testing.T) {
	udp := layers.IPProtocolUDP
	for name, c := range map[string]struct {
		packet []byte
		want   kind
	}{
		"unicast":         {inner(t, "10.77.0.2", "10.77.0.11", udp, 7411, nil), unicast},
		"SPDP":            {inner(t, "10.77.0.2", "239.255.0.1", udp, 7400, nil), multicast},
		"mDNS":            {inner(t, "10.77.0.2", "224.0.0.251", udp, 5353, nil), local},
		"SSDP":            {inner(t, "10.77.0.2", "239.255.255.250", udp, 1900, nil), local},
		"IGMP":            {inner(t, "10.77.0.2", "224.0.0.22", layers.IPProtocolIGMP, 0, make([]byte, 8)), local},
		"all hosts":       {inner(t, "10.77.0.2", "224.0.0.1", udp, 7400, nil), local},
		"broadcast":       {inner(t, "10.77.0.2", "255.255.255.255", udp, 9, nil), local},
		"unicast, 6":      {inner(t, "fd77::2", "fd77::b", udp, 7411, nil), unicast},
		"SPDP, 6":         {inner(t, "fd77::2", "ff02::ffff:239.255.0.1", udp, 7400, nil), multicast},
		"mDNS, 6":         {inner(t, "fd77::2", "ff02::fb", udp, 5353, nil), local},
		"MLD":             {inner(t, "fd77::2", "ff02::16", layers.IPProtocolICMPv6, 0, []byte{143, 0, 0, 0}), local},
		"solicitation":    {inner(t, "fd77::2", "ff02::1:ff00:b", layers.IPProtocolICMPv6, 0, []byte{135, 0, 0, 0}), local},
		"ping, 6":         {inner(t, "fd77::2", "fd77::b", layers.IPProtocolICMPv6, 0, []byte{128, 0, 0, 0}), unicast},
		"interface-local": {inner(t, "fd77::2", "ff01::1", udp, 7400, nil), local},
		"empty":           {nil, malformed},
		"neither 4 nor 6": {make([]byte, 60), malformed},
	} {
		if got := classify(c.packet).kind; got != c.want {
			t.Errorf("%s: kind %d, want %d (%s)", name, got, c.want, hex.EncodeToString(c.packet))
		}
	}
	// MLD reports carry a hop-by-hop option (RFC 3810 section 5).
	mld := inner(t, "fd77::2", "ff02::16", layers.IPProtocolIPv6HopByHop, 0,
		[]byte{protoICMP6, 0, 5, 2, 0, 0, 1, 0, 143, 0, 0, 0})
	if got := classify(mld).kind; got != local {
		t.Errorf("MLD behind a hop-by-hop option: kind %d", got)
	}
	// A later fragment of a datagram has no UDP header where one would be.
	fragment := inner(t, "10.77.0.2", "239.255.0.1", udp, 5353, nil)
	fragment[7] = 1
	if got := classify(fragment).kind; got != multicast {
		t.Errorf("later fragment: kind %d", got)
	}
}

func TestClassifyAllocatesNothing(t *testing.T) {
	p := inner(t, "10.77.0.2", "10.77.0.11", layers.IPProtocolUDP, 7411, make([]byte, 100))
	if n := testing.AllocsPerRun(100, func() { classify(p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(inner(f, "10.77.0.2", "239.255.0.1", layers.IPProtocolUDP, 7400, []byte("RTPS")))
	f.Add(inner(f, "fd77::2", "ff02::16", layers.IPProtocolIPv6HopByHop, 0, []byte{58, 0, 5, 2, 0, 0, 1, 0, 143}))
	f.Fuzz(func(t *testing.T, p []byte) {
		h := classify(p)
		if h.kind == malformed {
			return
		}
		if !h.src.IsValid() || !h.dst.IsValid() {
			t.Fatalf("kind %d without addresses", h.kind)
		}
		if h.kind == multicast != h.dst.IsMulticast() && h.kind != local {
			t.Fatalf("kind %d for %v", h.kind, h.dst)
		}
	})
}
