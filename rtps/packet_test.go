package rtps

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"pgregory.net/rapid"
)

// ipv4 writes an IPv4 packet.
type ipv4 struct {
	flags    layers.IPv4Flag
	offset   uint16 // of the fragment, octets
	protocol layers.IPProtocol
	options  []byte
	id       uint16
}

func (h ipv4) packet(t testing.TB, content []byte) []byte {
	t.Helper()
	ip := layers.IPv4{Version: 4, TTL: 64, Id: h.id, Flags: h.flags, FragOffset: h.offset / 8, Protocol: h.protocol,
		SrcIP: []byte{10, 77, 0, 2}, DstIP: []byte{10, 77, 0, 11}}
	if h.options != nil {
		ip.Options = []layers.IPv4Option{{OptionType: 7, OptionLength: uint8(2 + len(h.options)), OptionData: h.options}}
	}
	return serialize(t, &ip, gopacket.Payload(content))
}

func serialize(t testing.TB, l ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(buf.Bytes())
}

// ipv6 writes an IPv6 packet. next is the kind of the content.
func ipv6(next byte, content []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0x60, 0, 0, 0}, uint16(len(content)))
	b = append(b, next, 64)
	b = append(b, addr6(2)...)
	b = append(b, addr6(11)...)
	return append(b, content...)
}

func addr6(host byte) []byte {
	a := netip.MustParseAddr("fd77::").As16()
	a[15] = host
	return a[:]
}

// udp writes a datagram, or the beginning of one whose length field is said.
func udp(length int, payload []byte) []byte {
	b := []byte{0x1c, 0xe8, 0x1c, 0xf3}
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	return append(append(b, 0x12, 0x34), payload...)
}

// extension writes an extension header of 8*units octets before what follows.
func extension(next byte, units int, rest []byte) []byte {
	b := make([]byte, 8*units)
	b[0], b[1] = next, byte(units-1)
	return append(b, rest...)
}

func fragment6(next byte, offset int, more bool, id uint32, rest []byte) []byte {
	field := uint16(offset)
	if more {
		field |= 1
	}
	b := binary.BigEndian.AppendUint16([]byte{next, 0}, field)
	return append(binary.BigEndian.AppendUint32(b, id), rest...)
}

func TestDatagram(t *testing.T) {
	payload := []byte("sixteen octets..")
	whole := udp(24, payload)
	begin := udp(5000, payload)
	v4 := ipv4{protocol: layers.IPProtocolUDP}
	more := ipv4{protocol: layers.IPProtocolUDP, flags: layers.IPv4MoreFragments, id: 77}
	cut := func(p []byte, n int) []byte { return p[:len(p)-n] }
	set := func(p []byte, at int, v byte) []byte { p[at] = v; return p }
	const hop, routing, esp, ah, opts = 0, 43, 50, 51, 60

	for name, c := range map[string]struct {
		packet     []byte
		ok         bool
		whole      int // 0: 16
		fragmented bool
		id         uint32
	}{
		"IPv4":                     {v4.packet(t, whole), true, 0, false, 0},
		"IPv4, Don't Fragment":     {ipv4{protocol: 17, flags: layers.IPv4DontFragment}.packet(t, whole), true, 0, false, 0},
		"options":                  {ipv4{protocol: 17, options: make([]byte, 6)}.packet(t, whole), true, 0, false, 0},
		"padding behind it":        {append(v4.packet(t, whole), 0, 0, 0), true, 0, false, 0},
		"UDP is shorter than IP":   {v4.packet(t, append(whole[:24:24], 1, 2, 3, 4)), true, 0, false, 0},
		"first fragment":           {more.packet(t, begin), true, 4992, true, 77},
		"fragment has all":         {more.packet(t, whole), false, 0, false, 0},
		"fragment not in eights":   {more.packet(t, cut(begin, 1)), false, 0, false, 0},
		"later fragment":           {ipv4{protocol: 17, flags: layers.IPv4MoreFragments, offset: 16}.packet(t, begin), false, 0, false, 0},
		"last fragment":            {ipv4{protocol: 17, offset: 16}.packet(t, begin), false, 0, false, 0},
		"TCP":                      {ipv4{protocol: 6}.packet(t, whole), false, 0, false, 0},
		"nothing":                  {nil, false, 0, false, 0},
		"cut":                      {cut(v4.packet(t, whole), 1), false, 0, false, 0},
		"UDP longer than IP":       {v4.packet(t, cut(whole, 1)), false, 0, false, 0},
		"UDP shorter than itself":  {v4.packet(t, udp(7, payload)), false, 0, false, 0},
		"no room for UDP":          {v4.packet(t, whole[:7]), false, 0, false, 0},
		"header length lies":       {set(v4.packet(t, whole), 0, 0x44), false, 0, false, 0},
		"header longer than all":   {set(v4.packet(t, whole[:8]), 0, 0x4f), false, 0, false, 0},
		"version 5":                {set(v4.packet(t, whole), 0, 0x55), false, 0, false, 0},
		"IPv6":                     {ipv6(17, whole), true, 0, false, 0},
		"IPv6, hop by hop":         {ipv6(hop, extension(17, 1, whole)), true, 0, false, 0},
		"IPv6, all that is read":   {ipv6(hop, extension(opts, 2, extension(44, 1, fragment6(opts, 0, false, 9, extension(17, 3, whole))))), true, 0, false, 0},
		"IPv6, too many":           {ipv6(opts, extension(opts, 1, extension(opts, 1, extension(opts, 1, extension(opts, 1, extension(17, 1, whole)))))), false, 0, false, 0},
		"IPv6, first fragment":     {ipv6(44, fragment6(17, 0, true, 1<<31+9, begin)), true, 4992, true, 1<<31 + 9},
		"IPv6, atomic fragment":    {ipv6(44, fragment6(17, 0, false, 9, whole)), true, 0, false, 0},
		"IPv6, options in it":      {ipv6(44, fragment6(opts, 0, true, 9, extension(17, 1, begin))), true, 4992, true, 9},
		"IPv6, later fragment":     {ipv6(44, fragment6(17, 8, true, 9, begin)), false, 0, false, 0},
		"IPv6, fragment of one":    {ipv6(44, fragment6(44, 0, true, 9, fragment6(17, 0, true, 9, begin))), false, 0, false, 0},
		"IPv6, routing":            {ipv6(routing, extension(17, 1, whole)), false, 0, false, 0},
		"IPv6, authentication":     {ipv6(ah, extension(17, 1, whole)), false, 0, false, 0},
		"IPv6, encrypted":          {ipv6(esp, whole), false, 0, false, 0},
		"IPv6, cut":                {cut(ipv6(17, whole), 1), false, 0, false, 0},
		"IPv6, header cut":         {ipv6(17, whole)[:39], false, 0, false, 0},
		"IPv6, jumbogram":          {set(set(ipv6(17, whole), 4, 0), 5, 0), false, 0, false, 0},
		"IPv6, extension is cut":   {ipv6(opts, []byte{17, 0, 0, 0}), false, 0, false, 0},
		"IPv6, extension lies":     {ipv6(opts, extension(17, 1, whole[:0])), false, 0, false, 0},
		"IPv6, extension too long": {set(ipv6(opts, extension(17, 1, whole)), 41, 200), false, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var d Datagram
			if ok := d.Read(c.packet); ok != c.ok {
				t.Fatalf("read %v, want %v: %+v", ok, c.ok, d)
			}
			if !c.ok {
				return
			}
			if c.whole == 0 {
				c.whole = len(payload)
			}
			source, destination := netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("10.77.0.11")
			if c.packet[0]>>4 == 6 {
				source, destination = netip.MustParseAddr("fd77::2"), netip.MustParseAddr("fd77::b")
			}
			if d.Source != source || d.Destination != destination || d.SourcePort != 7400 || d.DestinationPort != 7411 {
				t.Errorf("from %v port %d to %v port %d", d.Source, d.SourcePort, d.Destination, d.DestinationPort)
			}
			if !bytes.Equal(d.Payload, payload) || cap(d.Payload) != len(payload) || d.Whole != c.whole || d.Fragmented != c.fragmented || d.ID != c.id {
				t.Errorf("%+v", d)
			}
		})
	}
}

// A Datagram is used again and again: nothing of the last packet stays.
func TestDatagramForgets(t *testing.T) {
	var d Datagram
	first := ipv6(44, fragment6(17, 0, true, 9, udp(5000, make([]byte, 16))))
	if !d.Read(first) || d.Read(nil) || d.Payload != nil || d.Fragmented || d.Source.IsValid() {
		t.Errorf("after nothing: %+v", d)
	}
}

// Whatever gopacket writes is read as it was meant.
func TestDatagramOfAnySize(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(r, "payload")
		u := &layers.UDP{SrcPort: layers.UDPPort(rapid.Uint16().Draw(r, "from")), DstPort: layers.UDPPort(rapid.Uint16().Draw(r, "to"))}
		var ip gopacket.SerializableLayer
		if rapid.Bool().Draw(r, "v6") {
			l := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolUDP, SrcIP: addr6(1), DstIP: addr6(2)}
			_ = u.SetNetworkLayerForChecksum(l)
			ip = l
		} else {
			l := &layers.IPv4{Version: 4, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 77, 0, 1}, DstIP: []byte{10, 77, 0, 2}}
			_ = u.SetNetworkLayerForChecksum(l)
			ip = l
		}
		packet := serialize(t, ip, u, gopacket.Payload(payload))
		var d Datagram
		if !d.Read(packet) || !bytes.Equal(d.Payload, payload) || d.Whole != len(payload) ||
			d.SourcePort != uint16(u.SrcPort) || d.DestinationPort != uint16(u.DstPort) {
			r.Fatalf("%+v of %x", d, packet)
		}
		short := rapid.IntRange(0, len(packet)-1).Draw(r, "short")
		if d.Read(packet[:short]) {
			r.Fatalf("%d octets of %d were read as a datagram", short, len(packet))
		}
	})
}

// Nothing panics, and whatever is read lies inside the packet.
func FuzzDatagram(f *testing.F) {
	for _, k := range readTrains(f)[:50] {
		f.Add(k.packets[0])
	}
	f.Add(ipv6(44, fragment6(60, 0, true, 9, extension(17, 1, udp(5000, make([]byte, 16))))))
	f.Fuzz(func(t *testing.T, packet []byte) {
		before := bytes.Clone(packet)
		var d Datagram
		ok := d.Read(packet)
		if !bytes.Equal(before, packet) {
			t.Error("reading changed the packet")
		}
		if !ok {
			return
		}
		if d.Whole < len(d.Payload) || d.Fragmented != (d.Whole > len(d.Payload)) || d.Whole > 65527 ||
			!d.Source.IsValid() || d.Source.Is4() != d.Destination.Is4() || !bytes.Contains(packet, d.Payload) {
			t.Errorf("%+v", d)
		}
	})
}
