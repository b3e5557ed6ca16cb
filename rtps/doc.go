// Package rtps reads and rewrites RTPS, the wire protocol of DDS and so of
// ROS 2 (OMG formal/22-04-01, version 2.5; sections are quoted from it). It is
// pure: no sockets, no clock, no goroutines.
//
// The files follow the walk of a datagram:
//
//	packet.go     the inner IP packet: is it UDP, and where is its payload?
//	message.go    the payload: header, submessages, what the receiver knows
//	data.go       DATA and DATA_FRAG: samples, or pieces of them
//	params.go     parameter lists: inline QoS, discovery data
//	control.go    HEARTBEAT, ACKNACK, GAP and the two for fragments
//	discovery.go  samples of discovery: participants, writers, readers
//	service.go    samples of ROS 2 services: names, which request is answered
//	rewrite.go    a sample becomes a GAP, in place
//
// wire.go has the constants, types.go the identifiers, limits.go every bound.
//
// Nothing that is read is trusted: every length is checked, every loop is
// bounded, nothing is allocated. What cannot be read is the caller's to pass
// untouched. Byte slices that are handed out are views into the caller's
// packet: they are valid as long as it is, and are not to be written to.
package rtps
