// Package arbitrate lets a ROS 2 client that asks several replicas have exactly one
// reply to each request. It is pure: no sockets, no goroutines, time is passed in.
//
// Replicas are DDS participants of their own, so that their replies to one request
// are different samples, which elimination cannot tell from each other. An Arbiter
// sits on the robot, sees each packet that leaves and each datagram that comes, and
// turns every reply but the first into a GAP in its packet.
//
// The files follow what has to be known for that:
//
//	arbiter.go    the calls; the walk through a datagram that comes
//	out.go        the walk through a packet that leaves
//	graph.go      participants, services, their writers and readers, from discovery
//	request.go    requests that left, and which reply was the first
//	pair.go       what a reader here has of a writer there
//	stream.go     a writer there: its samples, and the readers here
//	reply.go      what becomes of a reply
//	park.go       replies that are kept for a moment
//	edit.go       octets of a packet, changed in place
//	snapshot.go   what survives a restart
//	status.go     counters
//
// A reply is the first if it is delivered: all of it was passed on, and with it all
// that its writer wrote before, to a reader that is known to be matched with that
// writer. A reliable reader hands out samples in the order of their numbers, and
// ignores a writer that it is not matched with, so nothing less will do. A reader
// is known to be matched when it has sent an ACKNACK after a HEARTBEAT of that
// writer came. Only after a delivery is a reply withheld. Whatever is not known is
// passed on: two replies are a nuisance, none is a failure.
//
// A reply that is complete, but whose reader lacks an earlier sample of that writer,
// would sit in the reader, and come out as a second reply when the earlier one
// has come again. So it is parked here, where another replica's reply can still
// overtake it.
package arbitrate
