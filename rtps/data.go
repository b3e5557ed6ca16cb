package rtps

// Data is a sample: what a writer has to say (DATA, 8.3.8.2).
type Data struct {
	Reader    EntityID // EntityUnknown: every reader of the participant that is matched
	Writer    EntityID
	Seq       SequenceNumber
	InlineQos Parameters // empty if there is none

	// Payload is what the application wrote, with the encapsulation of four octets
	// before it (10.2). It is empty if there is none, if its format is not the
	// standard's (encrypted), or if it is not here because the submessage is cut;
	// the beginning of it, if only that is here.
	Payload    []byte
	HasPayload bool
	Key        bool // the payload is a key alone: the sample is about an instance's end
}

// DataFrag is one or more consecutive fragments of a sample (DATA_FRAG, 8.3.8.3).
type DataFrag struct {
	Data // Payload: of these fragments

	FragmentStart         FragmentNumber // the first one here
	FragmentsInSubmessage uint16
	FragmentSize          uint16 // octets
	SampleSize            uint32 // octets, encapsulation included
}

// Data reads s as DATA. False means that it is none, that it is broken, or that
// too little of it is here.
func (s *Submessage) Data() (d Data, ok bool) { return d, false }

// DataFrag reads s as DATA_FRAG. False means the same as for Data.
func (s *Submessage) DataFrag() (f DataFrag, ok bool) { return f, false }
