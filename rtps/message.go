package rtps

// A Message is read from the front: Read takes the header, each Next one
// submessage. Its fields are the state of the standard's receiver (8.3.4),
// which INFO_SRC, INFO_DST and INFO_TS change on the way: they hold for the
// submessage that Next returned last.
//
// A Message may be used again for the next datagram. It is for one goroutine.
type Message struct {
	Version     Version // of the protocol
	Vendor      Vendor
	Source      Prefix // the participant that wrote what follows
	Destination Prefix // whom it is for; zero: everyone
	Timestamp   Time   // of the source; TimeInvalid if it gave none

	// Checksum says that one over all of the message came first, in a
	// HEADER_EXTENSION (RTPS 2.5) or RTI's own way: no octet may be changed.
	Checksum bool

	// Secured says that a submessage of DDS Security was met: what follows may be
	// signed, so no octet may be changed, and part of it cannot be read.
	Secured bool

	octets []byte // of the message; the beginning, if it is a fragment
	whole  int    // length of the message
	next   int    // where the next submessage begins
	left   int    // how many more may be read
}

// A Submessage is one part of a message. It borrows the message's octets.
type Submessage struct {
	Kind  Kind
	Flags byte

	// Start and End are where it begins, header included, and where the next one
	// would, octets from the beginning of the message.
	Start, End int

	// Body is what follows its header of four octets. If Cut, End is beyond the
	// octets that are here, and Body is the beginning alone.
	Body []byte
	Cut  bool
}

func (s *Submessage) order() order { return s.Flags&flagLittleEndian != 0 }

// Read begins to read the message b. If b is the beginning alone of a message,
// from the first fragment of an IP packet, whole is the length of it all, octets;
// otherwise it is len(b). False means that b is not a message of RTPS 2.
func (m *Message) Read(b []byte, whole int) bool {
	if len(b) < headerSize || whole < len(b) || whole > maxMessage ||
		string(b[:4]) != magic || b[4] != 2 {
		return false
	}
	*m = Message{
		Version:   Version(b[4:6]),
		Vendor:    Vendor(b[6:8]),
		Source:    Prefix(b[8:20]),
		Timestamp: TimeInvalid,
		octets:    b,
		whole:     whole,
		next:      headerSize,
		left:      maxSubmessages,
	}
	return true
}

// Next reads the next submessage into s, also one of an unknown kind or a
// vendor's own. False means that there is none, or none that can be read; the
// two differ in Unread.
//
// A submessage is read here only as far as walking on needs it. If Data,
// Heartbeat or another method says that it is broken, a receiver ignores the
// rest of the message (8.3.4.1, rule 6), and so should the caller.
func (m *Message) Next(s *Submessage) bool {
	header := m.next
	if m.left == 0 || header+submessageHeader > len(m.octets) {
		return false
	}
	b := m.octets[header:]
	*s = Submessage{Kind: Kind(b[0]), Flags: b[1], Start: header}
	body := header + submessageHeader
	length := int(s.order().u16(b[2:]))
	s.End = body + length
	if length == 0 && s.Kind != KindPad && s.Kind != KindInfoTS { // 9.4.5.1.3
		s.End = m.whole
	}
	if s.End > m.whole {
		m.left = 0
		return false
	}
	s.Cut = s.End > len(m.octets)
	here := min(s.End, len(m.octets))
	s.Body = m.octets[body:here:here]
	if !m.interpret(s) {
		m.left = 0
		return false
	}
	m.next = s.End
	m.left--
	return true
}

// Unread is how many octets at the end Next could not read: they are not here,
// or nonsense. It is 0 once all was read.
func (m *Message) Unread() int { return m.whole - m.next }

// interpret applies s to the receiver's state. False means that s is broken.
func (m *Message) interpret(s *Submessage) bool {
	b := s.Body
	switch {
	case s.Kind.security():
		m.Secured = true
	case s.Kind == kindCRC && s.Start == headerSize && m.Vendor == VendorRTI:
		m.Checksum = true
	case len(b) < s.needs():
		return s.Cut // nothing follows that the state would matter for
	case s.Kind == KindHeaderExtension:
		m.Checksum = s.Flags&(flagChecksum1|flagChecksum2) != 0
		return s.Start == headerSize // 8.3.7.3
	case s.Kind == KindInfoSrc: // 8.3.8.10.4
		m.Version, m.Vendor, m.Source = Version(b[4:6]), Vendor(b[6:8]), Prefix(b[8:20])
		m.Timestamp = TimeInvalid
	case s.Kind == KindInfoDst:
		m.Destination = Prefix(b)
	case s.Kind == KindInfoTS && s.Flags&flagInvalidate != 0:
		m.Timestamp = TimeInvalid
	case s.Kind == KindInfoTS:
		m.Timestamp = Time(s.order().halves(b))
	}
	return true
}

// needs is how many octets of body the receiver's state takes from s.
func (s *Submessage) needs() int {
	switch s.Kind {
	case KindInfoSrc: // 9.4.5.11: four unused, version, vendor, prefix
		return 20
	case KindInfoDst: // 9.4.5.9: prefix
		return 12
	case KindInfoTS: // 9.4.5.12: time
		if s.Flags&flagInvalidate == 0 {
			return 8
		}
	case KindHeaderExtension: // 9.4.5.2
		return s.extension()
	}
	return 0
}

// extension is how many octets the fields of a HEADER_EXTENSION take, parameters
// aside.
func (s *Submessage) extension() (n int) {
	for _, f := range [...]struct{ flag, size byte }{
		{flagLength, 4}, {flagTimestamp, 8}, {flagUExtension, 4}, {flagWExtension, 8},
	} {
		if s.Flags&f.flag != 0 {
			n += int(f.size)
		}
	}
	return n + int([...]byte{0, 4, 8, 16}[s.Flags>>5&3])
}
