package rtps

// Parameters is a parameter list (9.4.2.11), and how far it has been read:
// inline QoS, or a sample of discovery. It borrows the octets of its message. A
// copy is read on its own; the zero value is an empty list.
type Parameters struct {
	octets []byte // from the next parameter on
	order  order
	left   int // how many more may be read
}

// A ParameterID says what a parameter is. From 0x8000 on it is a vendor's own.
type ParameterID uint16

// The parameters that are read here: of discovery (Table 9.18), inline (Table
// 9.20), and of DDS-RPC 1.0 (7.6.2), in the number that it has from there and
// that which Fast DDS used before.
const (
	PIDPad                   ParameterID = 0x0000
	PIDSentinel              ParameterID = 0x0001
	PIDLeaseDuration         ParameterID = 0x0002
	PIDTopicName             ParameterID = 0x0005
	PIDTypeName              ParameterID = 0x0007
	PIDProtocolVersion       ParameterID = 0x0015
	PIDVendor                ParameterID = 0x0016
	PIDReliability           ParameterID = 0x001a
	PIDDurability            ParameterID = 0x001d
	PIDParticipantGUID       ParameterID = 0x0050
	PIDEndpointGUID          ParameterID = 0x005a
	PIDKeyHash               ParameterID = 0x0070
	PIDStatusInfo            ParameterID = 0x0071
	PIDRelatedIdentity       ParameterID = 0x0083
	PIDRelatedIdentityVendor ParameterID = 0x800f
)

// A Parameter is one of a list. Its Value has a length that is a multiple of four
// octets, and the list's byte order.
type Parameter struct {
	ID    ParameterID
	Value []byte
}

// end is how the reading of a list ended.
type end int

const (
	ended  end = iota // at its sentinel
	cut               // at the end of what is here
	broken            // at nonsense, or at too many parameters
)

func newParameters(b []byte, o order) Parameters {
	return Parameters{octets: b, order: o, left: maxParameters}
}

// Next reads the next parameter into q, leaving out padding. False means that
// there is none, or none that can be read.
func (p *Parameters) Next(q *Parameter) bool {
	more, _ := p.next(q)
	return more
}

// Find returns the value of the first parameter of that kind that is still to be
// read.
func (p Parameters) Find(id ParameterID) (value []byte, ok bool) {
	for q := (Parameter{}); p.Next(&q); {
		if q.ID == id {
			return q.Value, true
		}
	}
	return nil, false
}

func (p *Parameters) next(q *Parameter) (more bool, e end) {
	for ; p.left > 0; p.left-- {
		if len(p.octets) < 4 {
			return false, cut
		}
		id, length := ParameterID(p.order.u16(p.octets)), int(p.order.u16(p.octets[2:]))
		switch {
		case id == PIDSentinel: // its length means nothing
			p.octets = p.octets[4:]
			return false, ended
		case length%4 != 0:
			return false, broken
		case length > len(p.octets)-4:
			return false, cut
		}
		*q = Parameter{ID: id, Value: p.octets[4 : 4+length : 4+length]}
		p.octets = p.octets[4+length:]
		if id != PIDPad {
			p.left--
			return true, ended
		}
	}
	return false, broken
}

// skip returns what follows the list, and how the list ended.
func (p Parameters) skip() (rest []byte, e end) {
	for q := (Parameter{}); ; {
		more, e := p.next(&q)
		if !more {
			return p.octets, e
		}
	}
}

// name reads a CDR string: its length with the NUL at its end, and its octets
// (9.6.3.2, string<256>). False means that it is broken or too long.
func (o order) name(value []byte) ([]byte, bool) {
	if len(value) < 4 {
		return nil, false
	}
	n := o.u32(value)
	if n < 1 || n > uint32(len(value)-4) || n > maxName+1 {
		return nil, false
	}
	s := value[4 : 4+n]
	if s[n-1] != 0 {
		return nil, false
	}
	return s[: n-1 : n-1], true
}
