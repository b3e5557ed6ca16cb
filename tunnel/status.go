package tunnel

import (
	"net/netip"
	"slices"

	"golang.zx2c4.com/wireguard/device"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/replicate"
)

// Status is what a node tells about itself; `fogplr status --json` prints it as
// it stands. Times are in seconds unless the name says otherwise.
type Status struct {
	Role      string   `json:"role"` // "robot" or "gateway"
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Uptime    float64  `json:"uptime_s"`
	Interface string   `json:"interface"`
	Addresses []string `json:"addresses"`
	MTU       int      `json:"mtu"`
	// OnCarrier says what a packet of MTU bytes becomes on a carrier.
	OnCarrier SizeStatus `json:"on_carrier"`
	// Ready is true when the node can do its work: a robot with a path up to at
	// least one gateway, since the replicas stand in for each other; a gateway with
	// its socket open.
	Ready bool `json:"ready"`
	// ClockBehind is the sum over all paths of what they count under that name.
	ClockBehind uint64 `json:"clock_behind"`
	// Restored counts the rules and routes that were put back after another program
	// had removed them.
	Restored uint64 `json:"restored"`
	// Warnings are plain sentences: what is wrong, what it means, what to do.
	Warnings []string        `json:"warnings,omitempty"`
	Carriers []CarrierStatus `json:"carriers,omitempty"` // robot only
	Socket   *SocketStatus   `json:"socket,omitempty"`   // gateway only
	Peers    []PeerStatus    `json:"peers"`
	Out      OutCounters     `json:"out"`
	In       InCounters      `json:"in"`
}

// SizeStatus has the headers that surround a packet of the overlay on a carrier, in
// bytes, and how large the largest one is with all of them.
type SizeStatus struct {
	Tag         int `json:"tag"`       // fogplr's own
	WireGuard   int `json:"wireguard"` // header and authentication tag
	UDP         int `json:"udp"`
	IPv4        int `json:"ipv4"`
	IPv6        int `json:"ipv6"`
	LargestIPv4 int `json:"largest_ipv4"`
	LargestIPv6 int `json:"largest_ipv6"`
}

// UsageStatus is what a metered carrier has moved.
type UsageStatus struct {
	Month string `json:"month"` // such as "2026-11"
	Used  uint64 `json:"used_bytes"`
	Cap   uint64 `json:"cap_bytes"`
	// Spent says that Cap is used up but for a small reserve, so the carrier rests.
	Spent bool `json:"spent"`
}

// CarrierStatus is one uplink of a robot.
type CarrierStatus struct {
	Interface string `json:"interface"`
	Label     string `json:"label,omitempty"`
	Slot      int    `json:"slot"`
	Usable    bool   `json:"usable"`
	// Gone says that there is no interface for it now. Interface is the name that it
	// had last, or should have, which may be another carrier's by now.
	Gone bool `json:"gone"`
	// Problem is empty when the carrier is usable.
	Problem string       `json:"problem,omitempty"`
	Socket  SocketStatus `json:"socket"`
	// OwnBytes are those of Socket.WireBytes that are fogplr's own: probes,
	// handshakes, keepalives and questions to gateways, but not what it adds to
	// packets of applications. OwnPerDay is what that makes in a day.
	OwnBytes  uint64 `json:"own_bytes"`
	OwnPerDay uint64 `json:"own_bytes_per_day"`
	// Captive says that the network intercepts its users.
	Captive bool         `json:"captive"`
	Usage   *UsageStatus `json:"usage,omitempty"` // metered carriers
}

// SocketStatus counts what a UDP socket did, in datagrams and in bytes of UDP
// payload.
type SocketStatus struct {
	TxPackets uint64 `json:"tx_packets"`
	TxBytes   uint64 `json:"tx_bytes"`
	RxPackets uint64 `json:"rx_packets"`
	RxBytes   uint64 `json:"rx_bytes"`
	// TxDropped counts datagrams the kernel did not take because its buffer was
	// full, TxTooBig those too big for the interface's MTU (without fragments) or
	// for UDP, TxErrors those refused for other reasons (no route, link down).
	TxDropped uint64 `json:"tx_dropped"`
	TxTooBig  uint64 `json:"tx_too_big"`
	TxErrors  uint64 `json:"tx_errors"`
	// RxOverflow counts datagrams that the kernel dropped because this program
	// did not read fast enough.
	RxOverflow uint64 `json:"rx_overflow"`
	// RxForeign counts messages from addresses that are no gateway's, which a
	// carrier does not look into.
	RxForeign uint64 `json:"rx_foreign"`
	// WireBytes are all bytes both ways, with the headers of UDP and IP.
	WireBytes uint64 `json:"wire_bytes"`
	LastError string `json:"last_error,omitempty"`
}

// PeerStatus is the other end: a gateway as a robot sees it, or a robot as a
// gateway does.
type PeerStatus struct {
	Name        string             `json:"name"`
	Addresses   []string           `json:"addresses"`
	Elimination replicate.Counters `json:"elimination"`
	// Incomplete counts datagrams in IP fragments of which one was missing, so that
	// all were dropped.
	Incomplete uint64       `json:"incomplete"`
	Paths      []PathStatus `json:"paths"`
}

// Reached reports whether a path to the peer is up.
func (p *PeerStatus) Reached() bool {
	return slices.ContainsFunc(p.Paths, func(l PathStatus) bool { return l.Up })
}

// PathStatus is one WireGuard session, carrier by gateway.
type PathStatus struct {
	Carrier  string `json:"carrier"` // interface on a robot, "slot N" on a gateway
	Slot     int    `json:"slot"`
	Endpoint string `json:"endpoint,omitempty"`
	// Up means proven: authenticated answers came within the trust time.
	Up bool `json:"up"`
	// Carries means that packets are copied to this path now.
	Carries bool `json:"carries"`
	// Stage names what fails when the path is not up, such as "no route" or "no reply",
	// and what a path that is up suffers from, such as "lossy"; see path.Stage.
	Stage string `json:"stage,omitempty"`
	// Largest is the largest frame in bytes that the path takes, of those that are
	// ever sent, 0 when not known. LargestPacket is what it becomes on the carrier,
	// with all headers. Search is how far the search for it is; robots only.
	Largest       int    `json:"largest,omitempty"`
	LargestPacket int    `json:"largest_packet,omitempty"`
	Search        string `json:"search,omitempty"`
	// Parts is in how many parts a packet of the TUN device's MTU goes by this path:
	// 1 for as a whole, 0 for not at all.
	Parts int `json:"parts"`
	// TxParts counts frames with a part of a packet, RxParts what became of those
	// that came.
	TxParts uint64                 `json:"tx_parts"`
	RxParts replicate.PartCounters `json:"rx_parts"`
	// IdleProbe is the interval in seconds at which an idle path is probed.
	IdleProbe float64 `json:"idle_probe_s,omitempty"`
	// Hint says what Stage means and what to do.
	Hint  string  `json:"hint,omitempty"`
	RTTms float64 `json:"rtt_ms,omitempty"` // smoothed; robots only
	// LossIn and LossOut are shares (0 to 1) of the frames of this path alone,
	// by its own sequence numbers, over the last seconds; -1 when not known.
	LossIn    float64 `json:"loss_in"`
	LossOut   float64 `json:"loss_out"`
	LastProof float64 `json:"last_proof_s"` // seconds ago, -1 when never
	TxFrames  uint64  `json:"tx_frames"`
	RxFrames  uint64  `json:"rx_frames"`
	// TxDropped counts frames dropped in the carrier's own queue.
	TxDropped uint64 `json:"tx_dropped"`
	// LatentErrors counts the times that this path's copies stopped while its
	// twins' went on (IEEE 802.1CB, 7.4.4).
	LatentErrors uint64 `json:"latent_errors"`
	Latent       bool   `json:"latent"` // true while it lasts
	// ClockBehind counts the handshakes that the gateway started, since it refused
	// the robot's: their time stamps were not later than earlier ones.
	ClockBehind uint64 `json:"clock_behind"`
}

// onCarrier adds up the headers of the largest frame, which is not padded.
func onCarrier(largest int) SizeStatus {
	return SizeStatus{
		Tag: replicate.TagLen, WireGuard: device.MessageTransportSize, UDP: udpHeader, IPv4: ipv4Header, IPv6: ipv6Header,
		LargestIPv4: path.CarrierBytes(largest, largest, false), LargestIPv6: path.CarrierBytes(largest, largest, true),
	}
}

// packetBytes returns the size of the IP packet that takes a frame of frame bytes
// to an endpoint, 0 when either is not known. largest is as in path.CarrierBytes.
func packetBytes(frame, largest int, endpoint string) int {
	to, err := netip.ParseAddrPort(endpoint)
	if frame == 0 || err != nil {
		return 0
	}
	return path.CarrierBytes(frame, largest, to.Addr().Unmap().Is6())
}

// OutCounters count inner packets read from the TUN device.
type OutCounters struct {
	Packets    uint64 `json:"packets"`
	Bytes      uint64 `json:"bytes"`
	Local      uint64 `json:"local"`       // IGMP, MLD, mDNS and the like, never replicated
	NoPeer     uint64 `json:"no_peer"`     // destination is nobody's address
	NoPath     uint64 `json:"no_path"`     // no path to the destination had a session
	NotAllowed uint64 `json:"not_allowed"` // source is not this node's overlay address
	// Stale counts packets, and frames on their way to a carrier, that were dropped
	// because this program or machine stood still while they waited.
	Stale uint64 `json:"stale"`
}

// InCounters count frames that WireGuard authenticated.
type InCounters struct {
	Frames     uint64 `json:"frames"`
	Malformed  uint64 `json:"malformed"`
	BadVersion uint64 `json:"bad_version"`
	// NotAllowed counts inner packets whose source the peer may not claim or
	// whose destination is not here.
	NotAllowed uint64 `json:"not_allowed"`
	TUNErrors  uint64 `json:"tun_errors"` // writes of which the kernel did not take every packet
	// Stale counts datagrams and frames that were dropped because this program or
	// machine, or the peer's, stood still while they waited.
	Stale uint64 `json:"stale"`
}
