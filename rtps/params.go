package rtps

// Parameters are a parameter list (9.4.2.11): inline QoS, or a sample of
// discovery. It borrows the octets that it was read from. A copy of it is read
// on its own.
type Parameters struct {
	octets []byte
	order  order
	left   int // how many more are read
}

// A ParameterID says what a parameter is (9.6.3.2, 9.6.4). From 0x8000 on it is a
// vendor's own.
type ParameterID uint16

// A Parameter is one of a list.
type Parameter struct {
	ID    ParameterID
	Value []byte // padded to a multiple of four octets
}
