package replicate

// Seq is a sequence number compared by serial number arithmetic (RFC 1982 with
// SERIAL_BITS 32): it wraps, and "later" means at most 2^31-1 ahead.
type Seq uint32

// Sub returns how far s is ahead of o; negative when it is behind.
func (s Seq) Sub(o Seq) int32 { return int32(s - o) }

// After reports whether s is later than o.
func (s Seq) After(o Seq) bool { return s.Sub(o) > 0 }
