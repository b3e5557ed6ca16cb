package resolve

import "net"

// Headers in bytes.
const (
	udpHeaders = 40 + 8  // by IPv6
	tcpHeaders = 40 + 32 // the same, with time stamps
	tcpRest    = 7 * tcpHeaders
)

// weighed is a connection that tells what it moves: each read or write is taken for
// one packet. TCP's packets without data, of which there are some seven in an
// exchange, are told at the beginning.
type weighed struct {
	net.Conn
	headers int
	moved   func(bytes int)
}

func newWeighed(c net.Conn, network string, moved func(bytes int)) net.Conn {
	if network == "udp" {
		return &weighed{c, udpHeaders, moved}
	}
	moved(tcpRest)
	return &weighed{c, tcpHeaders, moved}
}

// Read implements net.Conn.
func (w *weighed) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.tell(n)
	return n, err
}

// Write implements net.Conn.
func (w *weighed) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	w.tell(n)
	return n, err
}

func (w *weighed) tell(n int) {
	if n > 0 {
		w.moved(n + w.headers)
	}
}
