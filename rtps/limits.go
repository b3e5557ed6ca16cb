package rtps

const (
	// maxMessage is the longest message that is read, octets: what a UDP datagram
	// holds, and a little more. A jumbogram is not for the overlay.
	maxMessage = 1<<16 - 1

	// maxSubmessages is how many submessages of a message are read. The most that
	// makes sense is a timestamp and the smallest sample, again and again: 1,500
	// of each in a datagram of 64 KiB.
	maxSubmessages = 4096

	// maxParameters is how many parameters of a list are read. A participant of
	// Fast DDS with properties and all locators has some 40.
	maxParameters = 512

	// maxName is the longest name of a topic or type, octets: the standard's bound
	// (Table 9.18, string<256>).
	maxName = 256

	// maxSet is how many numbers a set spans, bits: the standard's bound (9.4.2.6).
	maxSet = 256

	// maxExtensions is how many headers are read behind that of IPv6: RFC 8200,
	// section 4.1, has room for four before UDP, of those that are read.
	maxExtensions = 5
)
