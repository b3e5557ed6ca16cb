package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// RTPSMagic opens every RTPS 2.x message (RTPS 2.3, section 9.4.4).
const RTPSMagic = "RTPS\x02"

// ReadPcap calls f for every packet of a pcap file, in order, until f returns
// an error, which it returns. packet is decoded lazily and must not be kept.
func ReadPcap(path string, f func(packet gopacket.Packet) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := pcapgo.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		packet := gopacket.NewPacket(data, r.LinkType(), gopacket.DecodeOptions{Lazy: true, NoCopy: true})
		packet.Metadata().CaptureInfo = info
		if err := f(packet); err != nil {
			return err
		}
	}
}

// WireGuardCount counts WireGuard messages by type.
type WireGuardCount struct {
	Initiations, Responses, Cookies int
	Data                            int // transport data, keepalives included
	Keepalives                      int // transport data without content
	DataBytes                       int // UDP payload of transport data
	OtherUDP                        int // not WireGuard
}

// CountWireGuard counts the WireGuard messages in a pcap file, sent and
// received together.
func CountWireGuard(path string) (c WireGuardCount, err error) {
	err = ReadPcap(path, func(p gopacket.Packet) error {
		if udp, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP); ok {
			c.add(udp.Payload)
		}
		return nil
	})
	return c, err
}

// add counts one message by the form of WireGuard's section 5.4: type, three
// zero bytes, and the length that goes with the type.
func (c *WireGuardCount) add(b []byte) {
	const empty = 32 // header and authentication tag
	if len(b) < 4 || b[1] != 0 || b[2] != 0 || b[3] != 0 {
		c.OtherUDP++
		return
	}
	switch {
	case b[0] == 1 && len(b) == 148:
		c.Initiations++
	case b[0] == 2 && len(b) == 92:
		c.Responses++
	case b[0] == 3 && len(b) == 64:
		c.Cookies++
	case b[0] == 4 && len(b) >= empty:
		c.Data++
		c.DataBytes += len(b)
		if len(b) == empty {
			c.Keepalives++
		}
	default:
		c.OtherUDP++
	}
}

// Finding is one packet in which a text was found.
type Finding struct {
	Packet int // number in the file, from 1
	At     time.Time
	Text   string
	Dump   string // the packet, decoded
}

// FindPlain looks for texts anywhere in the packets of a pcap file; it names the
// first text of each packet. A text should be five bytes or longer: shorter ones
// turn up in encrypted data by chance.
func FindPlain(path string, texts ...string) ([]Finding, error) {
	var found []Finding
	number := 0
	err := ReadPcap(path, func(p gopacket.Packet) error {
		number++
		for _, text := range texts {
			if bytes.Contains(p.Data(), []byte(text)) {
				found = append(found, Finding{Packet: number, At: p.Metadata().Timestamp, Text: text, Dump: p.String()})
				break
			}
		}
		return nil
	})
	return found, err
}
