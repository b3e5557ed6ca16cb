package carriers

// Limits of what Notes say.
const (
	// maxGiven bounds the notes on slots that were given away in this run: the last
	// ones are told.
	maxGiven = 8
	// maxNamed bounds the interfaces that one sentence names.
	maxNamed = 8
)
