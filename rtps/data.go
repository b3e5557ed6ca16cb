package rtps

// Data is a sample: what a writer has to say (DATA, 8.3.8.2).
type Data struct {
	Reader EntityID // EntityUnknown: every reader that is matched
	Writer EntityID
	Seq    SequenceNumber // 1 or more

	// InlineQos is empty if there is none, and the beginning of it if the
	// submessage is cut within.
	InlineQos Parameters

	// Payload is what was written, with the encapsulation of four octets before it
	// (10.2). It is empty where there is none, where its format is not the
	// standard's (encrypted, for one), and where it is not here because the
	// submessage is cut; if only the beginning is here, it is that.
	Payload    []byte
	HasPayload bool // there is one, here or not
	Key        bool // the payload is a key alone

	// partial says that inline QoS and the beginning of the payload may be
	// elsewhere: the submessage is cut within the former, or has later fragments.
	partial bool
}

// DataFrag is one or more consecutive fragments of a sample (DATA_FRAG, 8.3.8.3).
// The Payload is that of these fragments, and up to three octets of padding; only
// the first fragment begins with an encapsulation.
type DataFrag struct {
	Data

	FragmentStart         FragmentNumber // the first of them
	FragmentsInSubmessage uint16         // 1 or more
	FragmentSize          uint16         // of each but the sample's last, octets, 1 or more
	SampleSize            uint32         // of all fragments together, octets
}

// Fragments is how many fragments the sample has, 1 or more. FragmentStart and
// those that follow it here are among them.
func (f *DataFrag) Fragments() FragmentNumber {
	size := FragmentNumber(f.FragmentSize)
	return (FragmentNumber(f.SampleSize)-1)/size + 1
}

// Sizes of the fields from extraFlags to where inline QoS begins, as this
// version of the protocol has them (9.4.5.4, 9.4.5.5).
const (
	dataFields     = 20
	dataFragFields = 32
)

// Data reads s as DATA. False means that s is of another kind, is broken, or is
// cut before the payload or inline QoS begins.
func (s *Submessage) Data() (d Data, ok bool) {
	has, key := s.Flags&flagData != 0, s.Flags&flagKey != 0
	if s.Kind != KindData || has && key {
		return Data{}, false
	}
	d.HasPayload, d.Key = has || key, key
	if _, ok := s.sample(&d, dataFields, s.Flags&flagNonStandard != 0); !ok {
		return Data{}, false
	}
	return d, true
}

// DataFrag reads s as DATA_FRAG. False means the same as for Data.
func (s *Submessage) DataFrag() (f DataFrag, ok bool) {
	if s.Kind != KindDataFrag {
		return DataFrag{}, false
	}
	f.HasPayload, f.Key = true, s.Flags&flagFragKey != 0
	size, ok := s.sample(&f.Data, dataFragFields, s.Flags&flagFragNonStandard != 0)
	if !ok {
		return DataFrag{}, false
	}
	o, b := s.order(), s.Body[dataFields:]
	f.FragmentStart = FragmentNumber(o.u32(b))
	f.FragmentsInSubmessage, f.FragmentSize = o.u16(b[4:]), o.u16(b[6:])
	f.SampleSize = o.u32(b[8:])
	if f.FragmentSize == 0 || f.FragmentsInSubmessage == 0 || uint32(f.FragmentSize) > f.SampleSize {
		return DataFrag{}, false
	}
	last := uint64(f.FragmentStart) + uint64(f.FragmentsInSubmessage) - 1
	most := (int(f.FragmentsInSubmessage)*int(f.FragmentSize) + 3) / 4 * 4 // padded, so that the next is aligned
	if f.FragmentStart == 0 || last > uint64(f.Fragments()) || size > most {
		return DataFrag{}, false
	}
	f.partial = f.partial || f.FragmentStart > 1
	return f, true
}

// sample reads what DATA and DATA_FRAG have in common, given how many octets
// of fields there are. It returns the length of the payload, octets, be it here
// or not, and 0 if only the beginning of the inline QoS is here.
func (s *Submessage) sample(d *Data, fields int, opaque bool) (size int, ok bool) {
	b, o := s.Body, s.order()
	if len(b) < fields {
		return 0, false
	}
	toQos := 4 + int(o.u16(b[2:])) // 9.4.5.4.3: counted from behind itself
	d.Reader, d.Writer, d.Seq = entity(b[4:]), entity(b[8:]), o.sequence(b[12:])
	if toQos < fields || toQos > len(b) || d.Seq < 1 {
		return 0, false
	}
	rest := b[toQos:]
	if s.Flags&flagInlineQos != 0 {
		d.InlineQos = newParameters(rest, o)
		after, e := d.InlineQos.skip()
		switch {
		case e == ended:
			rest = after
		case e == cut && s.Cut:
			d.partial = true
			return 0, true
		default:
			return 0, false
		}
	}
	if !d.HasPayload {
		return 0, true
	}
	if !opaque {
		d.Payload = rest
	}
	missing := s.End - s.Start - submessageHeader - len(b)
	return len(rest) + missing, true
}

// body returns the octets of a sample behind its encapsulation, and their byte
// order, if its representation is the given one, or the same little endian.
func (d *Data) body(representation uint16) (b []byte, o order, ok bool) {
	if d.partial || len(d.Payload) < encapsulationSize {
		return nil, bigEndian, false
	}
	b = d.Payload[encapsulationSize:]
	switch bigEndian.u16(d.Payload) {
	case representation:
		return b, bigEndian, true
	case representation + 1:
		return b, littleEndian, true
	}
	return nil, bigEndian, false
}
