// Package resolve finds the addresses by which one carrier reaches a gateway.
//
// A gateway's endpoint is an address or a DNS name with a port. Which address is
// right depends on the carrier: each network has DNS servers of its own, some lie
// (captive portals), some have no IPv4 but a translator (NAT64). So every
// question goes out through the carrier that the answer is for, to that carrier's
// own DNS servers, and what one carrier learns is never used for another.
//
//	                                    carriers, gateways, link events,
//	                                    paths that fail or answer
//	                                                |
//	DNS <- Query.Lookup <- Question <- Due          v
//	                                   Book, pure, knows what to ask again when
//	DNS -> Query.Lookup -> Answer ---> Record       |
//	                                                v
//	                          News: candidates of a gateway on a carrier, in order
//
// Book is the pure core: it opens nothing, and the time is passed in. Query asks
// one question, System reads which DNS servers the network managers learnt, and
// Runner joins them. Nothing that DNS says is trusted: candidates are only where
// WireGuard is tried.
package resolve
