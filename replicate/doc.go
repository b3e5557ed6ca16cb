// Package replicate is the packet replication and elimination function of
// fogplr (PRF and PEF of RFC 8655, sequence recovery of IEEE 802.1CB): the
// frame, the numbering of packets and the elimination of copies. It is pure:
// no sockets, no clock, no goroutines.
package replicate
