package rtps

import "math/bits"

// Heartbeat says which samples a writer has (HEARTBEAT, 8.3.8.6): First to Last.
// It has none if Last is First-1.
type Heartbeat struct {
	Reader      EntityID // EntityUnknown: every reader that is matched
	Writer      EntityID
	First, Last SequenceNumber
	Count       int32
	Final       bool // no answer is wanted
	Liveliness  bool // the application asserts that it lives
}

// HeartbeatFrag says that the writer has fragments 1 to Last of a sample
// (HEARTBEAT_FRAG, 8.3.8.7).
type HeartbeatFrag struct {
	Reader EntityID // EntityUnknown: every reader that is matched
	Writer EntityID
	Seq    SequenceNumber
	Last   FragmentNumber
	Count  int32
}

// AckNack says what a reader has (ACKNACK, 8.3.8.1): everything below
// Missing.Base, and it wants those in Missing. A Base of 0, with nothing
// missing, comes from a reader that has not heard from the writer yet.
type AckNack struct {
	Reader, Writer EntityID
	Missing        Set[SequenceNumber]
	Count          int32
	Final          bool // no HEARTBEAT is wanted
}

// NackFrag says which fragments of a sample a reader wants (NACK_FRAG, 8.3.8.12).
type NackFrag struct {
	Reader, Writer EntityID
	Seq            SequenceNumber
	Missing        Set[FragmentNumber]
	Count          int32
}

// Gap says which samples a reader will not get (GAP, 8.3.8.4): Start to
// List.Base-1, and those in List.
type Gap struct {
	Reader EntityID // EntityUnknown: every reader that is matched
	Writer EntityID
	Start  SequenceNumber
	List   Set[SequenceNumber]
}

// Covers says that the reader will not get n.
func (g *Gap) Covers(n SequenceNumber) bool {
	return n >= g.Start && n < g.List.Base || g.List.Contains(n)
}

// Sizes of what a submessage has before, or beside, its set (9.4.5.3 to 9.4.5.14).
const (
	entitiesSize      = 8
	heartbeatSize     = entitiesSize + 8 + 8 + 4
	heartbeatFragSize = entitiesSize + 8 + 4 + 4
	sequenceSize      = 8
	fragmentSize      = 4
	countSize         = 4
)

// Heartbeat reads s as HEARTBEAT. False means that s is of another kind, is
// broken, or is cut; so it does for the others below.
func (s *Submessage) Heartbeat() (h Heartbeat, ok bool) {
	o, b := s.order(), s.Body
	if s.Kind != KindHeartbeat || len(b) < heartbeatSize {
		return Heartbeat{}, false
	}
	h = Heartbeat{
		Reader: entity(b), Writer: entity(b[4:]),
		First: o.sequence(b[8:]), Last: o.sequence(b[16:]),
		Count: int32(o.u32(b[24:])),
		Final: s.Flags&flagFinal != 0, Liveliness: s.Flags&flagLiveliness != 0,
	}
	if h.First < 1 || h.Last < h.First-1 {
		return Heartbeat{}, false
	}
	return h, true
}

// HeartbeatFrag reads s as HEARTBEAT_FRAG.
func (s *Submessage) HeartbeatFrag() (h HeartbeatFrag, ok bool) {
	o, b := s.order(), s.Body
	if s.Kind != KindHeartbeatFrag || len(b) < heartbeatFragSize {
		return HeartbeatFrag{}, false
	}
	h = HeartbeatFrag{
		Reader: entity(b), Writer: entity(b[4:]),
		Seq: o.sequence(b[8:]), Last: FragmentNumber(o.u32(b[16:])), Count: int32(o.u32(b[20:])),
	}
	if h.Seq < 1 || h.Last < 1 {
		return HeartbeatFrag{}, false
	}
	return h, true
}

// AckNack reads s as ACKNACK.
func (s *Submessage) AckNack() (a AckNack, ok bool) {
	o, b := s.order(), s.Body
	if s.Kind != KindAckNack || len(b) < entitiesSize+sequenceSize {
		return AckNack{}, false
	}
	a = AckNack{Reader: entity(b), Writer: entity(b[4:]), Final: s.Flags&flagFinal != 0}
	a.Missing.Base = o.sequence(b[8:])
	rest, ok := a.Missing.read(o, b[entitiesSize+sequenceSize:])
	if !ok || len(rest) < countSize || a.Missing.Base < 1 && (a.Missing.Base < 0 || a.Missing.span > 0) {
		return AckNack{}, false
	}
	a.Count = int32(o.u32(rest))
	return a, true
}

// NackFrag reads s as NACK_FRAG.
func (s *Submessage) NackFrag() (n NackFrag, ok bool) {
	o, b := s.order(), s.Body
	if s.Kind != KindNackFrag || len(b) < entitiesSize+sequenceSize+fragmentSize {
		return NackFrag{}, false
	}
	n = NackFrag{Reader: entity(b), Writer: entity(b[4:]), Seq: o.sequence(b[8:])}
	n.Missing.Base = FragmentNumber(o.u32(b[16:]))
	rest, ok := n.Missing.read(o, b[entitiesSize+sequenceSize+fragmentSize:])
	if !ok || len(rest) < countSize || n.Seq < 1 || n.Missing.Base < 1 {
		return NackFrag{}, false
	}
	n.Count = int32(o.u32(rest))
	return n, true
}

// Gap reads s as GAP.
func (s *Submessage) Gap() (g Gap, ok bool) {
	o, b := s.order(), s.Body
	if s.Kind != KindGap || len(b) < entitiesSize+2*sequenceSize {
		return Gap{}, false
	}
	g = Gap{Reader: entity(b), Writer: entity(b[4:]), Start: o.sequence(b[8:])}
	g.List.Base = o.sequence(b[16:])
	if _, ok := g.List.read(o, b[entitiesSize+2*sequenceSize:]); !ok || g.Start < 1 || g.List.Base < 1 {
		return Gap{}, false
	}
	return g, true
}

// A Set is some of the up to 256 numbers from Base on (9.4.2.6, 9.4.2.8).
type Set[N SequenceNumber | FragmentNumber] struct {
	Base N

	span   uint32 // how many numbers the bitmap is about, at most maxSet
	bitmap [maxSet / 32]uint32
}

// read reads what follows the base: the bitmap's length in bits, and its words.
// It returns what follows the set.
func (s *Set[N]) read(o order, b []byte) (rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, false
	}
	s.span = o.u32(b)
	b = b[4:]
	if s.span > maxSet || s.Base+maxSet < s.Base { // no number wraps
		return nil, false
	}
	words := int(s.span+31) / 32
	if len(b) < 4*words {
		return nil, false
	}
	for i := range words {
		s.bitmap[i] = o.u32(b[4*i:])
	}
	if tail := s.span % 32; tail != 0 {
		s.bitmap[words-1] &^= 1<<(32-tail) - 1
	}
	return b[4*words:], true
}

// Contains says that n is in s.
func (s *Set[N]) Contains(n N) bool {
	if n < s.Base || n-s.Base >= N(s.span) {
		return false
	}
	i := uint(n - s.Base)
	return s.bitmap[i/32]&(1<<(31-i%32)) != 0
}

// Next returns the lowest number in s that is n or more. False means that there
// is none.
func (s *Set[N]) Next(n N) (N, bool) {
	i := uint(0)
	if n > s.Base {
		if n-s.Base >= N(s.span) {
			return 0, false
		}
		i = uint(n - s.Base)
	}
	for ; i < uint(s.span); i = i/32*32 + 32 {
		if word := s.bitmap[i/32] << (i % 32); word != 0 {
			return s.Base + N(i) + N(bits.LeadingZeros32(word)), true
		}
	}
	return 0, false
}
