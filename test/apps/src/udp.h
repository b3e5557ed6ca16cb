// Calls by plain datagrams, for what a network does to a request and its reply
// without any help: nothing is sent twice.
#ifndef UDP_H
#define UDP_H

#include "common.h"

// A datagram: a number (8 bytes, of this machine's order), then the same as the
// data of a DDS request or reply.
#define UDP_HEADER 8
#define UDP_PORT 7900
#define UDP_MAX 65507

#endif
