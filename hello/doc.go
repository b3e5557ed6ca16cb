// Package hello is how a robot asks a gateway, outside of WireGuard, to start
// the handshake. WireGuard refuses an initiation whose time stamp is not later
// than the last one it saw from that key, so a robot whose clock went back (it
// boots in 1970 without a battery, and NTP needs the tunnel) would be refused for
// ever. The gateway's time stamps are good for that robot: it has just started
// and remembers none, or remembers this gateway's own.
//
// The messages are STUN binding requests and their answers (RFC 8489), so that
// they share a port with WireGuard and are told apart by their first octets:
//
//	robot                                               gateway
//	request, SOFTWARE                           -->
//	                             <--  success, XOR-MAPPED-ADDRESS     it can be reached
//
//	request, USERNAME, SOFTWARE                 -->
//	                             <--  error 401, NONCE
//	request, USERNAME, NONCE, MAC               -->     a hello
//	                             <--  success, XOR-MAPPED-ADDRESS, MAC
//	                             <--  WireGuard handshake initiation
//
// MAC is MESSAGE-INTEGRITY-SHA256 (section 14.6), as in the short-term
// credentials of section 9.1, with a key that only the carrier and the gateway
// can compute (Secret). The nonce (Nonces) proves that the robot receives at the
// address that it sends from, and that the hello is at most 30 s old, by the
// gateway's monotonic clock alone. An error 438 answers an old one with a fresh
// one. A nonce serves one hello of a carrier, so that a copy does nothing.
//
// A hello authorises one thing: a handshake with that carrier's key at the
// address that the hello came from, once a second at most. Until it is verified
// the gateway keeps nothing, and it never answers with more octets than it got.
//
// The package is pure: no sockets, no goroutines; now is passed in and must have
// a monotonic reading. It never looks at a wall clock.
package hello
