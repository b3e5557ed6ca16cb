package path

// What surrounds a frame on a carrier, in bytes.
const (
	wireguardLen     = 16 + 16 // header and authentication tag of a transport message
	wireguardPadding = 16      // frames are padded to a multiple of it
	udpLen           = 8
	ipv4Len          = 20 // without options
	ipv6Len          = 40
)

// Padded returns what a frame of frame bytes takes up inside WireGuard: the next
// multiple of 16, but no more than largest, the MTU of the WireGuard device and
// so the largest frame of the node that sends it.
func Padded(frame, largest int) int {
	up := (frame + wireguardPadding - 1) / wireguardPadding * wireguardPadding
	return max(frame, min(up, largest))
}

// CarrierBytes returns the length of the IP packet that takes a frame of frame
// bytes over a carrier, by IPv6 or IPv4. largest is as in Padded.
func CarrierBytes(frame, largest int, ipv6 bool) int {
	return Padded(frame, largest) + surroundings(ipv6)
}

// FrameFor returns the largest frame, at most largest, whose IP packet has no
// more than mtu bytes; 0 if there is none. largest is as in Padded.
func FrameFor(mtu, largest int, ipv6 bool) int {
	room := mtu - surroundings(ipv6)
	if room >= largest {
		return largest
	}
	return max(0, room/wireguardPadding*wireguardPadding)
}

func surroundings(ipv6 bool) int {
	if ipv6 {
		return wireguardLen + udpLen + ipv6Len
	}
	return wireguardLen + udpLen + ipv4Len
}
