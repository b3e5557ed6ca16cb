package rtps

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// train is the IP packets of one datagram, in order.
type train struct {
	capture string
	number  int // of the last packet in it, from 1
	packets [][]byte
}

func (k train) String() string { return fmt.Sprintf("%s, packet %d", k.capture, k.number) }

// readTrains returns all whole datagrams of all captures.
func readTrains(t testing.TB) (trains []train) {
	t.Helper()
	captures, err := filepath.Glob("testdata/*.pcap.gz")
	if err != nil || len(captures) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, capture := range captures {
		trains = append(trains, readCapture(t, capture)...)
	}
	return trains
}

// readCapture returns all whole datagrams of a capture.
func readCapture(t testing.TB, capture string) (trains []train) {
	t.Helper()
	file, err := os.Open(capture)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r, err := pcapgo.NewReader(bufio.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	open := map[string][][]byte{} // the fragments so far, by what gopacket knows them by
	for number := 1; ; number++ {
		b, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return trains
		} else if err != nil {
			t.Fatal(err)
		}
		key, more := fragmentKey(t, b)
		open[key] = append(open[key], b)
		if !more {
			k := train{filepath.Base(capture), number, open[key]}
			delete(open, key)
			if _, _, whole := k.join(t); whole {
				trains = append(trains, k)
			}
		}
	}
}

func decode(t testing.TB, b []byte) gopacket.Packet {
	t.Helper()
	first := layers.LayerTypeIPv4
	if b[0]>>4 == 6 {
		first = layers.LayerTypeIPv6
	}
	p := gopacket.NewPacket(b, first, gopacket.DecodeOptions{NoCopy: true})
	if p.NetworkLayer() == nil {
		t.Fatalf("gopacket cannot read %x", b)
	}
	return p
}

func fragmentKey(t testing.TB, b []byte) (key string, more bool) {
	switch ip := decode(t, b).NetworkLayer().(type) {
	case *layers.IPv4:
		return fmt.Sprint(ip.SrcIP, ip.DstIP, ip.Id), ip.Flags&layers.IPv4MoreFragments != 0
	case *layers.IPv6:
		if f, ok := decode(t, b).Layer(layers.LayerTypeIPv6Fragment).(*layers.IPv6Fragment); ok {
			return fmt.Sprint(ip.SrcIP, ip.DstIP, f.Identification), f.MoreFragments
		}
	}
	return "", false
}

// join puts a train together, by gopacket alone. whole is false for one that
// lacks a packet.
func (k train) join(t testing.TB) (ip gopacket.NetworkLayer, udp []byte, whole bool) {
	t.Helper()
	for _, b := range k.packets {
		p := decode(t, b)
		offset, part := 0, p.NetworkLayer().LayerPayload()
		if ip, ok := p.NetworkLayer().(*layers.IPv4); ok {
			offset = int(ip.FragOffset) * 8
		} else if f, ok := p.Layer(layers.LayerTypeIPv6Fragment).(*layers.IPv6Fragment); ok {
			offset, part = int(f.FragmentOffset)*8, f.LayerPayload()
		}
		if offset != len(udp) {
			return nil, nil, false
		}
		udp = append(udp, part...)
		ip = p.NetworkLayer()
	}
	return ip, udp, len(udp) >= 8 && len(udp) == int(binary.BigEndian.Uint16(udp[4:]))
}
