// Package lab builds laboratories: network namespaces joined by links that are
// emulated in this process, so that no help from the kernel's traffic control
// is needed. It needs root.
//
// A link has a TAP device at each end. The emulator, a second copy of the
// program with real-time priority (see Main), has one thread per direction that
// reads frames from one device and writes them to the other when their time has
// come:
//
//	device of A -> read -> pipe.offer(now) -> heap by due time -> pipe.pop(now) -> write -> device of B
//
// The pipe is pure (the time is passed in, random numbers depend on the seed
// and the number of the packet alone); conveyor is the thin shell around it.
// Everything that happens on a real Ethernet happens here too: ARP, neighbour
// discovery and multicast cross the link and suffer with the rest.
//
// A Lab owns its namespaces, links, programs and captures, and Close removes
// them all. What a killed process leaves behind is removed by the next New, or
// by Sweep.
package lab
