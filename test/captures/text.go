package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/fogplr/fogplr/test/lab"
)

// distil keeps the UDP packets of a capture, fragments of them included, without
// their Ethernet header, as they would pass plr0.
func distil(from, to string) error {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	zip, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	w := pcapgo.NewWriter(zip)
	err = w.WriteFileHeader(1<<16, layers.LinkTypeRaw)
	if err == nil {
		err = lab.ReadPcap(from, func(p gopacket.Packet) error {
			ip := datagramPacket(p)
			if ip == nil {
				return nil
			}
			info := p.Metadata().CaptureInfo
			info.CaptureLength, info.Length = len(ip), len(ip)
			return w.WritePacket(info, ip)
		})
	}
	return errors.Join(err, zip.Close(), file.Close())
}

// datagramPacket returns the IP packet in a frame if it has UDP inside, nil if
// not.
func datagramPacket(p gopacket.Packet) []byte {
	switch ip := p.NetworkLayer().(type) {
	case *layers.IPv4:
		if ip.Protocol == layers.IPProtocolUDP {
			return p.Data()[len(p.LinkLayer().LayerContents()):][:ip.Length]
		}
	case *layers.IPv6:
		fragment, _ := p.Layer(layers.LayerTypeIPv6Fragment).(*layers.IPv6Fragment)
		if ip.NextHeader == layers.IPProtocolUDP || fragment != nil && fragment.NextHeader == layers.IPProtocolUDP {
			return p.Data()[len(p.LinkLayer().LayerContents()):][:40+int(ip.Length)]
		}
	}
	return nil
}

// fields are what the tests compare. tshark gives the values of one field in all
// submessages of a message as one list.
var fields = []string{
	"frame.number", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "udp.srcport", "udp.dstport", "udp.length",
	"udp.checksum.status", "rtps.version", "rtps.vendorId", "rtps.guidPrefix.src", "rtps.guidPrefix.dst",
	"rtps.sm.id", "rtps.sm.flags", "rtps.sm.rdEntityId", "rtps.sm.wrEntityId", "rtps.sm.seqNumber",
	"rtps.data_frag.number", "rtps.data_frag.num_fragments", "rtps.data_frag.sample_size",
	"rtps.heartbeat_count", "rtps.acknack.count", "rtps.param.id", "rtps.param.topicName", "rtps.param.typeName",
	"rtps.param.endpoint_guid",
}

// dissect writes one line for each RTPS message of a capture, and a heading. A
// message in IP fragments counts where its last fragment is. It returns the
// number of messages.
func dissect(ctx context.Context, capture, to string) (lines int, err error) {
	args := []string{"-n", "-r", capture, "-Y", "rtps", "-o", "udp.check_checksum:TRUE",
		"-o", "udp.try_heuristic_first:TRUE", // a port may be another protocol's
		"-T", "fields", "-E", "header=y", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.CommandContext(ctx, "tshark", args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return 0, fmt.Errorf("tshark: %w: %s", err, exit.Stderr)
	}
	if err != nil {
		return 0, fmt.Errorf("tshark (Debian's package has that name): %w", err)
	}
	lines = bytes.Count(out, []byte("\n")) - 1
	if lines < 1 {
		return 0, errors.New("tshark finds no RTPS in the capture")
	}
	return lines, os.WriteFile(to, out, 0o644)
}
