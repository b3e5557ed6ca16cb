package control

import "time"

// Limits of this package.
const (
	// clientTimeout bounds one request, so that a stuck daemon does not leave a
	// shell waiting. A status takes milliseconds, a reload reads one file.
	clientTimeout = 5 * time.Second
	// requestTimeout bounds how long a connection may take to ask, and how long to
	// take the answer.
	requestTimeout = 5 * time.Second
	// idleTimeout closes connections that nobody uses.
	idleTimeout = 30 * time.Second
	// closeTimeout is how long Serve waits at its end for answers under way.
	closeTimeout = time.Second
	// maxConnections bounds the connections at a time, so that a client that opens
	// one after the other takes no file descriptors from the tunnel. A person and
	// a monitor need two.
	maxConnections = 32
	// maxHeader bounds the header of a request, in bytes.
	maxHeader = 8 << 10
	// maxBody bounds an answer, in bytes: a gateway's status with thousands of
	// robots.
	maxBody = 64 << 20
	// maxError bounds the text of an error that an answer carries, in bytes.
	maxError = 64 << 10
)
