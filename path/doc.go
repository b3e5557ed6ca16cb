// Package path knows one path, a WireGuard session between a robot's carrier
// and a gateway: whether it is alive, when to probe it, when to start a
// handshake, and how many frames it loses. It is pure: it opens no sockets and
// starts no goroutines, and the caller passes the time in.
package path
